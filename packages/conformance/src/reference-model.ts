import { AGEING_MS } from '@impresario/core'
import type { Batch, Item, Kind, LeaseRef, Put, Queue } from '@impresario/core'

/** An item of the model: the item, when it was enqueued, and its last claim. */
interface Held {
  readonly item: Item
  readonly order: number
  readonly dueAt: number
  token: number
  until: number
  /** When it was last claimed, as long as that claim has not been handed back. */
  takenAt: number | undefined
  /** Whether the current lease comes from `claimExpired`. */
  closing: boolean
  deliveries: number
}

/** A record of the model, and when it expires. */
interface Kept {
  readonly put: Put
  readonly expiresAt: number
}

/**
 * The simplest possible definition of a storage: two arrays, and every query scans all of them. Slow on purpose, and
 * written without looking at any backend.
 */
export class ReferenceModel {
  now = 0
  kept: Kept[] = []
  items: Held[] = []
  #order = 0

  commit(batch: Batch): 'committed' | 'conflict' {
    const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
    if (settle !== undefined && !this.#isInForce(settle)) return 'conflict'
    if (guard !== undefined && !this.#isInForce(guard)) return 'conflict'
    const isNamed = (name: { kind: string; id: string }, { kind, id }: Put): boolean =>
      name.kind === kind && name.id === id
    const left = this.records.filter((old) => !drop.some((name) => isNamed(name, old)))
    const follows = (one: Put): boolean => (left.find((old) => isNamed(one, old))?.version ?? 0) === one.version - 1
    if (!put.every(follows)) return 'conflict'
    const gone = [...remove, ...enqueue, ...(settle === undefined ? [] : [settle])]
    this.items = this.items.filter(({ item }) => !gone.some(({ queue, id }) => item.queue === queue && item.id === id))
    for (const item of enqueue) {
      const dueAt = this.now + item.delayMs
      const order = this.#order++
      const untouched = { token: 0, until: 0, takenAt: undefined, closing: false, deliveries: 0 }
      this.items.push({ item, order, dueAt, ...untouched })
      const { queue, id, claimed } = item
      if (claimed !== undefined) this.claim(queue, { id, ...claimed, expiry: false })
    }
    this.kept = this.kept.filter(({ put: old }) => ![...drop, ...put].some((name) => isNamed(name, old)))
    for (const one of put) this.kept.push({ put: one, expiresAt: this.now + (one.expiresMs ?? Infinity) })
    return 'committed'
  }

  get records(): readonly Put[] {
    return this.kept.filter(({ expiresAt }) => expiresAt > this.now).map(({ put }) => put)
  }

  /** The number of records of a kind for each status. */
  counts(kind: Kind, owner: string | undefined): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { kind: other, facets } of this.records) {
      if (other !== kind || facets?.status === undefined) continue
      if (owner === undefined || facets.owner === owner) counts[facets.status] = (counts[facets.status] ?? 0) + 1
    }
    return counts
  }

  /** The items that a claim of these lanes would get, best first. */
  claimable(queue: Queue, lanes: readonly string[]): readonly Held[] {
    return this.items
      .filter((held) => held.item.queue === queue && this.#isReady(held))
      .filter((held) => this.lanesOf(held).some((lane) => lanes.includes(lane)))
      .sort((a, b) => rankOf(a) - rankOf(b) || a.order - b.order)
  }

  expired(queue: Queue): readonly Held[] {
    return this.items.filter(
      (held) => held.item.queue === queue && this.#isExpired(held) && !(held.closing && held.until > this.now),
    )
  }

  /** The lanes through which an item is claimable now, if it is. */
  lanesOf({ item, dueAt }: Held): readonly string[] {
    const { fallback } = item
    return fallback !== undefined && this.now >= dueAt + fallback.afterMs ? [item.lane, fallback.lane] : [item.lane]
  }

  claim(
    queue: Queue,
    { id, token, leaseMs, expiry }: { id: string; token: number; leaseMs: number; expiry: boolean },
  ): void {
    const held = this.itemOf(queue, id)
    if (held === undefined) throw new Error(`There is no ${id} to claim`)
    held.token = token
    held.until = this.now + leaseMs
    held.closing = expiry
    if (expiry) return
    held.deliveries++
    held.takenAt = this.now
  }

  /** How long until the item expires if the holder of its last claim keeps it. */
  expiresInMs({ item, dueAt, takenAt, deliveries }: Held): number | undefined {
    const ends = [
      ...(item.settleMs === undefined ? [] : [dueAt + item.settleMs]),
      ...(item.unclaimedMs === undefined || deliveries > 0 ? [] : [dueAt + item.unclaimedMs]),
      ...(item.runMs === undefined || takenAt === undefined ? [] : [takenAt + item.runMs]),
    ]
    return ends.length === 0 ? undefined : Math.max(0, Math.min(...ends) - this.now)
  }

  renew(ref: LeaseRef, leaseMs: number): boolean {
    const held = this.itemOf(ref.queue, ref.id)
    if (held === undefined || !this.#isCurrent(ref)) return false
    held.until = this.now + leaseMs
    if (leaseMs > 0) return true
    held.token = 0
    if (held.closing) return true
    held.deliveries--
    held.takenAt = undefined
    return true
  }

  itemOf(queue: Queue, id: string): Held | undefined {
    return this.items.find(({ item }) => item.queue === queue && item.id === id)
  }

  read(id: string): Put | undefined {
    return this.records.find((record) => record.kind === 'job' && record.id === id)
  }

  #isCurrent({ queue, id, token }: LeaseRef): boolean {
    return token !== 0 && this.itemOf(queue, id)?.token === token
  }

  /**
   * The claim is the newest and its item has not expired while leased. A claim of an expiry is valid as long as its
   * lease.
   */
  #isInForce(ref: LeaseRef): boolean {
    const held = this.itemOf(ref.queue, ref.id)
    if (held === undefined || !this.#isCurrent(ref)) return false
    return !this.#isExpired(held) || (held.closing && held.until > this.now)
  }

  #isReady(held: Held): boolean {
    return held.dueAt <= this.now && held.until <= this.now && !this.#isExpired(held)
  }

  #isExpired({ item, dueAt, takenAt, until, deliveries }: Held): boolean {
    const { unclaimedMs, settleMs, runMs } = item
    if (settleMs !== undefined && this.now >= dueAt + settleMs) return true
    if (unclaimedMs !== undefined && deliveries === 0 && this.now >= dueAt + unclaimedMs) return true
    if (runMs === undefined || takenAt === undefined) return false
    return this.now >= takenAt + runMs && until >= takenAt + runMs
  }
}

function rankOf({ item, dueAt }: Held): number {
  return dueAt - item.priority * AGEING_MS
}
