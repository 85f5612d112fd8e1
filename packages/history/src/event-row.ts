import type { Json } from '@impresario/protocol'
import type { EventPage, HistoryEvent, StoredEvent } from './history.ts'
import { plainText } from './plain-text.ts'

/** The columns of an event in both databases, in this order, after its id. */
export const COLUMNS: readonly string[] = [
  'timestamp',
  'event_type',
  'job_id',
  'worker_id',
  'client',
  'blueprint',
  'state',
  'previous_state',
  'next_state',
  'origin_task_id',
  'attempt_number',
  'duration_ms',
  'note',
  'context_snapshot',
]

export type Row = readonly (string | number | null)[]

/** Values of `COLUMNS`: the time in Unix seconds, the snapshot as text. */
export function rowOf(event: HistoryEvent): Row {
  return [
    Math.round(event.at) / 1_000,
    textOf(event.event),
    textOf(event.jobId),
    textOf(event.workerId),
    textOf(event.owner),
    textOf(event.blueprint),
    textOf(event.state),
    textOf(event.previousState),
    textOf(event.nextState),
    textOf(event.taskId),
    event.attempt ?? null,
    event.durationMs ?? null,
    textOf(event.note),
    event.snapshot === undefined ? null : JSON.stringify(event.snapshot),
  ]
}

/** SQLite text is read only up to its first zero character. */
function textOf(text: string | undefined): string | null {
  if (text === undefined) return null
  return text.includes('\0') ? plainText(text) : text
}

interface Selected {
  readonly event_id: number
  /** Unix seconds. */
  readonly timestamp: number
  readonly event_type: string
  readonly job_id: string | null
  readonly worker_id: string | null
  readonly client: string | null
  readonly blueprint: string | null
  readonly state: string | null
  readonly previous_state: string | null
  readonly next_state: string | null
  readonly origin_task_id: string | null
  readonly attempt_number: number | null
  readonly duration_ms: number | null
  readonly note: string | null
  /** JSON. */
  readonly context_snapshot: string | null
}

/** Type boundary for a row of our own table. */
function eventOf(selected: unknown): StoredEvent {
  const row = selected as Selected
  return {
    id: row.event_id,
    at: Math.round(row.timestamp * 1_000),
    event: row.event_type,
    jobId: row.job_id ?? undefined,
    workerId: row.worker_id ?? undefined,
    owner: row.client ?? undefined,
    blueprint: row.blueprint ?? undefined,
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

/** The rows of one reply. In a page that is limited by bytes, each row holds the number of rows without that limit. */
export function eventsOf(rows: readonly unknown[]): EventPage {
  const events = rows.map(eventOf)
  const { total } = (rows[0] ?? {}) as { readonly total?: number | string }
  return total !== undefined && Number(total) > events.length ? Object.assign(events, { isCut: true as const }) : events
}
