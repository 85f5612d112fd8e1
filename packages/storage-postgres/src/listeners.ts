import type { Queue } from '@impresario/core'

/** Listeners that are called when a lane may have received claimable items. */
export class Listeners {
  readonly #byQueue = new Map<Queue, Set<(lane: string) => void>>()

  add(queue: Queue, listener: (lane: string) => void): () => void {
    const listeners = this.#byQueue.get(queue) ?? new Set()
    this.#byQueue.set(queue, listeners)
    // Wrapped, so that the same function can be registered twice and removed once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  tell(queue: Queue, lane: string): void {
    for (const listener of this.#byQueue.get(queue) ?? []) listener(lane)
  }

  /** Queues that have listeners. */
  queues(): readonly Queue[] {
    return [...this.#byQueue].filter(([, listeners]) => listeners.size > 0).map(([queue]) => queue)
  }
}
