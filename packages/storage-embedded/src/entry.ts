import { AGEING_MS } from '@impresario/core'
import type { Item, ItemView, Lease, Queue } from '@impresario/core'
import type { Json } from '@impresario/protocol'
import type { Alarm } from './alarm-heap.ts'
import type { ItemRow, LeaseRow } from './journal.ts'

/**
 * Where an item stands.
 *
 * `waiting` (not due) → `ready` (claimable) → `held` (leased) → `ready` when the lease ends.
 * Any of these → `expired` when its time is over; from there only `claimExpired` gets it: `closing`
 * while that lease lasts, `expired` again when it ends. Only a holder who hands back what ran out of
 * time in his hands makes it `ready` again. An item leaves by being settled or removed.
 */
export type EntryState = 'waiting' | 'ready' | 'held' | 'expired' | 'closing'

/** An item in memory. One object for life, so that the heaps can refer to it; only `QueueIndex` changes it. */
export class Entry {
  readonly item: Item
  readonly seq: number
  readonly dueAt: number
  /** Smaller first: when it became due, with every level of priority worth so much waiting. */
  readonly rank: number
  readonly fallbackAt: number
  readonly settleAt: number
  /** Counts as long as nobody has claimed it: while `deliveries` is zero. */
  readonly unclaimedAt: number
  /** When the newest claim runs out of time. Counts if its lease lasts until then. */
  runAt = Infinity
  state: EntryState = 'waiting'
  gone = false
  /** Zero: never claimed in a way that somebody could still refer to. */
  token = 0
  leasedUntil = 0
  holder: string | undefined = undefined
  deliveries = 0
  /** Whether the newest claim was one of an expiry, which does not count as a delivery. */
  isExpiryClaim = false
  fallbackOn = false
  /** Whether it has a slot, perhaps a dead one, in the heap of its own lane and of its fallback lane. */
  inLane = false
  inFallback = false
  wake: Alarm<Entry> | undefined = undefined
  fallback: Alarm<Entry> | undefined = undefined
  expiry: Alarm<Entry> | undefined = undefined
  /** Whether the journal has a row by this queue and id, this whole row, and a lease in it. */
  idStored = false
  rowStored = false
  leaseStored = false
  /** An earlier process may have had it in its own hands when it ended, and this one has not claimed it yet. */
  isSuspect = false

  constructor(item: Item, seq: number, dueAt: number) {
    this.item = item
    this.seq = seq
    this.dueAt = dueAt
    this.rank = dueAt - item.priority * AGEING_MS
    const fallback = item.fallback
    this.fallbackAt = fallback === undefined || fallback.lane === item.lane ? Infinity : dueAt + fallback.afterMs
    this.settleAt = item.settleMs === undefined ? Infinity : dueAt + item.settleMs
    this.unclaimedAt = item.unclaimedMs === undefined ? Infinity : dueAt + item.unclaimedMs
  }

  /** When it expires, as things stand. */
  get expiresAt(): number {
    const at = this.#expiresInQueueAt
    return this.runAt < at && this.runAt <= this.leasedUntil ? this.runAt : at
  }

  /** When it expires if the lease is kept: never later than as things stand. */
  get expiresInHandAt(): number {
    const at = this.#expiresInQueueAt
    return this.runAt < at ? this.runAt : at
  }

  get #expiresInQueueAt(): number {
    return this.deliveries === 0 && this.unclaimedAt < this.settleAt ? this.unclaimedAt : this.settleAt
  }
}

/** Which of two ready items is taken first. */
export function comesBefore(a: Entry, b: Entry): boolean {
  return a.rank === b.rank ? a.seq < b.seq : a.rank < b.rank
}

export function leaseOf(entry: Entry, now: number): Lease {
  const { queue, id, lane, priority, payload } = entry.item
  const at = entry.expiresInHandAt
  const expiresInMs = at === Infinity ? undefined : at > now ? at - now : 0
  return { queue, id, token: entry.token, lane, priority, payload, deliveries: entry.deliveries, expiresInMs }
}

export function viewOf(entry: Entry, now: number): ItemView {
  const { queue, id, lane, priority, payload } = entry.item
  const lease =
    entry.token !== 0 && entry.leasedUntil > now
      ? { token: entry.token, holder: entry.holder, endsInMs: entry.leasedUntil - now }
      : undefined
  const dueInMs = entry.dueAt > now ? entry.dueAt - now : 0
  return { queue, id, lane, priority, payload, deliveries: entry.deliveries, dueInMs, lease }
}

/**
 * Until when the row shows the item as leased. A lease without a holder is not kept, with one exception: what ran
 * out of time in somebody's hands stays expired after a restart, and that follows from a lease up to that moment.
 */
function leasedUntilIn(entry: Entry): number {
  if (entry.holder !== undefined) return entry.leasedUntil
  return entry.isExpiryClaim && entry.runAt <= entry.settleAt && entry.runAt !== Infinity ? entry.runAt : 0
}

export function leaseRowOf(entry: Entry): LeaseRow {
  const leasedUntil = leasedUntilIn(entry)
  return {
    queue: entry.item.queue,
    id: entry.item.id,
    runAt: leasedUntil === 0 ? null : finite(entry.runAt),
    token: entry.holder === undefined ? 0 : entry.token,
    leasedUntil,
    holder: entry.holder ?? null,
    deliveries: entry.deliveries,
  }
}

export function itemRowOf(entry: Entry): ItemRow {
  // Written out: to spread the other row into this one takes ten times as long, and every task comes by here.
  const { queue, id, lane, priority, payload, fallback, runMs } = entry.item
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
    payload: JSON.stringify(payload),
    fallbackLane: fallback?.lane ?? null,
    fallbackAt: finite(entry.fallbackAt),
    settleAt: finite(entry.settleAt),
    unclaimedAt: finite(entry.unclaimedAt),
    runMs: runMs ?? null,
  }
}

export function entryFromRow(row: ItemRow): Entry {
  const span = (at: number | null): number | undefined => (at === null ? undefined : at - row.dueAt)
  const fallbackMs = span(row.fallbackAt)
  const settleMs = span(row.settleAt)
  const unclaimedMs = span(row.unclaimedAt)
  const entry = new Entry(
    {
      queue: queueOf(row.queue),
      id: row.id,
      lane: row.lane,
      priority: row.priority,
      delayMs: 0,
      payload: jsonOf(row.payload),
      ...(row.fallbackLane !== null && fallbackMs !== undefined
        ? { fallback: { lane: row.fallbackLane, afterMs: fallbackMs } }
        : {}),
      ...(settleMs === undefined ? {} : { settleMs }),
      ...(unclaimedMs === undefined ? {} : { unclaimedMs }),
      ...(row.runMs === null ? {} : { runMs: row.runMs }),
    },
    row.seq,
    row.dueAt,
  )
  entry.token = row.token
  entry.runAt = row.runAt ?? Infinity
  entry.leasedUntil = row.leasedUntil
  entry.holder = row.holder ?? undefined
  entry.deliveries = row.deliveries
  entry.idStored = true
  entry.rowStored = true
  entry.leaseStored = row.token !== 0
  // What somebody outside held was not what ended the process.
  entry.isSuspect = row.token === 0
  return entry
}

/** The boundary where a name from the journal becomes a queue again: only this package writes it. */
export function queueOf(name: string): Queue {
  return name as Queue
}

/** The boundary where stored text becomes a payload again: only this package writes it. */
function jsonOf(text: string): Json {
  return JSON.parse(text) as Json
}

function finite(at: number): number | null {
  return at === Infinity ? null : at
}
