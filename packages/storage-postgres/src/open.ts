import type { Log } from '@impresario/core'
import { ImpresarioError, isImpresarioError, sqlStateOf } from '@impresario/protocol'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { parsedAddress } from './address.ts'
import { Connections, createPostgresPool, unavailable } from './connections.ts'
import { mustBeDurable } from './durability.ts'
import type { Durability } from './durability.ts'
import { Hints } from './hints.ts'
import { migrate, mustBeNamespace, quoted } from './migrations.ts'
import { mustBeHere } from './transfer-mark.ts'
import { PostgresStorage } from './postgres-storage.ts'
import { ALIVE_MS, Session } from './session.ts'

export interface PostgresStorageOptions {
  /**
   * `postgres://user:password@host:5432/database?sslmode=verify-full`. It may also contain settings: `schema`,
   * `pool_max`, `strict`, `listen`. Options that are passed separately take precedence.
   */
  readonly url: string
  /** The schema that holds all tables. Several schemas may share a database. */
  readonly namespace?: string
  /** Names this process. Starting under the name of an earlier process ends the leases of that process at once. */
  readonly instance?: string
  /** Maximum number of connections, plus one for notifications. */
  readonly poolMax?: number
  /**
   * Connections that several storages of a process share (`createPostgresPool`). They stay open when the storage is
   * closed.
   */
  readonly pool?: pg.Pool
  /**
   * Where to listen for notifications, if not at `url`: they do not arrive through a pooler in transaction mode.
   * `false`: do not listen, only poll.
   */
  readonly listen?: string | false
  /** How often to poll for work that no notification announced. */
  readonly pollMs?: number
  /** How long a call may take, including retries, before it is refused. */
  readonly callMs?: number
  /** How long to try to reach the server at startup. */
  readonly startMs?: number
  /** Refuse a server that may lose acknowledged writes. */
  readonly strict?: boolean
  readonly log?: Log
}

export const NAMESPACE = 'impresario'
const POOL_MAX = 10
const POLL_MS = 1_000
const CALL_MS = 15_000
const START_MS = 30_000
const RETRY_MS = 500

/** Creates or checks the tables, and opens the storage in them. */
export async function openPostgresStorage(given: PostgresStorageOptions): Promise<PostgresStorage> {
  const address = parsedAddress(given.url)
  const options = { ...address, ...given, url: address.url }
  const { url, namespace = NAMESPACE, poolMax = POOL_MAX, log, instance } = options
  mustBeNamespace(namespace)
  const onIdleError = (error: Error): void => log?.warn('a connection to PostgreSQL broke', { error: error.message })
  const pool = options.pool ?? createPostgresPool(url, poolMax, onIdleError)
  const isShared = options.pool !== undefined
  const connections = new Connections({ pool, isShared, callMs: options.callMs ?? CALL_MS })
  const schema = quoted(namespace)
  try {
    const durability = await prepare(pool, options, namespace)
    const sql = `SELECT ${schema}.begin_session($1, $2) AS id`
    const [row] = await connections.call<{ readonly id: number }>(sql, [instance ?? null, ALIVE_MS], {
      isRepeatable: true,
    })
    const sessionId = row?.id ?? 0
    await mustBeHere(connections, schema, sessionId)
    const listenUrl = options.listen === false ? undefined : (options.listen ?? url)
    const hints = new Hints({
      connections,
      schema,
      channel: namespace,
      session: sessionId,
      listenUrl,
      pollMs: options.pollMs ?? POLL_MS,
      log,
    })
    const session = new Session({
      connections,
      schema,
      id: sessionId,
      instance,
      onFreed: (queue, lane) => hints.tell(queue, lane),
      onPeers: (hasPeers) => hints.setPeers(hasPeers),
    })
    await hints.start()
    const groupsMax = Math.max(1, Math.min(4, poolMax - 2))
    return new PostgresStorage({ connections, hints, session, sessionId, schema, groupsMax, durability })
  } catch (error) {
    await connections.close()
    throw error
  }
}

/** Checks the tables and the server's settings. Waits for a server that is still starting. */
async function prepare(pool: pg.Pool, options: PostgresStorageOptions, namespace: string): Promise<Durability> {
  const { strict = false, log, startMs = START_MS } = options
  const deadline = performance.now() + startMs
  for (;;) {
    let client: pg.PoolClient | undefined
    try {
      client = await pool.connect()
      const durability = await mustBeDurable(client, { strict, log })
      await migrate(client, namespace)
      client.release()
      return durability
    } catch (error) {
      client?.release(true)
      if (isImpresarioError(error)) throw error
      const refusal = refusalOf(error)
      if (refusal !== undefined) throw refusal
      if (performance.now() + RETRY_MS > deadline) throw unavailable(error)
      log?.info('PostgreSQL does not answer yet', { error: String(error) })
      await sleep(RETRY_MS)
    }
  }
}

/** Errors that a retry does not fix, with a message that says how to fix them. */
export function refusalOf(error: unknown): Error | undefined {
  const code = sqlStateOf(error)
  if (code === undefined || !(error instanceof Error)) return undefined
  const refuse = (message: string): ImpresarioError =>
    new ImpresarioError('INVALID_CONFIGURATION', `${message} (PostgreSQL: ${error.message})`, { cause: error })
  if (code.startsWith('28')) return refuse('PostgreSQL refuses the user or the password of STORAGE_URL.')
  if (code === '3D000') return refuse('The database that STORAGE_URL names does not exist. Create it with createdb.')
  if (code === '42501') return refuse('The user of STORAGE_URL may not create the schema: grant it CREATE.')
  // A standby accepts no writes until it is promoted.
  return /^(?:08|53|55|57|40|25006)/.test(code) ? undefined : error
}
