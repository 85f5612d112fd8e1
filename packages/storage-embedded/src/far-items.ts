import type { Queue } from '@impresario/core'
import { entryFromRow } from './entry.ts'
import type { Entry, PayloadSource } from './entry.ts'
import type { Journal, OpenedItem } from './journal.ts'
import type { QueueIndex } from './queue-index.ts'

export interface FarItemsOptions {
  readonly queue: Queue
  readonly index: QueueIndex
  readonly journal: Journal
  readonly payloads: PayloadSource
  /** Whether the journal's row of this id, if there is one, is stale: it is about to be deleted or replaced. */
  readonly isChanging: (queue: Queue, id: string) => boolean
  /** Items that are due later than this stay on the disk. */
  readonly aheadMs: number
  readonly now: number
}

/**
 * The items of one queue that are due far ahead, and are on the disk alone. There may be hundred thousand of them, such as the
 * next firing of every automation, and nothing asks for them until their time is near.
 *
 * Everything that is due up to the horizon is in memory. An item beyond it leaves memory once it is written, and comes back
 * when the horizon reaches it or somebody asks for it by its id.
 */
export class FarItems {
  readonly #options: FarItemsOptions
  #horizon: number
  #size = 0

  constructor(options: FarItemsOptions) {
    this.#options = options
    this.#horizon = options.now + options.aheadMs
  }

  get size(): number {
    return this.#size
  }

  /** When one of them may be due. Too early, never too late. */
  get nextAt(): number {
    return this.#size === 0 ? Infinity : this.#horizon
  }

  /** Whether a row that was found at the opening stays here. */
  keeps(row: OpenedItem): boolean {
    if (row.queue !== this.#options.queue || row.dueAt <= this.#horizon) return false
    const times = [row.fallbackAt, row.settleAt, row.unclaimedAt, row.runMs]
    if (row.token !== 0 || row.deliveries !== 0 || times.some((time) => time !== null)) return false
    this.#size += 1
    return true
  }

  /** The journal has this entry. It leaves memory if it only waits, for long. */
  offer(entry: Entry): void {
    const { index, isChanging, queue } = this.#options
    if (entry.gone || !isOnlyWaiting(entry) || entry.dueAt <= this.#horizon || isChanging(queue, entry.id)) return
    index.remove(entry)
    this.#size += 1
  }

  /** Brings an item back that somebody asks for. */
  fetch(id: string, now: number): void {
    const { journal, queue, index } = this.#options
    if (this.#size === 0 || index.get(id) !== undefined || this.#isStale(id)) return
    const row = journal.item(queue, id)
    if (row !== undefined) this.#bring(row, now)
  }

  /** Brings back what is due soon: half of the time ahead is still to come when it is read. */
  advance(now: number): void {
    const { aheadMs, journal, queue, index } = this.#options
    if (now + aheadMs / 2 < this.#horizon) return
    const before = this.#horizon
    this.#horizon = now + aheadMs
    if (this.#size === 0) return
    for (const row of journal.itemsDue(queue, before, this.#horizon)) {
      if (index.get(row.id) === undefined && !this.#isStale(row.id)) this.#bring(row, now)
    }
  }

  #bring(row: OpenedItem, now: number): void {
    const entry = entryFromRow(row, this.#options.payloads)
    entry.isSuspect = false
    this.#options.index.add(entry, now)
    this.#size -= 1
  }

  #isStale(id: string): boolean {
    return this.#options.isChanging(this.#options.queue, id)
  }
}

function isOnlyWaiting(entry: Entry): boolean {
  const { state, token, deliveries, fallbackAt, settleAt, unclaimedAt, runMs } = entry
  const never = fallbackAt === Infinity && settleAt === Infinity && unclaimedAt === Infinity && runMs === undefined
  return state === 'waiting' && token === 0 && deliveries === 0 && never
}
