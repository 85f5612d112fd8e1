import { DatabaseSync } from '@photostructure/sqlite'
import { isIndexedByName } from '@impresario/core'
import type { Kind } from '@impresario/core'
import { firstBytes } from './journal.ts'
import type { Changes, CountRow, ExpiringRow, Journal, JournalQuery, Opened, OpenedItem, RecordRow } from './journal.ts'
import type { FileIdentity } from './file-identity.ts'
import { OPENED_COLUMNS, openedItems } from './sqlite-items.ts'
import { BUSY_MS, countedRows, prepareDatabase } from './sqlite-schema.ts'
import type { Database, PrepareOptions, Value } from './sqlite-schema.ts'
import { countFrom, countKeyOf, pack } from './sqlite-write.ts'
import { SqliteWriter } from './sqlite-writer.ts'

type Statement = ReturnType<Database['prepare']>

export const RECORD_COLUMNS = 'kind, id, version, owner, status, name, text, expires_at AS expiresAt, data'

const OF_STATUS = "AND status = ? AND status <> 'finished'"

/**
 * SQLite would rather walk all records in the order of their ids than use the index by status: with a million jobs that took
 * a second for each status that none of them has.
 */
function tableFor(where: string): string {
  return where === OF_STATUS ? 'records INDEXED BY records_by_status' : 'records'
}

/** The literal tells SQLite that the index by name holds all that is asked for. */
const BY_NAME = "records INDEXED BY records_by_name WHERE kind = 'subscription' AND kind = ?"

/**
 * The journal in one SQLite file. One connection here, for reading; one in a thread, for writing.
 * In WAL mode neither waits for the other, and a read sees every write that has been answered.
 */
export class SqliteJournal implements Journal {
  readonly #db: Database
  readonly #writer: SqliteWriter
  readonly #opened: { readonly epoch: number; readonly time: number }
  readonly #statements = new Map<string, Statement>()

  constructor(file: string, files: readonly FileIdentity[] = [], options: PrepareOptions = {}) {
    this.#opened = prepareDatabase(file, options)
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS })
    this.#writer = new SqliteWriter(file, files)
  }

  open(): Opened {
    return {
      ...this.#opened,
      items: (now, restingMin) => openedItems(this.#db, now, restingMin),
      counts: this.#counts(),
    }
  }

  onBroken(listener: (error: Error) => void): void {
    this.#writer.onBroken(listener)
  }

  write(changes: Changes): Promise<boolean> {
    return this.#writer.write(pack(changes))
  }

  read(kind: string, id: string): RecordRow | undefined {
    return recordRow(this.#prepare(`SELECT ${RECORD_COLUMNS} FROM records WHERE kind = ? AND id = ?`).get(kind, id))
  }

  readFrom(kind: string, id: string, limit: number, charsMax: number): readonly RecordRow[] {
    const sql = `SELECT ${RECORD_COLUMNS} FROM records WHERE kind = ? AND id >= ? ORDER BY id LIMIT ?`
    return [...firstBytes(rowsOneByOne(this.#prepare(sql).iterate(kind, id, limit)), charsMax)]
  }

  list(kind: string, query: JournalQuery): readonly RecordRow[] {
    const { statuses } = query
    if (statuses === undefined) return this.#listWhere(kind, query, '', [])
    if (statuses.includes('finished')) {
      return this.#listWhere(kind, query, `AND status IN (${statuses.map(() => '?').join(', ')})`, statuses)
    }
    // One index scan per status, then the newest of all results.
    const found = statuses.flatMap((status) => this.#listWhere(kind, query, OF_STATUS, [status]))
    // Each scan may have ended at its byte limit. Up to that point the newest results are at least as long.
    const newest = found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, query.limit)
    return query.bytesMax === undefined ? newest : [...firstBytes(newest, query.bytesMax)]
  }

  floor(kind: string, { owner, statuses, before, from }: JournalQuery, looksMax: number): string | undefined {
    const walk = (where: string, values: readonly string[]): string | undefined => {
      const parts = [`SELECT id FROM ${tableFor(where)} WHERE kind = ?`, where]
      const bound: Value[] = [kind, ...values]
      if (before !== undefined) {
        parts.push('AND id < ?')
        bound.push(before)
      }
      if (from !== undefined) {
        parts.push('AND id >= ?')
        bound.push(from)
      }
      parts.push('ORDER BY id DESC LIMIT 1 OFFSET ?')
      const row: unknown = this.#prepare(parts.join(' ')).get(...bound, looksMax - 1)
      return (row as { readonly id: string } | undefined)?.id
    }
    // Uses the same indexes as the list itself.
    if (statuses === undefined || statuses.includes('finished')) {
      return owner === undefined ? walk('', []) : walk('AND owner = ?', [owner])
    }
    const floors = statuses.map((status) => walk(OF_STATUS, [status]))
    return floors
      .filter((floor) => floor !== undefined)
      .toSorted()
      .at(-1)
  }

  expiring(after: number, until: number): readonly ExpiringRow[] {
    const sql = `SELECT kind, id, owner, status, name, expires_at AS expiresAt FROM records
      WHERE expires_at > ? AND expires_at <= ?`
    return expiringRows(this.#prepare(sql).all(after, until))
  }

  itemsFrom(queue: string, id: string, limit: number): readonly OpenedItem[] {
    const sql = `SELECT ${OPENED_COLUMNS} FROM items WHERE queue = ? AND id >= ? ORDER BY id LIMIT ?`
    return itemRows(this.#prepare(sql).all(queue, id, limit))
  }

  item(queue: string, id: string): OpenedItem | undefined {
    const sql = `SELECT ${OPENED_COLUMNS} FROM items WHERE queue = ? AND id = ?`
    return itemRows(this.#prepare(sql).all(queue, id))[0]
  }

  itemsDue(queue: string, after: number, until: number): readonly OpenedItem[] {
    const sql = `SELECT ${OPENED_COLUMNS} FROM items WHERE queue = ? AND due_at > ? AND due_at <= ?`
    return itemRows(this.#prepare(sql).all(queue, after, until))
  }

  payload(queue: string, id: string): string | undefined {
    const row: unknown = this.#prepare('SELECT payload FROM items WHERE queue = ? AND id = ?').get(queue, id)
    return (row as { readonly payload: string } | undefined)?.payload
  }

  lastId(kind: string): string | undefined {
    const row: unknown = this.#prepare('SELECT max(id) AS id FROM records WHERE kind = ?').get(kind)
    return (row as { readonly id: string | null }).id ?? undefined
  }

  integrityCheck(): readonly string[] {
    const rows = this.#prepare('PRAGMA integrity_check').all() as readonly { readonly integrity_check: string }[]
    const broken = rows.map((row) => row.integrity_check).filter((message) => message !== 'ok')
    const texts = [
      ...(this.#prepare('SELECT kind, id FROM records WHERE NOT json_valid(data)').all() as readonly Named[]).map(
        ({ kind, id }) => `The record ${kind} ${id} is not JSON.`,
      ),
      ...(
        this.#prepare('SELECT queue AS kind, id FROM items WHERE NOT json_valid(payload)').all() as readonly Named[]
      ).map(({ kind, id }) => `The payload of the item ${kind} ${id} is not JSON.`),
    ]
    return [...broken, ...texts, ...this.#countErrors()]
  }

  #counts(): readonly CountRow[] {
    return (this.#prepare('SELECT key, count FROM counts').all() as readonly Counted[]).map(countFrom)
  }

  /** Counts and the records that they count, both as of one point in time. */
  #countErrors(): readonly string[] {
    this.#db.exec('BEGIN')
    try {
      const kept = new Map(this.#counts().map((row) => [countKeyOf(row), row.count]))
      const real = new Map(countedRows(this.#db).map((row) => [countKeyOf(row), row.count]))
      const keys = [...new Set([...kept.keys(), ...real.keys()])].filter((key) => kept.get(key) !== real.get(key))
      return keys.map((key) => `The count of ${key} is ${kept.get(key) ?? 0} and should be ${real.get(key) ?? 0}.`)
    } finally {
      this.#db.exec('COMMIT')
    }
  }

  async close(): Promise<void> {
    this.#db.close()
    await this.#writer.close()
  }

  #listWhere(kind: string, query: JournalQuery, where: string, values: readonly string[]): readonly RecordRow[] {
    const { owner, name, before, from, search, now, limit } = query
    const isByName = name !== undefined && where === '' && isIndexedByName(kind as Kind)
    const source = isByName ? BY_NAME : `${tableFor(where)} WHERE kind = ?`
    const parts = [`SELECT ${RECORD_COLUMNS} FROM ${source}`, where]
    const bound: Value[] = [kind, ...values]
    if (owner !== undefined) {
      // The unary plus keeps SQLite from using the index by owner where another one is shorter.
      parts.push(where === '' && !isByName ? 'AND owner = ?' : 'AND +owner = ?')
      bound.push(owner)
    }
    if (name !== undefined) {
      parts.push('AND name = ?')
      bound.push(name)
    }
    if (before !== undefined) {
      parts.push('AND id < ?')
      bound.push(before)
    }
    if (from !== undefined) {
      parts.push('AND id >= ?')
      bound.push(from)
    }
    if (search !== undefined) {
      parts.push('AND instr(text, ?) > 0')
      bound.push(search)
    }
    parts.push('AND (expires_at IS NULL OR expires_at > ?)')
    bound.push(now)
    parts.push('ORDER BY id DESC LIMIT ?')
    bound.push(limit)
    const statement = this.#prepare(parts.join(' '))
    if (query.bytesMax === undefined) return recordRows(statement.all(...bound))
    // Row by row, so that nothing unnecessary is read.
    return [...firstBytes(rowsOneByOne(statement.iterate(...bound)), query.bytesMax)]
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

interface Counted {
  readonly key: string
  readonly count: number
}

interface Named {
  readonly kind: string
  readonly id: string
}

/** Type boundary of rows: strict tables that only this package writes, read by column name. */
function recordRow(row: unknown): RecordRow | undefined {
  return row as RecordRow | undefined
}

function recordRows(rows: readonly unknown[]): readonly RecordRow[] {
  return rows as readonly RecordRow[]
}

function rowsOneByOne(rows: Iterable<unknown>): Iterable<RecordRow> {
  return rows as Iterable<RecordRow>
}

function expiringRows(rows: readonly unknown[]): readonly ExpiringRow[] {
  return rows as readonly ExpiringRow[]
}

function itemRows(rows: readonly unknown[]): readonly OpenedItem[] {
  return rows as readonly OpenedItem[]
}
