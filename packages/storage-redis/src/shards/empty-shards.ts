import type { Item, Queue } from '@impresario/core'

/** What is known of a queue in one shard. */
interface Entry {
  /** Counts the hints received: a reply that was in flight meanwhile may be older than the hint. */
  news: number
  /** How long the rest is valid. */
  until: number
  /** When the next item may become available, as far as the shard knows. */
  next: number | undefined
  readonly empty: Set<string>
  isEmpty: boolean
}

/**
 * How long the knowledge that a shard is empty stays valid. It is short because other instances do not announce delayed
 * items or leases that end. It is also the longest delay that a lost hint can cause.
 */
const EMPTY_MS = 250

/**
 * Which shards have nothing for a claim, so that it need not query them. It is used only while the hints of all
 * instances are received. A hint, or a write of this storage itself, invalidates it for the lane.
 */
export class EmptyShards {
  readonly #shards: number
  readonly #now: () => number
  readonly #queues = new Map<Queue, readonly Entry[]>()
  #isHearing = false

  constructor(shards: number, now: () => number) {
    this.#shards = shards
    this.#now = now
  }

  hearing(isHearing: boolean): void {
    this.#isHearing = isHearing
    this.#queues.clear()
  }

  /** The shards that may have items for a claim of these lanes, or of all. */
  candidates(queue: Queue, lanes: readonly string[] | undefined, shards: readonly number[]): readonly number[] {
    if (!this.#isHearing) return shards
    const now = this.#now()
    return shards.filter((shard) => {
      const entry = this.#entry(queue, shard)
      if (now >= entry.until) return true
      return lanes === undefined ? !entry.isEmpty : !entry.isEmpty && !lanes.every((lane) => entry.empty.has(lane))
    })
  }

  /** How long until one of these shards may have an item, if that is known. */
  nextInMs(queue: Queue, shards: readonly number[]): number | undefined {
    const moments = shards.flatMap((shard) => this.#entry(queue, shard).next ?? [])
    return moments.length === 0 ? undefined : Math.max(1, Math.min(...moments) - this.#now())
  }

  news(queue: Queue, shard: number): number {
    return this.#entry(queue, shard).news
  }

  /** A shard has reported that these lanes (or all) are empty, before any hint that came since `news`. */
  learn(
    { queue, shard, news }: { readonly queue: Queue; readonly shard: number; readonly news: number },
    lanes: readonly string[] | undefined,
    nextInMs: number | undefined,
  ): void {
    const entry = this.#entry(queue, shard)
    if (!this.#isHearing || entry.news !== news || nextInMs === 0) return
    const now = this.#now()
    if (now >= entry.until) {
      entry.until = now + EMPTY_MS
      entry.empty.clear()
      entry.isEmpty = false
    }
    entry.next = nextInMs === undefined ? undefined : now + nextInMs
    if (entry.next !== undefined) entry.until = Math.min(entry.until, entry.next)
    if (lanes === undefined) entry.isEmpty = true
    else for (const lane of lanes) entry.empty.add(lane)
  }

  /** An item was added to a lane. */
  disturb(queue: Queue, shard: number, lane: string): void {
    const entry = this.#entry(queue, shard)
    entry.news += 1
    entry.empty.delete(lane)
    entry.isEmpty = false
  }

  /** An item will be available after this time. */
  soon(queue: Queue, shard: number, ms: number): void {
    // Not counted as news: replies to this storage's own calls arrive in the order of the calls.
    const entry = this.#entry(queue, shard)
    const at = this.#now() + ms
    entry.until = Math.min(entry.until, at)
    entry.next = Math.min(entry.next ?? at, at)
  }

  enqueued({ queue, lane, delayMs, fallback, claimed }: Item, shard: number): void {
    if (claimed !== undefined) this.soon(queue, shard, claimed.leaseMs)
    else if (delayMs <= 0) this.disturb(queue, shard, lane)
    else this.soon(queue, shard, delayMs)
    if (fallback !== undefined) this.soon(queue, shard, Math.max(0, delayMs) + fallback.afterMs)
  }

  #entry(queue: Queue, shard: number): Entry {
    let entries = this.#queues.get(queue)
    if (entries === undefined) {
      entries = Array.from({ length: this.#shards }, () => ({
        news: 0,
        until: Number.NEGATIVE_INFINITY,
        next: undefined,
        empty: new Set<string>(),
        isEmpty: false,
      }))
      this.#queues.set(queue, entries)
    }
    const entry = entries[shard]
    if (entry === undefined) throw new RangeError(`There is no shard ${shard}`)
    return entry
  }
}
