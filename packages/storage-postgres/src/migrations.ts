import { ImpresarioError } from '@impresario/protocol'
import type { ClientBase } from 'pg'
import { CLAIM_FUNCTIONS } from './claim-functions.ts'
import { COMMIT_FUNCTION } from './commit-function.ts'
import { LEASE_FUNCTIONS } from './lease-functions.ts'
import { MOVES } from './move-mark.ts'
import { READ_FUNCTIONS } from './read-functions.ts'
import { ITEM_RULES, TABLES } from './tables.ts'

/**
 * What was once released is never changed: a new version is a new entry at the end. `{schema}` stands for the name of the
 * schema. Programs of the version before must be able to work with the newest one, because instances are replaced one after
 * the other.
 */
const MIGRATIONS: readonly string[] = [
  [TABLES, ITEM_RULES, COMMIT_FUNCTION, CLAIM_FUNCTIONS, LEASE_FUNCTIONS, READ_FUNCTIONS].join('\n'),
  MOVES,
]

const SCHEMA_VERSION = MIGRATIONS.length

/** Names the lock under which instances that start together change the tables one after the other. */
const LOCK_SPACE = 1_768_779_634

/** Brings the tables up to this program's version, or refuses those of a newer one. */
export async function migrate(client: ClientBase, namespace: string): Promise<void> {
  if ((await versionOf(client, namespace)) === SCHEMA_VERSION) return
  await client.query('BEGIN')
  try {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_SPACE, namespace])
    // Tests check the functions; here it would take longer than all the rest.
    await client.query('SET LOCAL check_function_bodies = off')
    const found = await versionOf(client, namespace)
    mustBeKnown(found, namespace)
    const s = quoted(namespace)
    if (found === 0) {
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${s}`)
      await client.query(
        `CREATE TABLE ${s}.meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL)`,
      )
      await client.query(`INSERT INTO ${s}.meta (version) VALUES (0)`)
    }
    for (const migration of MIGRATIONS.slice(found)) await client.query(migration.replaceAll('{schema}', s))
    await client.query(`UPDATE ${s}.meta SET version = $1`, [SCHEMA_VERSION])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

function mustBeKnown(found: number, namespace: string): void {
  if (found <= SCHEMA_VERSION) return
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `The schema "${namespace}" in PostgreSQL has version ${found}; this program knows versions up to ${SCHEMA_VERSION}. ` +
      'A newer program has changed it: use that one, or another schema.',
    { details: { schema: namespace, found, known: SCHEMA_VERSION } },
  )
}

/** Reads the catalogue as a table: names that were looked up before the lock may be remembered as missing. */
async function versionOf(client: ClientBase, namespace: string): Promise<number> {
  const found = await client.query(
    "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta'",
    [namespace],
  )
  if (found.rowCount === 0) return 0
  const { rows } = await client.query<{ readonly version: number }>(`SELECT version FROM ${quoted(namespace)}.meta`)
  return rows[0]?.version ?? 0
}

/** A namespace becomes a schema's name: lower case, so that it reads the same with and without quotes. */
export function mustBeNamespace(namespace: string): void {
  if (/^[a-z_][a-z0-9_]{0,47}$/.test(namespace) && !namespace.startsWith('pg_')) return
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `"${namespace}" cannot name a schema of PostgreSQL here. Use up to 48 lower-case letters, digits and underscores, ` +
      'beginning with a letter, and not with pg_.',
  )
}

export function quoted(namespace: string): string {
  return `"${namespace}"`
}
