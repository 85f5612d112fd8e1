import { shownJobId } from '@impresario/core'
import type { Log, LogFields } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type {
  EventCount,
  EventCountQuery,
  EventListQuery,
  EventPage,
  EventPosition,
  History,
  HistoryEvent,
  HistoryStatus,
  JobHistoryQuery,
  PageBounds,
  StoredEvent,
} from '@impresario/history'
import { createTimestamp, ImpresarioError } from '@impresario/protocol'
import type { EventBody, HistoryBody, WorkerHistoryBody } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'

/** Something that happened to a job. */
export interface HistoryEntry extends HistoryEvent {
  /** Grows from entry to entry of a job. */
  readonly id: number
}

interface EntryPage extends ReadonlyArray<HistoryEntry> {
  /** There are more, which the bytes left out. */
  readonly isCut?: true
}

export interface HistoryReader {
  /** Oldest first, and only those after that id. Whether the caller may see the job is asked before. */
  ofJob(jobId: string, query: { readonly after?: number } & PageBounds): Promise<EntryPage>
  /** Newest first, and only those before that one. */
  ofWorker(workerId: string, query: { readonly before?: EventPosition } & PageBounds): Promise<EventPage>
  /** Newest first. Whose events the caller may see is a part of the query. */
  list(query: EventListQuery): Promise<EventPage>
  counts(query: EventCountQuery): Promise<readonly EventCount[]>
  readonly status: HistoryStatus
  /** Whether every event of jobs is kept. */
  readonly isComplete: boolean
  /** Whose job it was, where its record is gone and its history is not. */
  ownerOf(jobId: string): Promise<string | undefined>
  /** ISO 8601 in the zone of the server. */
  timeText(ms: number): string
}

export interface HistoryReaderOptions {
  readonly engine: Engine
  readonly history: History
  readonly log: Log
  readonly timeZone: string
  readonly isComplete: boolean
}

/**
 * The history that clients read: what the database has, and the newest moments that a job's own record keeps, each once.
 * A database that cannot be read costs its own part of the answer, and nothing else.
 */
export function createHistoryReader(options: HistoryReaderOptions): HistoryReader {
  const { engine, history, log, timeZone, isComplete } = options
  const read = async (jobId: string, query: JobHistoryQuery): Promise<EventPage> => {
    try {
      return await history.ofJob(jobId, query)
    } catch (error) {
      log.error('the history cannot be read', { job_id: jobId, ...errorFields(error) })
      return []
    }
  }
  const answered = async <T>(answer: Promise<T>, fields: LogFields): Promise<T> => {
    try {
      return await answer
    } catch (error) {
      log.error('the history cannot be read', { ...fields, ...errorFields(error) })
      throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The history cannot be read at the moment.')
    }
  }
  return {
    ofJob: async (jobId, { after = -1, limit, bytesMax = Number.MAX_SAFE_INTEGER }) => {
      const since = Math.max(0, Math.floor(after / IDS_PER_MS))
      // As many more as may stand before the place at which the page begins.
      const wanted = limit + 1 + (after % IDS_PER_MS)
      for (let bytes = bytesMax; ; bytes *= 4) {
        const written = await read(jobId, { since, limit: wanted, bytesMax: bytes })
        const isWhole = written.isCut !== true && written.length < wanted
        const until = isWhole ? Number.POSITIVE_INFINITY : (written.at(-1)?.at ?? 0)
        const trail = (await engine.readJob(jobId))?.value.trail ?? []
        const kept = trail.filter(({ at }) => at >= since && at < until)
        const found = numbered(merged(written, kept)).filter(({ id }) => id > after)
        // All that was read may stand before that place: then more of it is needed.
        if (found.length === 0 && written.isCut === true) continue
        const page = found.slice(0, limit)
        return written.isCut === true ? Object.assign(page, { isCut: true as const }) : page
      }
    },
    ofWorker: (workerId, query) => answered(history.ofWorker(workerId, query), { worker_id: workerId }),
    list: (query) => answered(history.list(query), {}),
    counts: (query) => answered(history.counts(query), {}),
    get status() {
      return history.status
    },
    isComplete,
    ownerOf: async (jobId) => (await read(jobId, { since: 0, limit: 1 }))[0]?.owner,
    timeText: createTimestamp(timeZone),
  }
}

/**
 * Events of one millisecond that can be told apart in one number with their time: a step of a job writes at most one for
 * each of 1,000 branches, and a few more.
 */
const IDS_PER_MS = 2_000

/** Those of one moment: first what is written, then what only the record has. */
function merged(written: readonly HistoryEvent[], kept: readonly HistoryEvent[]): readonly HistoryEvent[] {
  // Not by the note: the record says in one line what the history says of each task.
  const nameOf = ({ at, event, state }: HistoryEvent): string => `${at} ${event} ${state ?? ''}`
  const known = new Set(written.map(nameOf))
  return [...written, ...kept.filter((entry) => !known.has(nameOf(entry)))].toSorted((a, b) => a.at - b.at)
}

/** Entries come and go at both places, so that no place in a list would name one for long; its time does. */
function numbered(events: readonly HistoryEvent[]): readonly HistoryEntry[] {
  let last = -1
  return events.map((event) => {
    last = Math.max(event.at * IDS_PER_MS, last + 1)
    return { ...event, id: last }
  })
}

export function historyBody(jobId: string, entry: HistoryEntry, time: string): HistoryBody {
  return { event_id: String(entry.id), job_id: shownJobId(jobId), ...factsOf(entry, time) }
}

/** An event of a list over all jobs and workers. */
export function eventBody(event: StoredEvent, time: string): EventBody {
  return {
    event_id: placeText(event),
    job_id: event.jobId === undefined ? null : shownJobId(event.jobId),
    blueprint: event.blueprint ?? null,
    owner: event.owner ?? null,
    ...factsOf(event, time),
  }
}

/** Names an event by its place among all others. */
export function placeText({ at, id }: EventPosition): string {
  return `${at}-${id}`
}

/** The text was checked by the schema of the query. */
export function placeOf(text: string): EventPosition {
  const [at = 0, id = 0] = text.split('-').map(Number)
  return { at, id }
}

function factsOf(entry: HistoryEvent, time: string): Omit<HistoryBody, 'event_id' | 'job_id'> {
  return {
    timestamp: entry.at / 1_000,
    time,
    event_type: entry.event,
    state: entry.state ?? null,
    previous_state: entry.previousState ?? null,
    next_state: entry.nextState ?? null,
    worker_id: entry.workerId ?? null,
    task_id: entry.taskId ?? null,
    attempt_number: entry.attempt ?? null,
    duration_ms: entry.durationMs ?? null,
    note: entry.note ?? null,
    context_snapshot: entry.snapshot ?? null,
  }
}

export function workerHistoryBody(workerId: string, event: StoredEvent, time: string): WorkerHistoryBody {
  return {
    event_id: placeText(event),
    worker_id: workerId,
    timestamp: event.at / 1_000,
    time,
    event_type: event.event,
    note: event.note ?? null,
    worker_info_snapshot: event.snapshot ?? null,
  }
}
