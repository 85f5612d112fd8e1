import type {
  Batch,
  Claimed,
  ClaimOptions,
  Facets,
  Item,
  ItemView,
  Kind,
  LaneView,
  Lease,
  LeaseRef,
  Listed,
  Listing,
  ListQuery,
  Queue,
  Records,
  Storage,
  Stored,
} from '@impresario/core'
import { listingOf } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { ClaimMarks } from './claim-marks.ts'
import { entryFromRow, entryOf, leaseOf } from './entry.ts'
import type { Entry, PayloadSource } from './entry.ts'
import { Flusher } from './flusher.ts'
import type { Journal } from './journal.ts'
import { QueueIndex } from './queue-index.ts'
import type { CachePage } from './record-cache.ts'
import { RecordStore } from './record-store.ts'
import { TokenSource } from './token-source.ts'

export interface EmbeddedStorageOptions {
  /** The storage's clock, in milliseconds since 1970. Must never go back. */
  readonly now: () => number
  /** Makes changes durable. Without it all data is lost when the process ends. */
  readonly journal?: Journal
  /**
   * Records which turns were claimed. Without it, the next process knows only of turns that were claimed a second time.
   */
  readonly marks?: ClaimMarks
  /** How many unchanged records of each kind stay in memory. */
  readonly cacheMax?: number
  /** How many bytes of memory unchanged jobs may take; all other records together take less. */
  readonly cacheBytesMax?: number
  /** How many bytes of changes may wait to be written. Beyond that, a commit resolves only when they are written. */
  readonly pendingBytesMax?: number
  /**
   * Schedules a flush. The default waits for one tick of the event loop, so that the changes of that tick are written
   * together.
   */
  readonly schedule?: (run: () => void) => void
  /** A write failed: the storage refuses every call from now on, and the process should stop. */
  readonly onFailure?: (error: Error) => void
}

const CACHE_MAX = 4096
const CACHE_BYTES_MAX = 67_108_864
const PENDING_BYTES_MAX = 67_108_864
/**
 * After a process ended while it held turns, for this long every claim of a turn is on disk before the turn is handed
 * out.
 */
const CAUTION_MS = 60_000

/**
 * Storage inside the process. Memory is the source of truth; a journal, if there is one, follows it.
 *
 * `open` → `broken` when a write fails, `closed` by `close`; both are final. While open, every method does its work
 * before it returns, without awaiting anything, so each method is atomic.
 */
export class EmbeddedStorage implements Storage {
  readonly #now: () => number
  readonly #records: RecordStore
  readonly #queues: Readonly<Record<Queue, QueueIndex>>
  readonly #listeners = new Map<Queue, Set<(lane: string) => void>>()
  readonly #tokens: TokenSource
  readonly #flusher: Flusher | undefined
  readonly #marks: ClaimMarks | undefined
  readonly #cautiousUntil: number
  #seq = 0
  #closed: Promise<void> | undefined = undefined

  constructor(options: EmbeddedStorageOptions) {
    const { journal, cacheMax: recordsMax = CACHE_MAX, cacheBytesMax: bytesMax = CACHE_BYTES_MAX } = options
    const { pendingBytesMax = PENDING_BYTES_MAX } = options
    this.#queues = {
      turns: new QueueIndex(),
      tasks: new QueueIndex(),
      timers: new QueueIndex(),
      mail: new QueueIndex(),
      outbox: new QueueIndex(),
      leaders: new QueueIndex(),
      signals: new QueueIndex(),
      firings: new QueueIndex(),
      events: new QueueIndex(),
    }
    const opened = journal?.open()
    this.#now = notBefore(opened?.time ?? 0, options.now)
    this.#tokens = new TokenSource(opened?.epoch ?? 1)
    this.#records = new RecordStore(journal, opened, { recordsMax, bytesMax })
    this.#marks = options.marks
    this.#cautiousUntil = hasMarks(options.marks) ? this.#now() + CAUTION_MS : -Infinity
    if (journal === undefined || opened === undefined) return
    const now = this.#now()
    const payloads = payloadsOf(journal)
    const marked = new Set(this.#marks?.left)
    for (const row of opened.items) {
      const entry = entryFromRow(row, payloads)
      // The previous process held a claim of this turn when it ended, and the journal does not show that claim.
      if (entry.queue === 'turns' && marked.delete(entry.seq)) entry.deliveries = Math.max(entry.deliveries, 1)
      this.#queues[entry.queue].add(entry, now)
      if (row.seq > this.#seq) this.#seq = row.seq
    }
    for (const turn of marked) this.#marks?.gone(turn)
    this.#flusher = new Flusher(journal, this.#tokens, this.#records, {
      ...options,
      now: this.#now,
      pendingBytesMax,
      payloads,
    })
  }

  async now(): Promise<number> {
    this.#mustWork()
    return this.#now()
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    this.#mustWork()
    return asKind<K>(this.#records.read(kind, id, this.#advanceRecords()))
  }

  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Listing<K>> {
    this.#mustWork()
    return asListing<K>(this.#records.list(kind, query, this.#advanceRecords()))
  }

  async counts(kind: Kind, facets: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    this.#mustWork()
    this.#advanceRecords()
    return this.#records.counts(kind, facets)
  }

  async peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    this.#mustWork()
    const now = this.#now()
    const index = this.#queues[queue]
    index.advance(now)
    return ids.map((id) => index.view(id, now))
  }

  async held(queue: Queue): Promise<readonly string[]> {
    this.#mustWork()
    const index = this.#queues[queue]
    index.advance(this.#now())
    return index.held()
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    this.#mustWork()
    const index = this.#queues[queue]
    index.advance(this.#now())
    return index.laneViews()
  }

  async claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    this.#mustWork()
    const { lanes, limit, leaseMs, holder } = options
    const now = this.#now()
    const index = this.#queues[queue]
    index.advance(now)
    const leases: Lease[] = []
    const fresh: number[] = []
    let hasSuspects = false
    while (leases.length < limit) {
      const entry = lanes === undefined ? index.nextInRotation() : index.bestOf(lanes)
      if (entry === undefined) break
      if (entry.isSuspect && holder === undefined) hasSuspects = true
      else fresh.push(entry.seq)
      leases.push(this.#lease(index, entry, { now, leaseMs, holder }))
    }
    const nextInMs = index.hasReady(lanes) ? 0 : until(index.nextReadyAt(), now)
    // A turn left behind may be what crashed an earlier process. Its new delivery is on disk before it is handed out,
    // so that its delivery count grows however soon this process ends. All other claims are handed out without waiting.
    if (queue === 'turns' && fresh.length > 0) this.#marks?.claimed(fresh)
    // The turn at fault may be one that never reached the disk and would otherwise continue to leave no trace.
    const isCautious = queue === 'turns' && leases.length > 0 && now < this.#cautiousUntil
    if (hasSuspects || isCautious) await this.#flusher?.sync()
    return { leases, nextInMs }
  }

  async claimExpired(
    queue: Queue,
    { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
  ): Promise<Claimed> {
    this.#mustWork()
    const now = this.#now()
    const index = this.#queues[queue]
    index.advance(now)
    const leases: Lease[] = []
    while (leases.length < limit) {
      const entry = index.firstExpired()
      if (entry === undefined) break
      leases.push(this.#lease(index, entry, { now, leaseMs, holder: undefined }))
    }
    if (index.firstExpired() !== undefined) return { leases, nextInMs: 0 }
    return { leases, nextInMs: until(index.nextExpiredAt(), now) }
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    this.#mustWork()
    const now = this.#now()
    return leases.map((ref) => {
      const index = this.#queues[ref.queue]
      index.advance(now)
      const entry = index.find(ref)
      if (entry === undefined) return false
      // A hand-back is always written, because the journal may contain the claim that it undoes.
      if (leaseMs <= 0 || entry.holder !== undefined) this.#flusher?.itemChanged(entry)
      if (leaseMs > 0) index.renew(entry, now + leaseMs, now)
      else {
        index.handBack(entry, now)
        if (ref.queue === 'turns') this.#marks?.handedBack(entry.seq)
      }
      if (entry.state === 'ready') this.#announce(entry)
      return true
    })
  }

  async commit(batch: Batch): Promise<'committed' | 'conflict'> {
    this.#mustWork()
    const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
    const now = this.#advanceRecords()
    const settled = settle && this.#inForce(settle, now)
    if (settle !== undefined && settled === undefined) return 'conflict'
    if (guard !== undefined && this.#inForce(guard, now) === undefined) return 'conflict'
    if (!this.#records.fits(batch, now)) return 'conflict'
    if (settled !== undefined) {
      if (settled.queue === 'turns') this.#marks?.settled(settled.seq, settled.token)
      this.#remove(settled)
    }
    for (const { queue, id } of remove) {
      const entry = this.#queues[queue].get(id)
      if (entry !== undefined) this.#remove(entry)
    }
    let hasChanged = put.length > 0
    for (const { kind, id } of drop) if (this.#records.drop(kind, id, now)) hasChanged = true
    for (const one of put) this.#records.put(one, now)
    if (hasChanged) this.#flusher?.recordsChanged()
    if (enqueue.length > 0) this.#enqueueAll(enqueue, now)
    // The commit is already ordered and visible. Waiting here slows down callers that would add more.
    if (hasChanged && this.#flusher?.isPressed === true) await this.#flusher.sync()
    return 'committed'
  }

  async sync(): Promise<void> {
    this.#mustWork()
    if (this.#flusher !== undefined) await this.#flusher.sync()
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    const listeners = this.#listeners.get(queue) ?? new Set()
    this.#listeners.set(queue, listeners)
    // Wrapped, so that the same function can be registered twice and removed once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  close(): Promise<void> {
    this.#closed ??= this.#flusher?.close() ?? Promise.resolve()
    return this.#closed
  }

  #lease(
    index: QueueIndex,
    entry: Entry,
    { now, leaseMs, holder }: { readonly now: number; readonly leaseMs: number; readonly holder: string | undefined },
  ): Lease {
    const firstClaim = entry.deliveries === 0 && entry.unclaimedAt !== Infinity && entry.state === 'ready'
    index.lease(entry, { token: this.#tokens.next(), until: now + leaseMs, holder }, now)
    // A lease that ends with the process need not be written, unless the journal contains a lease that it replaces.
    if (holder !== undefined || firstClaim || entry.leaseStored || entry.isSuspect) this.#flusher?.itemChanged(entry)
    entry.isSuspect = false
    const lease = leaseOf(entry, now)
    const settledBy = entry.queue === 'turns' ? this.#marks?.settledBefore.get(entry.seq) : undefined
    return settledBy === undefined ? lease : { ...lease, settledBy }
  }

  /** The entry that this claim refers to, unless it expired while leased. */
  #inForce(ref: LeaseRef, now: number): Entry | undefined {
    const index = this.#queues[ref.queue]
    index.advance(now)
    const entry = index.find(ref)
    return entry?.state === 'expired' ? undefined : entry
  }

  /** Updates the records to the current time and returns that time. */
  #advanceRecords(): number {
    const now = this.#now()
    if (this.#records.advance(now)) this.#flusher?.recordsChanged()
    return now
  }

  #remove(entry: Entry): void {
    this.#queues[entry.queue].remove(entry)
    this.#flusher?.itemRemoved(entry)
    if (entry.queue === 'turns') this.#marks?.gone(entry.seq)
  }

  #enqueueAll(items: readonly Item[], now: number): void {
    for (const item of items) {
      const index = this.#queues[item.queue]
      const old = index.get(item.id)
      if (old !== undefined) this.#remove(old)
      const entry = entryOf(item, ++this.#seq, now)
      index.add(entry, now)
      this.#flusher?.itemAdded(entry)
    }
    // Only now: a listener may claim immediately and must see the whole batch.
    for (const item of items) if (item.delayMs <= 0) this.#announce(item)
  }

  #announce({ queue, lane }: Pick<Item, 'queue' | 'lane'>): void {
    const listeners = this.#listeners.get(queue)
    if (listeners === undefined) return
    for (const listener of listeners) listener(lane)
  }

  #mustWork(): void {
    if (this.#closed !== undefined) throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage is closed.')
    this.#flusher?.mustWork()
  }
}

/** Storage without a disk, for tests, for experiments, and for work that may be lost. */
export function createMemoryStorage({ now }: { readonly now: () => number }): EmbeddedStorage {
  return new EmbeddedStorage({ now })
}

function hasMarks(marks: ClaimMarks | undefined): boolean {
  return marks !== undefined && marks.left.size + marks.settledBefore.size > 0
}

function payloadsOf(journal: Journal): PayloadSource {
  return (queue, id) => {
    const text = journal.payload(queue, id)
    if (text === undefined) throw new Error(`The payload of the item ${queue} ${id} is not in the journal.`)
    return text
  }
}

/**
 * The clock, moved forward if it is behind the last written timestamp: time never goes back, not even across a restart.
 */
function notBefore(floor: number, now: () => number): () => number {
  const behind = floor - now()
  return behind > 0 ? () => now() + behind : now
}

function until(at: number, now: number): number | undefined {
  return at === Infinity ? undefined : Math.max(at - now, 0)
}

/** Type boundary where a cached record gets the type of its kind back: `commit` stored it by kind. */
function asKind<K extends Kind>(stored: Stored<unknown> | undefined): Stored<Records[K]> | undefined {
  return stored === undefined ? undefined : { value: stored.value as Records[K], version: stored.version }
}

function asListing<K extends Kind>({ records, next }: CachePage): Listing<K> {
  return listingOf(records as readonly Listed<K>[], next)
}
