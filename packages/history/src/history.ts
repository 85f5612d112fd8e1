import type { Json } from '@impresario/protocol'

/** An event of a job or a worker. */
export interface HistoryEvent {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly event: string
  readonly jobId?: string | undefined
  readonly workerId?: string | undefined
  /** The client that owns the job. */
  readonly owner?: string | undefined
  readonly blueprint?: string | undefined
  readonly state?: string | undefined
  readonly previousState?: string | undefined
  readonly nextState?: string | undefined
  readonly taskId?: string | undefined
  readonly attempt?: number | undefined
  readonly durationMs?: number | undefined
  readonly note?: string | undefined
  /** A snapshot of the job or the worker at that time, if it is small. */
  readonly snapshot?: Json | undefined
}

/** The position of an event: by time, and for equal times by the order of writing. */
export interface EventPosition {
  readonly at: number
  readonly id: number
}

export interface StoredEvent extends HistoryEvent, EventPosition {}

/** The events of one reply. */
export interface EventPage extends ReadonlyArray<StoredEvent> {
  /** There are more: the page ended at its byte limit and not at its count limit. */
  readonly isCut?: true
}

/** Limits of one reply. */
export interface PageBounds {
  readonly limit: number
  /** The page ends with the event that reaches this many bytes. It has at least one event, if there is one. */
  readonly bytesMax?: number
}

export interface JobHistoryQuery extends PageBounds {
  /** Only events that happened at or after this moment. */
  readonly since?: number
}

export interface WorkerHistoryQuery extends JobHistoryQuery {
  /** Only events before this one: the next page. */
  readonly before?: EventPosition
}

/** Filter for events; an empty one matches all. */
export interface EventFilter {
  /** Any of these. */
  readonly events?: readonly string[]
  readonly owner?: string
  readonly blueprint?: string
  readonly jobId?: string
  readonly workerId?: string
}

export interface EventListQuery extends EventFilter, PageBounds {
  /** At or after this moment. */
  readonly since?: number
  /** Before this moment. */
  readonly until?: number
  /** Only events before this one: the next page. */
  readonly before?: EventPosition
}

export interface EventCountQuery extends EventFilter {
  /** Timestamps in ascending order, at least two: each pair of neighbours is a span, which excludes its end. */
  readonly edges: readonly number[]
  /** Only events at or after this time, wherever the first span begins. */
  readonly since?: number
}

/** The number of events of this name in the span that begins there. Spans without events are left out. */
export interface EventCount {
  readonly from: number
  readonly event: string
  readonly count: number
}

/** How much is kept. Beyond either bound, the oldest events are removed first. */
export interface Retention {
  readonly ageMs: number
  readonly bytesMax: number
}

/**
 * Events that are written together, identified by a writer and a number: if they are written twice, they are stored
 * once.
 */
export interface EventBatch {
  /** Identifies the writer. Unique for every process. */
  readonly writer: string
  /** Increases with every batch of a writer. */
  readonly number: number
  readonly events: readonly HistoryEvent[]
}

/** The database works and refuses the data: a retry would not help. Every other error means that it is unreachable. */
export class WriteRefusedError extends Error {
  override readonly name = 'WriteRefusedError'
  /** Whether a part of the batch may be accepted. */
  readonly isPartly: boolean

  constructor(message: string, options: ErrorOptions & { readonly isPartly: boolean }) {
    super(message, options)
    this.isPartly = options.isPartly
  }
}

/** Where events are kept. */
export interface HistoryStore {
  /** Refuses settings that cannot work until they are changed. An unreachable database is not a reason to refuse. */
  open(): Promise<void>
  write(batch: EventBatch): Promise<void>
  /** Oldest first. */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage>
  /** Events of the worker itself, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage>
  /** Newest first. */
  list(query: EventListQuery): Promise<EventPage>
  /** By span and name. */
  counts(query: EventCountQuery): Promise<readonly EventCount[]>
  /**
   * Removes a bounded number of events that are beyond the bounds, and releases their space. Returns the number of
   * removed events; zero when nothing is left to do, or when another instance is doing it.
   */
  trim(retention: Retention, now: number): Promise<number>
  close(): Promise<void>
}

/** The state of the writer. */
export interface HistoryStatus {
  /** The last write failed, and is being retried. */
  readonly isAway: boolean
  /** Events that wait to be written. */
  readonly waiting: number
  /** Events that were lost since the start: the buffer was full, or the database refused them. */
  readonly dropped: number
}

/**
 * The history of all jobs and workers. For a job it costs only the call: events wait in a bounded buffer and are
 * written in the background. Events that cannot be written are counted and logged, and never stop anything.
 */
export interface History {
  /**
   * Starts to remove events beyond the bounds. Refuses settings that can never work; an unreachable database is not
   * refused.
   */
  start(): Promise<void>
  /** Never throws and never blocks. */
  append(events: readonly HistoryEvent[]): void
  /**
   * Each query includes all events appended before it, and excludes events that are too old to be kept. Oldest first.
   */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage>
  /** The same for a worker, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage>
  /** Newest first. */
  list(query: EventListQuery): Promise<EventPage>
  counts(query: EventCountQuery): Promise<readonly EventCount[]>
  readonly status: HistoryStatus
  /** Resolves once all earlier events are written or given up, or the database has turned out to be unreachable. */
  flush(): Promise<void>
  /** Writes the remaining events, within a time limit, and ends. */
  close(): Promise<void>
}
