import type { Queue } from '@impresario/core'
import { unpack } from './codec.ts'
import { pairsOf } from './replies.ts'

/** Those who watch queues, and what they are told. */
export class Hints {
  /** Names this storage, so that it does not take its own hints for those of others. */
  readonly #origin: string
  readonly #listeners = new Map<Queue, Set<(lane: string) => void>>()

  constructor(origin: string) {
    this.#origin = origin
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    const listeners = this.#listeners.get(queue) ?? new Set()
    this.#listeners.set(queue, listeners)
    // A wrapper of its own, so that one function can watch twice and stop once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  announce(queue: Queue, lane: string): void {
    const listeners = this.#listeners.get(queue)
    if (listeners === undefined) return
    for (const listener of listeners) listener(lane)
  }

  /** The queues and lanes of a message, unless it is from this very storage. */
  read(message: Buffer): readonly (readonly [Queue, string])[] {
    const [origin, ...names] = unpack<readonly string[]>(message)
    return origin === this.#origin ? [] : pairsOf(names).map(([queue, lane]) => [queueOf(queue), lane])
  }
}

/** The boundary where a name from a hint becomes a queue again: only this package sends it. */
function queueOf(name: string): Queue {
  return name as Queue
}
