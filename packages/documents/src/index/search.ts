import { inflateRawSync } from 'node:zlib'
import { ImpresarioError } from '@impresario/protocol/light'
import { fts5Excluded, fts5Match } from './fts5-match.ts'
import { parseQuery } from './query.ts'
import type { Query } from './query.ts'
import { openForReading } from './schema.ts'
import type { Database } from './schema.ts'
import { snippetOf } from './snippet.ts'

export interface SearchOptions {
  readonly limit?: number
  readonly offset?: number
}

export interface Hit {
  readonly id: number
  readonly path: string
  readonly name: string
  readonly kind: string
  readonly title: string
  readonly snippet: string
  readonly highlights: readonly (readonly [start: number, end: number])[]
  /** Higher is better; only comparable within one answer. */
  readonly score: number
  readonly size: number
  readonly modifiedAt: string
}

export interface SearchResult {
  readonly hits: readonly Hit[]
  /** There are more than the limit. */
  readonly hasMore: boolean
}

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 100
const OFFSET_MAX = 10_000
/** Documents that are ranked: words that nearly every document has tell none from another, and ranking all takes long. */
export const RANKED_MAX = 20_000
/** Characters that are unpacked and looked through for the snippets of one page: ten of the longest documents. */
export const SNIPPET_CHARS_MAX = 20_000_000
/** Enough of a text for its snippet. */
const UNPACKED_MAX = 33_554_432

const COLUMNS = 'f.id, f.path, f.name, f.kind, f.title, f.size, f.mtime_ms AS mtimeMs, f.text_chars AS textChars'

interface HitRow {
  readonly id: number
  readonly path: string
  readonly name: string
  readonly kind: string
  readonly title: string
  readonly size: number
  readonly mtimeMs: number
  /** Lower is better. */
  readonly rank: number
}

/** A hit that comes with its text; without one, it has no snippet. */
export interface PackedRow extends HitRow {
  readonly packed: Uint8Array | null
}

interface LocalRow extends HitRow {
  readonly textChars: number
}

/** A page has no more than its largest size. One that is too far back is refused: whoever turns pages must not see one twice. */
export function pageOf({ limit = LIMIT_DEFAULT, offset = 0 }: SearchOptions): Required<SearchOptions> {
  if (!Number.isInteger(limit) || limit < 0) throw refused('the limit must be a whole number, 0 or more.')
  if (!Number.isInteger(offset) || offset < 0 || offset > OFFSET_MAX) {
    throw refused(`the offset must be a whole number from 0 to ${OFFSET_MAX}.`)
  }
  return { limit: Math.min(limit, LIMIT_MAX), offset }
}

function refused(reason: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `The page cannot be shown: ${reason}`)
}

/**
 * Finds documents in an open index. Its work has bounds: `rankedMax` documents are ranked, and the texts of a page are looked
 * through up to `snippetCharsMax`; hits beyond that have no snippet. After `searchMs` it is stopped and refused.
 */
export function searchIn(
  db: Database,
  text: string,
  options: SearchOptions = {},
  bounds: Partial<SearchBounds> = {},
): SearchResult {
  const { rankedMax = RANKED_MAX, snippetCharsMax = SNIPPET_CHARS_MAX, searchMs } = bounds
  const deadline = new Deadline(searchMs)
  const query = parseQuery(text)
  if (query.isNothing) return { hits: [], hasMore: false }
  const { limit, offset } = pageOf(options)
  const rows = deadline.during(() => rowsFor(db, query, { limit: limit + 1, offset, rankedMax }))
  const textOf = db.prepare('SELECT packed FROM texts WHERE id = ?')
  let room = snippetCharsMax
  const hits = rows.slice(0, limit).map((row) => {
    room -= row.textChars
    deadline.check()
    return hitOf(row, room < 0 ? '' : unpacked(packedIn(textOf.get(row.id))), query)
  })
  return { hits, hasMore: rows.length > limit }
}

/** Makes the hits of documents that were found elsewhere, with their snippets. After `searchMs` it is stopped and refused. */
export function hitsOf(
  rows: readonly PackedRow[],
  text: string,
  { searchMs }: Pick<Partial<SearchBounds>, 'searchMs'> = {},
): readonly Hit[] {
  const deadline = new Deadline(searchMs)
  const query = parseQuery(text)
  return rows.map((row) => {
    deadline.check()
    return hitOf(row, unpacked(row.packed ?? undefined), query)
  })
}

export interface SearchBounds {
  readonly rankedMax: number
  readonly snippetCharsMax: number
  /** Longest time; without it there is none. */
  readonly searchMs: number
}

/** Statements run to their end on their thread. They ask for the time themselves, once for so many documents. */
const ROWS_A_LOOK = 256

/** When the search at hand has to be over. `in_time` of the statements looks at the one that is set. */
class Deadline {
  static current: Deadline | undefined
  readonly #ms: number | undefined
  readonly #at: number

  constructor(ms: number | undefined) {
    this.#ms = ms
    this.#at = performance.now() + (ms ?? Number.POSITIVE_INFINITY)
  }

  check(): void {
    if (this.#ms !== undefined && performance.now() >= this.#at) throw tooLong(this.#ms)
  }

  during<T>(work: () => T): T {
    Deadline.current = this
    try {
      return work()
    } catch (error) {
      // SQLite tells of what a function threw in words of its own.
      this.check()
      throw error
    } finally {
      Deadline.current = undefined
    }
  }
}

export function tooLong(ms: number): ImpresarioError {
  return new ImpresarioError(
    'LIMIT_EXCEEDED',
    `The search took longer than ${ms / 1_000} s and was stopped. Ask for rarer words, or for less with filters.`,
  )
}

interface Wanted extends Required<SearchOptions> {
  readonly rankedMax: number
}

function rowsFor(db: Database, query: Query, { limit, offset, rankedMax }: Wanted): readonly LocalRow[] {
  const { where, values } = filtersOf(query)
  const match = fts5Match(query)
  if (match === '') {
    const unwanted = fts5Excluded(query.excluded)
    const excluded = unwanted !== '' ? ' AND f.id NOT IN (SELECT rowid FROM terms WHERE terms MATCH ?)' : ''
    const sql = `SELECT ${COLUMNS}, 0 AS rank FROM files f WHERE f.status = 'completed' AND f.gone_at IS NULL${where}${excluded} AND ${inTime('f.id')}
      ORDER BY f.mtime_ms DESC, f.id LIMIT ? OFFSET ?`
    return rowsOf(db.prepare(sql).all(...values, ...(unwanted === '' ? [] : [unwanted]), limit, offset))
  }
  // Ranking is what takes long. With filters every match is looked up, in the order of the index, and those that pass are ranked.
  const passing =
    where === ''
      ? `SELECT rowid AS id, rank FROM terms WHERE terms MATCH ? AND ${inTime('rowid')} ORDER BY rowid DESC`
      : `SELECT f.id, terms.rank FROM terms JOIN files f ON f.id = terms.rowid WHERE terms MATCH ?${where} AND ${inTime('terms.rowid')}
         ORDER BY terms.rowid DESC`
  const sql = `SELECT ${COLUMNS}, t.rank FROM
      (SELECT id, rank FROM (${passing} LIMIT ${rankedMax}) ORDER BY rank, id LIMIT ? OFFSET ?) t
    JOIN files f ON f.id = t.id ORDER BY t.rank, f.id`
  return rowsOf(db.prepare(sql).all(match, ...values, limit, offset))
}

/** True, or an error. */
function inTime(id: string): string {
  return `(${id} % ${ROWS_A_LOOK} <> 0 OR in_time())`
}

function filtersOf({ kinds, paths, excludedKinds, excludedPaths, from, to }: Query): {
  readonly where: string
  readonly values: (string | number)[]
} {
  const parts: string[] = []
  const values: (string | number)[] = []
  if (kinds.length > 0) {
    parts.push(` AND f.kind IN (${kinds.map(() => '?').join(', ')})`)
    values.push(...kinds)
  }
  for (const path of paths) {
    parts.push(' AND instr(lower_path(f.path), ?) > 0')
    values.push(path.toLowerCase())
  }
  if (excludedKinds.length > 0) {
    parts.push(` AND f.kind NOT IN (${excludedKinds.map(() => '?').join(', ')})`)
    values.push(...excludedKinds)
  }
  for (const path of excludedPaths) {
    parts.push(' AND instr(lower_path(f.path), ?) = 0')
    values.push(path.toLowerCase())
  }
  if (from !== undefined) {
    parts.push(' AND f.mtime_ms >= ?')
    values.push(from)
  }
  if (to !== undefined) {
    parts.push(' AND f.mtime_ms < ?')
    values.push(to)
  }
  return { where: parts.join(''), values }
}

function hitOf(row: HitRow, text: string, { terms }: Query): Hit {
  const { id, path, name, kind, title, size, mtimeMs, rank } = row
  const snippet = snippetOf(text, terms)
  return {
    id,
    path,
    name,
    kind,
    title,
    snippet: snippet.text,
    highlights: snippet.highlights,
    score: Number((-rank).toFixed(6)),
    size,
    modifiedAt: new Date(mtimeMs).toISOString(),
  }
}

/** Boundaries: the statements above name the columns. */
function rowsOf(rows: unknown): readonly LocalRow[] {
  return rows as readonly LocalRow[]
}

function packedIn(row: unknown): Uint8Array | undefined {
  return (row as { readonly packed: Uint8Array } | undefined)?.packed
}

export function unpacked(packed: Uint8Array | undefined): string {
  return packed === undefined ? '' : inflateRawSync(packed, { maxOutputLength: UNPACKED_MAX }).toString('utf8')
}

export function textIn(db: Database, id: number): { readonly path: string; readonly text: string } | undefined {
  const sql = 'SELECT f.path, t.packed FROM texts t JOIN files f ON f.id = t.id WHERE t.id = ?'
  const row: unknown = db.prepare(sql).get(id)
  return row === undefined
    ? undefined
    : { path: (row as { readonly path: string }).path, text: unpacked(packedIn(row)) }
}

/** SQLite lowers ASCII letters only, and cannot be stopped from outside. */
export function addFunctions(db: Database): void {
  db.function('lower_path', { deterministic: true }, (path: unknown) => String(path).toLowerCase())
  db.function('in_time', () => {
    Deadline.current?.check()
    return 1
  })
}

/** An index that is only read, beside the process that writes it. */
export class DocumentSearch {
  readonly #db: Database

  constructor(directory: string) {
    this.#db = openForReading(directory)
    addFunctions(this.#db)
  }

  search(query: string, options: SearchOptions = {}): SearchResult {
    return searchIn(this.#db, query, options)
  }

  /** The whole text of a document. */
  text(id: number): { readonly path: string; readonly text: string } | undefined {
    return textIn(this.#db, id)
  }

  close(): void {
    this.#db.close()
  }
}
