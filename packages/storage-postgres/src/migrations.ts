import { ImpresarioError } from '@impresario/protocol'
import type { ClientBase } from 'pg'
import { CLAIM_FUNCTIONS } from './claim-functions.ts'
import { COMMIT_FUNCTION } from './commit-function.ts'
import { LIST_FUNCTIONS } from './list-functions.ts'
import { LEASE_FUNCTIONS } from './lease-functions.ts'
import { TRANSFER } from './transfer-mark.ts'
import { READ_FUNCTIONS } from './read-functions.ts'
import { ITEM_RULES, NAME_INDEX, TABLES } from './tables.ts'

export interface Migration {
  /** `{schema}` stands for the name of the schema. */
  readonly sql: string
  /**
   * The oldest program, by the number of migrations that it knows, that can work with the tables after this one.
   * Instances are replaced one after the other, so this should be the previous program, unless there is a reason to
   * stop all instances.
   */
  readonly oldest: number
}

const FUNCTIONS = [COMMIT_FUNCTION, CLAIM_FUNCTIONS, LEASE_FUNCTIONS, READ_FUNCTIONS]

/**
 * A released migration is never changed: a new version is a new entry at the end, and there is no downgrade. A function
 * that the previous program still calls keeps its name, its parameters and its meaning. A function that has to differ
 * gets another name.
 */
export const MIGRATIONS: readonly Migration[] = [
  { sql: [TABLES, ITEM_RULES, ...FUNCTIONS, TRANSFER].join('\n'), oldest: 1 },
  // A commit under a claim whose item has expired is a conflict. Earlier programs treat it as a lost claim.
  { sql: COMMIT_FUNCTION, oldest: 1 },
  // A claim over all lanes takes as many items as there are, also where an item stands in two lanes.
  { sql: CLAIM_FUNCTIONS, oldest: 1 },
  // An item may be claimed from its first moment. Earlier programs never ask for that.
  { sql: COMMIT_FUNCTION, oldest: 1 },
  { sql: NAME_INDEX, oldest: 1 },
  // Lists walk an index in order, whatever the planner knows. Earlier programs ask in their own words.
  { sql: LIST_FUNCTIONS, oldest: 1 },
]

/** The lock under which instances that start at the same time migrate the tables one after the other. */
const LOCK_SPACE = 1_768_779_634

/**
 * Migrates the tables to this program's version. Tables of a newer program are left unchanged, or refused if this
 * program can no longer use them.
 *
 * The lock belongs to the transaction, so that it works through a pooler and ends with its holder.
 */
export async function migrate(
  client: ClientBase,
  namespace: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const known = migrations.length
  if (isUpToDate(await versionOf(client, namespace), known, namespace)) return
  await client.query('BEGIN')
  try {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_SPACE, namespace])
    // Tests check the functions; checking them here would take longer than everything else.
    await client.query('SET LOCAL check_function_bodies = off')
    const found = await versionOf(client, namespace)
    if (!isUpToDate(found, known, namespace)) await bringUp(client, quoted(namespace), found.version, migrations)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

async function bringUp(
  client: ClientBase,
  schema: string,
  found: number,
  migrations: readonly Migration[],
): Promise<void> {
  if (found === 0) {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await client.query(`CREATE TABLE ${schema}.meta (
      one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL, oldest integer NOT NULL)`)
    await client.query(`INSERT INTO ${schema}.meta (version, oldest) VALUES (0, 0)`)
  }
  for (const { sql } of migrations.slice(found)) await client.query(sql.replaceAll('{schema}', schema))
  const oldest = Math.max(...migrations.map((one) => one.oldest))
  await client.query(`UPDATE ${schema}.meta SET version = $1, oldest = $2`, [migrations.length, oldest])
}

interface Version {
  readonly version: number
  readonly oldest: number
}

function isUpToDate({ version, oldest }: Version, known: number, namespace: string): boolean {
  if (oldest <= known) return version >= known
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `The schema "${namespace}" in PostgreSQL has version ${version}, which is for programs of version ${oldest} and newer; ` +
      `this program is of version ${known}. A newer program has changed it: use that one, or another schema.`,
    { details: { schema: namespace, found: version, oldest, known } },
  )
}

/** Reads the catalog with a query: names that were looked up before the lock may be cached as missing. */
async function versionOf(client: ClientBase, namespace: string): Promise<Version> {
  const found = await client.query(
    "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta'",
    [namespace],
  )
  if (found.rowCount === 0) return { version: 0, oldest: 0 }
  const { rows } = await client.query<Version>(`SELECT version, oldest FROM ${quoted(namespace)}.meta`)
  return rows[0] ?? { version: 0, oldest: 0 }
}

/** Converts a namespace to a schema name: lower case, so that it is the same with and without quotes. */
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
