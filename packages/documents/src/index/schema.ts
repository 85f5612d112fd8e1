import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ImpresarioError } from '@impresario/protocol/light'
import { DatabaseSync } from '@photostructure/sqlite'
import { CONNECTORS } from '../text/tokens.ts'

export type Database = InstanceType<typeof DatabaseSync>

export const INDEX_FILE = 'documents.db'
const SCHEMA_VERSION = 1
const BUSY_MS = 10_000

/** A word in the name counts as much as so many in the text; then the title, the text, and the parts of codes. */
const WEIGHTS = [8, 5, 1, 0.5] as const

const SCHEMA = `
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 1,
  attempts INTEGER NOT NULL DEFAULT 0,
  code TEXT,
  error TEXT,
  kind TEXT,
  title TEXT NOT NULL DEFAULT '',
  size INTEGER NOT NULL DEFAULT 0,
  mtime_ms REAL NOT NULL DEFAULT 0,
  hash TEXT,
  text_chars INTEGER NOT NULL DEFAULT 0,
  is_truncated INTEGER NOT NULL DEFAULT 0,
  tokenizer INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  gone_at INTEGER
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS files_by_path ON files (path) WHERE gone_at IS NULL;
CREATE INDEX IF NOT EXISTS files_by_hash ON files (hash) WHERE hash IS NOT NULL;
CREATE INDEX IF NOT EXISTS files_by_status ON files (status) WHERE status <> 'completed';
CREATE INDEX IF NOT EXISTS files_gone ON files (gone_at) WHERE gone_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, packed BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, path TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5(
  name, title, body, parts, content='', contentless_delete=1, tokenize="ascii tokenchars '${CONNECTORS}'"
);
INSERT INTO terms(terms, rank) VALUES ('rank', 'bm25(${WEIGHTS.map((weight) => weight.toFixed(1)).join(', ')})');
PRAGMA user_version = ${SCHEMA_VERSION};
`

/** Opens the index for writing, and makes it where there is none. */
export function openForWriting(directory: string): Database {
  mkdirSync(directory, { recursive: true })
  const db = open(directory, false)
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
    PRAGMA journal_size_limit = 16777216`)
  const version = versionOf(db)
  if (version === 0) db.exec(`BEGIN IMMEDIATE;${SCHEMA}COMMIT`)
  else mustBeKnown(db, version, directory)
  return db
}

export function openForReading(directory: string): Database {
  if (!existsSync(join(directory, INDEX_FILE))) {
    throw new ImpresarioError('NOT_FOUND', `There is no index in ${directory}. Run "impresario documents add" first.`)
  }
  const db = open(directory, true)
  mustBeKnown(db, versionOf(db), directory)
  return db
}

function open(directory: string, readOnly: boolean): Database {
  const file = join(directory, INDEX_FILE)
  try {
    const db = new DatabaseSync(file, { readOnly, timeout: BUSY_MS })
    versionOf(db)
    return db
  } catch (cause) {
    throw new ImpresarioError(
      'STORAGE_UNAVAILABLE',
      `The index ${file} cannot be opened: ${cause instanceof Error ? cause.message : String(cause)}. ` +
        'If it is damaged, delete it: the next start makes it again from the files.',
      { cause },
    )
  }
}

function versionOf(db: Database): number {
  const row: unknown = db.prepare('PRAGMA user_version').get()
  return (row as { readonly user_version: number }).user_version
}

function mustBeKnown(db: Database, version: number, directory: string): void {
  if (version === SCHEMA_VERSION) return
  db.close()
  throw new ImpresarioError(
    'STORAGE_REFUSED',
    `The index in ${directory} was made by another version of Impresario (${version}, and this one has ${SCHEMA_VERSION}).`,
  )
}
