import { setTimeout as sleep } from 'node:timers/promises'
import { ImpresarioError, isImpresarioError, sqlStateOf } from '@impresario/protocol'
import pg from 'pg'
import type { ClientConfig, PoolClient, QueryResultRow } from 'pg'

export interface ConnectionOptions {
  readonly pool: pg.Pool
  /** Whether other storages share the pool, which may continue to use it after this storage is closed. */
  readonly isShared: boolean
  /** How long a call may take in total, including retries, before it is refused. */
  readonly callMs: number
}

/** A connection attempt that takes longer than this is retried. */
const CONNECT_MS = 5_000
const IDLE_MS = 60_000
const BACKOFF_MS = 25
const BACKOFF_MS_MAX = 1_000

/**
 * Rolled back by the server, so that they can be retried: deadlock, serialization failure, lock timeout, our own lost
 * race.
 */
const UNDONE = new Set(['40P01', '40001', '55P03', 'IM001'])
/**
 * The server cannot work at the moment: shutting down, starting, too many connections, out of space, read-only after a
 * failover.
 */
const UNAVAILABLE = /^(?:08|53|57P0|58|25006|XX00[12])/

/**
 * The pool, and the retry rules of a call.
 *
 * Every call is one statement and one transaction: it relies on no session state, so that a pooler may use another
 * server connection for each call. A call is retried if it cannot have taken effect or is idempotent, and never beyond
 * its time limit.
 */
export class Connections {
  readonly #options: ConnectionOptions
  #isClosed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** `isRepeatable`: the call is idempotent, so that it is retried after a lost connection. */
  async call<R extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
    { isRepeatable }: { readonly isRepeatable: boolean },
  ): Promise<readonly R[]> {
    const deadline = performance.now() + this.#options.callMs
    for (let attempt = 0; ; attempt++) {
      if (this.#isClosed) throw closedError()
      const outcome = await this.#attempt<R>(text, values, deadline)
      if ('rows' in outcome) return outcome.rows
      const { error, wasSent } = outcome
      const code = sqlStateOf(error)
      const mayRepeat = !wasSent || isRepeatable || (code !== undefined && UNDONE.has(code))
      const pauseMs = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX) * (0.5 + Math.random())
      if (!isPassing(error, code)) throw error
      if (this.#isClosed || !mayRepeat || performance.now() + pauseMs > deadline) throw unavailable(error)
      await sleep(pauseMs)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (!this.#options.isShared) await this.#options.pool.end()
  }

  async #attempt<R extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
    deadline: number,
  ): Promise<{ readonly rows: readonly R[] } | { readonly error: unknown; readonly wasSent: boolean }> {
    let client: PoolClient
    try {
      client = await this.#options.pool.connect()
    } catch (error) {
      return { error, wasSent: false }
    }
    // A connection that breaks during the query also rejects the query. Without a listener the error would end the
    // process.
    client.on('error', ignore)
    let broken = false
    try {
      const leftMs = Math.max(Math.ceil(deadline - performance.now()), 1)
      const config = { text, values: [...values], query_timeout: leftMs }
      const { rows } = await client.query<R>(config)
      return { rows }
    } catch (error) {
      // After an error reply from the server the connection is still usable; after any other error it is not.
      broken = sqlStateOf(error) === undefined || isPassing(error, sqlStateOf(error))
      return { error, wasSent: true }
    } finally {
      client.off('error', ignore)
      client.release(broken)
    }
  }
}

/** A pool with the settings that a storage needs. */
export function createPostgresPool(url: string, max: number, onIdleError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({ ...clientConfig(url), max, idleTimeoutMillis: IDLE_MS })
  pool.on('error', onIdleError)
  return pool
}

/**
 * Settings that every connection shares. Only the name of these reaches the server: poolers refuse parameters that they
 * do not know.
 */
export function clientConfig(url: string): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'impresario',
    types: { getTypeParser: typeParser },
  }
}

const INT8: number = pg.types.builtins.INT8

/** Boundary of the driver's types: our 64-bit integers are timestamps and tokens, and fit into a number. */
const typeParser = ((oid: number, format?: 'text' | 'binary'): unknown =>
  oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser

export function closedError(): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage is closed.')
}

/** Out of disk, memory or connections, or read-only: the server reports it before any part of the statement ran. */
const REFUSED = /^(?:53|25006)/

export function unavailable(error: unknown): ImpresarioError {
  if (isImpresarioError(error)) return error
  const code = sqlStateOf(error)
  const reason = error instanceof Error && error.message !== '' ? error.message : String(code ?? error)
  if (code !== undefined && REFUSED.test(code)) {
    const refusal = `PostgreSQL refused it, and nothing was written: ${reason}`
    return new ImpresarioError('STORAGE_REFUSED', refusal, { cause: error })
  }
  return new ImpresarioError('STORAGE_UNAVAILABLE', `PostgreSQL did not answer: ${reason}`, { cause: error })
}

/** Whether a retry may succeed. Any other error of the server is a bug in this program or an error in its settings. */
function isPassing(error: unknown, code: string | undefined): boolean {
  return code === undefined ? error instanceof Error : UNDONE.has(code) || UNAVAILABLE.test(code)
}

function ignore(): void {
  // The query in progress reports the error.
}
