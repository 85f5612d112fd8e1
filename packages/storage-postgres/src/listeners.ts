import type { Queue } from '@impresario/core'

/** Who wants to know when a lane may have got something to claim. */
export class Listeners {
  readonly #byQueue = new Map<Queue, Set<(lane: string) => void>>()

  add(queue: Queue, listener: (lane: string) => void): () => void {
    const listeners = this.#byQueue.get(queue) ?? new Set()
    this.#byQueue.set(queue, listeners)
    // A wrapper of its own, so that one function can watch twice and stop once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  tell(queue: Queue, lane: string): void {
    for (const listener of this.#byQueue.get(queue) ?? []) listener(lane)
  }

  /** Queues that somebody listens to. */
  queues(): readonly Queue[] {
    return [...this.#byQueue].filter(([, listeners]) => listeners.size > 0).map(([queue]) => queue)
  }
}
