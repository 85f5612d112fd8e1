import { basename } from 'node:path'
import type { Fingerprint, ParsedDocument } from '../parsing/parser.ts'
import { shownPath } from '../paths.ts'
import { TOKENIZER_VERSION } from '../text/tokens.ts'
import { GONE_MS, NO_COUNTS, PAGE_MAX } from './indexer.ts'
import type { FileChange, FileQuery, FileRecord, FileStatus, IndexCounts, Indexer, IndexRequest } from './indexer.ts'
import { openForWriting } from './schema.ts'
import type { Database } from './schema.ts'
import type { SearchOptions, SearchResult } from './search.ts'
import { searchThreads } from './search-threads.ts'
import { WriteBatch } from './write-batch.ts'

type Statement = ReturnType<Database['prepare']>
type Value = string | number | null | Uint8Array

const COLUMNS = `id, path, status, priority, attempts, code, error, kind, title, size, mtime_ms AS mtimeMs, hash,
  text_chars AS textChars, is_truncated AS isTruncated, tokenizer, updated_at AS updatedAt`

/**
 * The index in one SQLite file. Writes go together in transactions; what they wrote is visible once they resolve. Searches are
 * on other threads.
 */
export class SqliteIndex implements Indexer {
  readonly #directory: string
  readonly #db: Database
  readonly #batch: WriteBatch
  readonly #statements = new Map<string, Statement>()

  constructor(directory: string) {
    this.#directory = directory
    this.#db = openForWriting(directory)
    this.#batch = new WriteBatch(this.#db)
  }

  async file(path: string): Promise<FileRecord | undefined> {
    return this.#file(path)
  }

  async files(query: FileQuery): Promise<readonly FileRecord[]> {
    return filesIn(this.#db, query)
  }

  async withHash(hash: string, exceptPath: string): Promise<readonly FileRecord[]> {
    const sql = `SELECT ${COLUMNS} FROM files WHERE hash = ? AND NOT (path = ? AND gone_at IS NULL)
      ORDER BY gone_at IS NULL, id DESC LIMIT 20`
    return recordsOf(this.#prepare(sql).all(hash, exceptPath))
  }

  mark(path: string, change: FileChange): Promise<void> {
    return this.#batch.add(() => this.#mark(path, change))
  }

  put(path: string, print: Fingerprint, document: ParsedDocument, moved?: FileRecord): Promise<void> {
    return this.#batch.add(() => {
      const id = this.#idFor(path, moved)
      const { kind, title, terms, packedText, textChars, isTruncated } = document
      this.#run(
        `UPDATE files SET path = ?, name = ?, status = 'completed', code = NULL, error = NULL, kind = ?, title = ?, size = ?,
         mtime_ms = ?, hash = ?, text_chars = ?, is_truncated = ?, tokenizer = ?, updated_at = ?, gone_at = NULL WHERE id = ?`,
        [
          path,
          basename(shownPath(path)),
          kind,
          title,
          print.size,
          print.mtimeMs,
          print.hash,
          textChars,
          Number(isTruncated),
          TOKENIZER_VERSION,
          Date.now(),
          id,
        ],
      )
      this.#run('INSERT OR REPLACE INTO terms (rowid, name, title, body, parts) VALUES (?, ?, ?, ?, ?)', [
        id,
        terms.name,
        terms.title,
        terms.body,
        terms.parts,
      ])
      this.#run('INSERT OR REPLACE INTO texts (id, packed) VALUES (?, ?)', [id, packedText])
    })
  }

  touch(path: string, print: Fingerprint): Promise<void> {
    return this.#batch.add(() => {
      this.#run(
        `UPDATE files SET status = 'completed', code = NULL, error = NULL, size = ?, mtime_ms = ?, updated_at = ?
         WHERE path = ? AND gone_at IS NULL`,
        [print.size, print.mtimeMs, Date.now(), path],
      )
    })
  }

  fail(path: string, print: Pick<Fingerprint, 'size' | 'mtimeMs'>, change: FileChange): Promise<void> {
    return this.#batch.add(() => {
      this.#mark(path, change)
      const id = this.#file(path)?.id
      if (id === undefined) return
      this.#forgetText(id)
      this.#run('UPDATE files SET size = ?, mtime_ms = ?, hash = NULL, tokenizer = ? WHERE id = ?', [
        print.size,
        print.mtimeMs,
        TOKENIZER_VERSION,
        id,
      ])
    })
  }

  remove(path: string): Promise<boolean> {
    return this.#batch.add(() => {
      this.#run('DELETE FROM files WHERE gone_at < ?', [Date.now() - GONE_MS])
      const id = this.#file(path)?.id
      if (id === undefined) return false
      this.#forgetText(id)
      this.#run('UPDATE files SET gone_at = ? WHERE id = ?', [Date.now(), id])
      return true
    })
  }

  invalidate(under?: string): Promise<number> {
    const folder = under === undefined || under.endsWith('/') ? (under ?? '') : `${under}/`
    return this.#batch.add(() =>
      under === undefined
        ? this.#run('UPDATE files SET tokenizer = 0 WHERE gone_at IS NULL', [])
        : this.#run('UPDATE files SET tokenizer = 0 WHERE gone_at IS NULL AND (path = ? OR instr(path, ?) = 1)', [
            under,
            folder,
          ]),
    )
  }

  async counts(): Promise<IndexCounts> {
    return countsIn(this.#db)
  }

  async search(query: string, options: SearchOptions = {}): Promise<SearchResult> {
    return searchThreads.search(this.#directory, query, options)
  }

  async text(id: number): Promise<{ readonly path: string; readonly text: string } | undefined> {
    return searchThreads.text(this.#directory, id)
  }

  async takeRequests(): Promise<readonly IndexRequest[]> {
    const found: unknown = this.#prepare('SELECT id, kind, path FROM requests ORDER BY id LIMIT 1000').all()
    const requests = found as readonly (IndexRequest & { readonly id: number })[]
    if (requests.length === 0) return []
    await this.#batch.add(() => this.#run('DELETE FROM requests WHERE id <= ?', [requests.at(-1)?.id ?? 0]))
    return requests.map(({ kind, path }) => ({ kind, path }))
  }

  async check(): Promise<void> {
    this.#prepare('SELECT count(*) FROM files WHERE id < 0').get()
  }

  async close(): Promise<void> {
    await this.#batch.close()
    await searchThreads.release(this.#directory)
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    this.#db.close()
  }

  #file(path: string): FileRecord | undefined {
    const sql = `SELECT ${COLUMNS} FROM files WHERE path = ? AND gone_at IS NULL`
    const row: unknown = this.#prepare(sql).get(path)
    return row === undefined ? undefined : recordOf(row)
  }

  #mark(path: string, change: FileChange): void {
    const { status, priority = null, attempts = 0, code = null, error = null } = change
    this.#run(
      `INSERT INTO files (path, name, status, priority, attempts, code, error, updated_at)
       VALUES (?1, ?2, ?3, coalesce(?4, 1), ?5, ?6, ?7, ?8)
       ON CONFLICT (path) WHERE gone_at IS NULL DO UPDATE SET status = ?3, priority = coalesce(?4, priority), attempts = ?5, code = ?6,
         error = ?7, updated_at = ?8`,
      [path, basename(shownPath(path)), status, priority, attempts, code, error, Date.now()],
    )
  }

  /** The record of a document that was moved replaces the one that stands for its new path. */
  #idFor(path: string, moved: FileRecord | undefined): number {
    const present = this.#file(path)?.id
    if (moved !== undefined && moved.id !== present && this.#isAsRead(moved)) {
      if (present !== undefined) {
        this.#forgetText(present)
        this.#run('DELETE FROM files WHERE id = ?', [present])
      }
      return moved.id
    }
    if (present !== undefined) return present
    this.#mark(path, { status: 'running' })
    return this.#file(path)?.id ?? 0
  }

  #isAsRead({ id, path, status, updatedAt }: FileRecord): boolean {
    const sql = 'SELECT 1 FROM files WHERE id = ? AND path = ? AND status = ? AND updated_at = ?'
    return this.#prepare(sql).get(id, path, status, updatedAt) !== undefined
  }

  #forgetText(id: number): void {
    this.#run('DELETE FROM terms WHERE rowid = ?', [id])
    this.#run('DELETE FROM texts WHERE id = ?', [id])
  }

  #run(sql: string, values: readonly Value[]): number {
    return this.#prepare(sql).run(...values).changes
  }

  #prepare(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

export function countsIn(db: Database): IndexCounts {
  const rows: unknown = db
    .prepare(
      'SELECT status, count(*) AS count, sum(text_chars) AS chars FROM files WHERE gone_at IS NULL GROUP BY status',
    )
    .all()
  const groups = rows as readonly { readonly status: FileStatus; readonly count: number; readonly chars: number }[]
  const byStatus = { ...NO_COUNTS, ...Object.fromEntries(groups.map(({ status, count }) => [status, count])) }
  const documents: unknown = db.prepare('SELECT count(*) AS count FROM texts').get()
  return {
    documents: (documents as { readonly count: number }).count,
    byStatus,
    textChars: groups.reduce((sum, { chars }) => sum + chars, 0),
  }
}

export function filesIn(
  db: Database,
  { status, limit = PAGE_MAX, after = '', under }: FileQuery,
): readonly FileRecord[] {
  const values: Value[] = [after]
  let where = 'path > ? AND gone_at IS NULL'
  if (status !== undefined) {
    where += ' AND status = ?'
    values.push(status)
  }
  if (under !== undefined) {
    const folder = under.endsWith('/') ? under : `${under}/`
    where += ' AND (path = ? OR instr(path, ?) = 1)'
    values.push(under, folder)
  }
  const sql = `SELECT ${COLUMNS} FROM files WHERE ${where} ORDER BY path LIMIT ?`
  return recordsOf(db.prepare(sql).all(...values, Math.min(limit, PAGE_MAX)))
}

/** Boundaries: the columns are named above, and the table is STRICT. */
function recordsOf(rows: unknown): readonly FileRecord[] {
  return (rows as readonly unknown[]).map(recordOf)
}

function recordOf(row: unknown): FileRecord {
  const { isTruncated, code, error, kind, hash, ...rest } = row as Omit<FileRecord, 'isTruncated'> & {
    readonly isTruncated: number
  }
  return {
    ...rest,
    code: code ?? undefined,
    error: error ?? undefined,
    kind: kind ?? undefined,
    hash: hash ?? undefined,
    isTruncated: isTruncated !== 0,
  }
}
