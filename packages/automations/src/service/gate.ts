import { isEnded, jsonObjectCopy, storedCopy } from '@impresario/core'
import type { Put, Storage } from '@impresario/core'
import { escaped } from './record.ts'
import type { AutomationRecord } from './record.ts'

/**
 * Counts the open runs of a concurrency key, and keeps those that wait in their order. It is written with its version in
 * every commit that lets a run in, so two instances never both take the last place. Runs leave it by themselves: one that
 * has ended is no longer counted when the gate is looked at next.
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

/** Which gate the runs of an automation pass; nothing if they may all run side by side. */
export function gateIdOf({ id, owner, definition }: AutomationRecord): string | undefined {
  const { key } = definition.concurrency
  if (key !== undefined) return `key/${escaped(owner)}/${key}`
  return definition.overlap === 'parallel' ? undefined : `automation/${id}`
}

export async function readGate(storage: Storage, id: string, limit: number): Promise<Gate> {
  const stored = await storage.read('gate', id)
  const { open = [], waiting = [] } = (stored === undefined ? {} : storedCopy(stored.value)) as Partial<Gate>
  const jobs = await Promise.all(open.map((runId) => storage.read('job', runId)))
  const isOpen = (at: number): boolean => {
    const job = jobs[at]?.value
    return job !== undefined && !isEnded(job)
  }
  return { id, limit, open: open.filter((_, at) => isOpen(at)), waiting, version: stored?.version ?? 0 }
}

export function isFull({ open, limit }: Gate): boolean {
  return open.length >= limit
}

export function putGate({ id, open, waiting, version }: Gate): Put {
  return { kind: 'gate', id, value: jsonObjectCopy({ open, waiting }, 'The gate'), version: version + 1 }
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
