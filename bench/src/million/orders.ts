import type { Slice } from './depth.ts'

/** The commands of the process that holds one queue. */
export interface DepthOrders {
  /** Opens the storage and fills it with this many waiting jobs; returns how long that took. */
  fill(count: number): { readonly ms: number }
  /** Claims and settles for a while. The queue keeps its length. */
  slice(pace: { readonly limit: number; readonly ms: number }): Slice
  /** Lets an orchestrator and a worker work on it for a while. The queue keeps its length. */
  work(ms: number): { readonly done: number; readonly ms: number }
  close(): void
}
