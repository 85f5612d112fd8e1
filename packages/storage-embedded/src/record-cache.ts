import type { Facets, Kind, ListQuery, Put, Stored } from '@impresario/core'
import { FirstInOrder, foldedText, roughJsonLength } from '@impresario/core'
import { jsonWeight, PassingMap } from '@impresario/protocol'
import type { Journal, JournalQuery, RecordRow, RecordUpdate } from './journal.ts'
import { ReadAhead } from './read-ahead.ts'

/** A record in memory. Never changed in place: a write puts a new one. */
export interface Cached extends Stored<unknown> {
  readonly put: Put
  /** Case-folded. */
  readonly text: string | undefined
  readonly expiresAt: number
  /** The journal has it, or will have it by the time this is read, with the same owner and name. */
  readonly stored: boolean
  /** Approximate size in memory, in bytes. */
  readonly weight: number
}

/** How many records of one kind stay in memory although the journal has them as well. */
export interface CacheBounds {
  readonly recordsMax: number
  readonly bytesMax: number
}

/** One page, and the position to continue from if the page ended before its limit. */
export interface CachePage {
  readonly records: readonly (Stored<unknown> & { readonly id: string })[]
  readonly next: string | undefined
}

/**
 * A record that a list found, and its length. For a record that is only in memory, the length is computed on request.
 */
interface Found {
  readonly cached: Cached
  readonly bytes: number | undefined
}

/** What is handed to the journal. */
export interface Taken {
  readonly records: RecordRow[]
  readonly updates: RecordUpdate[]
  readonly dropped: { readonly kind: string; readonly id: string }[]
}

/**
 * Ids of plain characters sort the same way here and in the journal, so an id that is greater than all others is known
 * to be new.
 */
const PLAIN = /^[ -~]+$/

/** Byte limit of one read-ahead: a millisecond or two. Larger records are not read ahead. */
const READ_CHARS_MAX = 262_144

/** Overhead of a record in bytes, without its content: its cache slot, its facets and its text object. */
const RECORD_BYTES = 1_024

/**
 * The records of one kind. A record is in `dirty` until it is handed to the journal, in `flight` until that write is
 * durable, then in `clean`, from where the least recently used ones are evicted. A dropped record is also in `dirty`
 * and `flight`, as `undefined`. Without a journal all records stay in `clean` until they are dropped or expire.
 *
 * An expired record may stay in any of these and in the journal for a while: every lookup compares times.
 */
export class RecordCache {
  readonly #kind: Kind
  readonly #journal: Journal | undefined
  readonly #bounds: CacheBounds
  #dirty = new Map<string, Cached | undefined>()
  #flight = new Map<string, Cached | undefined>()
  readonly #clean = new PassingMap<string, Cached>()
  #dirtyBytes = 0
  #flightBytes = 0
  #cleanBytes = 0
  readonly #readAhead: ReadAhead
  /** The greatest id of this kind. */
  #lastId: string

  constructor(kind: Kind, journal: Journal | undefined, bounds: CacheBounds) {
    this.#kind = kind
    this.#journal = journal
    this.#bounds = bounds
    this.#readAhead = new ReadAhead(bounds.recordsMax)
    this.#lastId = journal?.lastId(kind) ?? ''
  }

  get cleanCount(): number {
    return this.#clean.size
  }

  /** Size of the records that the journal does not have yet, without those that are being written. */
  get dirtyBytes(): number {
    return this.#dirtyBytes
  }

  get flightBytes(): number {
    return this.#flightBytes
  }

  get cleanBytes(): number {
    return this.#cleanBytes
  }

  read(id: string, now: number): Cached | undefined {
    const found = this.#find(id)
    return found === undefined || found.expiresAt <= now ? undefined : found
  }

  /** The caller must have checked the record's version. Returns the record that it replaces. */
  write(put: Put, expiresAt: number, now: number): Cached | undefined {
    const { id, value, version, facets } = put
    // A first version replaces nothing that is still live.
    const old = version === 1 ? undefined : this.read(id, now)
    if (id > this.#lastId) this.#lastId = id
    const text = facets?.text === undefined ? undefined : foldedText(facets.text)
    if (this.#journal === undefined) {
      this.#clean.set(id, { value, version, put, text, expiresAt, stored: false, weight: 0 })
      return old
    }
    const dirty = this.#dirty.get(id)
    const stored = old !== undefined && (dirty === undefined || dirty.stored) && hasSameIndex(old, put)
    const weight = RECORD_BYTES + jsonWeight(value)
    this.#forgetClean(id)
    this.#dirtyBytes += weight - (dirty?.weight ?? 0)
    this.#dirty.set(id, { value, version, put, text, expiresAt, stored, weight })
    return old
  }

  /** Returns the record that was there. */
  drop(id: string, now: number): Cached | undefined {
    const old = this.read(id, now)
    if (old === undefined) return undefined
    this.#forgetClean(id)
    if (this.#journal === undefined) return old
    this.#dirtyBytes -= this.#dirty.get(id)?.weight ?? 0
    this.#dirty.set(id, undefined)
    return old
  }

  /**
   * The record has expired. A version that is on its way to the journal is still written: it may replace one that had
   * not expired.
   */
  forget(id: string): void {
    this.#forgetClean(id)
  }

  /** Whether the journal's row, if there is one, is stale. */
  isFresh(id: string): boolean {
    return this.#dirty.has(id) || this.#flight.has(id)
  }

  /** The records that the journal does not have yet. */
  *fresh(): Iterable<Cached> {
    for (const cached of this.#dirty.values()) if (cached !== undefined) yield cached
    for (const [id, cached] of this.#flight) if (cached !== undefined && !this.#dirty.has(id)) yield cached
  }

  /** Hands over the dirty records. Until `settle` they count as in flight. */
  take({ records, updates, dropped }: Taken): void {
    if (this.#dirty.size === 0) return
    for (const [id, cached] of this.#dirty) {
      if (cached === undefined) dropped.push({ kind: this.#kind, id })
      else if (cached.stored) updates.push(updateOf(cached))
      else records.push(rowOf(cached))
    }
    this.#flight = this.#dirty
    this.#flightBytes = this.#dirtyBytes
    this.#dirty = new Map()
    this.#dirtyBytes = 0
  }

  /** The records in flight are now durable. */
  settle(): void {
    if (this.#flight.size === 0) return
    for (const [id, cached] of this.#flight) {
      if (cached === undefined || this.#dirty.has(id)) continue
      // Finished jobs are rarely read, and every job finishes.
      if (cached.put.kind === 'job' && cached.put.value.endedAt !== undefined) continue
      this.#keep(id, cached)
    }
    this.#flight = new Map()
    this.#flightBytes = 0
  }

  /** Reads ahead if the access pattern is sequential. Called when idle. */
  readAhead(): void {
    const next = this.#readAhead.next()
    if (next === undefined || this.#journal === undefined) return
    this.#bring(this.#journal.readFrom(this.#kind, next.after, next.count + 1, READ_CHARS_MAX).slice(1))
  }

  list(query: ListQuery, now: number): CachePage {
    const filter = filterOf(query, now)
    const floor = this.#floorOf(filter, query.looksMax)
    const looked = floor === undefined ? filter : { ...filter, from: floor }
    const found = this.#inMemory(looked)
    if (this.#journal !== undefined) this.#addFromJournal(this.#journal, looked, found)
    found.sort(newestFirst)
    return pageOf(found, query, floor)
  }

  /** Where this list has to stop. A lookup through an index needs no bound except its limit. */
  #floorOf(filter: JournalQuery, looksMax: number | undefined): string | undefined {
    const { owner, statuses, name, search } = filter
    // The index by status does not have what is finished.
    const isUnindexed = statuses !== undefined && (owner !== undefined || statuses.includes('finished'))
    const isSearch = name !== undefined || search !== undefined || isUnindexed
    if (looksMax === undefined || !isSearch) return undefined
    return this.#journal?.floor(this.#kind, filter, looksMax)
  }

  #find(id: string): Cached | undefined {
    if (this.#dirty.has(id)) return this.#dirty.get(id)
    if (this.#flight.has(id)) return this.#flight.get(id)
    const clean = this.#clean.get(id)
    if (this.#journal === undefined) return clean
    if (clean !== undefined) {
      this.#readAhead.found(id)
      this.#clean.delete(id)
      this.#clean.set(id, clean)
      return clean
    }
    // New ids are the greatest so far, and every job creation starts with a lookup of its id.
    if (id > this.#lastId && PLAIN.test(id)) return undefined
    return this.#load(this.#journal, id)
  }

  #load(journal: Journal, id: string): Cached | undefined {
    const count = this.#readAhead.missed()
    const rows = count === 1 ? [journal.read(this.#kind, id)] : journal.readFrom(this.#kind, id, count, READ_CHARS_MAX)
    const [row, ...next] = rows
    if (row === undefined || row.id !== id) return undefined
    const cached = weighed(fromRow(row))
    this.#keep(id, cached)
    this.#bring(next)
    return cached
  }

  #bring(rows: readonly (RecordRow | undefined)[]): void {
    for (const row of rows) {
      if (row === undefined || row.status === 'finished' || this.isFresh(row.id) || this.#clean.has(row.id)) continue
      this.#keep(row.id, weighed(fromRow(row)))
      this.#readAhead.brought(row.id)
    }
    this.#readAhead.reached(rows.at(-1)?.id)
  }

  #inMemory(filter: JournalQuery): Found[] {
    const newest = new FirstInOrder(filter.limit, newestFirst)
    for (const cached of this.#journal === undefined ? this.#clean.values() : this.fresh()) {
      if (matches(cached, filter)) newest.add({ cached, bytes: undefined })
    }
    return [...newest.first()]
  }

  /** Pages through the journal, because any of its rows may be stale by now. */
  #addFromJournal(journal: Journal, filter: JournalQuery, found: Found[]): void {
    const { bytesMax = Number.POSITIVE_INFINITY } = filter
    let before = filter.before
    let missing = filter.limit
    let bytes = 0
    while (missing > 0 && bytes < bytesMax) {
      const limit = missing
      const rows = journal.list(this.#kind, { ...filter, limit, ...(before === undefined ? {} : { before }) })
      let read = 0
      for (const row of rows) {
        before = row.id
        read += row.data.length
        if (this.isFresh(row.id)) continue
        found.push({ cached: this.#clean.get(row.id) ?? fromRow(row), bytes: row.data.length })
        bytes += row.data.length
        missing--
      }
      if (rows.length < limit && read < bytesMax) return
    }
  }

  #keep(id: string, cached: Cached): void {
    const { recordsMax, bytesMax } = this.#bounds
    this.#forgetClean(id)
    this.#clean.set(id, cached)
    this.#cleanBytes += cached.weight
    while (this.#clean.size > recordsMax || this.#cleanBytes > bytesMax) {
      const oldest = this.#clean.keys().next()
      if (oldest.done === true) return
      this.#forgetClean(oldest.value)
    }
  }

  #forgetClean(id: string): void {
    const cached = this.#clean.get(id)
    if (cached === undefined) return
    this.#clean.delete(id)
    this.#cleanBytes -= cached.weight
  }
}

function filterOf({ status, statuses, search, ...query }: ListQuery, now: number): JournalQuery {
  // If both are given, a record has to match both.
  const either = status === undefined ? statuses : statuses?.includes(status) === false ? [] : [status]
  return {
    ...query,
    now,
    ...(either === undefined ? {} : { statuses: either }),
    ...(search === undefined || search === '' ? {} : { search: foldedText(search) }),
  }
}

function matches({ put, text, expiresAt }: Cached, query: JournalQuery): boolean {
  const facets: Facets = put.facets ?? {}
  if (expiresAt <= query.now) return false
  if (query.before !== undefined && put.id >= query.before) return false
  if (query.from !== undefined && put.id < query.from) return false
  if (query.owner !== undefined && facets.owner !== query.owner) return false
  if (query.name !== undefined && facets.name !== query.name) return false
  if (query.search !== undefined && text?.includes(query.search) !== true) return false
  return query.statuses === undefined || (facets.status !== undefined && query.statuses.includes(facets.status))
}

function newestFirst(a: Found, b: Found): number {
  return a.cached.put.id < b.cached.put.id ? 1 : -1
}

/** The first of the records found, limited by number and by bytes. `floor`: where the scan itself ended. */
function pageOf(found: readonly Found[], { limit, bytesMax }: ListQuery, floor: string | undefined): CachePage {
  const records: { readonly id: string; readonly value: unknown; readonly version: number }[] = []
  let left = bytesMax ?? Number.POSITIVE_INFINITY
  for (const { cached, bytes } of found) {
    if (records.length >= limit) return { records, next: undefined }
    const { put, value, version } = cached
    records.push({ id: put.id, value, version })
    if (bytesMax === undefined) continue
    left -= bytes ?? roughJsonLength(value, left)
    if (left <= 0 && records.length < limit) return { records, next: put.id }
  }
  return { records, next: records.length < limit ? floor : undefined }
}

function hasSameIndex(old: Cached, { facets }: Put): boolean {
  const { facets: before } = old.put
  return before?.owner === facets?.owner && before?.name === facets?.name
}

function updateOf({ put: { kind, id, version, value, facets }, text, expiresAt }: Cached): RecordUpdate {
  return {
    kind,
    id,
    version,
    status: facets?.status ?? null,
    text: text ?? null,
    expiresAt: finite(expiresAt),
    get data() {
      return JSON.stringify(value)
    },
  }
}

function rowOf({ put: { kind, id, version, value, facets }, text, expiresAt }: Cached): RecordRow {
  return {
    kind,
    id,
    version,
    owner: facets?.owner ?? null,
    status: facets?.status ?? null,
    name: facets?.name ?? null,
    text: text ?? null,
    expiresAt: finite(expiresAt),
    get data() {
      return JSON.stringify(value)
    },
  }
}

function finite(at: number): number | null {
  return at === Infinity ? null : at
}

/** Type boundary where stored text becomes a record again. Only this package writes that text. */
function fromRow(row: RecordRow): Cached {
  const value: unknown = JSON.parse(row.data)
  const put = { kind: row.kind, id: row.id, version: row.version, value, facets: facetsOf(row) } as Put
  const { version, text } = row
  const expiresAt = row.expiresAt ?? Infinity
  return { value, version, put, text: text ?? undefined, expiresAt, stored: true, weight: 0 }
}

/** Computes the size only of records that are kept. Listed records are not kept. */
function weighed(cached: Cached): Cached {
  return { ...cached, weight: RECORD_BYTES + jsonWeight(cached.value) }
}

export function facetsOf({ owner, status, name }: Pick<RecordRow, 'owner' | 'status' | 'name'>): Facets {
  // Built step by step: spreading the optional parts takes a tenth of the time needed to read a record.
  const facets: { -readonly [Name in keyof Facets]: Facets[Name] } = {}
  if (owner !== null) facets.owner = owner
  if (status !== null) facets.status = status
  if (name !== null) facets.name = name
  return facets
}
