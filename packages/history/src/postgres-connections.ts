import { ImpresarioError, isImpresarioError, missingPackage, sqlStateOf } from '@impresario/protocol'
import type { ClientBase, Pool, PoolClient } from 'pg'
import { WriteRefusedError } from './history.ts'

/** One writes, one reads, one removes what is old. */
const POOL_MAX = 3
/** A server that is not reached in this time is away. */
const CONNECT_MS = 3_000
const IDLE_MS = 60_000
/** Somebody waits for an answer. */
const CALL_MS = 30_000
/** After a failure to connect, calls are refused for so long without trying. */
const REST_MS = 1_000

/** The value does not fit its column, violates a rule of the table, or is too large for an index. */
const REFUSED = /^(?:22|23|54)/

/**
 * The pool, which comes with the first call: its driver is read only by those who use it, and the server may be away.
 * Nothing of a session is relied on beyond a transaction, so that a pooler may give each of them another connection.
 */
export class PostgresConnections {
  readonly #url: string
  #pool: Promise<Pool> | undefined
  #awayUntil = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(url: string) {
    this.#url = url
  }

  /** Whatever `work` throws that is no refusal means that the connection cannot be used again. */
  async use<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#connect()
    // A connection that breaks during a query rejects the query too; without a listener it would end the process.
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

/** Everything in one server connection, also behind a pooler. */
export async function inTransaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN')
  try {
    const value = await work()
    await client.query('COMMIT')
    return value
  } catch (error) {
    // Where the server has not answered, nothing more is asked of this connection: it is closed.
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
  // Of connections that nobody uses: the next call opens another.
  pool.on('error', ignore)
  return pool
}

function ignore(): void {
  // The query that was under way tells.
}

function unavailable(reason: string, cause?: unknown): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', `The database of the history does not answer: ${reason}`, { cause })
}

/** What waiting does not mend is said so that somebody can mend it. */
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
