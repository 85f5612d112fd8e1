import { LIMITS, writeJson } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { findTask } from './branch.ts'
import { canHold } from './capacity.ts'
import { enter } from './course.ts'
import { announce, note, ownTransition } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'
import { taskId } from './identity.ts'
import type { Job } from './job.ts'

/**
 * A worker says something about a task that it holds. Where the blueprint has a way for it, the job leaves the task at
 * once: the task is taken back, and its worker is told to stop at its next sign of life. Otherwise it is only noted;
 * always so in a fan-out, whose branches end one by one.
 *
 * Senders repeat what was not acknowledged. A repeated id counts once while the state lasts; after the job went on,
 * whatever comes for the old task is stale.
 */
export function raiseEvent(draft: Draft, event: EventOf<'eventRaised'>): IgnoredReason | undefined {
  const { job } = draft
  const task = findTask(job, event)
  if (task === undefined) return 'stale_task' // J3
  const { name, payload, workerId, attempt } = event
  const key = event.eventId === undefined ? undefined : `${event.branch}/${event.eventId}`
  if (key !== undefined && job.workerEvents?.ids.includes(key) === true) return 'repeated_event'
  const ways = task.wait.kind === 'task' ? task.wait.eventTransitions : undefined
  const target = ways && ownTransition(ways, name)
  if (target === undefined && (job.workerEvents?.count ?? 0) >= LIMITS.workerEventsMax) return 'too_many_events'
  const stateHistory = { ...job.stateHistory, ...payload }
  if (target !== undefined && !canHold(job.stateHistory, stateHistory, draft.script.policy.offloads)) return 'too_large'
  const count = remember(draft, job, key)
  const id = taskId(job.id, event.visit, event.branch)
  note(draft, `worker_event:${name}`, shown(payload), { workerId, taskId: id, attempt })
  announce(draft, `worker_event:${name}`, `event_${count}`, {
    ...payloadOf(payload),
    task_id: id,
    worker_id: workerId,
    event_id: event.eventId ?? null,
  })
  if (target === undefined) return undefined
  draft.job.stateHistory = stateHistory
  enter(draft, target)
  return undefined
}

/** Counts the event, and says which of this visit it is. */
function remember(draft: Draft, { workerEvents }: Job, key: string | undefined): number {
  const { count, ids } = workerEvents ?? { count: 0, ids: [] }
  const newest = key === undefined ? ids : [...ids, key].slice(-LIMITS.workerEventIdsMax)
  draft.job.workerEvents = { count: count + 1, ids: newest }
  return count + 1
}

/** As with results: each message is kept until it is delivered, and receivers take only so much. */
function payloadOf(payload: JsonObject): JsonObject {
  const isShort = JSON.stringify(payload).length <= LIMITS.webhookResultCharsMax
  return isShort ? { payload } : { payload: null, payload_omitted: true }
}

const SHOWN_CHARS_MAX = 200

/** The beginning of it: a note is a line, not a place for data. */
function shown(payload: JsonObject): string | undefined {
  const text = writeJson(payload)
  if (text === '{}') return undefined
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX - 1)}…`
}
