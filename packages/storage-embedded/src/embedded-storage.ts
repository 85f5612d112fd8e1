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
import type { Soon } from '@impresario/protocol'
import type { ClaimMarks } from './claim-marks.ts'
import { entryFromRow, entryOf, leaseOf, queueOf } from './entry.ts'
import type { Entry, PayloadSource } from './entry.ts'
import { Flusher } from './flusher.ts'
import type { Journal, Opened, OpenedItem } from './journal.ts'
import { QueueIndex } from './queue-index.ts'
import type { CachePage } from './record-cache.ts'
import { RecordStore } from './record-store.ts'
import { FarItems } from './far-items.ts'
import { RestingItems } from './resting-items.ts'
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
  /** From so many on, the items that a start finds and nobody holds stay in the journal until they are needed. */
  readonly restingMin?: number
  /** How many bytes of changes may wait to be written. Beyond that, a commit resolves only when they are written. */
  readonly pendingBytesMax?: number
  /**
   * Schedules a flush. The default waits for two ticks of the event loop, so that the changes of these ticks are written
   * together, unless a worker waits for them and there is little load.
   */
  readonly schedule?: (run: () => void) => void
  /** Which queues keep what is due far ahead on the disk alone, and what far is. */
  readonly farItems?: { readonly queues?: readonly Queue[]; readonly aheadMs?: number }
  /** A write failed: the storage refuses every call from now on, and the process should stop. */
  readonly onFailure?: (error: Error) => void
}

const CACHE_MAX = 4096
/** Fewer are loaded in an instant. */
const RESTING_MIN = 10_000
/** Every automation has an item here, however long before it is due. */
const FAR_QUEUES: readonly Queue[] = ['firings']
const FAR_AHEAD_MS = 600_000
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
  readonly #farItems = new Map<Queue, FarItems>()
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
    const { farItems: { queues = FAR_QUEUES, aheadMs = FAR_AHEAD_MS } = {} } = options
    const isChanging = (queue: Queue, id: string): boolean => this.#flusher?.isChanging(queue, id) ?? false
    for (const queue of queues) {
      const index = this.#queues[queue]
      this.#farItems.set(queue, new FarItems({ queue, index, journal, payloads, isChanging, aheadMs, now }))
    }
    this.#load(opened.items(now, options.restingMin ?? RESTING_MIN), journal, payloads, now)
    this.#flusher = new Flusher(journal, this.#tokens, this.#records, {
      ...options,
      now: this.#now,
      pendingBytesMax,
      payloads,
      farItems: this.#farItems,
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
    const index = this.#advanced(queue, now)
    const farItems = this.#farItems.get(queue)
    if (farItems === undefined) return ids.map((id) => index.view(id, now))
    return ids.map((id) => {
      farItems.fetch(id, now)
      const view = index.view(id, now)
      const entry = index.get(id)
      // A look is no reason to keep it.
      if (entry !== undefined) farItems.offer(entry)
      return view
    })
  }

  async held(queue: Queue): Promise<readonly string[]> {
    this.#mustWork()
    return this.#advanced(queue, this.#now()).held()
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    this.#mustWork()
    return this.#advanced(queue, this.#now()).laneViews()
  }

  async oldest(queue: Queue, lane?: string): Promise<number | undefined> {
    this.#mustWork()
    const now = this.#now()
    const dueAt = this.#advanced(queue, now).oldestDueAt(lane)
    return dueAt === undefined ? undefined : Math.max(0, now - dueAt)
  }

  async claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    this.#mustWork()
    const { lanes, limit, leaseMs, holder } = options
    const now = this.#now()
    const index = this.#advanced(queue, now)
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
    const nextAt = Math.min(index.nextReadyAt(), this.#farItems.get(queue)?.nextAt ?? Infinity)
    const nextInMs = index.hasReady(lanes) ? 0 : until(nextAt, now)
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
    const index = this.#advanced(queue, now)
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
      const index = this.#advanced(ref.queue, now)
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

  commit(batch: Batch): Soon<'committed' | 'conflict'> {
    try {
      this.#mustWork()
      return this.#commit(batch)
    } catch (error) {
      return rejected(error)
    }
  }

  #commit(batch: Batch): Soon<'committed' | 'conflict'> {
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
      const entry = this.#itemOf(queue, id, now)
      if (entry !== undefined) this.#remove(entry)
    }
    let hasChanged = put.length > 0
    for (const { kind, id } of drop) if (this.#records.drop(kind, id, now)) hasChanged = true
    for (const one of put) this.#records.put(one, now)
    if (hasChanged) this.#flusher?.recordsChanged()
    if (enqueue.length > 0) this.#enqueueAll(enqueue, now)
    // The commit is already ordered and visible. Waiting here slows down callers that would add more.
    if (hasChanged && this.#flusher?.isPressed === true) return this.#flusher.sync().then(() => 'committed')
    return 'committed'
  }

  sync(): Soon<void> {
    try {
      this.#mustWork()
      return this.#flusher?.sync()
    } catch (error) {
      return rejected(error)
    }
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

  /** Puts what the journal has into the queues: as entries, or as items that rest. */
  #load(items: ReturnType<Opened['items']>, journal: Journal, payloads: PayloadSource, now: number): void {
    const marked = new Set(this.#marks?.left)
    /** The previous process held a claim of these turns when it ended, and the journal does not show those claims. */
    const heldTurns = new Set<number>()
    const load = (row: OpenedItem): Entry => {
      const entry = entryFromRow(row, payloads)
      if (entry.queue === 'turns' && heldTurns.has(entry.seq)) entry.deliveries = Math.max(entry.deliveries, 1)
      return entry
    }
    const resting = new Map<Queue, RestingItems>()
    for (const found of items) {
      if ('idBytes' in found) {
        const queue = queueOf(found.queue)
        const others = resting.get(queue) ?? new RestingItems()
        resting.set(queue, others)
        others.add(found)
        continue
      }
      if (found.seq > this.#seq) this.#seq = found.seq
      if (this.#farItems.get(queueOf(found.queue))?.keeps(found) === true) continue
      if (found.queue === 'turns' && marked.delete(found.seq)) heldTurns.add(found.seq)
      const entry = load(found)
      this.#queues[entry.queue].add(entry, now)
    }
    for (const [queue, found] of resting) {
      this.#seq = Math.max(this.#seq, found.seqMax)
      for (const seq of queue === 'turns' ? found.seqsAmong(marked) : []) {
        marked.delete(seq)
        heldTurns.add(seq)
      }
      this.#queues[queue].rest(found, now, (id, count) => journal.itemsFrom(queue, id, count).map(load))
    }
    for (const turn of marked) this.#marks?.gone(turn)
  }

  /** The entry that this claim refers to, unless it expired while leased. */
  #inForce(ref: LeaseRef, now: number): Entry | undefined {
    const entry = this.#advanced(ref.queue, now).find(ref)
    return entry?.state === 'expired' ? undefined : entry
  }

  /** The queue at this time. */
  #advanced(queue: Queue, now: number): QueueIndex {
    const index = this.#queues[queue]
    this.#farItems.get(queue)?.advance(now)
    index.advance(now)
    return index
  }

  /** The item of this id, wherever it is. */
  #itemOf(queue: Queue, id: string, now: number): Entry | undefined {
    this.#farItems.get(queue)?.fetch(id, now)
    return this.#queues[queue].get(id)
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
      const old = this.#itemOf(item.queue, item.id, now)
      if (old !== undefined) this.#remove(old)
      const entry = entryOf(item, ++this.#seq, now)
      index.add(entry, now)
      this.#flusher?.itemAdded(entry)
    }
    // Only now: a listener may claim immediately and must see the whole batch.
    for (const item of items) if (item.delayMs <= 0 && item.claimed === undefined) this.#announce(item)
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

/** What goes wrong is a rejection here, as with every other storage. */
async function rejected(error: unknown): Promise<never> {
  throw error
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
