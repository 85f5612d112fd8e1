import type { HistoryBody, JobBody } from '@impresario/protocol'

/** One stay in a state. Times are Unix seconds; a stay that goes on has no end. */
interface Visit {
  readonly state: string
  readonly from: number
  readonly until: number | undefined
}

/** A bar of the timeline: a stay in a state, or a task or child in it. */
export interface Span {
  readonly id: string
  readonly kind: 'state' | 'task' | 'child' | 'person'
  readonly name: string
  readonly state: string
  readonly from: number
  readonly until: number | undefined
  readonly isBad: boolean
  readonly worker: string | undefined
  readonly note: string | undefined
}

/** The way that a job took through its blueprint. */
export interface Path {
  readonly visits: readonly Visit[]
  /** How often each step was taken, by `from → to`. */
  readonly steps: ReadonlyMap<string, number>
  readonly byState: ReadonlyMap<string, { readonly count: number; readonly seconds: number; readonly isOpen: boolean }>
}

export function stepName(from: string, to: string): string {
  return `${from} → ${to}`
}

type Facts = Pick<JobBody, 'created_at' | 'current_state'> & { readonly ended_at?: number | undefined }

/** From the events of a job, oldest first. Where the oldest are gone, the way begins later. */
export function pathOf(job: Facts, events: readonly HistoryBody[], now: number): Path {
  const begun = events.filter(
    ({ event_type: type, state }) => state !== null && (type === 'state_started' || type === 'job_created'),
  )
  // The history has both for the first state, the record of a job only the creation.
  const starts = begun.filter(
    ({ state }, index) => index !== 1 || begun[0]?.event_type !== 'job_created' || begun[0].state !== state,
  )
  const visits: Visit[] = starts.map(({ state, timestamp }, index) => ({
    state: state ?? '',
    from: timestamp,
    until: starts[index + 1]?.timestamp ?? job.ended_at,
  }))
  if (visits.at(-1)?.state !== job.current_state) {
    visits.push({ state: job.current_state, from: visits.at(-1)?.until ?? job.created_at, until: job.ended_at })
  }
  const steps = new Map<string, number>()
  for (const [index, { state }] of visits.entries()) {
    const before = visits[index - 1]
    if (before === undefined) continue
    const name = stepName(before.state, state)
    steps.set(name, (steps.get(name) ?? 0) + 1)
  }
  return { visits, steps, byState: stays(visits, now) }
}

function stays(visits: readonly Visit[], now: number): Path['byState'] {
  const found = new Map<string, { count: number; seconds: number; isOpen: boolean }>()
  for (const { state, from, until } of visits) {
    const known = found.get(state) ?? { count: 0, seconds: 0, isOpen: false }
    found.set(state, {
      count: known.count + 1,
      seconds: known.seconds + Math.max(0, (until ?? now) - from),
      isOpen: known.isOpen || until === undefined,
    })
  }
  return found
}

const ENDS: Readonly<Record<string, Span['kind']>> = {
  task_finished: 'task',
  task_failed: 'task',
  task_expired: 'task',
  task_abandoned: 'task',
  child_ended: 'child',
  decision_made: 'person',
  approval_expired: 'person',
}

/** One attempt of a task that has come to an end. */
export interface Attempt {
  readonly id: string
  readonly type: string
  readonly state: string
  readonly number: number | undefined
  readonly worker: string | undefined
  readonly seconds: number | undefined
  /** When it ended. */
  readonly at: number
  readonly isBad: boolean
  readonly note: string | undefined
}

/** The newest first. */
export function attemptsOf(events: readonly HistoryBody[]): readonly Attempt[] {
  return events
    .filter(({ event_type: type }) => ENDS[type] === 'task')
    .map((event) => ({
      id: event.event_id,
      type: nameIn(event.note) ?? '',
      state: event.state ?? '',
      number: event.attempt_number ?? undefined,
      worker: event.worker_id ?? undefined,
      seconds: event.duration_ms === null ? undefined : event.duration_ms / 1_000,
      at: event.timestamp,
      isBad: event.event_type !== 'task_finished' || isFailure(event.note),
      note: event.note ?? undefined,
    }))
    .toReversed()
}

function isFailure(note: string | null): boolean {
  return / (?:failure|failed)\b/.test(note ?? '')
}

/** Stays in states, each followed by what happened in it. */
export function spansOf(path: Path, events: readonly HistoryBody[]): readonly Span[] {
  const inner = events.filter(({ event_type: type }) => ENDS[type] !== undefined)
  const spans: Span[] = []
  let place = 0
  for (const [index, { state, from, until }] of path.visits.entries()) {
    spans.push({
      id: `visit ${index}`,
      kind: 'state',
      name: state,
      state,
      from,
      until,
      isBad: false,
      worker: undefined,
      note: undefined,
    })
    for (; place < inner.length; place += 1) {
      const event = inner[place]
      if (event === undefined || (until !== undefined && event.timestamp > until)) break
      spans.push(spanOf(event, state, from))
    }
  }
  return spans
}

function spanOf(event: HistoryBody, state: string, from: number): Span {
  const { event_id: id, event_type: type, timestamp, duration_ms: took, worker_id: worker, note } = event
  const kind = ENDS[type] ?? 'task'
  const begin = took === null ? from : Math.max(from, timestamp - took / 1_000)
  return {
    id,
    kind,
    name: nameIn(note) ?? type.replaceAll('_', ' '),
    state,
    from: begin,
    until: timestamp,
    isBad: type !== 'task_finished' && kind === 'task' ? true : isFailure(note),
    worker: worker ?? undefined,
    note: note ?? undefined,
  }
}

/** The note of a task begins with its type, that of a child with its blueprint. */
function nameIn(note: string | null): string | undefined {
  return note?.split(' ', 1)[0]
}
