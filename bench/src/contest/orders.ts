/** The commands of the measuring process to the processes of a contestant, and their replies. */
import type { Load } from '../measure.ts'
import type { Count } from './tally.ts'

export type WorkKind = 'job' | 'flow'

export interface Orders {
  prepare(): void
  openProducer(): void
  openWorker(concurrency: number): void
  introduce(): void
  /** Starts jobs; returns their number, and when the first call began and the last one ended. */
  produce(order: { readonly kind: WorkKind; readonly load: Load }): {
    readonly count: number
    readonly beganAt: number
    readonly endedAt: number
  }
  /** Starts one timed job; returns the time of the call. */
  sendOne(index: number): { readonly sentAt: number }
  /** The time when this timed job starts, or has started. */
  awaitStart(index: number): { readonly startedAt: number }
  /** Treats the next job as the first. */
  mark(): void
  /** Waits until this many distinct ones have been done since the start. */
  awaitCount(order: { readonly kind: WorkKind; readonly distinct: number }): Count
  /** How many have been done so far. */
  count(kind: WorkKind): Count
  /** When everything has ended in the storage. */
  settle(): { readonly settledAt: number }
  close(): void
}
