import { countQuery, listQuery, ofJobQuery, ofWorkerQuery } from './event-query.ts'
import type { Dialect, Query } from './event-query.ts'
import { COLUMNS, eventsOf, rowOf } from './event-row.ts'
import type {
  EventBatch,
  EventCount,
  EventCountQuery,
  EventListQuery,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  EventPage,
  WorkerHistoryQuery,
} from './history.ts'
import { spansOf } from './spans.ts'
import { SETTINGS, prepareFile } from './sqlite-schema.ts'
import { SqliteThread } from './sqlite-thread.ts'

const INSERT = `INSERT INTO history (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`
const DIALECT: Dialect = {
  mark: '?',
  time: (value) => value,
  columns: '*',
  table: 'history AS h',
  weight: '200 + coalesce(length(note), 0) + coalesce(length(context_snapshot), 0)',
}

/** Events per transaction when old ones are removed: short enough that writes need not wait. */
const TRIM_LIMIT = 2_000
/** No batch is retried after this long. */
const WRITER_MS = 86_400_000

/**
 * History in one SQLite file, times as Unix seconds in UTC. One thread writes and another one reads, started by the
 * first query: counting millions of events takes a second, which must not block anything else.
 */
export class SqliteHistory implements HistoryStore {
  readonly #file: string
  #writer: SqliteThread
  #reader: SqliteThread | undefined
  #isClosed = false

  /** Runs before the threads start, so that an unusable file is refused at once. */
  constructor(file: string) {
    this.#file = file
    prepareFile(file)
    this.#writer = this.#thread({ isReader: false })
  }

  async open(): Promise<void> {
    // It has been open since it was created.
  }

  async write({ writer, number, events }: EventBatch): Promise<void> {
    await this.#writing().call('write', { writer, number, rows: events.map(rowOf), at: events.at(-1)?.at ?? 0 })
  }

  async trim({ ageMs, bytesMax }: Retention, now: number): Promise<number> {
    const before = Number.isFinite(ageMs) ? (now - ageMs) / 1_000 : null
    const writersBefore = now - WRITER_MS
    return Number(await this.#writing().call('trim', { before, bytesMax, limit: TRIM_LIMIT, writersBefore }))
  }

  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage> {
    return this.#events(ofJobQuery(DIALECT, jobId, query))
  }

  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage> {
    return this.#events(ofWorkerQuery(DIALECT, workerId, query))
  }

  list(query: EventListQuery): Promise<EventPage> {
    return this.#events(listQuery(DIALECT, query))
  }

  async counts(query: EventCountQuery): Promise<readonly EventCount[]> {
    const spans = spansOf(query)
    const found = await this.#read(spans.map((span) => countQuery(DIALECT, query, span)))
    return spans.flatMap(({ from }, index) => (found[index] ?? []).map((row) => ({ from, ...countOf(row) })))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#reader?.close()
    await this.#writer.close()
  }

  async #events(query: Query): Promise<EventPage> {
    const [rows = []] = await this.#read([query])
    return eventsOf(rows)
  }

  async #read(queries: readonly Query[]): Promise<readonly (readonly unknown[])[]> {
    if (this.#isClosed) throw closed()
    if (this.#reader === undefined || this.#reader.hasEnded) this.#reader = this.#thread({ isReader: true })
    return (await this.#reader.call('read', queries)) as readonly (readonly unknown[])[]
  }

  /** A thread that has failed is replaced. */
  #writing(): SqliteThread {
    if (this.#isClosed) throw closed()
    if (this.#writer.hasEnded) this.#writer = this.#thread({ isReader: false })
    return this.#writer
  }

  #thread({ isReader }: { readonly isReader: boolean }): SqliteThread {
    return new SqliteThread({ file: this.#file, settings: SETTINGS, insert: INSERT, isReader })
  }
}

function closed(): Error {
  return new Error('The history is closed.')
}

/** Type boundary for a row of our own query. */
function countOf(row: unknown): { readonly event: string; readonly count: number } {
  const { event, count } = row as { readonly event: string; readonly count: number }
  return { event, count }
}
