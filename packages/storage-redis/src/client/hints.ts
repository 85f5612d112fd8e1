import type { Queue } from '@impresario/core'
import { unpack } from './codec.ts'
import { pairsOf } from './replies.ts'

/** The listeners of each queue, and the hints that they receive. */
export class Hints {
  /** Names this storage, so that it ignores its own hints. */
  readonly #origin: string
  readonly #listeners = new Map<Queue, Set<(lane: string) => void>>()

  constructor(origin: string) {
    this.#origin = origin
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    const listeners = this.#listeners.get(queue) ?? new Set()
    this.#listeners.set(queue, listeners)
    // Wrapped, so that the same function can be registered twice and removed once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  announce(queue: Queue, lane: string): void {
    const listeners = this.#listeners.get(queue)
    if (listeners === undefined) return
    for (const listener of listeners) listener(lane)
  }

  /** The queues and lanes of a message, unless this storage sent it. */
  read(message: Buffer): readonly (readonly [Queue, string])[] {
    const [origin, ...names] = unpack<readonly string[]>(message)
    return origin === this.#origin ? [] : pairsOf(names).map(([queue, lane]) => [queueOf(queue), lane])
  }
}

/** Type boundary where a name from a hint becomes a queue again. Only this package sends it. */
function queueOf(name: string): Queue {
  return name as Queue
}
