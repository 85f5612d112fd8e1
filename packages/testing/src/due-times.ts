import type { Batch, Claimed, Queue } from '@impresario/core'

/** Instances of an orchestrator use these among themselves. No job waits for them. */
const INTERNAL: ReadonlySet<Queue> = new Set(['leaders', 'signals'])

/**
 * The moments at which something in the storage becomes due, expires or is free again. Time can skip from one to the next.
 * A moment may have lost its reason meanwhile: stopping there costs little and changes nothing.
 */
export class DueTimes {
  readonly #now: () => number
  #times: number[] = []

  constructor(now: () => number) {
    this.#now = now
  }

  add(inMs: number | undefined): void {
    if (inMs === undefined || inMs <= 0 || !Number.isFinite(inMs)) return
    const at = Math.ceil(this.#now() + inMs)
    let index = this.#times.length
    while (index > 0 && (this.#times[index - 1] ?? 0) > at) index -= 1
    if (this.#times[index - 1] !== at) this.#times.splice(index, 0, at)
  }

  committed({ enqueue = [] }: Batch): void {
    for (const { queue, delayMs, fallback, unclaimedMs, settleMs } of enqueue) {
      if (INTERNAL.has(queue)) continue
      for (const afterMs of [0, fallback?.afterMs, unclaimedMs, settleMs]) {
        if (afterMs !== undefined) this.add(delayMs + afterMs)
      }
    }
  }

  claimed(queue: Queue, { leases }: Claimed, leaseMs: number): void {
    if (INTERNAL.has(queue) || leases.length === 0) return
    this.add(leaseMs)
    for (const { expiresInMs } of leases) this.add(expiresInMs)
  }

  /** The first moment that is later than now. */
  next(): number | undefined {
    const now = this.#now()
    const passed = this.#times.findIndex((at) => at > now)
    this.#times = passed === -1 ? [] : this.#times.slice(passed)
    return this.#times[0]
  }
}
