import type { Batch, Facets, Kind, ListQuery, Put, Stored } from '@impresario/core'
import type { Changes, Journal, Opened } from './journal.ts'
import { facetsOf, RecordCache } from './record-cache.ts'
import type { CacheBounds, CachePage } from './record-cache.ts'
import { RecordCounts } from './record-counts.ts'
import { RecordExpiry } from './record-expiry.ts'

/** Records that expire within this time are held in memory: one short journal query every five seconds. */
const LOOK_AHEAD_MS = 5_000

/** Records of every other kind are small: all eleven kinds together get less than jobs. */
const OTHERS_SHARE = 16

/** Deletions per flush: about 5 ms of the writer thread. */
export const SWEEP_MAX = 500

interface KindTable {
  readonly cache: RecordCache
  readonly counts: RecordCounts
}

/** The records of all kinds, with their counts and expiry times. `advance` must be called before every query. */
export class RecordStore {
  readonly #journal: Journal | undefined
  readonly #tables: Readonly<Record<Kind, KindTable>>
  /** The same tables as a list: they are gone through with every commit. */
  readonly #all: readonly KindTable[]
  readonly #expiry: RecordExpiry
  /** The journal may hold rows of expired records that no flush has deleted yet. */
  #hasRemains = false

  constructor(journal: Journal | undefined, opened: Opened | undefined, bounds: CacheBounds) {
    this.#journal = journal
    const small = { ...bounds, bytesMax: bounds.bytesMax / OTHERS_SHARE }
    const table = (kind: Kind): KindTable => ({
      cache: new RecordCache(kind, journal, kind === 'job' ? bounds : small),
      counts: new RecordCounts(kind, journal !== undefined),
    })
    this.#tables = {
      job: table('job'),
      worker: table('worker'),
      key: table('key'),
      standing: table('standing'),
      quota: table('quota'),
      inbox: table('inbox'),
      listener: table('listener'),
      schedule: table('schedule'),
      delivery: table('delivery'),
      endpoint: table('endpoint'),
      token: table('token'),
      nonce: table('nonce'),
      limit: table('limit'),
      hands: table('hands'),
      automation: table('automation'),
      subscription: table('subscription'),
      event: table('event'),
      audit: table('audit'),
      gate: table('gate'),
      condition: table('condition'),
      calendar: table('calendar'),
      hook: table('hook'),
      secret: table('secret'),
      view: table('view'),
      log: table('log'),
      agent: table('agent'),
    }
    this.#all = Object.values(this.#tables)
    for (const row of opened?.counts ?? []) this.#tables[kindOf(row.kind)].counts.load(row)
    // Records that had expired by the last write are neither counted nor found, and are deleted with the next writes.
    this.#expiry = new RecordExpiry(opened === undefined ? Infinity : opened.time)
  }

  /** Size of the records that are not yet durable. */
  get pendingBytes(): number {
    let bytes = 0
    for (const { cache } of this.#all) bytes += cache.dirtyBytes + cache.flightBytes
    return bytes
  }

  /** Whether there is something to delete that no flush has deleted yet. */
  get hasRemains(): boolean {
    return this.#hasRemains
  }

  /** Updates the counts to this time. True if records have expired that the journal may hold. */
  advance(now: number): boolean {
    if (this.#journal !== undefined && now > this.#expiry.horizon) this.#lookAhead(this.#journal, now + LOOK_AHEAD_MS)
    let hasGone = false
    for (let gone = this.#expiry.next(now); gone !== undefined; gone = this.#expiry.next(now)) {
      const { cache, counts } = this.#tables[gone.kind]
      cache.forget(gone.id)
      counts.move(gone.facets, undefined)
      hasGone = true
    }
    if (!hasGone || this.#journal === undefined) return false
    this.#hasRemains = true
    return true
  }

  read(kind: Kind, id: string, now: number): Stored<unknown> | undefined {
    return this.#tables[kind].cache.read(id, now)
  }

  list(kind: Kind, query: ListQuery, now: number): CachePage {
    return this.#tables[kind].cache.list(query, now)
  }

  counts(kind: Kind, facets: Pick<Facets, 'owner' | 'name'>): Readonly<Record<string, number>> {
    return this.#tables[kind].counts.counts(facets)
  }

  /** Whether the versions of the batch's records follow the stored ones, once the batch has dropped what it drops. */
  fits({ put = [], drop = [] }: Batch, now: number): boolean {
    for (const { kind, id, version } of put) {
      const isDropped = drop.some((one) => one.kind === kind && one.id === id)
      const stored = isDropped ? 0 : (this.#tables[kind].cache.read(id, now)?.version ?? 0)
      if (stored !== version - 1) return false
    }
    return true
  }

  drop(kind: Kind, id: string, now: number): boolean {
    const { cache, counts } = this.#tables[kind]
    const old = cache.drop(id, now)
    if (old === undefined) return false
    counts.move(old.put.facets, undefined)
    this.#expiry.set({ kind, id, facets: undefined }, Infinity)
    return true
  }

  put(put: Put, now: number): void {
    const { kind, id, facets, expiresMs } = put
    const { cache, counts } = this.#tables[kind]
    const expiresAt = expiresMs === undefined ? Infinity : now + expiresMs
    const old = cache.write(put, expiresAt, now)
    counts.move(old?.put.facets, facets)
    this.#expiry.set({ kind, id, facets }, expiresAt)
  }

  /** Hands over everything that has changed. `advance` must have been called for the time of the write. */
  take(): Pick<Changes, 'records' | 'updates' | 'dropped' | 'counts' | 'sweepMax'> {
    const taken = { records: [], updates: [], dropped: [] }
    const rows: Changes['counts'][number][] = []
    for (const { cache, counts } of this.#all) {
      cache.take(taken)
      counts.take(rows)
    }
    this.#hasRemains = false
    return { ...taken, counts: rows, sweepMax: SWEEP_MAX }
  }

  /** Called while the disk writes: reads ahead. */
  readAhead(): void {
    this.#tables.job.cache.readAhead()
  }

  /** The records that were handed over are durable. `hasRemains`: the journal still has to delete expired records. */
  settle(hasRemains: boolean): void {
    if (hasRemains) this.#hasRemains = true
    for (const { cache } of this.#all) cache.settle()
  }

  #lookAhead(journal: Journal, until: number): void {
    const after = this.#expiry.horizon
    this.#expiry.widen(until)
    for (const row of journal.expiring(after, until)) {
      const kind = kindOf(row.kind)
      if (this.#tables[kind].cache.isFresh(row.id)) continue
      this.#expiry.set({ kind, id: row.id, facets: facetsOf(row) }, row.expiresAt)
    }
    for (const { cache } of this.#all) {
      for (const { put, expiresAt } of cache.fresh()) {
        const { kind, id, facets } = put
        if (expiresAt > after) this.#expiry.set({ kind, id, facets }, expiresAt)
      }
    }
  }
}

/** Type boundary where a name from the journal becomes a kind again. Only this package writes it. */
function kindOf(name: string): Kind {
  return name as Kind
}
