import type { Facets, Kind, ListQuery, Put, Records, Stored } from '@impresario/core'
import { foldedText } from '@impresario/core'
import type { Journal, JournalQuery, RecordRow, RecordUpdate } from './journal.ts'
import { ReadAhead } from './read-ahead.ts'

/** A record in memory. Never changed in place: a write puts a new one. */
export interface Cached extends Stored<unknown> {
  readonly put: Put
  /** Folded. */
  readonly text: string | undefined
  readonly expiresAt: number
  /** The journal has it, or will have it by then, with the same owner and name. */
  readonly stored: boolean
}

export type Listed<K extends Kind> = Stored<Records[K]> & { readonly id: string }

/** What is handed to the journal. */
export interface Taken {
  readonly records: RecordRow[]
  readonly updates: RecordUpdate[]
  readonly dropped: { readonly kind: string; readonly id: string }[]
}

/** Ids of plain characters compare alike here and in the journal, so they can be told to be new by being greater. */
const PLAIN = /^[ -~]+$/

/**
 * The records of one kind. A record is in `dirty` until it is handed to the journal, in `flight`
 * until that write is durable, then in `clean`, from where the least recently used ones are dropped.
 * A dropped record is in `dirty` and `flight` too, as nothing. Without a journal all records stay in
 * `clean` until they are dropped or expire.
 *
 * An expired record may stay in any of these and in the journal for a while: every look compares times.
 */
export class RecordCache {
  readonly #kind: Kind
  readonly #journal: Journal | undefined
  readonly #cleanMax: number
  #dirty = new Map<string, Cached | undefined>()
  #flight = new Map<string, Cached | undefined>()
  readonly #clean = new Map<string, Cached>()
  readonly #readAhead: ReadAhead
  /** No id of this kind is greater. */
  #lastId: string

  constructor(kind: Kind, journal: Journal | undefined, cleanMax: number) {
    this.#kind = kind
    this.#journal = journal
    this.#cleanMax = cleanMax
    this.#readAhead = new ReadAhead(cleanMax)
    this.#lastId = journal?.lastId(kind) ?? ''
  }

  get dirtyCount(): number {
    return this.#dirty.size
  }

  get cleanCount(): number {
    return this.#clean.size
  }

  read(id: string, now: number): Cached | undefined {
    const found = this.#find(id)
    return found === undefined || found.expiresAt <= now ? undefined : found
  }

  /** The record's version must have been checked. Gives back what it replaces. */
  write(put: Put, expiresAt: number, now: number): Cached | undefined {
    const { id, value, version, facets } = put
    // A first version replaces nothing that is still there.
    const old = version === 1 ? undefined : this.read(id, now)
    if (id > this.#lastId) this.#lastId = id
    const text = facets?.text === undefined ? undefined : foldedText(facets.text)
    if (this.#journal === undefined) {
      this.#clean.set(id, { value, version, put, text, expiresAt, stored: false })
      return old
    }
    const dirty = this.#dirty.get(id)
    const stored = old !== undefined && (dirty === undefined || dirty.stored) && hasSameIndex(old, put)
    this.#clean.delete(id)
    this.#dirty.set(id, { value, version, put, text, expiresAt, stored })
    return old
  }

  /** Gives back what was there. */
  drop(id: string, now: number): Cached | undefined {
    const old = this.read(id, now)
    if (old === undefined) return undefined
    this.#clean.delete(id)
    if (this.#journal !== undefined) this.#dirty.set(id, undefined)
    return old
  }

  /** The record has expired. What is on its way to the journal goes there all the same: it may replace one that had not. */
  forget(id: string): void {
    this.#clean.delete(id)
  }

  /** Whether the journal's row, if there is one, is out of date. */
  isFresh(id: string): boolean {
    return this.#dirty.has(id) || this.#flight.has(id)
  }

  /** The records that the journal does not have yet. */
  *fresh(): Iterable<Cached> {
    for (const cached of this.#dirty.values()) if (cached !== undefined) yield cached
    for (const [id, cached] of this.#flight) if (cached !== undefined && !this.#dirty.has(id)) yield cached
  }

  /** Hands over what is dirty; until `settle` it counts as being in flight. */
  take({ records, updates, dropped }: Taken): void {
    for (const [id, cached] of this.#dirty) {
      if (cached === undefined) dropped.push({ kind: this.#kind, id })
      else if (cached.stored) updates.push(updateOf(cached))
      else records.push(rowOf(cached))
    }
    this.#flight = this.#dirty
    this.#dirty = new Map()
  }

  /** What was in flight is durable. */
  settle(): void {
    for (const [id, cached] of this.#flight) {
      if (cached === undefined || this.#dirty.has(id)) continue
      // Nobody asks much for a job that has ended, and every job ends.
      if (cached.put.kind === 'job' && cached.put.value.endedAt !== undefined) continue
      this.#keep(id, cached)
    }
    this.#flight = new Map()
  }

  /** Reads what will be asked for next, if that is plain. For a moment in which there is nothing else to do. */
  readAhead(): void {
    const next = this.#readAhead.next()
    if (next === undefined || this.#journal === undefined) return
    this.#bring(this.#journal.readFrom(this.#kind, next.after, next.count + 1).slice(1))
  }

  list(query: ListQuery, now: number): readonly (Stored<unknown> & { readonly id: string })[] {
    const filter = filterOf(query, now)
    const found = this.#inMemory(filter)
    if (this.#journal !== undefined) this.#addFromJournal(this.#journal, filter, found)
    found.sort(newestFirst)
    return found.slice(0, query.limit).map(({ put, value, version }) => ({ id: put.id, value, version }))
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
    // New ids are the greatest so far, and every job begins with a question for one.
    if (id > this.#lastId && PLAIN.test(id)) return undefined
    return this.#load(this.#journal, id)
  }

  #load(journal: Journal, id: string): Cached | undefined {
    const count = this.#readAhead.missed()
    const rows = count === 1 ? [journal.read(this.#kind, id)] : journal.readFrom(this.#kind, id, count)
    const [row, ...next] = rows
    if (row === undefined || row.id !== id) return undefined
    const cached = fromRow(row)
    this.#keep(id, cached)
    this.#bring(next)
    return cached
  }

  #bring(rows: readonly (RecordRow | undefined)[]): void {
    for (const row of rows) {
      if (row === undefined || row.status === 'finished' || this.isFresh(row.id) || this.#clean.has(row.id)) continue
      this.#keep(row.id, fromRow(row))
      this.#readAhead.brought(row.id)
    }
    this.#readAhead.reached(rows.at(-1)?.id)
  }

  #inMemory(filter: JournalQuery): Cached[] {
    const found: Cached[] = []
    for (const cached of this.#journal === undefined ? this.#clean.values() : this.fresh()) {
      if (matches(cached, filter)) found.push(cached)
    }
    return found
  }

  /** Pages through the journal, because any of its rows may be out of date by now. */
  #addFromJournal(journal: Journal, filter: JournalQuery, found: Cached[]): void {
    let before = filter.before
    let missing = filter.limit
    while (missing > 0) {
      const limit = missing
      const rows = journal.list(this.#kind, { ...filter, limit, ...(before === undefined ? {} : { before }) })
      for (const row of rows) {
        before = row.id
        if (this.isFresh(row.id)) continue
        found.push(this.#clean.get(row.id) ?? fromRow(row))
        missing--
      }
      if (rows.length < limit) return
    }
  }

  #keep(id: string, cached: Cached): void {
    this.#clean.set(id, cached)
    if (this.#clean.size <= this.#cleanMax) return
    const oldest = this.#clean.keys().next()
    if (oldest.done !== true) this.#clean.delete(oldest.value)
  }
}

function filterOf({ status, statuses, search, ...query }: ListQuery, now: number): JournalQuery {
  // With both given, a record has to meet both.
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

function newestFirst(a: Cached, b: Cached): number {
  return a.put.id < b.put.id ? 1 : -1
}

function hasSameIndex(old: Cached, { facets }: Put): boolean {
  const { facets: before } = old.put
  return before?.owner === facets?.owner && before?.name === facets?.name
}

function updateOf({ put: { kind, id, version, value, facets }, text, expiresAt }: Cached): RecordUpdate {
  const status = facets?.status ?? null
  return { kind, id, version, status, text: text ?? null, expiresAt: finite(expiresAt), data: JSON.stringify(value) }
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
    data: JSON.stringify(value),
  }
}

function finite(at: number): number | null {
  return at === Infinity ? null : at
}

/** The boundary where stored text becomes a record again: only this package writes that text. */
function fromRow(row: RecordRow): Cached {
  const value: unknown = JSON.parse(row.data)
  const put = { kind: row.kind, id: row.id, version: row.version, value, facets: facetsOf(row) } as Put
  const { text, expiresAt } = row
  return { value, version: row.version, put, text: text ?? undefined, expiresAt: expiresAt ?? Infinity, stored: true }
}

export function facetsOf({ owner, status, name }: Pick<RecordRow, 'owner' | 'status' | 'name'>): Facets {
  // Built step by step: spreads of optional parts take a tenth of the time that a record needs to be read.
  const facets: { -readonly [Name in keyof Facets]: Facets[Name] } = {}
  if (owner !== null) facets.owner = owner
  if (status !== null) facets.status = status
  if (name !== null) facets.name = name
  return facets
}
