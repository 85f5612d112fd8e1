import { inflateRawSync } from 'node:zlib'
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
const SNIPPET_CHARS_MAX = 20_000_000
/** Enough of a text for its snippet. */
const UNPACKED_MAX = 33_554_432

const COLUMNS = 'f.id, f.path, f.name, f.kind, f.title, f.size, f.mtime_ms AS mtimeMs, f.text_chars AS textChars'

export interface HitRow {
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

interface LocalRow extends HitRow {
  readonly textChars: number
}

/** The limits of a page, whatever was asked for. */
export function pageOf({ limit = LIMIT_DEFAULT, offset = 0 }: SearchOptions): Required<SearchOptions> {
  return { limit: Math.min(Math.max(1, limit), LIMIT_MAX), offset: Math.min(Math.max(0, offset), OFFSET_MAX) }
}

/**
 * Finds documents in an open index. It runs on the thread of its caller, so its work has a bound: `rankedMax` documents are ranked,
 * and the texts of a page are looked through up to `snippetCharsMax`. Hits beyond that have no snippet.
 */
export function searchIn(
  db: Database,
  text: string,
  options: SearchOptions = {},
  { rankedMax = RANKED_MAX, snippetCharsMax = SNIPPET_CHARS_MAX }: Partial<SearchBounds> = {},
): SearchResult {
  const query = parseQuery(text)
  const { limit, offset } = pageOf(options)
  const rows = rowsFor(db, query, { limit: limit + 1, offset, rankedMax })
  const textOf = db.prepare('SELECT packed FROM texts WHERE id = ?')
  let room = snippetCharsMax
  const hits = rows.slice(0, limit).map((row) => {
    room -= row.textChars
    return hitOf(row, room < 0 ? '' : unpacked(packedIn(textOf.get(row.id))), query)
  })
  return { hits, hasMore: rows.length > limit }
}

interface SearchBounds {
  readonly rankedMax: number
  readonly snippetCharsMax: number
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
    const sql = `SELECT ${COLUMNS}, 0 AS rank FROM files f WHERE f.status = 'completed' AND f.gone_at IS NULL${where}${excluded}
      ORDER BY f.mtime_ms DESC, f.id LIMIT ? OFFSET ?`
    return rowsOf(db.prepare(sql).all(...values, ...(unwanted === '' ? [] : [unwanted]), limit, offset))
  }
  // Ranking is what takes long. With filters every match is looked up, in the order of the index, and those that pass are ranked.
  const passing =
    where === ''
      ? 'SELECT rowid AS id, rank FROM terms WHERE terms MATCH ? ORDER BY rowid DESC'
      : `SELECT f.id, terms.rank FROM terms JOIN files f ON f.id = terms.rowid WHERE terms MATCH ?${where}
         ORDER BY terms.rowid DESC`
  const sql = `SELECT ${COLUMNS}, t.rank FROM
      (SELECT id, rank FROM (${passing} LIMIT ${rankedMax}) ORDER BY rank, id LIMIT ? OFFSET ?) t
    JOIN files f ON f.id = t.id ORDER BY t.rank, f.id`
  return rowsOf(db.prepare(sql).all(match, ...values, limit, offset))
}

function filtersOf({ kinds, paths, from, to }: Query): {
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

export function hitOf(row: HitRow, text: string, { terms }: Query): Hit {
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

/** SQLite lowers ASCII letters only. */
export function addFunctions(db: Database): void {
  db.function('lower_path', { deterministic: true }, (path: unknown) => String(path).toLowerCase())
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
