import { ImpresarioError } from '@impresario/protocol'

const SCHEMA_VERSION = 1
const NAMESPACE_DEFAULT = 'impresario'

/** Where the index is: beside the storage in the same database, in a schema of its own. */
export interface PostgresAddress {
  readonly url: string
  /** Quoted. */
  readonly schema: string
}

/** From the address of the storage. Its own parameters mean nothing to the driver. */
export function postgresAddress(storageUrl: string): PostgresAddress {
  let url: URL
  try {
    url = new URL(storageUrl)
  } catch {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      'The index in PostgreSQL has no address. Write it as postgres://user:password@host:5432/database.',
    )
  }
  const namespace = url.searchParams.get('schema') ?? NAMESPACE_DEFAULT
  for (const own of ['schema', 'pool_max', 'strict', 'listen']) url.searchParams.delete(own)
  return { url: url.href, schema: `"${`${namespace}_documents`.replaceAll('"', '""')}"` }
}

/** Safe to run by several processes at once, and again. */
export function schemaStatements(schema: string): readonly string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS ${schema}`,
    `CREATE TABLE IF NOT EXISTS ${schema}.facts (name text PRIMARY KEY, value text NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${schema}.files (
       id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       owner text COLLATE "C" NOT NULL,
       path text COLLATE "C" NOT NULL,
       -- In lower case, by the rules of JavaScript: those of the database depend on how it was made.
       lower_path text COLLATE "C" NOT NULL,
       name text NOT NULL,
       status text NOT NULL,
       priority int NOT NULL DEFAULT 1,
       attempts int NOT NULL DEFAULT 0,
       code text,
       error text,
       kind text,
       title text NOT NULL DEFAULT '',
       size float8 NOT NULL DEFAULT 0,
       mtime_ms float8 NOT NULL DEFAULT 0,
       hash text,
       text_chars float8 NOT NULL DEFAULT 0,
       is_truncated boolean NOT NULL DEFAULT false,
       tokenizer int NOT NULL DEFAULT 0,
       updated_at float8 NOT NULL,
       gone_at float8
     )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS files_by_path ON ${schema}.files (owner, path) WHERE gone_at IS NULL`,
    `CREATE INDEX IF NOT EXISTS files_by_hash ON ${schema}.files (owner, hash) WHERE hash IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS files_by_status ON ${schema}.files (owner, status) WHERE status <> 'completed'`,
    `CREATE INDEX IF NOT EXISTS files_gone ON ${schema}.files (gone_at) WHERE gone_at IS NOT NULL`,
    `CREATE TABLE IF NOT EXISTS ${schema}.texts (
       id bigint PRIMARY KEY REFERENCES ${schema}.files (id) ON DELETE CASCADE,
       terms tsvector NOT NULL,
       packed bytea NOT NULL
     )`,
    // Packed already.
    `ALTER TABLE ${schema}.texts ALTER COLUMN packed SET STORAGE EXTERNAL`,
    `CREATE INDEX IF NOT EXISTS texts_by_term ON ${schema}.texts USING gin (terms)`,
    `INSERT INTO ${schema}.facts (name, value) VALUES ('version', '${SCHEMA_VERSION}') ON CONFLICT DO NOTHING`,
  ]
}

export function mustBeKnown(version: string | undefined): void {
  if (version === String(SCHEMA_VERSION)) return
  throw new ImpresarioError(
    'STORAGE_REFUSED',
    `The index in PostgreSQL was made by another version of Impresario (${version ?? 'none'}, and this one has ${SCHEMA_VERSION}).`,
  )
}
