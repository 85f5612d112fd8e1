import type { Facets, Kind, ListQuery, Put, Records, Stored } from '@impresario/core'
import type { Journal, JournalQuery, RecordRow, RecordUpdate } from './journal.ts'

/** A record in memory. Never changed in place: a write puts a new one. */
interface Cached extends Stored<unknown> {
  readonly put: Put
  /** The journal has it, or will have it by then, with the same owner and name. */
  readonly stored: boolean
}

export type Listed<K extends Kind> = Stored<Records[K]> & { readonly id: string }

/** Ids of plain characters compare alike here and in the journal, so they can be told to be new by being greater. */
const PLAIN = /^[ -~]+$/

/**
 * The records of one kind. A record is in `dirty` until it is handed to the journal, in `flight`
 * until that write is durable, then in `clean`, from where the least recently used ones are dropped.
 * Without a journal all records stay in `clean` for ever.
 */
export class RecordCache {
  readonly #kind: Kind
  readonly #journal: Journal | undefined
  readonly #cleanMax: number
  #dirty = new Map<string, Cached>()
  #flight = new Map<string, Cached>()
  readonly #clean = new Map<string, Cached>()
  /** No id of this kind is greater. */
  #lastId: string

  constructor(kind: Kind, journal: Journal | undefined, cleanMax: number) {
    this.#kind = kind
    this.#journal = journal
    this.#cleanMax = cleanMax
    this.#lastId = journal?.lastId(kind) ?? ''
  }

  get dirtyCount(): number {
    return this.#dirty.size
  }

  get cleanCount(): number {
    return this.#clean.size
  }

  versionOf(id: string): number {
    return this.read(id)?.version ?? 0
  }

  read(id: string): Stored<unknown> | undefined {
    const fresh = this.#dirty.get(id) ?? this.#flight.get(id)
    if (fresh !== undefined) return fresh
    const clean = this.#clean.get(id)
    if (this.#journal === undefined) return clean
    if (clean !== undefined) {
      this.#clean.delete(id)
      this.#clean.set(id, clean)
      return clean
    }
    // New ids are the greatest so far, and every job begins with a question for one.
    if (id > this.#lastId && PLAIN.test(id)) return undefined
    const row = this.#journal.read(this.#kind, id)
    if (row === undefined) return undefined
    const cached = fromRow(row)
    this.#keep(id, cached)
    return cached
  }

  write(put: Put): void {
    if (put.id > this.#lastId) this.#lastId = put.id
    if (this.#journal === undefined) {
      this.#clean.set(put.id, { value: put.value, version: put.version, put, stored: false })
      return
    }
    const dirty = this.#dirty.get(put.id)
    const old = dirty ?? this.#flight.get(put.id) ?? this.#clean.get(put.id)
    const stored = old !== undefined && (dirty === undefined || dirty.stored) && haveSameIndex(old.put, put)
    this.#clean.delete(put.id)
    this.#dirty.set(put.id, { value: put.value, version: put.version, put, stored })
  }

  /** Hands over what is dirty; until `settle` it counts as being in flight. */
  take(rows: RecordRow[], updates: RecordUpdate[]): void {
    for (const { put, stored } of this.#dirty.values()) {
      if (stored) updates.push(updateOf(put))
      else rows.push(rowOf(put))
    }
    this.#flight = this.#dirty
    this.#dirty = new Map()
  }

  /** What was in flight is durable. */
  settle(): void {
    for (const [id, cached] of this.#flight) {
      // Nobody asks much for a job that has ended, and every job ends.
      if (this.#dirty.has(id) || (cached.put.kind === 'job' && cached.put.value.endedAt !== undefined)) continue
      this.#keep(id, cached)
    }
    this.#flight = new Map()
  }

  list(query: ListQuery): readonly (Stored<unknown> & { readonly id: string })[] {
    const found = this.#inMemory(query)
    if (this.#journal !== undefined) this.#addFromJournal(this.#journal, query, found)
    found.sort(newestFirst)
    return found.slice(0, query.limit).map(({ put, value, version }) => ({ id: put.id, value, version }))
  }

  #inMemory(query: ListQuery): Cached[] {
    const found: Cached[] = []
    const consider = (cached: Cached): void => {
      if (matches(cached.put, query)) found.push(cached)
    }
    if (this.#journal === undefined) {
      for (const cached of this.#clean.values()) consider(cached)
      return found
    }
    for (const cached of this.#dirty.values()) consider(cached)
    for (const [id, cached] of this.#flight) if (!this.#dirty.has(id)) consider(cached)
    return found
  }

  /** Pages through the journal, because any of its rows may be out of date by now. */
  #addFromJournal(journal: Journal, query: ListQuery, found: Cached[]): void {
    let before = query.before
    let missing = query.limit
    while (missing > 0) {
      const rows = journal.list(this.#kind, journalQuery(query, before, missing))
      const page = missing
      for (const row of rows) {
        before = row.id
        if (this.#dirty.has(row.id) || this.#flight.has(row.id)) continue
        found.push(this.#clean.get(row.id) ?? fromRow(row))
        missing--
      }
      if (rows.length < page) return
    }
  }

  #keep(id: string, cached: Cached): void {
    this.#clean.set(id, cached)
    if (this.#clean.size <= this.#cleanMax) return
    const oldest = this.#clean.keys().next()
    if (oldest.done !== true) this.#clean.delete(oldest.value)
  }
}

function journalQuery(query: ListQuery, before: string | undefined, limit: number): JournalQuery {
  const { owner, name } = query
  const statuses = statusesOf(query)
  return {
    limit,
    ...(owner === undefined ? {} : { owner }),
    ...(name === undefined ? {} : { name }),
    ...(statuses === undefined ? {} : { statuses }),
    ...(before === undefined ? {} : { before }),
  }
}

/** With both given, a record has to meet both. */
function statusesOf({ status, statuses }: ListQuery): readonly string[] | undefined {
  if (status === undefined) return statuses
  return statuses === undefined || statuses.includes(status) ? [status] : []
}

function matches(put: Put, query: ListQuery): boolean {
  const facets: Facets = put.facets ?? {}
  if (query.before !== undefined && put.id >= query.before) return false
  if (query.owner !== undefined && facets.owner !== query.owner) return false
  if (query.name !== undefined && facets.name !== query.name) return false
  const statuses = statusesOf(query)
  return statuses === undefined || (facets.status !== undefined && statuses.includes(facets.status))
}

function newestFirst(a: Cached, b: Cached): number {
  return a.put.id < b.put.id ? 1 : -1
}

function haveSameIndex({ facets: a }: Put, { facets: b }: Put): boolean {
  return a?.owner === b?.owner && a?.name === b?.name
}

function updateOf({ kind, id, version, value, facets }: Put): RecordUpdate {
  return { kind, id, version, status: facets?.status ?? null, data: JSON.stringify(value) }
}

function rowOf({ kind, id, version, value, facets }: Put): RecordRow {
  return {
    kind,
    id,
    version,
    owner: facets?.owner ?? null,
    status: facets?.status ?? null,
    name: facets?.name ?? null,
    data: JSON.stringify(value),
  }
}

/** The boundary where stored text becomes a record again: only this package writes that text. */
function fromRow(row: RecordRow): Cached {
  const value: unknown = JSON.parse(row.data)
  const facets: Facets = {
    ...(row.owner === null ? {} : { owner: row.owner }),
    ...(row.status === null ? {} : { status: row.status }),
    ...(row.name === null ? {} : { name: row.name }),
  }
  const put = { kind: row.kind, id: row.id, version: row.version, value, facets } as Put
  return { value, version: row.version, put, stored: true }
}
