import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import type { PoolClient } from 'pg'
import type { Fingerprint, ParsedDocument } from '../parsing/parser.ts'
import { shownPath } from '../paths.ts'
import { TOKENIZER_VERSION } from '../text/tokens.ts'
import { GONE_MS, NO_COUNTS, PAGE_MAX } from './indexer.ts'
import type { FileChange, FileQuery, FileRecord, FileStatus, IndexCounts, Indexer, IndexRequest } from './indexer.ts'
import { PostgresConnections } from './postgres-connections.ts'
import type { Values } from './postgres-connections.ts'
import { mustBeKnown, postgresAddress, schemaStatements } from './postgres-schema.ts'
import { parseQuery } from './query.ts'
import type { Query } from './query.ts'
import { pageOf, RANKED_MAX, SNIPPET_CHARS_MAX } from './search.ts'
import type { PackedRow, SearchOptions, SearchResult } from './search.ts'
import { searchThreads } from './search-threads.ts'
import type { SearchThreads } from './search-threads.ts'
import { lexeme, tsqueryMatch } from './tsquery-match.ts'
import { ownerLexeme, tsvectorOf } from './tsvector.ts'

export interface PostgresIndexOptions {
  /** The address of the storage: the index lies beside it, in a schema of its own. */
  readonly url: string
  /** Whose index it is. */
  readonly owner: string
  /** Characters that are unpacked and looked through for the snippets of one page. */
  readonly snippetCharsMax?: number
  /** Where the snippets are made: by default, on the threads of all indexes of this process. */
  readonly threads?: SearchThreads
}

const COLUMNS = `id::float8 AS id, path, status, priority, attempts, code, error, kind, title, size, mtime_ms AS "mtimeMs", hash,
  text_chars AS "textChars", is_truncated AS "isTruncated", tokenizer, updated_at AS "updatedAt"`
const HIT_COLUMNS =
  'f.id::float8 AS id, f.path, f.name, f.kind, f.title, f.size, f.mtime_ms AS "mtimeMs", f.text_chars AS chars'
/** For parts of codes, text, title and name. PostgreSQL knows no rarity of words: only where they stand, and how often. */
const WEIGHTS = "'{0.06, 0.125, 0.625, 1}'::float4[]"
/** A long document has more of everything: the logarithm of its length counts against it. */
const BY_LENGTH = 1

type Row = Readonly<Record<string, unknown>>

/** Makes the tables where there are none, and opens the index of one owner. */
export async function openPostgresIndex(options: PostgresIndexOptions): Promise<PostgresIndex> {
  const { owner, snippetCharsMax = SNIPPET_CHARS_MAX, threads = searchThreads } = options
  const { url: address, schema } = postgresAddress(options.url)
  const setup = new PostgresConnections(address, `impresario documents ${schema}`)
  try {
    await setup.write(async (client) => {
      for (const statement of schemaStatements(schema)) await client.query(statement)
      const { rows } = await client.query<{ value: string }>(`SELECT value FROM ${schema}.facts WHERE name = 'version'`)
      mustBeKnown(rows[0]?.value)
    })
  } finally {
    await setup.close()
  }
  const connections = new PostgresConnections(address, `impresario documents ${schema} ${owner}`)
  return new PostgresIndex(connections, { schema, owner, snippetCharsMax, threads })
}

interface IndexLocation {
  /** Quoted. */
  readonly schema: string
  readonly owner: string
  readonly snippetCharsMax: number
  readonly threads: SearchThreads
}

/**
 * The index in PostgreSQL, for all machines that share the storage. The database searches; the texts of the hits are unpacked and
 * cut on other threads, and those beyond `snippetCharsMax` are not sent at all.
 */
export class PostgresIndex implements Indexer {
  readonly isShared = true
  readonly #connections: PostgresConnections
  readonly #files: string
  readonly #texts: string
  readonly #owner: string
  readonly #ownerKey: string
  readonly #snippetCharsMax: number
  readonly #threads: SearchThreads

  constructor(connections: PostgresConnections, { schema, owner, snippetCharsMax, threads }: IndexLocation) {
    this.#connections = connections
    this.#files = `${schema}.files`
    this.#texts = `${schema}.texts`
    this.#owner = owner
    this.#snippetCharsMax = snippetCharsMax
    this.#threads = threads
    this.#ownerKey = createHash('sha256').update(owner).digest('hex').slice(0, 16)
  }

  async file(path: string): Promise<FileRecord | undefined> {
    const [row] = await this.#connections.rows(this.#fileSql(), [this.#owner, path])
    return row === undefined ? undefined : recordOf(row)
  }

  async files({ status, limit = PAGE_MAX, after = '', under }: FileQuery): Promise<readonly FileRecord[]> {
    const values: (string | number)[] = [this.#owner, after, Math.min(limit, PAGE_MAX)]
    let where = 'owner = $1 AND path > $2 AND gone_at IS NULL'
    if (status !== undefined) where += ` AND status = $${values.push(status)}`
    if (under !== undefined) where += ` AND ${underSql(values, under)}`
    const sql = `SELECT ${COLUMNS} FROM ${this.#files} WHERE ${where} ORDER BY path LIMIT $3`
    return (await this.#connections.rows(sql, values)).map(recordOf)
  }

  async withHash(hash: string, exceptPath: string): Promise<readonly FileRecord[]> {
    const sql = `SELECT ${COLUMNS} FROM ${this.#files} WHERE owner = $1 AND hash = $2 AND NOT (path = $3 AND gone_at IS NULL)
      ORDER BY gone_at IS NULL, id DESC LIMIT 20`
    return (await this.#connections.rows(sql, [this.#owner, hash, exceptPath])).map(recordOf)
  }

  mark(path: string, change: FileChange): Promise<void> {
    return this.#connections.write((client) => this.#mark(client, path, change))
  }

  put(path: string, print: Fingerprint, document: ParsedDocument, moved?: FileRecord): Promise<void> {
    return this.#connections.write(async (client) => {
      const id = await this.#idFor(client, path, moved)
      const { kind, title, terms, packedText, textChars, isTruncated } = document
      await client.query(
        `UPDATE ${this.#files} SET path = $2, name = $3, status = 'completed', code = NULL, error = NULL, kind = $4, title = $5,
         size = $6, mtime_ms = $7, hash = $8, text_chars = $9, is_truncated = $10, tokenizer = $11, updated_at = $12, lower_path = $13,
         gone_at = NULL WHERE id = $1`,
        [
          id,
          path,
          storable(basename(shownPath(path))),
          kind,
          storable(title),
          print.size,
          print.mtimeMs,
          print.hash,
          textChars,
          isTruncated,
          TOKENIZER_VERSION,
          Date.now(),
          path.toLowerCase(),
        ],
      )
      await client.query(
        `INSERT INTO ${this.#texts} (id, terms, packed) VALUES ($1, $2::tsvector, $3)
         ON CONFLICT (id) DO UPDATE SET terms = excluded.terms, packed = excluded.packed`,
        [id, tsvectorOf(terms, this.#ownerKey), Buffer.from(packedText)],
      )
    })
  }

  async touch(path: string, print: Fingerprint): Promise<void> {
    await this.#connections.write((client) =>
      client.query(
        `UPDATE ${this.#files} SET status = 'completed', code = NULL, error = NULL, size = $3, mtime_ms = $4, updated_at = $5
         WHERE owner = $1 AND path = $2 AND gone_at IS NULL`,
        [this.#owner, path, print.size, print.mtimeMs, Date.now()],
      ),
    )
  }

  fail(path: string, print: Pick<Fingerprint, 'size' | 'mtimeMs'>, change: FileChange): Promise<void> {
    return this.#connections.write(async (client) => {
      await this.#mark(client, path, change)
      const id = await this.#idOf(client, path)
      await client.query(`DELETE FROM ${this.#texts} WHERE id = $1`, [id])
      await client.query(
        `UPDATE ${this.#files} SET size = $2, mtime_ms = $3, hash = NULL, tokenizer = $4 WHERE id = $1`,
        [id, print.size, print.mtimeMs, TOKENIZER_VERSION],
      )
    })
  }

  remove(path: string): Promise<boolean> {
    return this.#connections.write(async (client) => {
      const now = Date.now()
      await client.query(`DELETE FROM ${this.#files} WHERE owner = $1 AND gone_at < $2`, [this.#owner, now - GONE_MS])
      const id = await this.#idOf(client, path)
      if (id === undefined) return false
      await client.query(`DELETE FROM ${this.#texts} WHERE id = $1`, [id])
      await client.query(`UPDATE ${this.#files} SET gone_at = $2 WHERE id = $1`, [id, now])
      return true
    })
  }

  invalidate(under?: string): Promise<number> {
    const values: (string | number)[] = [this.#owner]
    const where = under === undefined ? '' : ` AND ${underSql(values, under)}`
    const sql = `UPDATE ${this.#files} SET tokenizer = 0 WHERE owner = $1 AND gone_at IS NULL${where}`
    return this.#connections.write(async (client) => (await client.query(sql, values)).rowCount ?? 0)
  }

  async counts(): Promise<IndexCounts> {
    const groups = await this.#connections.rows<{ status: FileStatus; count: number; chars: number; texts: number }>(
      `SELECT f.status, count(*)::float8 AS count, sum(f.text_chars) AS chars, count(t.id)::float8 AS texts
       FROM ${this.#files} f LEFT JOIN ${this.#texts} t ON t.id = f.id
       WHERE f.owner = $1 AND f.gone_at IS NULL GROUP BY f.status`,
      [this.#owner],
    )
    return {
      documents: groups.reduce((sum, { texts }) => sum + texts, 0),
      byStatus: { ...NO_COUNTS, ...Object.fromEntries(groups.map(({ status, count }) => [status, count])) },
      textChars: groups.reduce((sum, { chars }) => sum + chars, 0),
    }
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    const query = parseQuery(text)
    if (query.isNothing) return { hits: [], hasMore: false }
    const { limit, offset } = pageOf(options)
    const { sql, values } = this.#searchSql(query, limit + 1, offset)
    const rows = await this.#connections.search<PackedRow>(sql, values)
    const hits = rows.length === 0 ? [] : await this.#threads.hits(rows.slice(0, limit), text)
    return { hits, hasMore: rows.length > limit }
  }

  async text(id: number): Promise<{ readonly path: string; readonly text: string } | undefined> {
    const [row] = await this.#connections.rows<{ path: string; packed: Uint8Array }>(
      `SELECT f.path, t.packed FROM ${this.#texts} t JOIN ${this.#files} f ON f.id = t.id WHERE t.id = $1 AND f.owner = $2`,
      [id, this.#owner],
    )
    return row === undefined ? undefined : { path: row.path, text: await this.#threads.unpacked(row.packed) }
  }

  /** Other programs ask the server, which has the index open. */
  async takeRequests(): Promise<readonly IndexRequest[]> {
    return []
  }

  async check(): Promise<void> {
    await this.#connections.rows(`SELECT 1 FROM ${this.#files} LIMIT 0`)
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  #fileSql(): string {
    return `SELECT ${COLUMNS} FROM ${this.#files} WHERE owner = $1 AND path = $2 AND gone_at IS NULL`
  }

  #searchSql(query: Query, limit: number, offset: number): { readonly sql: string; readonly values: Values } {
    const values: (string | number)[] = [this.#owner, limit, offset]
    const match = tsqueryMatch(query)
    const filters = filtersOf(query, values)
    if (query.wanted.length === 0) {
      const excluded = match === '' ? '' : ` AND t.terms @@ $${values.push(this.#withOwner(match))}::tsquery`
      const found = `SELECT ${HIT_COLUMNS}, 0::float8 AS rank FROM ${this.#files} f JOIN ${this.#texts} t ON t.id = f.id
        WHERE f.owner = $1 AND f.status = 'completed' AND f.gone_at IS NULL${filters}${excluded}
        ORDER BY f.mtime_ms DESC, f.id LIMIT $2 OFFSET $3`
      return { sql: this.#withTexts(found, 'best."mtimeMs" DESC, best.id'), values }
    }
    const asked = `$${values.push(match)}::tsquery`
    const own = `$${values.push(this.#withOwner(match))}::tsquery`
    const found = `SELECT ${HIT_COLUMNS}, -ts_rank(${WEIGHTS}, m.terms, ${asked}, ${BY_LENGTH})::float8 AS rank
      FROM (SELECT id, terms FROM ${this.#texts} WHERE terms @@ ${own} ORDER BY id DESC LIMIT ${RANKED_MAX}) m
      JOIN ${this.#files} f ON f.id = m.id WHERE f.owner = $1${filters}
      ORDER BY rank, f.id LIMIT $2 OFFSET $3`
    return { sql: this.#withTexts(found, 'best.rank, best.id'), values }
  }

  /** The hits of a page with their packed texts, as far as they are looked through. */
  #withTexts(found: string, order: string): string {
    const isWithin = `sum(best.chars) OVER (ORDER BY ${order}) <= ${this.#snippetCharsMax}`
    return `SELECT best.*, CASE WHEN ${isWithin} THEN t.packed END AS packed
      FROM (${found}) best JOIN ${this.#texts} t ON t.id = best.id ORDER BY ${order}`
  }

  #withOwner(match: string): string {
    return `${lexeme(ownerLexeme(this.#ownerKey))} & ${match}`
  }

  async #mark(client: PoolClient, path: string, change: FileChange): Promise<void> {
    const { status, priority = null, attempts = 0, code = null, error = null } = change
    await client.query(
      `INSERT INTO ${this.#files} AS f (owner, path, name, status, priority, attempts, code, error, updated_at, lower_path)
       VALUES ($1, $2, $3, $4, coalesce($5::int, 1), $6, $7, $8, $9, $10)
       ON CONFLICT (owner, path) WHERE gone_at IS NULL DO UPDATE SET status = $4, priority = coalesce($5::int, f.priority),
         attempts = $6, code = $7, error = $8, updated_at = $9`,
      [
        this.#owner,
        path,
        storable(basename(shownPath(path))),
        status,
        priority,
        attempts,
        code,
        error === null ? null : storable(error),
        Date.now(),
        path.toLowerCase(),
      ],
    )
  }

  async #idOf(client: PoolClient, path: string): Promise<number | undefined> {
    const { rows } = await client.query<{ id: number }>(this.#fileSql(), [this.#owner, path])
    return rows[0]?.id
  }

  /** The record of a document that was moved replaces the one that stands for its new path. */
  async #idFor(client: PoolClient, path: string, moved: FileRecord | undefined): Promise<number> {
    const present = await this.#idOf(client, path)
    if (moved !== undefined && moved.id !== present && (await this.#isAsRead(client, moved))) {
      if (present !== undefined) await client.query(`DELETE FROM ${this.#files} WHERE id = $1`, [present])
      return moved.id
    }
    if (present !== undefined) return present
    await this.#mark(client, path, { status: 'running' })
    return (await this.#idOf(client, path)) ?? 0
  }

  async #isAsRead(client: PoolClient, { id, path, status, updatedAt }: FileRecord): Promise<boolean> {
    const sql = `SELECT 1 FROM ${this.#files} WHERE id = $1 AND path = $2 AND status = $3 AND updated_at = $4 FOR UPDATE`
    return ((await client.query(sql, [id, path, status, updatedAt])).rowCount ?? 0) > 0
  }
}

function underSql(values: (string | number)[], under: string): string {
  const folder = under.endsWith('/') ? under : `${under}/`
  return `(path = $${values.push(under)} OR starts_with(path, $${values.push(folder)}))`
}

function filtersOf(
  { kinds, paths, excludedKinds, excludedPaths, from, to }: Query,
  values: (string | number)[],
): string {
  const parts: string[] = []
  if (kinds.length > 0) parts.push(`f.kind IN (${kinds.map((kind) => `$${values.push(kind)}`).join(', ')})`)
  for (const path of paths) parts.push(`strpos(f.lower_path, $${values.push(path.toLowerCase())}) > 0`)
  if (excludedKinds.length > 0) {
    parts.push(`f.kind NOT IN (${excludedKinds.map((kind) => `$${values.push(kind)}`).join(', ')})`)
  }
  for (const path of excludedPaths) parts.push(`strpos(f.lower_path, $${values.push(path.toLowerCase())}) = 0`)
  if (from !== undefined) parts.push(`f.mtime_ms >= $${values.push(from)}`)
  if (to !== undefined) parts.push(`f.mtime_ms < $${values.push(to)}`)
  return parts.map((part) => ` AND ${part}`).join('')
}

/** A text of PostgreSQL has no character zero. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}

/** Boundary: the statements name the columns. */
function recordOf(row: Row): FileRecord {
  const { code, error, kind, hash, ...rest } = row as unknown as FileRecord
  return {
    ...rest,
    code: code ?? undefined,
    error: error ?? undefined,
    kind: kind ?? undefined,
    hash: hash ?? undefined,
  }
}
