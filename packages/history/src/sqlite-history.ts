import { closeSync, mkdirSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Json } from '@impresario/protocol'
import type {
  HistoryEvent,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  StoredEvent,
  WorkerHistoryQuery,
} from './history.ts'
import { PROGRAM } from './sqlite-program.ts'

/** History may be behind by a moment after a power cut, so it does not wait for the disk: `NORMAL`. */
const SCHEMA: readonly string[] = [
  'PRAGMA busy_timeout = 10000',
  'PRAGMA auto_vacuum = INCREMENTAL',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = NORMAL',
  `CREATE TABLE IF NOT EXISTS history (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL NOT NULL, event_type TEXT NOT NULL, job_id TEXT, worker_id TEXT,
    client TEXT, state TEXT, previous_state TEXT, next_state TEXT, origin_task_id TEXT, attempt_number INTEGER,
    duration_ms REAL, note TEXT, context_snapshot TEXT
  ) STRICT`,
  'CREATE INDEX IF NOT EXISTS history_of_jobs ON history (job_id, timestamp, event_id) WHERE job_id IS NOT NULL',
  `CREATE INDEX IF NOT EXISTS history_of_workers ON history (worker_id, event_id)
    WHERE worker_id IS NOT NULL AND job_id IS NULL`,
]

const INSERT = `INSERT INTO history (timestamp, event_type, job_id, worker_id, client, state, previous_state, next_state,
  origin_task_id, attempt_number, duration_ms, note, context_snapshot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const OF_JOB = `SELECT * FROM history WHERE job_id = ? AND timestamp >= ? ORDER BY timestamp, event_id LIMIT ?`
const OF_WORKER = `SELECT * FROM history WHERE worker_id = ? AND job_id IS NULL AND event_id < ?
  ORDER BY event_id DESC LIMIT ?`

/** Events that go in one transaction when old ones are removed: short enough that writes need not wait. */
const TRIM_LIMIT = 2_000

type Row = readonly (string | number | null)[]

/** History in one SQLite file, times as Unix seconds in UTC. Written in a thread, read here. */
export class SqliteHistory implements HistoryStore {
  readonly #thread: Worker
  readonly #exited: Promise<void>
  readonly #db: InstanceType<typeof DatabaseSync>
  readonly #calls = new Map<number, { resolve: (value: number) => void; reject: (error: Error) => void }>()
  #nextCall = 0
  #failure: Error | undefined

  constructor(file: string) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // Only its owner may read it. One that is there keeps the rights that somebody gave it.
    closeSync(openSync(file, 'a', 0o600))
    // Before the thread, so that a file that cannot be used is refused at once and the reader finds its tables.
    const first = new DatabaseSync(file)
    try {
      for (const line of SCHEMA) first.exec(line)
    } finally {
      first.close()
    }
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 })
    const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    this.#thread = new Worker(PROGRAM, { eval: true, workerData: { driver, file, schema: SCHEMA, insert: INSERT } })
    this.#thread.unref()
    this.#thread.on('message', (answer: unknown) => this.#answered(answer))
    this.#thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#exited = new Promise((resolve) => {
      this.#thread.on('exit', () => {
        this.#fail(new Error('The thread that writes history has ended.'))
        resolve()
      })
    })
  }

  async write(events: readonly HistoryEvent[]): Promise<void> {
    await this.#call('write', events.map(rowOf))
  }

  trim({ ageMs, bytesMax }: Retention, now: number): Promise<number> {
    return this.#call('trim', { before: (now - ageMs) / 1_000, bytesMax, limit: TRIM_LIMIT })
  }

  async ofJob(jobId: string, { since = 0, limit }: JobHistoryQuery): Promise<readonly StoredEvent[]> {
    return this.#db
      .prepare(OF_JOB)
      .all(jobId, since / 1_000, limit)
      .map(eventOf)
  }

  async ofWorker(workerId: string, { before, limit }: WorkerHistoryQuery): Promise<readonly StoredEvent[]> {
    return this.#db
      .prepare(OF_WORKER)
      .all(workerId, before ?? Number.MAX_SAFE_INTEGER, limit)
      .map(eventOf)
  }

  async close(): Promise<void> {
    this.#db.close()
    this.#thread.ref()
    this.#thread.postMessage([0, 'close', null])
    await this.#exited
  }

  #call(name: string, argument: unknown): Promise<number> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#nextCall += 1
    const id = this.#nextCall
    this.#thread.ref()
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject })
      this.#thread.postMessage([id, name, argument])
    })
  }

  #answered(answer: unknown): void {
    const [id, value, failure] = answer as readonly [number, number, string | null]
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    if (this.#calls.size === 0) this.#thread.unref()
    if (failure === null) call?.resolve(value)
    else call?.reject(new Error(failure))
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }
}

function rowOf(event: HistoryEvent): Row {
  return [
    event.at / 1_000,
    event.event,
    event.jobId ?? null,
    event.workerId ?? null,
    event.owner ?? null,
    event.state ?? null,
    event.previousState ?? null,
    event.nextState ?? null,
    event.taskId ?? null,
    event.attempt ?? null,
    event.durationMs ?? null,
    event.note ?? null,
    event.snapshot === undefined ? null : JSON.stringify(event.snapshot),
  ]
}

interface Selected {
  readonly event_id: number
  readonly timestamp: number
  readonly event_type: string
  readonly job_id: string | null
  readonly worker_id: string | null
  readonly client: string | null
  readonly state: string | null
  readonly previous_state: string | null
  readonly next_state: string | null
  readonly origin_task_id: string | null
  readonly attempt_number: number | null
  readonly duration_ms: number | null
  readonly note: string | null
  readonly context_snapshot: string | null
}

/** The boundary at which a row of our own table is believed. */
function eventOf(selected: unknown): StoredEvent {
  const row = selected as Selected
  return {
    id: row.event_id,
    at: Math.round(row.timestamp * 1_000),
    event: row.event_type,
    jobId: row.job_id ?? undefined,
    workerId: row.worker_id ?? undefined,
    owner: row.client ?? undefined,
    state: row.state ?? undefined,
    previousState: row.previous_state ?? undefined,
    nextState: row.next_state ?? undefined,
    taskId: row.origin_task_id ?? undefined,
    attempt: row.attempt_number ?? undefined,
    durationMs: row.duration_ms ?? undefined,
    note: row.note ?? undefined,
    snapshot: row.context_snapshot === null ? undefined : (JSON.parse(row.context_snapshot) as Json),
  }
}
