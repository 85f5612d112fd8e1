import { statSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'
import { markOf, mustNotBeTransferred } from '@impresario/core'
import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { CountRow } from './journal.ts'
import { countKeyOf } from './sqlite-write.ts'

/** How long a connection waits for another one of this process before it gives up. */
export const BUSY_MS = 10_000

export type Value = string | number | null
export type Database = InstanceType<typeof DatabaseSync>

/** The `PRAGMA auto_vacuum` value of a file that releases space on request. */
const INCREMENTAL = 2

/** Incremented with every change that an older program could not read. */
const SCHEMA_VERSION = 2

/**
 * Applied to every connection of this process. `FULL` makes a commit wait for the disk. The checkpoint runs after 8000
 * pages (32 MB), because the rows of a job are rewritten several times before they reach their final state.
 */
export const PRAGMAS: readonly string[] = [
  `PRAGMA busy_timeout = ${BUSY_MS}`,
  // Takes effect only while the file is empty. An existing file is rewritten once.
  'PRAGMA auto_vacuum = INCREMENTAL',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA wal_autocheckpoint = 8000',
  'PRAGMA cache_size = -8192',
  'PRAGMA temp_store = MEMORY',
  'PRAGMA foreign_keys = OFF',
  // Deleted data is overwritten with zeros, so that it cannot be read from free pages.
  'PRAGMA secure_delete = ON',
]

/**
 * Tables without row ids, so that each row is in one tree only. The data column comes last, because long data is kept
 * in overflow pages and a column after it could be read only through them. The index by status leaves out finished
 * jobs, which are nearly all jobs: an open job costs two small index writes, a finished one costs nothing. The index by
 * name is for the kinds of `isIndexedByName`. The counts are stored beside the records, because counting a million
 * records at every start would take seconds.
 */
const TABLES = `
CREATE TABLE IF NOT EXISTS meta (
  one INTEGER PRIMARY KEY CHECK (one = 1), schema_version INTEGER NOT NULL, epoch INTEGER NOT NULL, time REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, owner TEXT, status TEXT, name TEXT,
  text TEXT, expires_at REAL, data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_owner ON records (kind, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_status ON records (kind, status, id) WHERE status <> 'finished';
CREATE INDEX IF NOT EXISTS records_by_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_name ON records (kind, name, id) WHERE kind = 'subscription';
CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (
  queue TEXT NOT NULL, id TEXT NOT NULL, lane TEXT NOT NULL, priority REAL NOT NULL, seq INTEGER NOT NULL,
  due_at REAL NOT NULL, payload TEXT NOT NULL, fallback_lane TEXT, fallback_at REAL, settle_at REAL,
  unclaimed_at REAL, run_ms REAL, run_at REAL, token INTEGER NOT NULL, leased_until REAL NOT NULL, holder TEXT, deliveries INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS firings_by_due ON items (queue, due_at) WHERE queue = 'firings';
CREATE TABLE IF NOT EXISTS move (one INTEGER PRIMARY KEY CHECK (one = 1), mark TEXT NOT NULL) STRICT;
INSERT OR IGNORE INTO meta VALUES (1, ${SCHEMA_VERSION}, 0, 0);
`

export interface PrepareOptions {
  readonly isForTransfer?: boolean
  /** Notified of operations that take long. */
  readonly log?: Log | undefined
}

/**
 * Creates or checks the tables and begins a new epoch. Refuses a file that an unfinished transfer left behind. When
 * called for a transfer itself, it does neither of the last two.
 */
export function prepareDatabase(
  file: string,
  { isForTransfer = false, log }: PrepareOptions = {},
): { readonly epoch: number; readonly time: number } {
  const db = new DatabaseSync(file)
  try {
    for (const pragma of PRAGMAS) db.exec(pragma)
    const found = schemaVersionOf(db)
    checkVersion(found, file)
    db.exec('BEGIN IMMEDIATE')
    if (found === 1) migrateFrom1(db)
    else db.exec(TABLES)
    if (hasOldCounts(db)) recount(db)
    db.exec('COMMIT')
    if (isForTransfer) return metaOf(db)
    // Not inside the transaction: a connection that is closed inside one may keep its lock until it is
    // garbage-collected.
    mustNotBeTransferred(markIn(db))
    rewriteOnce(db, file, log)
    db.exec('UPDATE meta SET epoch = epoch + 1')
    return metaOf(db)
  } finally {
    db.close()
  }
}

/** A minute on a slow disk. Larger files stay as they are: a transfer into a new directory has the same effect. */
const REWRITE_BYTES_MAX = 1_073_741_824

/**
 * A file of an earlier program does not release space, and its free pages still show deleted data. Rewriting it once
 * fixes both. Nothing else depends on it, so a disk without room for the rewrite does not prevent the start.
 */
function rewriteOnce(db: Database, file: string, log: Log | undefined): void {
  const { auto_vacuum: mode } = db.prepare('PRAGMA auto_vacuum').get() as { readonly auto_vacuum: number }
  if (mode === INCREMENTAL) return
  const bytes = statSync(file).size
  if (bytes > REWRITE_BYTES_MAX) {
    log?.warn('the job file is too large to be rewritten at the start, and will not become smaller by itself', {
      bytes,
      advice: 'stop the server and move it into a new directory with `impresario migrate`',
    })
    return
  }
  log?.info('the job file is rewritten once, so that it can give space back', { bytes })
  try {
    // In memory, as `PRAGMAS` sets it, the rewrite would need as much memory as the file is large.
    db.exec('PRAGMA temp_store = FILE')
    db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    db.exec('VACUUM')
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    log?.warn('the job file could not be rewritten; it is tried again at the next start', { error: String(error) })
  }
}

function checkVersion(found: number | undefined, file: string): void {
  if (found === undefined || (found >= 1 && found <= SCHEMA_VERSION)) return
  const advice = found > SCHEMA_VERSION ? 'Use the newer program that wrote it.' : 'It is too old to be read.'
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `${file} has schema version ${found}; this program knows version ${SCHEMA_VERSION}. ${advice}`,
    { details: { file, found, known: SCHEMA_VERSION } },
  )
}

/** Version 1 had no text, no expiry and no counts. Its records get no text until they are next written. */
function migrateFrom1(db: Database): void {
  db.exec('DROP INDEX records_by_owner; DROP INDEX records_by_status; ALTER TABLE records RENAME TO records_1')
  db.exec(TABLES)
  db.exec(`INSERT INTO records SELECT kind, id, version, owner, status, name, NULL, NULL, data FROM records_1;
    DROP TABLE records_1`)
  recount(db)
  db.exec('UPDATE meta SET schema_version = 2')
}

/** Whether an earlier program has written counts by names that are not counted any more. */
function hasOldCounts(db: Database): boolean {
  const sql = 'SELECT 1 FROM counts WHERE key NOT LIKE \'["job",%\' AND key ->> 2 IS NOT NULL LIMIT 1'
  return db.prepare(sql).get() !== undefined
}

export function recount(db: Database): void {
  db.exec('DELETE FROM counts')
  const insert = db.prepare('INSERT INTO counts VALUES (?, ?)')
  for (const row of countedRows(db)) insert.run(countKeyOf(row), row.count)
}

/** The actual number of records, without those that had expired at the last write. */
export function countedRows(db: Database): readonly CountRow[] {
  const sql = `SELECT kind, owner, iif(kind = 'job', name, NULL) AS name, status, count(*) AS count FROM records
    WHERE status IS NOT NULL AND (expires_at IS NULL OR expires_at > (SELECT time FROM meta))
    GROUP BY kind, owner, 3, status`
  return db.prepare(sql).all() as readonly CountRow[]
}

function schemaVersionOf(db: Database): number | undefined {
  const table: unknown = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").get()
  if (table === undefined) return undefined
  return (db.prepare('SELECT schema_version AS version FROM meta').get() as { readonly version: number }).version
}

/** Type boundary of the one row of `move`. */
function markIn(db: Database): ReturnType<typeof markOf> {
  const row = db.prepare('SELECT mark FROM move').get() as { readonly mark: string } | undefined
  return markOf(row?.mark)
}

/** Type boundary of the one row of `meta`. */
function metaOf(db: Database): { readonly epoch: number; readonly time: number } {
  return db.prepare('SELECT epoch, time FROM meta').get() as { readonly epoch: number; readonly time: number }
}
