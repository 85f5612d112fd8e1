import type { Log } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import type { PoolClient, QueryResultRow } from 'pg'
import { Conditions, listQuery, ofJobQuery, ofWorkerQuery } from './event-query.ts'
import type { Dialect, Query } from './event-query.ts'
import { COLUMNS, eventsOf } from './event-row.ts'
import type {
  EventBatch,
  EventCount,
  EventCountQuery,
  EventListQuery,
  HistoryEvent,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  EventPage,
  WorkerHistoryQuery,
} from './history.ts'
import { plainJson, plainText } from './plain-text.ts'
import { PostgresConnections, inTransaction } from './postgres-connections.ts'
import { dateOf, prepareDaysOnce, trimDays } from './postgres-days.ts'
import { migrate } from './postgres-schema.ts'
import { spansOf } from './spans.ts'

export interface PostgresHistoryOptions {
  /** `postgres://user:password@host:5432/database`, with `?schema=` for another schema. */
  readonly url: string
  readonly log: Log
  readonly now: () => number
}

const SCHEMA = 'impresario_history'
/** The size of a row besides its texts: its header and its index entries. */
const ROW_BYTES = 250
/** Lists and counts may scan many rows. This is the longest time that a caller waits for them. */
const READ_MS = 20_000

const TYPES: Readonly<Record<string, string>> = {
  timestamp: 'double precision',
  attempt_number: 'integer',
  duration_ms: 'double precision',
  context_snapshot: 'jsonb',
}

/**
 * History in PostgreSQL, shared by any number of instances. Nothing here waits for an unreachable server: the call
 * fails, and the buffer retries it.
 */
export class PostgresHistory implements HistoryStore {
  readonly #options: PostgresHistoryOptions
  readonly #schema: string
  readonly #dialect: Dialect
  readonly #insert: string
  readonly #connections: PostgresConnections
  /** Resolves when the tables exist. Checked once, and again after a failure. */
  #prepared: Promise<void> | undefined

  constructor(options: PostgresHistoryOptions) {
    this.#options = options
    const { url, schema } = parsedAddress(options.url)
    this.#schema = schema
    this.#connections = new PostgresConnections(url)
    this.#dialect = dialectOf(schema)
    this.#insert = insertInto(schema)
  }

  async open(): Promise<void> {
    try {
      await this.#ready()
    } catch (error) {
      if (isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
      this.#options.log.warn('the history is not reached yet; its events wait in memory', { reason: messageOf(error) })
    }
  }

  async write({ writer, number, events }: EventBatch): Promise<void> {
    const sizes = sizesByDay(events)
    const values = [
      plainJson(events.map(rowOf)),
      writer,
      number,
      [...sizes.keys()],
      [...sizes.values()].map((size) => size.events),
      [...sizes.values()].map((size) => size.bytes),
    ]
    await this.#call((client) => client.query(this.#insert, values))
  }

  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage> {
    return this.#events(ofJobQuery(this.#dialect, plainText(jobId), query))
  }

  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage> {
    return this.#events(ofWorkerQuery(this.#dialect, plainText(workerId), query))
  }

  list(query: EventListQuery): Promise<EventPage> {
    return this.#events(listQuery(this.#dialect, query))
  }

  async counts(query: EventCountQuery): Promise<readonly EventCount[]> {
    const spans = spansOf(query)
    const conditions = new Conditions(this.#dialect).filter(query)
    const sinces = conditions.value(`{${spans.map(({ since }) => since / 1_000).join(',')}}`)
    const untils = conditions.value(`{${spans.map(({ until }) => until / 1_000).join(',')}}`)
    conditions.also('h.timestamp >= to_timestamp(s.since)').also('h.timestamp < to_timestamp(s.until)')
    const sql = `SELECT (s.n - 1)::integer AS span, c.event, c.count
      FROM unnest(${sinces}::float8[], ${untils}::float8[]) WITH ORDINALITY AS s (since, until, n)
      CROSS JOIN LATERAL (SELECT event_type AS event, count(*)::float8 AS count FROM ${this.#dialect.table}${conditions.where}
        GROUP BY event_type) c
      ORDER BY s.n, c.event`
    const rows = await this.#read<Counted>({ sql, values: conditions.values })
    return rows.map(({ span, event, count }) => ({ from: spans[span]?.from ?? 0, event, count }))
  }

  trim(retention: Retention, now: number): Promise<number> {
    return this.#call((client) => trimDays(client, this.#schema, retention, now))
  }

  async close(): Promise<void> {
    await this.#connections.close()
  }

  async #events(query: Query): Promise<EventPage> {
    return eventsOf(await this.#read(query))
  }

  /** In a separate transaction, so that the server itself cancels statements that take too long. */
  #read<R extends QueryResultRow>({ sql, values }: Query): Promise<readonly R[]> {
    return this.#call((client) =>
      inTransaction(client, async () => {
        await client.query(`SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${READ_MS}`)
        const { rows } = await client.query<R>(
          sql,
          values.map((value) => (typeof value === 'string' ? plainText(value) : value)),
        )
        return rows
      }),
    )
  }

  async #call<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    await this.#ready()
    try {
      return await this.#connections.use(work)
    } catch (error) {
      // The tables may have been removed, or an older copy of the database restored: check before the next call.
      this.#prepared = undefined
      throw error
    }
  }

  #ready(): Promise<void> {
    this.#prepared ??= this.#prepare().catch((error: unknown) => {
      this.#prepared = undefined
      throw error
    })
    return this.#prepared
  }

  #prepare(): Promise<void> {
    return this.#connections.use(async (client) => {
      await migrate(client, this.#schema)
      await prepareDaysOnce(client, this.#schema, this.#options.now())
    })
  }
}

interface Counted {
  readonly span: number
  readonly event: string
  readonly count: number
}

function dialectOf(schema: string): Dialect {
  const expressions: Readonly<Record<string, string>> = {
    timestamp: 'extract(epoch FROM h.timestamp)::float8',
    context_snapshot: 'h.context_snapshot::text',
  }
  const columns = COLUMNS.map((name) => `${expressions[name] ?? `h.${name}`} AS ${name}`)
  return {
    mark: '$',
    time: (value) => `to_timestamp(${value}::float8)`,
    columns: ['h.event_id::float8 AS event_id', ...columns].join(', '),
    table: `"${schema}".history AS h`,
    weight: `200 + coalesce(octet_length(h.note), 0) + coalesce(octet_length(h.context_snapshot::text), 0)`,
  }
}

/** One statement that writes a batch unless the ledger already has it. */
function insertInto(schema: string): string {
  const columns = COLUMNS.map((name) => `"${name}"`).join(', ')
  const types = COLUMNS.map((name) => `"${name}" ${TYPES[name] ?? 'text'}`).join(', ')
  const values = COLUMNS.map((name) => (name === 'timestamp' ? 'to_timestamp(r."timestamp")' : `r."${name}"`)).join(
    ', ',
  )
  return `WITH taken AS (
      INSERT INTO "${schema}".ledger AS l (day, writer, batch, events, bytes)
      SELECT d.day, $2::text, $3::bigint, d.events, d.bytes
      FROM unnest($4::date[], $5::bigint[], $6::bigint[]) AS d (day, events, bytes)
      ON CONFLICT (day, writer) DO UPDATE SET
        batch = excluded.batch, events = l.events + excluded.events, bytes = l.bytes + excluded.bytes
      WHERE l.batch < excluded.batch
      RETURNING 1)
    INSERT INTO "${schema}".history (${columns})
    SELECT ${values} FROM ROWS FROM (json_to_recordset($1::json) AS (${types})) WITH ORDINALITY AS r
    WHERE EXISTS (SELECT FROM taken) ORDER BY r.ordinality`
}

/** In the form that `json_to_recordset` reads. */
function rowOf(event: HistoryEvent): Json {
  return {
    timestamp: Math.round(event.at) / 1_000,
    event_type: event.event,
    job_id: event.jobId ?? null,
    worker_id: event.workerId ?? null,
    client: event.owner ?? null,
    blueprint: event.blueprint ?? null,
    state: event.state ?? null,
    previous_state: event.previousState ?? null,
    next_state: event.nextState ?? null,
    origin_task_id: event.taskId ?? null,
    attempt_number: event.attempt ?? null,
    duration_ms: event.durationMs ?? null,
    note: event.note ?? null,
    context_snapshot: event.snapshot ?? null,
  }
}

interface Size {
  readonly events: number
  readonly bytes: number
}

function sizesByDay(events: readonly HistoryEvent[]): ReadonlyMap<string, Size> {
  const sizes = new Map<string, Size>()
  for (const { at, note, snapshot } of events) {
    // An event without a time is refused with its row; here it must only not throw.
    const day = dateOf(Number.isFinite(at) ? at : 0)
    const size = sizes.get(day) ?? { events: 0, bytes: 0 }
    const bytes = ROW_BYTES + (note?.length ?? 0) + (snapshot === undefined ? 0 : JSON.stringify(snapshot).length)
    sizes.set(day, { events: size.events + 1, bytes: size.bytes + bytes })
  }
  return sizes
}

interface Address {
  readonly url: string
  readonly schema: string
}

/** Extracts our own parameter from the address. */
function parsedAddress(text: string): Address {
  let url: URL
  try {
    url = new URL(text)
  } catch (error) {
    // The address may contain a password, so it is not repeated.
    const message = 'HISTORY_DATABASE_URI is no address. Write it as postgres://user:password@host:5432/database.'
    throw new ImpresarioError('INVALID_CONFIGURATION', message, { cause: error })
  }
  const schema = url.searchParams.get('schema') ?? SCHEMA
  url.searchParams.delete('schema')
  // Lower case, so that the name is the same with and without quotes.
  if (/^[a-z_][a-z0-9_]{0,47}$/.test(schema) && !schema.startsWith('pg_')) return { url: url.href, schema }
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    `HISTORY_DATABASE_URI: "${schema}" cannot name a schema of PostgreSQL here. Use up to 48 lower-case letters, digits ` +
      'and underscores, beginning with a letter, and not with pg_.',
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
