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
  /** Bytes that those that wait bring with them. Runs that older versions let wait are not in it. */
  readonly sizes: Readonly<Record<string, number>>
  /** Whom the runs belong to that wait; absent where none has waited since the version that counts them. */
  readonly owner?: string
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

/** As it was written: some of its open runs may have ended. */
export async function storedGate(storage: Storage, id: string, limit: number): Promise<Gate> {
  const stored = await storage.read('gate', id)
  const value = (stored === undefined ? {} : storedCopy(stored.value)) as Partial<Gate>
  const { open = [], waiting = [], sizes = {}, owner } = value
  return { id, limit, open, waiting, sizes, version: stored?.version ?? 0, ...(owner === undefined ? {} : { owner }) }
}

export async function readGate(storage: Storage, id: string, limit: number): Promise<Gate> {
  const stored = await storedGate(storage, id, limit)
  const { open } = stored
  const stillOpen: string[] = []
  for (let at = 0; at < open.length; at += READ_AT_ONCE) {
    const some = open.slice(at, at + READ_AT_ONCE)
    const are = await Promise.all(some.map((runId) => isOpenRun(storage, runId)))
    stillOpen.push(...some.filter((_, index) => are[index] === true))
  }
  return { ...stored, open: stillOpen }
}

async function isOpenRun(storage: Storage, runId: string): Promise<boolean> {
  const job = (await storage.read('job', runId))?.value
  return job !== undefined && !isEnded(job)
}

export function isFull({ open, limit }: Gate): boolean {
  return open.length >= limit
}

/** What waits is counted by owner and size. */
export function putGate({ id, open, waiting, sizes, owner, version }: Gate): Put {
  const value = jsonObjectCopy({ open, waiting, sizes, ...(owner === undefined ? {} : { owner }) }, 'The gate')
  const isEmpty = open.length === 0 && waiting.length === 0
  const bytes = Object.values(sizes).reduce((sum, size) => sum + size, 0)
  return {
    kind: 'gate',
    id,
    value,
    version: version + 1,
    ...(owner === undefined || bytes === 0 ? {} : { facets: { owner, status: statusOfBytes(bytes) } }),
    ...(isEmpty ? { expiresMs: EMPTY_MS } : {}),
  }
}

/** Half powers of two: a few dozen counts for each owner, and none is more than 1.42 times too high. */
function statusOfBytes(bytes: number): string {
  return String(Math.ceil(2 * Math.log2(bytes)))
}

export function bytesOfStatus(status: string): number {
  return Math.ceil(2 ** (Number(status) / 2))
}

export function opened(gate: Gate, runId: string): Gate {
  return { ...withoutRun(gate, runId), open: [...gate.open, runId] }
}

export function queued(gate: Gate, runId: string, bytes: number, owner: string): Gate {
  return { ...gate, waiting: [...gate.waiting, runId], sizes: { ...gate.sizes, [runId]: bytes }, owner }
}

export function withoutRun(gate: Gate, runId: string): Gate {
  const { [runId]: _, ...sizes } = gate.sizes
  return { ...gate, waiting: gate.waiting.filter((one) => one !== runId), sizes }
}
