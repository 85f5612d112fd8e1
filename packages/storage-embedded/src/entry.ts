import { AGEING_MS } from '@impresario/core'
import type { Item, ItemView, Lease, Queue } from '@impresario/core'
import type { Json } from '@impresario/protocol'
import type { Alarm } from './alarm-heap.ts'
import type { ItemRow, LeaseRow, OpenedItem } from './journal.ts'

/**
 * The state of an item.
 *
 * `waiting` (not due) → `ready` (claimable) → `held` (leased) → `ready` when the lease ends. Any of these → `expired`
 * when the item's time is over. From there only `claimExpired` returns it: `closing` while that lease lasts, `expired`
 * again when it ends. It becomes `ready` again only when a lease holder hands back an item that ran out of time during
 * its lease. An item is removed by being settled or removed.
 */
export type EntryState = 'waiting' | 'ready' | 'held' | 'expired' | 'closing'

/** Longer payloads are read from the journal on request: a message to a dead receiver may wait for days. */
export const PAYLOAD_KEPT_CHARS_MAX = 1_024

/** Where to read a payload that is not in memory. */
export type PayloadSource = (queue: string, id: string) => string

/** The constant part of an item, with timestamps instead of durations. */
interface Fixed extends Pick<Item, 'queue' | 'id' | 'lane' | 'priority'> {
  readonly runMs: number | undefined
  readonly fallbackLane: string | undefined
  readonly fallbackAt: number
  readonly settleAt: number
  readonly unclaimedAt: number
}

/**
 * An item in memory. It stays one object for its whole life, so that the heaps can refer to it; only `QueueIndex`
 * changes it. There may be a million of them: each is one object, and its payload becomes a string once it is written.
 */
export class Entry {
  readonly queue: Queue
  readonly id: string
  /** Always the same string for the same lane, once it is in one. */
  lane: string
  readonly priority: number
  readonly fallbackLane: string | undefined
  readonly runMs: number | undefined
  readonly seq: number
  readonly dueAt: number
  /** Smaller is first: the time it became due, where each priority level counts as a fixed amount of waiting. */
  readonly rank: number
  readonly fallbackAt: number
  readonly settleAt: number
  /** Applies until the first claim: while `deliveries` is zero. */
  readonly unclaimedAt: number
  /** When the newest claim runs out of time. Applies if its lease lasts until then. */
  runAt = Infinity
  state: EntryState = 'waiting'
  gone = false
  /** Zero: no claim that a caller could still refer to. */
  token = 0
  leasedUntil = 0
  holder: string | undefined = undefined
  deliveries = 0
  /** Whether the newest claim came from `claimExpired`, which does not count as a delivery. */
  isExpiryClaim = false
  fallbackOn = false
  /** Whether it has a slot, possibly a dead one, in the heap of its own lane and of its fallback lane. */
  inLane = false
  inFallback = false
  wake: Alarm<Entry> | undefined = undefined
  fallback: Alarm<Entry> | undefined = undefined
  expiry: Alarm<Entry> | undefined = undefined
  /** Whether the journal has a row for this queue and id, this complete row, and a lease in it. */
  idStored = false
  rowStored = false
  leaseStored = false
  /** An earlier process may have held it when that process ended, and this process has not claimed it yet. */
  isSuspect = false
  #payload: Json | undefined
  #text: string | undefined
  #source: PayloadSource | undefined

  constructor(
    fixed: Fixed,
    seq: number,
    dueAt: number,
    content: { readonly payload: Json } | { readonly text: string } | { readonly source: PayloadSource },
  ) {
    this.queue = fixed.queue
    this.id = fixed.id
    this.lane = fixed.lane
    this.priority = fixed.priority
    this.fallbackLane = fixed.fallbackLane
    this.runMs = fixed.runMs
    this.seq = seq
    this.dueAt = dueAt
    this.rank = dueAt - fixed.priority * AGEING_MS
    this.fallbackAt = fixed.fallbackLane === fixed.lane ? Infinity : fixed.fallbackAt
    this.settleAt = fixed.settleAt
    this.unclaimedAt = fixed.unclaimedAt
    this.#payload = 'payload' in content ? content.payload : undefined
    this.#text = 'text' in content ? content.text : undefined
    this.#source = 'source' in content ? content.source : undefined
  }

  get payload(): Json {
    if (this.#source !== undefined) return jsonOf(this.#source(this.queue, this.id))
    if (this.#text === undefined) return this.#payload as Json
    return jsonOf(this.#text)
  }

  /** The payload as the journal keeps it. From now on it is kept in that form here too. */
  payloadText(): string {
    if (this.#source !== undefined) return this.#source(this.queue, this.id)
    this.#text ??= JSON.stringify(this.#payload)
    this.#payload = undefined
    return this.#text
  }

  /** The journal has the payload, so a long one need not stay in memory. */
  leavePayload(source: PayloadSource): void {
    if (this.#text === undefined || this.#text.length <= PAYLOAD_KEPT_CHARS_MAX) return
    this.#text = undefined
    this.#source = source
  }

  /** When it expires, given its current lease. */
  get expiresAt(): number {
    const at = this.#expiresInQueueAt
    return this.runAt < at && this.runAt <= this.leasedUntil ? this.runAt : at
  }

  /** When it expires if the lease is kept until then: never later than `expiresAt`. */
  get expiresInHandAt(): number {
    const at = this.#expiresInQueueAt
    return this.runAt < at ? this.runAt : at
  }

  get #expiresInQueueAt(): number {
    return this.deliveries === 0 && this.unclaimedAt < this.settleAt ? this.unclaimedAt : this.settleAt
  }
}

export function entryOf(item: Item, seq: number, now: number): Entry {
  const { queue, id, lane, priority, runMs, fallback, settleMs, unclaimedMs, payload } = item
  const dueAt = now + item.delayMs
  const fixed: Fixed = {
    queue,
    id,
    lane,
    priority,
    runMs,
    fallbackLane: fallback?.lane,
    fallbackAt: fallback === undefined ? Infinity : dueAt + fallback.afterMs,
    settleAt: settleMs === undefined ? Infinity : dueAt + settleMs,
    unclaimedAt: unclaimedMs === undefined ? Infinity : dueAt + unclaimedMs,
  }
  const entry = new Entry(fixed, seq, dueAt, { payload })
  const { claimed } = item
  if (claimed === undefined) return entry
  entry.token = claimed.token
  entry.holder = claimed.holder
  entry.leasedUntil = now + claimed.leaseMs
  entry.deliveries = 1
  if (runMs !== undefined) entry.runAt = now + runMs
  return entry
}

/** Which of two ready items is taken first. */
export function comesBefore(a: Entry, b: Entry): boolean {
  return a.rank === b.rank ? a.seq < b.seq : a.rank < b.rank
}

export function leaseOf(entry: Entry, now: number): Lease {
  const { queue, id, lane, priority, payload } = entry
  const at = entry.expiresInHandAt
  const expiresInMs = at === Infinity ? undefined : at > now ? at - now : 0
  return { queue, id, token: entry.token, lane, priority, payload, deliveries: entry.deliveries, expiresInMs }
}

export function viewOf(entry: Entry, now: number): ItemView {
  const { queue, id, lane, priority, payload } = entry
  const lease =
    entry.token !== 0 && entry.leasedUntil > now
      ? { token: entry.token, holder: entry.holder, endsInMs: entry.leasedUntil - now }
      : undefined
  const dueInMs = entry.dueAt > now ? entry.dueAt - now : 0
  return { queue, id, lane, priority, payload, deliveries: entry.deliveries, dueInMs, lease }
}

/**
 * The end of the lease as the row stores it. A lease without a holder is not stored, with one exception: an item that
 * ran out of time while leased stays expired after a restart, and that follows from a lease that lasts until that
 * moment.
 */
function leasedUntilIn(entry: Entry): number {
  if (entry.holder !== undefined) return entry.leasedUntil
  return entry.isExpiryClaim && entry.runAt <= entry.settleAt && entry.runAt !== Infinity ? entry.runAt : 0
}

export function leaseRowOf(entry: Entry): LeaseRow {
  const leasedUntil = leasedUntilIn(entry)
  return {
    queue: entry.queue,
    id: entry.id,
    runAt: leasedUntil === 0 ? null : finite(entry.runAt),
    token: entry.holder === undefined ? 0 : entry.token,
    leasedUntil,
    holder: entry.holder ?? null,
    deliveries: entry.deliveries,
  }
}

export function itemRowOf(entry: Entry): ItemRow {
  // Written out: spreading the other row into this one takes ten times as long, and every task passes through here.
  const { queue, id, lane, priority, fallbackLane, runMs } = entry
  const leasedUntil = leasedUntilIn(entry)
  return {
    queue,
    id,
    runAt: leasedUntil === 0 ? null : finite(entry.runAt),
    token: entry.holder === undefined ? 0 : entry.token,
    leasedUntil,
    holder: entry.holder ?? null,
    deliveries: entry.deliveries,
    lane,
    priority,
    seq: entry.seq,
    dueAt: entry.dueAt,
    get payload() {
      return entry.payloadText()
    },
    fallbackLane: fallbackLane ?? null,
    fallbackAt: finite(entry.fallbackAt),
    settleAt: finite(entry.settleAt),
    unclaimedAt: finite(entry.unclaimedAt),
    runMs: runMs ?? null,
  }
}

export function entryFromRow(row: OpenedItem, source: PayloadSource): Entry {
  const fixed: Fixed = {
    queue: queueOf(row.queue),
    id: row.id,
    lane: row.lane,
    priority: row.priority,
    runMs: row.runMs ?? undefined,
    fallbackLane: row.fallbackLane ?? undefined,
    fallbackAt: row.fallbackAt ?? Infinity,
    settleAt: row.settleAt ?? Infinity,
    unclaimedAt: row.unclaimedAt ?? Infinity,
  }
  const content = row.payload === null ? { source } : { text: row.payload }
  const entry = new Entry(fixed, row.seq, row.dueAt, content)
  entry.token = row.token
  entry.runAt = row.runAt ?? Infinity
  entry.leasedUntil = row.leasedUntil
  entry.holder = row.holder ?? undefined
  entry.deliveries = row.deliveries
  entry.idStored = true
  entry.rowStored = true
  entry.leaseStored = row.token !== 0
  // An item held by an outside holder is not what crashed the process.
  entry.isSuspect = row.token === 0
  return entry
}

/** Type boundary where a name from the journal becomes a queue again. Only this package writes it. */
export function queueOf(name: string): Queue {
  return name as Queue
}

/** Type boundary where stored text becomes a payload again. Only this package writes it. */
function jsonOf(text: string): Json {
  return JSON.parse(text) as Json
}

function finite(at: number): number | null {
  return at === Infinity ? null : at
}
