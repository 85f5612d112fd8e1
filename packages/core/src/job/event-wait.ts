import { LIMITS } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'
import type { Action } from './action.ts'
import { canHold } from './capacity.ts'
import { digest } from './command.ts'
import { enter, fail, quarantine } from './course.ts'
import { failureOf, note, ownTransition } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'
import type { EventWait, Job, JobError, SentEvent, Transitions } from './job.ts'

/** Waits for an event. One that came before, for this very job, is there already and is taken at once. */
export function awaitEvent(draft: Draft, action: Extract<Action, { type: 'event' }>): void {
  const { job } = draft
  const { topic, transitions, timeoutMs, key } = action
  const kept = job.events?.kept ?? []
  const early = kept.find((event) => event.topic === topic)
  if (early !== undefined) {
    draft.job.events = { known: [], ...job.events, kept: kept.filter((event) => event !== early) }
    take(draft, early, transitions)
    return
  }
  const expiresAt = timeoutMs === undefined ? undefined : draft.at + timeoutMs
  const { visit } = job
  draft.job.status = 'waiting_for_event'
  draft.job.wait = {
    kind: 'event',
    topic,
    transitions,
    ...(key === undefined ? {} : { key }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  }
  if (timeoutMs !== undefined) draft.effects.push({ type: 'timer', timer: 'event', visit, afterMs: timeoutMs })
  if (key !== undefined) draft.effects.push({ type: 'listen', visit, topic, key })
  note(draft, 'event_awaited', key === undefined ? topic : `${topic} for ${key}`)
}

/**
 * An event was sent. A job that waits for it takes it; one that does not keeps it, within bounds, until it does. What
 * came by key was sent to a certain wait: once that is over, the event is for others.
 */
export function receiveEvent(draft: Draft, { event, visit }: EventOf<'eventSent'>): IgnoredReason | undefined {
  const { job } = draft
  if (isKnownEvent(job, event.id)) return 'repeated_event'
  const { wait } = job
  const isMeant = visit === undefined || visit === job.visit
  if (isMeant && wait?.kind === 'event' && wait.topic === event.topic) return receive(draft, event, wait)
  if (visit !== undefined) return 'not_waiting_for_event'
  return keepEvent(draft, event)
}

function receive(draft: Draft, event: SentEvent, wait: EventWait): IgnoredReason | undefined {
  const { job } = draft
  if (!canHold(job.stateHistory, withPayload(job, event), draft.script.policy.offloads)) {
    // Who sent it to this job is told, and may send less. By key it was sent to all that wait, who are not asked.
    if (event.key === undefined) return 'too_large'
    know(draft, event)
    note(draft, 'event_refused', `${event.topic}: the state history cannot hold its payload`)
    return undefined
  }
  know(draft, event)
  take(draft, event, wait.transitions)
  return undefined
}

/** For a job that does not wait for it, or stands aside in quarantine. */
function keepEvent(draft: Draft, event: SentEvent): IgnoredReason | undefined {
  const { job } = draft
  const kept = [...(job.events?.kept ?? []), event]
  if (kept.length > LIMITS.keptEventsMax) return 'too_many_events'
  if (jsonSize(kept.map(({ payload }) => payload)) > LIMITS.keptEventsBytesMax) return 'too_many_events'
  know(draft, event)
  draft.job.events = { known: [], ...draft.job.events, kept }
  note(draft, 'event_kept', event.topic)
  return undefined
}

/** What an event brings is kept under its topic, and shown to the state that it leads to. */
function take(draft: Draft, event: SentEvent, transitions: Transitions): void {
  const { job } = draft
  const stateHistory = withPayload(job, event)
  if (!canHold(job.stateHistory, stateHistory, draft.script.policy.offloads)) {
    const message = `The state history cannot hold the event "${event.topic}" that was sent before. Make room in it, then retry the job.`
    quarantine(draft, { code: 'LIMIT_EXCEEDED_ERROR', message, state: job.state })
    return
  }
  note(draft, 'event_received', event.topic)
  draft.job.stateHistory = stateHistory
  const target = ownTransition(transitions, 'received')
  if (target === undefined) {
    fail(draft, {
      code: 'UNHANDLED_STATUS',
      message: `"${job.state}" has no transition for "received".`,
      state: job.state,
    })
    return
  }
  enter(draft, target, undefined, event)
}

function withPayload({ stateHistory }: Job, { topic, payload }: SentEvent): Job['stateHistory'] {
  return { ...stateHistory, [topic]: payload }
}

export function isKnownEvent({ events }: Job, eventId: string): boolean {
  return events?.known.some(({ id }) => id === eventId) === true
}

/** Whether the job was sent this very event before, or another one under the same id. */
export function isSameEvent({ events }: Job, event: Pick<SentEvent, 'id' | 'topic' | 'payload'>): boolean {
  const known = events?.known.find(({ id }) => id === event.id)
  return known !== undefined && known.digest === digestOf(event)
}

function digestOf({ topic, payload }: Pick<SentEvent, 'topic' | 'payload'>): string {
  return digest({ topic, payload })
}

function know(draft: Draft, event: SentEvent): void {
  const { events } = draft.job
  const known = [...(events?.known ?? []), { id: event.id, digest: digestOf(event) }].slice(-LIMITS.knownEventsMax)
  draft.job.events = { kept: [], ...events, known }
}

/** The event did not come in time. */
export function expireEventWait(draft: Draft, event: EventOf<'eventWaitExpired'>): IgnoredReason | undefined {
  const { job } = draft
  const { wait } = job
  if (wait?.kind !== 'event' || job.visit !== event.visit) return 'not_waiting_for_event'
  const message = `The event "${wait.topic}" did not come in time.`
  note(draft, 'event_timed_out', wait.topic)
  const error: JobError = { code: 'EVENT_TIMEOUT', message, state: job.state }
  const target = ownTransition(wait.transitions, 'timeout')
  if (target === undefined) fail(draft, error)
  else enter(draft, target, failureOf(error))
  return undefined
}
