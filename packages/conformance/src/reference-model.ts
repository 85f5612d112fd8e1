import type { Batch, Item, LeaseRef, Put, Queue } from '@impresario/core'

/** An item of the model: the item, when it came, and its last claim. */
interface Held {
  readonly item: Item
  readonly order: number
  readonly dueAt: number
  token: number
  until: number
  /** When somebody last took it in hand, as long as he has not handed it back. */
  takenAt: number | undefined
  /** Whether the present lease is one of an expiry. */
  closing: boolean
  deliveries: number
}

/**
 * What a storage is, said as plainly as possible: two arrays, and every question answered by looking
 * at all of them. Slow on purpose, and written without looking at any backend.
 */
export class ReferenceModel {
  now = 0
  records: Put[] = []
  items: Held[] = []
  #order = 0

  commit(batch: Batch): 'committed' | 'conflict' {
    const { put = [], enqueue = [], remove = [], settle } = batch
    if (settle !== undefined && !this.#isCurrent(settle)) return 'conflict'
    if (put.some(({ kind, id, version }) => this.#versionOf(kind, id) !== version - 1)) return 'conflict'
    const gone = [...remove, ...enqueue, ...(settle === undefined ? [] : [settle])]
    this.items = this.items.filter(({ item }) => !gone.some(({ queue, id }) => item.queue === queue && item.id === id))
    for (const item of enqueue) {
      const dueAt = this.now + item.delayMs
      const order = this.#order++
      const untouched = { token: 0, until: 0, takenAt: undefined, closing: false, deliveries: 0 }
      this.items.push({ item, order, dueAt, ...untouched })
    }
    this.records = this.records.filter((old) => !put.some(({ kind, id }) => old.kind === kind && old.id === id))
    this.records.push(...put)
    return 'committed'
  }

  /** What a claim of these lanes would get, best first. */
  claimable(queue: Queue, lanes: readonly string[]): readonly Held[] {
    return this.items
      .filter((held) => held.item.queue === queue && this.#isReady(held))
      .filter((held) => this.lanesOf(held).some((lane) => lanes.includes(lane)))
      .sort((a, b) => b.item.priority - a.item.priority || a.dueAt - b.dueAt || a.order - b.order)
  }

  expired(queue: Queue): readonly Held[] {
    return this.items.filter(
      (held) => held.item.queue === queue && this.#isExpired(held) && !(held.closing && held.until > this.now),
    )
  }

  /** The lanes through which an item is claimable at this moment, if it is. */
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

  /** How long until the item expires if whoever claimed it last keeps it. */
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

  #versionOf(kind: string, id: string): number {
    return this.records.find((record) => record.kind === kind && record.id === id)?.version ?? 0
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
