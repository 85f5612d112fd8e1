import { ImpresarioError } from '@impresario/protocol'
import type { ClientBase } from 'pg'
import { inTransaction } from './postgres-connections.ts'

/**
 * A released migration is never changed: a new version is a new entry at the end. `{schema}` stands for the name of the
 * schema. Programs of the previous version must be able to work with the newest schema, because instances are replaced
 * one after the other.
 *
 * One partition holds one day (UTC). Old days are dropped as whole tables, which costs nothing and releases the space
 * at once. Deletes would write every row a second time, make vacuum scan all indexes, and never shrink the files.
 * `history_other` takes events for which no day is prepared, so that no write fails because a partition is missing.
 */
const MIGRATIONS: readonly string[] = [
  `
CREATE SEQUENCE {schema}.event_ids;
CREATE TABLE {schema}.history (
  event_id bigint NOT NULL DEFAULT nextval('{schema}.event_ids'),
  "timestamp" timestamptz NOT NULL,
  event_type text COLLATE "C" NOT NULL,
  job_id text COLLATE "C",
  worker_id text COLLATE "C",
  client text COLLATE "C",
  blueprint text COLLATE "C",
  state text,
  previous_state text,
  next_state text,
  origin_task_id text,
  attempt_number integer,
  duration_ms double precision,
  note text,
  context_snapshot jsonb,
  PRIMARY KEY ("timestamp", event_id)
) PARTITION BY RANGE ("timestamp");
CREATE INDEX history_of_jobs ON {schema}.history (job_id, "timestamp", event_id) WHERE job_id IS NOT NULL;
CREATE INDEX history_of_clients ON {schema}.history (client, "timestamp", event_id) WHERE client IS NOT NULL;
CREATE INDEX history_with_workers ON {schema}.history (worker_id, "timestamp", event_id) WHERE worker_id IS NOT NULL;
CREATE INDEX history_of_workers_alone ON {schema}.history (worker_id, "timestamp", event_id)
  WHERE worker_id IS NOT NULL AND job_id IS NULL;
CREATE TABLE {schema}.history_other PARTITION OF {schema}.history DEFAULT
  WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- How much each process has written for each day, and the newest of its batches, so that one that is sent twice is there
-- once. What was removed row by row is a row without a name, with numbers below zero.
CREATE TABLE {schema}.ledger (
  day date NOT NULL,
  writer text COLLATE "C" NOT NULL,
  batch bigint NOT NULL,
  events bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (day, writer)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`,
]

const VERSION = MIGRATIONS.length

/** The lock under which instances that start at the same time migrate the tables one after the other. */
const LOCK_SPACE = 1_751_741_299

/** Migrates the tables to this program's version, or refuses those of a newer one. */
export async function migrate(client: ClientBase, schema: string): Promise<void> {
  if ((await versionOf(client, schema)) === VERSION) return
  await inTransaction(client, async () => {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_SPACE, schema])
    const found = await versionOf(client, schema)
    mustBeKnown(found, schema)
    if (found === 0) {
      await client.query(`CREATE SCHEMA IF NOT EXISTS "${schema}"`)
      await client.query(
        `CREATE TABLE "${schema}".meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL)`,
      )
      await client.query(`INSERT INTO "${schema}".meta (version) VALUES (0)`)
    }
    for (const migration of MIGRATIONS.slice(found)) {
      await client.query(migration.replaceAll('{schema}', `"${schema}"`))
    }
    await client.query(`UPDATE "${schema}".meta SET version = $1`, [VERSION])
  })
}

function mustBeKnown(found: number, schema: string): void {
  if (found <= VERSION) return
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `The schema "${schema}" that HISTORY_DATABASE_URI names has version ${found}; this program knows versions up to ${VERSION}. ` +
      'A newer program has changed it: use that one, or name another schema.',
    { details: { schema, found, known: VERSION } },
  )
}

/** Reads the catalog with a query: names that were looked up before the lock may be cached as missing. */
async function versionOf(client: ClientBase, schema: string): Promise<number> {
  const found = await client.query(
    "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta'",
    [schema],
  )
  if (found.rowCount === 0) return 0
  const { rows } = await client.query<{ readonly version: number }>(`SELECT version FROM "${schema}".meta`)
  return rows[0]?.version ?? 0
}
