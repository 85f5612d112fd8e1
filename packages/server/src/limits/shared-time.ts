import type { Item, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

/** Longer than any storage lives. */
const SPAN_MS = 100 * 365 * 86_400_000
const TRIES_MAX = 5
const ID = 'clock'
const ITEM: Item = { queue: 'signals', id: ID, lane: ID, priority: 0, delayMs: SPAN_MS, payload: null }

/**
 * The storage's own time, which is the same for all instances however their clocks differ: the milliseconds since the first
 * of them asked for it. An item that is due in a hundred years tells it, by how much of that is left.
 */
export class SharedTime {
  readonly #storage: Storage

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** Not later than the storage's time when this resolves, and not before its time when it was called. */
  async now(): Promise<number> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const [view] = await this.#storage.peek('signals', [ID])
      if (view !== undefined) return SPAN_MS - view.dueInMs
      await this.#begin()
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage lost the item that its time is read from.')
  }

  /** The version lets one of all instances do it: a second one would set the time back. */
  async #begin(): Promise<void> {
    const version = ((await this.#storage.read('limit', ID))?.version ?? 0) + 1
    await this.#storage.commit({ put: [{ kind: 'limit', id: ID, version, value: { paidOffAt: 0 } }], enqueue: [ITEM] })
  }
}
