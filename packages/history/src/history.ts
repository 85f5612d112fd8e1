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
  readonly blueprint?: string | undefined
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

/** Where an event stands: by its time, and those of one moment as they were written. */
export interface EventPosition {
  readonly at: number
  readonly id: number
}

export interface StoredEvent extends HistoryEvent, EventPosition {}

/** Events of one answer. */
export interface EventPage extends ReadonlyArray<StoredEvent> {
  /** There are more: the page ended by its bytes and not by its limit. */
  readonly isCut?: true
}

/** How much may come at once. */
export interface PageBounds {
  readonly limit: number
  /** The page ends with the event that makes it so many bytes long. It has one at least, if there is one. */
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

/** Which events are meant; without anything, all. */
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
  /** Moments in ascending order, at least two: each with the next is a span, which its end does not belong to. */
  readonly edges: readonly number[]
  /** Nothing before this moment, wherever the first span begins. */
  readonly since?: number
}

/** So many events of that name in the span that begins there. Spans without any are left out. */
export interface EventCount {
  readonly from: number
  readonly event: string
  readonly count: number
}

/** How much is kept. What is beyond either bound goes first by age. */
export interface Retention {
  readonly ageMs: number
  readonly bytesMax: number
}

/** Events that are written together, under a name and a number: written twice, they are there once. */
export interface EventBatch {
  /** Who writes. Its own for every process. */
  readonly writer: string
  /** Grows from batch to batch of a writer. */
  readonly number: number
  readonly events: readonly HistoryEvent[]
}

/** The database works, and refuses what it got: to wait would not help. Every other error means that it is away. */
export class WriteRefusedError extends Error {
  override readonly name = 'WriteRefusedError'
  /** Whether a part of the batch may be taken. */
  readonly isPartly: boolean

  constructor(message: string, options: ErrorOptions & { readonly isPartly: boolean }) {
    super(message, options)
    this.isPartly = options.isPartly
  }
}

/** Where events are kept. */
export interface HistoryStore {
  /** Whatever is the same until somebody changes the settings is refused here. A database that is away is no reason. */
  open(): Promise<void>
  write(batch: EventBatch): Promise<void>
  /** Oldest first. */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage>
  /** What happened to the worker itself, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage>
  /** Newest first. */
  list(query: EventListQuery): Promise<EventPage>
  /** By span and name. */
  counts(query: EventCountQuery): Promise<readonly EventCount[]>
  /**
   * Removes a bounded number of events that are beyond the bounds, and gives back the space that they took. The number
   * that it removed; zero when nothing is left to do, or somebody else is at it.
   */
  trim(retention: Retention, now: number): Promise<number>
  close(): Promise<void>
}

/** How the writing goes. */
export interface HistoryStatus {
  /** The last write failed, and is tried again. */
  readonly isAway: boolean
  /** Events that are to be written. */
  readonly waiting: number
  /** Events that were lost since the start: the buffer was full, or the database refused them. */
  readonly dropped: number
}

/**
 * The history of everything. To write it down costs a job nothing but the call: events wait in a bounded buffer and are written
 * in the background. What cannot be written is counted and told to the log, and never stops anything.
 */
export interface History {
  /** Begins to remove what is too old or too much. Refuses settings that can never work; a database that is away is none. */
  start(): Promise<void>
  /** Never throws and never waits. */
  append(events: readonly HistoryEvent[]): void
  /** Each with everything that was appended before, and without what is too old to be kept. Oldest first. */
  ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage>
  /** The same of a worker, without its tasks. Newest first. */
  ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage>
  /** Newest first. */
  list(query: EventListQuery): Promise<EventPage>
  counts(query: EventCountQuery): Promise<readonly EventCount[]>
  readonly status: HistoryStatus
  /** Resolves once everything that was appended before is written or given up, or the database has turned out to be away. */
  flush(): Promise<void>
  /** Writes what is left, within a bound, and ends. */
  close(): Promise<void>
}
