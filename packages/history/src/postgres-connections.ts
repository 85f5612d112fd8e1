import { ImpresarioError, isImpresarioError, missingPackage, sqlStateOf } from '@impresario/protocol'
import type { ClientBase, Pool, PoolClient } from 'pg'
import { WriteRefusedError } from './history.ts'

/** One writes, one reads, one removes old events. */
const POOL_MAX = 3
/** A server that cannot be reached in this time counts as unreachable. */
const CONNECT_MS = 3_000
const IDLE_MS = 60_000
/** A caller waits for the reply. */
const CALL_MS = 30_000
/** After a failed connection attempt, calls are refused for this long without another attempt. */
const REST_MS = 1_000

/** The value does not fit its column, violates a constraint of the table, or is too large for an index. */
const REFUSED = /^(?:22|23|54)/

/**
 * The pool, created with the first call: the driver is loaded only if it is used, and the server may be unreachable at
 * the start. Calls rely on no session state beyond a transaction, so that a pooler may use another connection for each.
 */
export class PostgresConnections {
  readonly #url: string
  #pool: Promise<Pool> | undefined
  #awayUntil = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(url: string) {
    this.#url = url
  }

  /** If `work` throws any error other than a refusal, the connection cannot be used again. */
  async use<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#connect()
    // A connection that breaks during a query also rejects the query. Without a listener the error would end the
    // process.
    client.on('error', ignore)
    let isBroken = true
    try {
      const value = await work(client)
      isBroken = false
      return value
    } catch (error) {
      const code = sqlStateOf(error)
      isBroken = code === undefined || /^(?:08|57|58|XX|25)/.test(code)
      throw readable(error, code)
    } finally {
      client.off('error', ignore)
      client.release(isBroken)
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const pool = await this.#pool?.catch(() => undefined)
    await pool?.end()
  }

  async #connect(): Promise<PoolClient> {
    if (this.#isClosed) throw unavailable('it is closed')
    if (performance.now() < this.#awayUntil) throw unavailable('it did not answer a moment ago')
    this.#pool ??= openPool(this.#url)
    try {
      return await (await this.#pool).connect()
    } catch (error) {
      this.#awayUntil = performance.now() + REST_MS
      throw readable(error, sqlStateOf(error))
    }
  }
}

/** Runs everything on one server connection, even behind a pooler. */
export async function inTransaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN')
  try {
    const value = await work()
    await client.query('COMMIT')
    return value
  } catch (error) {
    // If the server has not replied, the connection is closed without another query.
    if (sqlStateOf(error) !== undefined) await client.query('ROLLBACK').catch(ignore)
    throw error
  }
}

async function openPool(url: string): Promise<Pool> {
  const { default: pg } = await import('pg').catch((error: unknown) => {
    throw missingPackage(error, { purpose: 'History in PostgreSQL', packages: ['pg'] }) ?? error
  })
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_MAX,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: CALL_MS,
    keepAlive: true,
    application_name: 'impresario-history',
  })
  // Errors of idle connections: the next call opens another.
  pool.on('error', ignore)
  return pool
}

function ignore(): void {
  // The query in progress reports the error.
}

function unavailable(reason: string, cause?: unknown): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', `The database of the history does not answer: ${reason}`, { cause })
}

/** Errors that a retry does not fix get a message that says how to fix them. */
function readable(error: unknown, code: string | undefined): Error {
  if (isImpresarioError(error)) return error
  const text = error instanceof Error && error.message !== '' ? error.message : String(code ?? error)
  if (code === undefined) return unavailable(text, error)
  if (REFUSED.test(code)) return new WriteRefusedError(text, { isPartly: true, cause: error })
  const advice = adviceFor(code)
  if (advice === undefined) return unavailable(text, error)
  return new ImpresarioError('INVALID_CONFIGURATION', `${advice} (PostgreSQL: ${text})`, { cause: error })
}

function adviceFor(code: string): string | undefined {
  if (code.startsWith('28')) return 'PostgreSQL refuses the user or the password of HISTORY_DATABASE_URI.'
  if (code === '3D000') return 'The database that HISTORY_DATABASE_URI names does not exist. Create it with createdb.'
  if (code === '42501') return 'The user of HISTORY_DATABASE_URI may not create or use its schema: grant it CREATE.'
  return undefined
}
