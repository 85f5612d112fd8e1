import type { Queue } from '@impresario/core'
import { ImpresarioError, isImpresarioError, PassingMap } from '@impresario/protocol'
import { itemRowOf, leaseRowOf } from './entry.ts'
import type { Entry, PayloadSource } from './entry.ts'
import type { Changes, ItemRow, Journal, LeaseRow } from './journal.ts'
import type { RecordStore } from './record-store.ts'
import type { FarItems } from './far-items.ts'
import type { TokenSource } from './token-source.ts'

interface FlusherOptions {
  readonly now: () => number
  readonly schedule?: (run: () => void) => void
  readonly onFailure?: (error: Error) => void
  /** How many bytes may wait to be written before callers that write more have to wait. */
  readonly pendingBytesMax: number
  readonly payloads: PayloadSource
  /** Queues of which some items are in the journal alone. */
  readonly farItems: ReadonlyMap<Queue, FarItems>
}

/** From this many bytes on, starting a flush early is worth more than making it complete. */
const LARGE_BYTES_MIN = 1_048_576

/** After a write of no more items than this there is little load: what is urgent need not wait for company. */
const FEW_ITEMS = 4

/** All callers that wait for one flush. */
interface Waiters {
  readonly promise: Promise<void>
  resolve(): void
  reject(error: Error): void
}

/**
 * Writes changes to the journal, those of many commits in one write.
 *
 * `idle` → `scheduled` by the first change → `writing` → `idle`, or `scheduled` again if changes arrived meanwhile. A
 * failed write leads to `broken`, which is final: memory and disk then differ, and continuing would confirm changes
 * that were never written.
 */
export class Flusher {
  readonly #journal: Journal
  readonly #tokens: TokenSource
  readonly #records: RecordStore
  readonly #options: FlusherOptions
  readonly #schedule: (run: () => void) => void
  /** By queue and id: the entry whose row is stale, or `undefined` if the row has to be deleted. */
  readonly #items = new Map<Queue, PassingMap<string, Entry | undefined>>()
  /** Items whose payloads are being written. */
  #flight: Entry[] = []
  /** Rows of queues with far items that are being deleted. */
  readonly #removing = new Map<Queue, Set<string>>()
  #state: 'idle' | 'scheduled' | 'writing' = 'idle'
  #dirty = false
  /** A task was made in the hands of a worker, which gets it when this is written. */
  #isUrgent = false
  /** Items that the last write added or removed. */
  #itemsBefore = 0
  #isClosed = false
  /** Callers that wait for the dirty changes, and callers that wait for the write in progress. */
  #waiting: Waiters | undefined = undefined
  #writing: Waiters | undefined = undefined
  #failure: ImpresarioError | undefined = undefined

  constructor(journal: Journal, tokens: TokenSource, records: RecordStore, options: FlusherOptions) {
    this.#journal = journal
    this.#tokens = tokens
    this.#records = records
    this.#options = options
    journal.onBroken?.((error) => this.#fail(error))
    this.#schedule = options.schedule ?? ((run) => this.#soon(run))
  }

  recordsChanged(): void {
    this.#touch()
  }

  itemAdded(entry: Entry): void {
    const changed = this.#changedIn(entry.queue)
    // A row that is about to be deleted is overwritten instead.
    entry.idStored = changed.has(entry.id)
    changed.set(entry.id, entry)
    if (entry.state === 'held') this.#isUrgent = true
    this.#touch()
  }

  itemChanged(entry: Entry): void {
    this.#changedIn(entry.queue).set(entry.id, entry)
    this.#touch()
  }

  itemRemoved(entry: Entry): void {
    const changed = this.#changedIn(entry.queue)
    if (!entry.idStored) {
      changed.delete(entry.id)
      return
    }
    changed.set(entry.id, undefined)
    this.#touch()
  }

  /** Whether the row of this item is about to be written, replaced or deleted. */
  isChanging(queue: Queue, id: string): boolean {
    return this.#items.get(queue)?.has(id) === true || this.#removing.get(queue)?.has(id) === true
  }

  mustWork(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** So many changes wait to be written that no more should be added first. */
  get isPressed(): boolean {
    return this.#records.pendingBytes > this.#options.pendingBytesMax
  }

  sync(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#dirty) {
      this.#waiting ??= waiters()
      return this.#waiting.promise
    }
    if (this.#state !== 'writing') return Promise.resolve()
    this.#writing ??= waiters()
    return this.#writing.promise
  }

  async close(): Promise<void> {
    try {
      await this.sync()
    } finally {
      // Records that have expired meanwhile are deleted after the next opening.
      this.#isClosed = true
      await this.#journal.close()
    }
  }

  #changedIn(queue: Queue): PassingMap<string, Entry | undefined> {
    let changed = this.#items.get(queue)
    if (changed === undefined) {
      changed = new PassingMap()
      this.#items.set(queue, changed)
    }
    return changed
  }

  #touch(): void {
    this.#dirty = true
    if (this.#state === 'idle') this.#plan()
  }

  #plan(): void {
    this.#state = 'scheduled'
    this.#schedule(() => {
      void this.#flush()
    })
  }

  /**
   * Changes wait for two ticks of the event loop. In them a parked poll claims its task, and the results of the
   * moment come in: all of it is written in the same flush. Under load that is two flushes instead of three for as many jobs.
   *
   * Where there is little load, a commit that puts a task into the hands of its worker is written as soon as its caller is
   * done: nothing is left to claim, and the worker's poll is made ready while the disk writes.
   */
  #soon(run: () => void): void {
    let isBegun = false
    const begin = (): void => {
      if (isBegun) return
      isBegun = true
      run()
    }
    queueMicrotask(() => {
      if (this.#isUrgent && this.#itemsBefore <= FEW_ITEMS) begin()
    })
    setImmediate(() => {
      if (this.#records.pendingBytes >= LARGE_BYTES_MIN) begin()
      else setImmediate(begin)
    })
  }

  async #flush(): Promise<void> {
    if (this.#isClosed) return
    this.#state = 'writing'
    this.#dirty = false
    this.#isUrgent = false
    this.#writing = this.#waiting
    this.#waiting = undefined
    let hasRemains = false
    try {
      const changes = this.#collect()
      // An item that was added and removed between two flushes leaves nothing to write.
      if (changes !== undefined) hasRemains = await this.#write(changes)
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#records.settle(hasRemains)
    const written = this.#flight
    for (const entry of written) entry.leavePayload(this.#options.payloads)
    this.#flight = []
    this.#removing.clear()
    for (const entry of written) this.#options.farItems.get(entry.queue)?.offer(entry)
    this.#state = 'idle'
    const done = this.#writing
    this.#writing = undefined
    // If many records expire at once, each flush deletes some of them.
    if (this.#records.hasRemains) this.#dirty = true
    if (this.#dirty) this.#plan()
    done?.resolve()
  }

  #write(changes: Changes): Promise<boolean> {
    const written = this.#journal.write(changes)
    try {
      this.#records.readAhead()
    } catch {
      // A request for one of these gets an error that it cannot be read.
    }
    return written
  }

  #collect(): Changes | undefined {
    const time = this.#options.now()
    this.#records.advance(time)
    const isSweeping = this.#records.hasRemains
    const taken = this.#records.take()
    const { records, updates, dropped, counts } = taken
    const items: ItemRow[] = []
    const leases: LeaseRow[] = []
    const removed: { queue: string; id: string }[] = []
    for (const [queue, changed] of this.#items) {
      for (const [id, entry] of changed) {
        if (entry === undefined) {
          removed.push({ queue, id })
          this.#noteRemoval(queue, id)
        } else if (entry.rowStored) leases.push(leaseRowOf(entry))
        else {
          items.push(itemRowOf(entry))
          this.#flight.push(entry)
        }
        if (entry === undefined) continue
        entry.idStored = true
        entry.rowStored = true
        entry.leaseStored = entry.holder !== undefined
      }
      changed.clear()
    }
    this.#itemsBefore = items.length + removed.length
    const recordCount = records.length + updates.length + dropped.length + counts.length
    if (recordCount + items.length + leases.length + removed.length === 0 && !isSweeping) return undefined
    return { time, epoch: this.#tokens.epoch, ...taken, items, leases, removed }
  }

  #noteRemoval(queue: Queue, id: string): void {
    if (!this.#options.farItems.has(queue)) return
    const ids = this.#removing.get(queue) ?? new Set()
    this.#removing.set(queue, ids.add(id))
  }

  #fail(cause: unknown): void {
    if (this.#failure !== undefined) return
    const failure = failureOf(cause)
    this.#failure = failure
    this.#writing?.reject(failure)
    this.#waiting?.reject(failure)
    this.#options.onFailure?.(failure)
  }
}

function failureOf(cause: unknown): ImpresarioError {
  if (isImpresarioError(cause, 'STORAGE_UNAVAILABLE')) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new ImpresarioError('STORAGE_UNAVAILABLE', `The journal could not be written: ${reason}`, { cause })
}

function waiters(): Waiters {
  let done = (): void => {}
  let fail = (_: Error): void => {}
  const promise = new Promise<void>((resolve, reject) => {
    done = resolve
    fail = reject
  })
  // Callers that wait get the rejection. If no caller waits, the rejection must not stop the process here.
  promise.catch(() => {})
  return { promise, resolve: done, reject: fail }
}
