import type { Json } from '@impresario/protocol'

/** Something that happened to a job or to a worker. */
export interface HistoryEvent {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly event: string
  readonly jobId?: string | undefined
  readonly workerId?: string | undefined
  /** The client whose job it is. */
  readonly owner?: string | undefined
  readonly state?: string | undefined
  readonly previousState?: string | undefined
  readonly nextState?: string | undefined
  readonly taskId?: string | undefined
  readonly attempt?: number | undefined
  readonly durationMs?: number | undefined
  readonly note?: string | undefined
  /** What the job or the worker looked like then, as far as it is small. */
  readonly snapshot?: Json | undefined
}

export interface StoredEvent extends HistoryEvent {
  /** Grows from event to event. */
  readonly id: number
}

export interface JobHistoryQuery {
  /** Only events that happened at or after this moment. */
  readonly since?: number
  readonly limit: number
}

export interface WorkerHistoryQuery {
  /** Only events before this id: the next page. */
  readonly before?: number
  readonly limit: number
}

/** How much is kept. What is beyond either bound goes first by age. */
export interface Retention {
  readonly ageMs: number
  readonly bytesMax: number
}

/** Where events are kept. */
export interface HistoryStore {
  write(events: readonly HistoryEvent[]): Promise<void>
  /** Oldest first, by their time; those of one moment as they were written. */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<readonly StoredEvent[]>
  /** What happened to the worker itself, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<readonly StoredEvent[]>
  /** Removes a bounded number of events that are beyond the bounds. The number that it removed. */
  trim(retention: Retention, now: number): Promise<number>
  close(): Promise<void>
}

/**
 * The history of everything. To write it down costs a job nothing but the call: events wait in a bounded buffer and are written
 * in the background. What cannot be written is counted and told to the log, and never stops anything.
 */
export interface History {
  /** Never throws and never waits. */
  append(events: readonly HistoryEvent[]): void
  /** With everything that was appended before. Oldest first. */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<readonly StoredEvent[]>
  /** The same of a worker, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<readonly StoredEvent[]>
  /** Events that were lost since the start: the buffer was full, or the database refused them. */
  readonly dropped: number
  /** Resolves once everything that was appended before is written or given up. */
  flush(): Promise<void>
  /** Writes what is left, and ends. */
  close(): Promise<void>
}
