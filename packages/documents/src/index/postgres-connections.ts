import { ImpresarioError, missingPackage } from '@impresario/protocol'
import type { Pool, PoolClient, QueryResultRow } from 'pg'

const CONNECT_MS = 10_000
/** A search or a write that takes longer is given up: somebody waits for it. */
const STATEMENT_MS = 30_000
/** Not a parameter of the connection: poolers refuse those. */
const BOUND = `SET LOCAL statement_timeout = ${STATEMENT_MS}`
const IDLE_MS = 30_000
const WRITES_AT_ONCE = 64
const POOL_MAX = 4

export type Values = readonly (string | number | boolean | null | Uint8Array)[]

interface Pending {
  readonly work: (client: PoolClient) => Promise<unknown>
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** Connections to the index in PostgreSQL. Writes that come together go into one transaction; one that fails is undone alone. */
export class PostgresConnections {
  readonly #url: string
  /** One process at a time writes into the index of an owner. */
  readonly #lock: string
  readonly #pending: Pending[] = []
  #pool: Promise<Pool> | undefined
  #writing: Promise<void> | undefined
  #isClosed = false

  constructor(url: string, lock: string) {
    this.#url = url
    this.#lock = lock
  }

  async rows<Row extends QueryResultRow>(sql: string, values: Values = []): Promise<readonly Row[]> {
    return this.#translated(async () => {
      const pool = await this.#open()
      return (await pool.query<Row>(sql, [...values])).rows
    })
  }

  /** For what may take long: PostgreSQL itself ends it, and not only the wait for it. */
  async search<Row extends QueryResultRow>(sql: string, values: Values): Promise<readonly Row[]> {
    return this.#translated(async () => {
      const client = await (await this.#open()).connect()
      let failure: Error | undefined
      try {
        await client.query(`BEGIN READ ONLY; ${BOUND}`)
        const { rows } = await client.query<Row>(sql, [...values])
        await client.query('COMMIT')
        return rows
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error))
        throw error
      } finally {
        client.release(failure)
      }
    })
  }

  write<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('The index is closed.'))
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ work, resolve, reject })
      this.#writing ??= this.#flush()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing
    const pool = await this.#pool?.catch(() => undefined)
    await pool?.end()
  }

  async #flush(): Promise<void> {
    // Whatever comes in the same turn of the event loop goes along.
    await Promise.resolve()
    while (this.#pending.length > 0) await this.#transaction(this.#pending.splice(0, WRITES_AT_ONCE))
    // In the same moment in which it saw that nothing is left: whatever comes now begins the next one.
    this.#writing = undefined
  }

  async #transaction(works: readonly Pending[]): Promise<void> {
    const answers: (() => void)[] = []
    try {
      await this.#translated(async () => {
        const client = await (await this.#open()).connect()
        let failure: Error | undefined
        try {
          await client.query(`BEGIN; ${BOUND}`)
          await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [this.#lock])
          for (const one of works) answers.push(await performed(client, one))
          await client.query('COMMIT')
        } catch (error) {
          failure = error instanceof Error ? error : new Error(String(error))
          throw error
        } finally {
          // A connection with a failed transaction is not used again.
          client.release(failure)
        }
      })
    } catch (error) {
      for (const { reject } of works) reject(error)
      return
    }
    for (const answer of answers) answer()
  }

  #open(): Promise<Pool> {
    if (this.#isClosed && this.#pool === undefined) return Promise.reject(new Error('The index is closed.'))
    this.#pool ??= openPool(this.#url)
    return this.#pool
  }

  /** Errors of the driver may name the address; people get the kind of it, and the log the rest. */
  async #translated<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      const code = codeOf(cause)
      const isSlow = code === '57014'
      const what = isSlow ? `took longer than ${STATEMENT_MS / 1_000} seconds` : `failed (${code})`
      throw new ImpresarioError('STORAGE_UNAVAILABLE', `A query to the index in PostgreSQL ${what}. Try again.`, {
        cause,
      })
    }
  }
}

async function performed(client: PoolClient, { work, resolve, reject }: Pending): Promise<() => void> {
  await client.query('SAVEPOINT one')
  try {
    const value = await work(client)
    await client.query('RELEASE one')
    return () => resolve(value as never)
  } catch (error) {
    await client.query('ROLLBACK TO one')
    return () => reject(error)
  }
}

async function openPool(url: string): Promise<Pool> {
  const { default: pg } = await import('pg').catch((error: unknown) => {
    throw missingPackage(error, { purpose: 'The index in PostgreSQL', packages: ['pg'] }) ?? error
  })
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_MAX,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: STATEMENT_MS + 5_000,
    keepAlive: true,
    application_name: 'impresario documents',
  })
  // The next query reports it.
  pool.on('error', () => undefined)
  return pool
}

function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error ? (error as Error & { readonly code?: unknown }).code : undefined
  return typeof code === 'string' ? code : 'no connection'
}
