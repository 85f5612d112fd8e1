/** What the process that measures tells the processes of a contestant, and what they answer. */
import type { Load } from '../measure.ts'
import type { Count } from './tally.ts'

export type WorkKind = 'job' | 'flow'

export interface Orders {
  prepare(): void
  openProducer(): void
  openWorker(concurrency: number): void
  introduce(): void
  /** Starts jobs; gives their number, and when the first call began and the last one ended. */
  produce(order: { readonly kind: WorkKind; readonly load: Load }): {
    readonly count: number
    readonly beganAt: number
    readonly endedAt: number
  }
  /** Starts one timed job; gives the moment of the call. */
  sendOne(index: number): { readonly sentAt: number }
  /** The moment when this timed job starts, or has started. */
  awaitStart(index: number): { readonly startedAt: number }
  /** The next job is a first one. */
  mark(): void
  /** Waits until so many different ones have been done since the beginning. */
  awaitCount(order: { readonly kind: WorkKind; readonly distinct: number }): Count
  /** How many have been done so far. */
  count(kind: WorkKind): Count
  /** When everything has ended in the storage. */
  settle(): { readonly settledAt: number }
  close(): void
}
