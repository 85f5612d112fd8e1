import { isEnded, jsonObjectCopy, storedCopy } from '@impresario/core'
import type { Put, Storage } from '@impresario/core'
import { escaped } from './record.ts'
import type { AutomationRecord } from './record.ts'

/**
 * Counts the open runs of a concurrency key, and keeps those that wait in their order. It is written with its version in
 * every commit that lets a run in, so two instances never both take the last place. Runs leave it by themselves: one that
 * has ended is no longer counted when the gate is looked at next. After the last one it is written once more, empty, to expire.
 */
export interface Gate {
  readonly id: string
  readonly limit: number
  readonly open: readonly string[]
  readonly waiting: readonly string[]
  readonly version: number
}

/** More runs of one key do not wait; further ones are skipped. */
export const WAITING_MAX = 1_000
/**
 * A gate with nobody in it is gone after this time, so that keys which nobody uses any more leave nothing behind. The next one
 * begins with version 1; a commit that has read the old one must not meet the same version again, and none takes a day.
 */
const EMPTY_MS = 86_400_000
/** There may be a thousand open runs of a megabyte each, which need not be in memory together. */
const READ_AT_ONCE = 20

/** Which gate the runs of an automation pass; nothing if they may all run side by side. */
export function gateIdOf({ id, owner, definition }: AutomationRecord): string | undefined {
  const { key } = definition.concurrency
  if (key !== undefined) return `key/${escaped(owner)}/${key}`
  return definition.overlap === 'parallel' ? undefined : `automation/${id}`
}

export async function readGate(storage: Storage, id: string, limit: number): Promise<Gate> {
  const stored = await storage.read('gate', id)
  const { open = [], waiting = [] } = (stored === undefined ? {} : storedCopy(stored.value)) as Partial<Gate>
  const stillOpen: string[] = []
  for (let at = 0; at < open.length; at += READ_AT_ONCE) {
    const some = open.slice(at, at + READ_AT_ONCE)
    const are = await Promise.all(some.map((runId) => isOpenRun(storage, runId)))
    stillOpen.push(...some.filter((_, index) => are[index] === true))
  }
  return { id, limit, open: stillOpen, waiting, version: stored?.version ?? 0 }
}

async function isOpenRun(storage: Storage, runId: string): Promise<boolean> {
  const job = (await storage.read('job', runId))?.value
  return job !== undefined && !isEnded(job)
}

export function isFull({ open, limit }: Gate): boolean {
  return open.length >= limit
}

export function putGate({ id, open, waiting, version }: Gate): Put {
  const value = jsonObjectCopy({ open, waiting }, 'The gate')
  const isEmpty = open.length === 0 && waiting.length === 0
  return { kind: 'gate', id, value, version: version + 1, ...(isEmpty ? { expiresMs: EMPTY_MS } : {}) }
}

export function opened(gate: Gate, runId: string): Gate {
  return { ...gate, open: [...gate.open, runId], waiting: gate.waiting.filter((one) => one !== runId) }
}

export function queued(gate: Gate, runId: string): Gate {
  return { ...gate, waiting: [...gate.waiting, runId] }
}

export function withoutRun(gate: Gate, runId: string): Gate {
  return { ...gate, waiting: gate.waiting.filter((one) => one !== runId) }
}
