import type { WorkerRecord } from './worker.ts'

/** Whether a worker still counts: one that has not been heard of for `ttlMs` is given nothing. */
export function assess(worker: WorkerRecord, now: number, ttlMs: number): 'live' | 'silent' {
  return now - worker.seenAt <= ttlMs ? 'live' : 'silent'
}
