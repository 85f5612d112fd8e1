import type { Batch, Put, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { asAutomation, escaped } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { isSameWish } from './refusals.ts'

/** A record that is dropped. */
export type Dropped = NonNullable<Batch['drop']>[number]

/** What a change of an automation does to the record of its key. */
interface KeyChange {
  readonly put: readonly Put[]
  readonly drop: readonly Dropped[]
}

/** Another automation of the owner has the key. */
class KeyTaken extends ImpresarioError {
  readonly holder: AutomationRecord

  constructor(holder: AutomationRecord, key: string) {
    const advice = 'Change that one, or take another key.'
    super('CONFLICT', `The automation ${holder.id} ("${holder.definition.title}") has the key "${key}". ${advice}`, {
      details: { automation_id: holder.id },
    })
    this.holder = holder
  }
}

/**
 * One record for each owner and key names the automation that has it. It is written in the commit of that automation, so two
 * who take the same key at the same time conflict. An automation that was canceled has no key any more.
 */
export async function keyChange(
  storage: Storage,
  before: AutomationRecord | undefined,
  after: AutomationRecord,
  now: number,
): Promise<KeyChange> {
  const [old, key] = [before === undefined ? undefined : keyOf(before), keyOf(after)]
  const put = key === undefined ? [] : await taken(storage, after, key, now)
  const drop = old === undefined || old === key ? [] : await released(storage, after, old)
  return { put, drop }
}

/** The key of a new automation. One that has it already counts as the new one, if the same author asked for it in the same words. */
export async function newKey(
  storage: Storage,
  record: AutomationRecord,
  now: number,
): Promise<{ readonly put: readonly Put[] } | { readonly holder: AutomationRecord }> {
  try {
    return await keyChange(storage, undefined, record, now)
  } catch (error) {
    if (error instanceof KeyTaken && isSameWish(error.holder, record)) return { holder: error.holder }
    throw error
  }
}

/** The key that an automation gives up with its end. */
export async function keyDrop(storage: Storage, record: AutomationRecord): Promise<readonly Dropped[]> {
  const key = keyOf(record)
  return key === undefined ? [] : released(storage, record, key)
}

async function taken(storage: Storage, after: AutomationRecord, key: string, now: number): Promise<readonly Put[]> {
  const { id: automationId, owner } = after
  const id = keyId(owner, key)
  const stored = await storage.read('key', id)
  if (stored?.value.jobId === automationId) return []
  const found = stored === undefined ? undefined : await storage.read('automation', stored.value.jobId)
  const holder = found === undefined ? undefined : asAutomation(found).value
  if (holder !== undefined && holder.owner === owner && keyOf(holder) === key) throw new KeyTaken(holder, key)
  const value = { jobId: automationId, fingerprint: '', createdAt: now }
  return [{ kind: 'key', id, version: (stored?.version ?? 0) + 1, value }]
}

async function released(storage: Storage, { id, owner }: AutomationRecord, key: string): Promise<readonly Dropped[]> {
  const ref = { kind: 'key', id: keyId(owner, key) } as const
  return (await storage.read('key', ref.id))?.value.jobId === id ? [ref] : []
}

function keyOf({ status, definition }: AutomationRecord): string | undefined {
  return status === 'canceled' ? undefined : definition.key
}

/** Ids of clients' own keys never begin with "%automation". */
function keyId(owner: string, key: string): string {
  return `%automation/${escaped(owner)}/${key}`
}
