import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { ImpresarioError } from '@impresario/protocol'

const VERSION = 2

/** After a power failure the latest events may be missing, so writes do not wait for the disk: `NORMAL`. */
export const SETTINGS: readonly string[] = [
  'PRAGMA busy_timeout = 10000',
  // Set before the first table: then free space can be released in pieces.
  'PRAGMA auto_vacuum = INCREMENTAL',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = NORMAL',
  // Removed data is overwritten with zeros, so that it cannot be read from free pages.
  'PRAGMA secure_delete = ON',
]

const TABLES: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS history (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL NOT NULL, event_type TEXT NOT NULL, job_id TEXT, worker_id TEXT,
    client TEXT, state TEXT, previous_state TEXT, next_state TEXT, origin_task_id TEXT, attempt_number INTEGER,
    duration_ms REAL, note TEXT, context_snapshot TEXT, blueprint TEXT
  ) STRICT`,
  'CREATE INDEX IF NOT EXISTS history_of_jobs ON history (job_id, timestamp, event_id) WHERE job_id IS NOT NULL',
  'CREATE INDEX IF NOT EXISTS history_by_time ON history (timestamp)',
  'CREATE INDEX IF NOT EXISTS history_of_clients ON history (client, timestamp) WHERE client IS NOT NULL',
  'CREATE INDEX IF NOT EXISTS history_with_workers ON history (worker_id, timestamp) WHERE worker_id IS NOT NULL',
  `CREATE INDEX IF NOT EXISTS history_of_workers_alone ON history (worker_id, timestamp)
    WHERE worker_id IS NOT NULL AND job_id IS NULL`,
  // The newest batch of each writing process, so that a batch that is sent twice is stored once.
  'CREATE TABLE IF NOT EXISTS writers (writer TEXT PRIMARY KEY, batch INTEGER NOT NULL, written_at REAL NOT NULL) STRICT',
]

/** Creates the file or migrates it to this program's version. Refuses a file that cannot be used. */
export function prepareFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // Only its owner may read it. A file that already exists keeps its permissions.
  closeSync(openSync(file, 'a', 0o600))
  const db = new DatabaseSync(file)
  try {
    for (const line of SETTINGS) db.exec(line)
    if (numberOf(db.prepare('PRAGMA user_version').get()) === VERSION) return
    db.exec('BEGIN IMMEDIATE')
    try {
      migrate(db)
      db.exec('COMMIT')
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
  } finally {
    db.close()
  }
}

function migrate(db: InstanceType<typeof DatabaseSync>): void {
  const found = numberOf(db.prepare('PRAGMA user_version').get())
  if (found > VERSION) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `The file that HISTORY_DATABASE_URI names has version ${found}; this program knows versions up to ${VERSION}. ` +
        'A newer program has written it: use that one, or name another file.',
    )
  }
  const columns: unknown = db.prepare("SELECT count(*) AS n FROM pragma_table_info('history')").get()
  const blueprints: unknown = db
    .prepare("SELECT count(*) AS n FROM pragma_table_info('history') WHERE name = 'blueprint'")
    .get()
  // Files of the first version, which had no version number.
  if (numberOf(columns) > 0 && numberOf(blueprints) === 0) {
    db.exec('ALTER TABLE history ADD COLUMN blueprint TEXT')
    db.exec('DROP INDEX IF EXISTS history_of_workers')
  }
  for (const line of TABLES) db.exec(line)
  db.exec(`PRAGMA user_version = ${VERSION}`)
}

/** Type boundary for the result of a query for one number. */
function numberOf(row: unknown): number {
  const [value] = Object.values(row as Readonly<Record<string, unknown>>)
  return Number(value)
}
