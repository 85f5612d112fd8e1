import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { ClientBase } from 'pg'

/** PostgreSQL 13 is the oldest version with everything that the functions use. */
const VERSION_MIN = 130_000

/** What the server's settings guarantee for acknowledged writes, as they were when the storage was opened. */
export interface Durability {
  /** `always`: no write is lost. `none`: a crash of the server may lose writes that were acknowledged. */
  readonly promise: 'always' | 'none'
  /** Readable reasons why these settings do not guarantee that no write is lost. */
  readonly doubts: readonly string[]
}

/**
 * Reads and reports the durability of the server. Refuses a server that is too old or, if `strict`, guarantees too
 * little.
 */
export async function mustBeDurable(
  client: ClientBase,
  { strict, log }: { readonly strict: boolean; readonly log: Log | undefined },
): Promise<Durability> {
  const names = [
    'server_version_num',
    'synchronous_commit',
    'fsync',
    'full_page_writes',
    'default_transaction_isolation',
  ]
  const { rows } = await client.query<{ readonly name: string; readonly setting: string }>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
    [names],
  )
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]))
  const version = Number(settings.get('server_version_num'))
  if (version < VERSION_MIN) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `PostgreSQL ${Math.floor(version / 10_000)} is too old: Impresario needs 13 or newer.`,
    )
  }
  const isolation = settings.get('default_transaction_isolation')
  if (isolation !== 'read committed') {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `PostgreSQL runs with default_transaction_isolation = ${isolation}. Impresario locks the rows that it decides by and ` +
        "has to see what others committed meanwhile: set it to 'read committed' for its user (ALTER ROLE … SET …).",
    )
  }
  const weak = ['synchronous_commit', 'fsync', 'full_page_writes'].filter((name) => settings.get(name) === 'off')
  if (weak.length === 0) {
    log?.info('PostgreSQL keeps what it has acknowledged, also through a power cut')
    return { promise: 'always', doubts: [] }
  }
  const list = weak.map((name) => `${name} = off`).join(', ')
  if (strict) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `PostgreSQL runs with ${list}, so it may lose what it has acknowledged. Set it to on, or leave strict mode.`,
    )
  }
  log?.warn(`PostgreSQL runs with ${list}: a crash of the server may lose what was acknowledged`)
  return {
    promise: 'none',
    doubts: weak.map((name) => `${name} is off: a crash of the server may lose what was acknowledged`),
  }
}
