import type { DatabaseSync } from '@photostructure/sqlite'
import { ImpresarioError } from '@impresario/protocol'
import type { Changes } from './journal.ts'

export type Database = InstanceType<typeof DatabaseSync>

/** Raised with every change that an older program could not read. */
export const SCHEMA_VERSION = 1

/**
 * Every connection of this process. `FULL` makes a commit wait for the disk; the checkpoint comes after
 * 8000 pages (32 MB) because a job's rows are rewritten a few times before they rest.
 */
export const PRAGMAS: readonly string[] = [
  'PRAGMA busy_timeout = 10000',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA wal_autocheckpoint = 8000',
  'PRAGMA cache_size = -32768',
  'PRAGMA temp_store = MEMORY',
  'PRAGMA foreign_keys = OFF',
]

/**
 * Tables without row ids, so that each row is in one tree only. The index by status leaves out finished
 * jobs, which are nearly all: an open job costs it two small writes, a finished one nothing for ever.
 */
const TABLES = `
CREATE TABLE IF NOT EXISTS meta (
  one INTEGER PRIMARY KEY CHECK (one = 1), schema_version INTEGER NOT NULL, epoch INTEGER NOT NULL, time REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, owner TEXT, status TEXT, name TEXT, data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_owner ON records (kind, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_status ON records (kind, status, id) WHERE status <> 'finished';
CREATE TABLE IF NOT EXISTS items (
  queue TEXT NOT NULL, id TEXT NOT NULL, lane TEXT NOT NULL, priority REAL NOT NULL, seq INTEGER NOT NULL,
  due_at REAL NOT NULL, payload TEXT NOT NULL, fallback_lane TEXT, fallback_at REAL, settle_at REAL,
  unclaimed_at REAL, token INTEGER NOT NULL, leased_until REAL NOT NULL, holder TEXT, deliveries INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES (1, ${SCHEMA_VERSION}, 0, 0);
`

/** The statements that a write uses, in the order in which it uses them. */
export const WRITE_STATEMENTS: readonly string[] = [
  'DELETE FROM items WHERE queue = ? AND id = ?',
  'INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  'UPDATE items SET unclaimed_at = ?, token = ?, leased_until = ?, holder = ?, deliveries = ? WHERE queue = ? AND id = ?',
  `INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET
   version = excluded.version, owner = excluded.owner, status = excluded.status, name = excluded.name,
   data = excluded.data`,
  'UPDATE records SET version = ?, status = ?, data = ? WHERE kind = ? AND id = ?',
  'UPDATE meta SET epoch = ?, time = ?',
]

export type Value = string | number | null

/** For each write statement how many values one run takes, and the values of all runs in one row. */
export type Write = readonly (readonly [width: number, values: readonly Value[]])[]

export function writeOf({ removed, items, leases, records, updates, epoch, time }: Changes): Write {
  const deletes: Value[] = []
  for (const { queue, id } of removed) deletes.push(queue, id)
  const inserts: Value[] = []
  for (const row of items) {
    inserts.push(row.queue, row.id, row.lane, row.priority, row.seq, row.dueAt, row.payload, row.fallbackLane)
    inserts.push(row.fallbackAt, row.settleAt, row.unclaimedAt, row.token, row.leasedUntil, row.holder, row.deliveries)
  }
  const claims: Value[] = []
  for (const row of leases) {
    claims.push(row.unclaimedAt, row.token, row.leasedUntil, row.holder, row.deliveries, row.queue, row.id)
  }
  const puts: Value[] = []
  for (const row of records) puts.push(row.kind, row.id, row.version, row.owner, row.status, row.name, row.data)
  const changes: Value[] = []
  for (const row of updates) changes.push(row.version, row.status, row.data, row.kind, row.id)
  return [
    [2, deletes],
    [15, inserts],
    [7, claims],
    [7, puts],
    [5, changes],
    [2, [epoch, time]],
  ]
}

/** A write as it travels to another thread: one long text and two arrays of numbers take a tenth of the time of rows. */
export interface PackedWrite {
  /** For each statement how many values one run takes, and how many there are. */
  readonly parts: readonly (readonly [width: number, count: number])[]
  /** For each value the length of its text, or one of the two below. */
  readonly shape: Int32Array
  readonly text: string
  readonly numbers: Float64Array
}
export const IS_NULL = -1
export const IS_NUMBER = -2

export function pack(write: Write): PackedWrite {
  const shape: number[] = []
  const numbers: number[] = []
  const texts: string[] = []
  for (const [, values] of write) {
    for (const value of values) {
      if (typeof value === 'string') {
        shape.push(value.length)
        texts.push(value)
      } else if (value === null) shape.push(IS_NULL)
      else {
        shape.push(IS_NUMBER)
        numbers.push(value)
      }
    }
  }
  const parts = write.map(([width, values]) => [width, values.length] as const)
  return { parts, shape: Int32Array.from(shape), text: texts.join(''), numbers: Float64Array.from(numbers) }
}

/** Makes or checks the tables, and begins a new epoch. */
export function prepareDatabase(db: Database, file: string): { readonly epoch: number; readonly time: number } {
  for (const pragma of PRAGMAS) db.exec(pragma)
  const found = schemaVersionOf(db)
  if (found !== undefined && found !== SCHEMA_VERSION) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `${file} has schema version ${found}; this program knows version ${SCHEMA_VERSION}. ` +
        (found > SCHEMA_VERSION ? 'Use the newer program that wrote it.' : 'It is too old to be read.'),
      { details: { file, found, known: SCHEMA_VERSION } },
    )
  }
  db.exec('BEGIN IMMEDIATE')
  if (found === undefined) db.exec(TABLES)
  db.exec('UPDATE meta SET epoch = epoch + 1')
  db.exec('COMMIT')
  return metaOf(db)
}

function schemaVersionOf(db: Database): number | undefined {
  const table: unknown = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").get()
  if (table === undefined) return undefined
  return (db.prepare('SELECT schema_version AS version FROM meta').get() as { readonly version: number }).version
}

/** The boundary of the one row of `meta`. */
function metaOf(db: Database): { readonly epoch: number; readonly time: number } {
  return db.prepare('SELECT epoch, time FROM meta').get() as { readonly epoch: number; readonly time: number }
}
