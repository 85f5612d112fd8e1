import type { Slice } from './depth.ts'

/** What the process that holds one queue can be told. */
export interface DepthOrders {
  /** Opens the storage and lets so many jobs wait in it; gives how long that took. */
  fill(count: number): { readonly ms: number }
  /** Claims and settles for a while. The queue stays as long as it is. */
  slice(pace: { readonly limit: number; readonly ms: number }): Slice
  /** Lets an orchestrator and a worker work on it for a while. The queue stays as long as it is. */
  work(ms: number): { readonly done: number; readonly ms: number }
  close(): void
}
