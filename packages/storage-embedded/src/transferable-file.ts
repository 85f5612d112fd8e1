import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { markOf, markText, mustBeOwn } from '@impresario/core'
import type {
  EntryCounts,
  Kind,
  Transferable,
  TransferItem,
  TransferPage,
  TransferRecord,
  TransferMark,
  Origin,
  Outline,
  PageSize,
} from '@impresario/core'
import { lockDirectory } from './directory-lock.ts'
import { queueOf } from './entry.ts'
import type { ItemRow, RecordRow } from './journal.ts'
import { ITEM_COLUMNS } from './sqlite-items.ts'
import { RECORD_COLUMNS } from './sqlite-journal.ts'
import { PRAGMAS, prepareDatabase, recount } from './sqlite-schema.ts'
import type { Database } from './sqlite-schema.ts'
import { TOKENS_PER_EPOCH } from './token-source.ts'

const FILE = 'impresario.db'

/**
 * The file of the embedded storage, for a transfer; `undefined` if it does not exist and is not to be created. No other
 * process can have it open meanwhile: the directory is locked in the same way as by the storage itself.
 */
export function openTransferableFile(options: {
  readonly directory: string
  readonly mayCreate: boolean
}): TransferableFile | undefined {
  const path = resolve(options.directory)
  const file = join(path, FILE)
  if (!options.mayCreate && !existsSync(file)) return undefined
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { release: unlock } = lockDirectory(path)
  try {
    closeSync(openSync(file, 'a', 0o600))
    prepareDatabase(file, { isForTransfer: true })
    return new TransferableFile(file, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}

/** Reads the tables in key order. All written data is on disk when a method resolves. */
export class TransferableFile implements Transferable {
  readonly #db: Database
  readonly #unlock: () => void
  #isOpen = true

  constructor(file: string, unlock: () => void) {
    this.#unlock = unlock
    this.#db = new DatabaseSync(file)
    for (const pragma of PRAGMAS) this.#db.exec(pragma)
  }

  async mark(): Promise<TransferMark | undefined> {
    return this.#readMark()
  }

  async setMark(mark: TransferMark | undefined): Promise<void> {
    this.#writeMark(mark)
  }

  /** The directory lock excludes all other processes. */
  async users(): Promise<readonly string[]> {
    return []
  }

  async outline(): Promise<Outline> {
    const { epoch } = this.#meta()
    const found: unknown = this.#db.prepare('SELECT min(seq) AS first, max(seq) AS last FROM items').get()
    const { first, last } = found as { readonly first: number | null; readonly last: number | null }
    return {
      now: this.#now(),
      firstOrder: first ?? 0,
      lastOrder: last ?? 0,
      lastToken: (epoch + 1) * TOKENS_PER_EPOCH,
    }
  }

  async counts(): Promise<EntryCounts> {
    const records = this.#db
      .prepare(
        `SELECT kind AS name, count(*) AS count FROM records WHERE expires_at IS NULL OR expires_at > ? GROUP BY kind`,
      )
      .all(this.#now())
    const items = this.#db.prepare('SELECT queue AS name, count(*) AS count FROM items GROUP BY queue').all()
    return { records: countsOf(records), items: countsOf(items) }
  }

  fitted(page: TransferPage): TransferPage {
    return page
  }

  /** First the records, then the items. A cursor consists of the table and the key of the last row of a page. */
  async dump(origin: Origin, cursor: string | undefined, size: PageSize): Promise<TransferPage> {
    const [table, ...after] = cursor === undefined ? (['records', '', ''] as const) : cursorOf(cursor)
    if (table === 'records') {
      const rows = this.#db
        .prepare(
          `SELECT ${RECORD_COLUMNS} FROM records WHERE (kind, id) > (?, ?) AND (expires_at IS NULL OR expires_at > ?)
          ORDER BY kind, id LIMIT ?`,
        )
        .iterate(...after, origin.at, size.entriesMax)
      const page = pageOf(recordRows(rows), size, ({ data }) => data.length)
      const last = page.rows.at(-1)
      const next = last === undefined || page.isLast ? ['items', '', ''] : ['records', last.kind, last.id]
      return { records: page.rows.map((row) => transferRecord(row, origin)), items: [], next: JSON.stringify(next) }
    }
    const rows = this.#db
      .prepare(`SELECT ${ITEM_COLUMNS}, payload FROM items WHERE (queue, id) > (?, ?) ORDER BY queue, id LIMIT ?`)
      .iterate(...after, size.entriesMax)
    const page = pageOf(itemRows(rows), size, ({ payload }) => payload.length)
    const last = page.rows.at(-1)
    const next = last === undefined || page.isLast ? undefined : JSON.stringify(['items', last.queue, last.id])
    return { records: [], items: page.rows.map((row) => transferItem(row, origin)), next }
  }

  async load(origin: Origin, { records, items }: TransferPage, mark: TransferMark): Promise<void> {
    const putRecord = this.#db.prepare('INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
    const putItem = this.#db.prepare(
      'INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#transaction(() => {
      mustBeOwn(this.#readMark(), mark)
      for (const { kind, id, version, owner, status, name, text, expiresMs, value } of records) {
        const expiresAt = expiresMs === null ? null : origin.at + expiresMs
        putRecord.run(kind, id, version, owner, status, name, text, expiresAt, value)
      }
      for (const item of items) putItem.run(...itemValues(item, origin))
      this.#writeMark(mark)
    })
  }

  async finish(lastToken: number): Promise<void> {
    const now = this.#now()
    this.#transaction(() => {
      const epoch = Math.max(this.#meta().epoch, Math.ceil(lastToken / TOKENS_PER_EPOCH))
      this.#db.prepare('UPDATE meta SET epoch = ?, time = ?').run(epoch, now)
      recount(this.#db)
    })
  }

  async clear(): Promise<void> {
    this.#transaction(() => this.#db.exec('DELETE FROM records; DELETE FROM items; DELETE FROM counts'))
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#db.close()
    } finally {
      this.#unlock()
    }
  }

  /** As in the storage itself: never before the last written timestamp. */
  #now(): number {
    return Math.max(Date.now(), Math.ceil(this.#meta().time))
  }

  #meta(): { readonly epoch: number; readonly time: number } {
    return this.#db.prepare('SELECT epoch, time FROM meta').get() as { readonly epoch: number; readonly time: number }
  }

  #readMark(): TransferMark | undefined {
    return markOf(textOf(this.#db.prepare('SELECT mark FROM move').get(), 'mark'))
  }

  #writeMark(mark: TransferMark | undefined): void {
    if (mark === undefined) this.#db.exec('DELETE FROM move')
    else this.#db.prepare('INSERT OR REPLACE INTO move VALUES (1, ?)').run(markText(mark))
  }

  #transaction(write: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      write()
      this.#db.exec('COMMIT')
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }
}

/** Rows up to the size of a page, read one by one, so that at most one page is in memory. */
function pageOf<Row>(
  rows: Iterable<Row>,
  { entriesMax, bytesMax }: PageSize,
  bytesOf: (row: Row) => number,
): { readonly rows: readonly Row[]; readonly isLast: boolean } {
  const page: Row[] = []
  let bytes = 0
  for (const row of rows) {
    bytes += bytesOf(row)
    if (page.length > 0 && bytes > bytesMax) return { rows: page, isLast: false }
    page.push(row)
  }
  return { rows: page, isLast: page.length < entriesMax }
}

function transferRecord({ data, expiresAt, ...row }: RecordRow, { at }: Origin): TransferRecord {
  return { ...row, kind: kindOf(row.kind), expiresMs: spanOf(expiresAt, at), value: data }
}

function transferItem(row: ItemRow, { at, first, step }: Origin): TransferItem {
  const { queue, id, lane, priority, runMs, deliveries, token, holder, payload, fallbackLane } = row
  const dueAt = Math.ceil(row.dueAt)
  const afterMs = spanOf(row.fallbackAt, dueAt)
  const runEndsMs = spanOf(row.runAt, at)
  const isHeld = holder !== null && token !== 0
  return {
    queue: queueOf(queue),
    id,
    lane,
    priority,
    order: Math.floor((row.seq - first) / step),
    dueMs: dueAt - at,
    fallback: fallbackLane === null || afterMs === null ? null : { lane: fallbackLane, afterMs },
    unclaimedMs: spanOf(row.unclaimedAt, dueAt),
    settleMs: spanOf(row.settleAt, dueAt),
    runMs: runMs === null ? null : Math.ceil(runMs),
    deliveries,
    lease: isHeld ? { token, holder, endsMs: Math.ceil(row.leasedUntil) - at, runEndsMs } : null,
    ranOutMs: isHeld ? null : runEndsMs,
    payload,
  }
}

/** In the order of the columns. */
function itemValues(item: TransferItem, { at, first, step }: Origin): readonly (string | number | null)[] {
  const { queue, id, lane, priority, fallback, lease, deliveries, payload, ranOutMs } = item
  const dueAt = at + item.dueMs
  const since = (ms: number | null | undefined): number | null => (ms === null || ms === undefined ? null : dueAt + ms)
  const runEndsMs = lease === null ? ranOutMs : lease.runEndsMs
  const leasedUntil = lease === null ? (ranOutMs === null ? 0 : at + ranOutMs) : at + lease.endsMs
  return [
    queue,
    id,
    lane,
    priority,
    first + item.order * step,
    dueAt,
    payload,
    fallback?.lane ?? null,
    since(fallback?.afterMs),
    since(item.settleMs),
    since(item.unclaimedMs),
    item.runMs,
    runEndsMs === null ? null : at + runEndsMs,
    lease?.token ?? 0,
    leasedUntil,
    lease?.holder ?? null,
    deliveries,
  ]
}

/** Whole milliseconds, as all storages can hold them. */
function spanOf(at: number | null, from: number): number | null {
  return at === null ? null : Math.ceil(at) - from
}

function countsOf(rows: readonly unknown[]): Readonly<Record<string, number>> {
  const counted = rows as readonly { readonly name: string; readonly count: number }[]
  return Object.fromEntries(counted.map(({ name, count }) => [name, count]))
}

/** Type boundary of cursors: only `dump` creates them. */
function cursorOf(cursor: string): readonly ['records' | 'items', string, string] {
  return JSON.parse(cursor) as readonly ['records' | 'items', string, string]
}

/** Type boundary of rows: strict tables that only this package writes, read by column name. */
function recordRows(rows: Iterable<unknown>): Iterable<RecordRow> {
  return rows as Iterable<RecordRow>
}

function itemRows(rows: Iterable<unknown>): Iterable<ItemRow> {
  return rows as Iterable<ItemRow>
}

function kindOf(name: string): Kind {
  return name as Kind
}

function textOf(row: unknown, column: string): string | undefined {
  return (row as Readonly<Record<string, string>> | undefined)?.[column]
}
