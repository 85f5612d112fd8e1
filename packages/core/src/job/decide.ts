/**
 * The job state machine: what follows when something happens to a job.
 *
 * Everything here is pure. Time, chance and what user code chose arrive inside the event; effects
 * leave inside the decision. The same rules therefore run on every storage and in the simulator.
 *
 * Invariants, checked by the simulator after every commit:
 *
 *   J1. A job that has ended never changes again.
 *   J2. A job that is open has something that will move it: a turn, a task, a child, mail on its
 *       way, the timer of a sleep, or a party outside: a person, or a sender of events. A quarantined job waits for a person.
 *   J3. A task's ending counts once. What an older visit or try sends is ignored.
 *   J4. A visit runs its handler to one accepted choice. A turn of an older visit is ignored.
 *   J5. A fan-out enters its aggregator once, after every branch has an outcome.
 *   J6. A job writes no other job: parents and children reach each other by mail alone.
 *   J7. A job that ends otherwise than finished has undone what it did: each once, the newest first.
 */
import type { Script } from '../blueprint/script.ts'
import { remindPerson, expireApproval, makeDecision } from './approval.ts'
import { endChild, expireTask, abandonTask, endTask, progressTask } from './branch.ts'
import { remember } from './command.ts'
import { expireEventWait, receiveEvent } from './event-wait.ts'
import { abandonCompensation, compensationRefusal, nextUndo } from './compensation.ts'
import { choose, end, enter, quarantine } from './course.ts'
import { armLife, conclude, leaveVisit, note, openDraft, remark } from './draft.ts'
import type { Draft } from './draft.ts'
import type { Decision, Ignored, IgnoredReason } from './effect.ts'
import type { EventOf, JobEvent } from './event.ts'
import { taskId } from './identity.ts'
import type { Job, Onward, TrailEntry } from './job.ts'
import { isEnded } from './job.ts'
import { meterTask } from './meter.ts'
import { endSleep } from './sleep.ts'
import { beginTurn, failTurn, takeTurn } from './turn.ts'
import { raiseEvent } from './worker-event.ts'

/** Decides what follows from `event`, or says why it no longer matters. Never throws. */
export function decide(script: Script, job: Job | undefined, event: JobEvent): Decision | Ignored {
  if (event.type === 'created') return job === undefined ? create(script, event) : ignored(event, job, 'job_exists')
  if (job === undefined) return ignored(event, job, 'job_not_found')
  if (isEnded(job)) return ignored(event, job, 'job_ended') // J1
  const draft = openDraft(script, job, event.at)
  const refusal = job.status === 'quarantined' ? applyToQuarantined(draft, event) : applyToOpen(draft, event)
  return refusal === undefined ? conclude(draft) : ignored(event, job, refusal)
}

/** A late result leaves a note for the history. The job's record stays as it is. */
function ignored(event: JobEvent, job: Job | undefined, reason: IgnoredReason): Ignored {
  if (event.type !== 'taskEnded' || job === undefined) return { type: 'ignored', reason, entries: [] }
  return { type: 'ignored', reason, entries: [ignoredResult(job, event, reason)] }
}

/** What the history says of a result that came too late, from the wrong try, or from a worker that had lost its task. */
export function ignoredResult(
  job: Job,
  event: Pick<EventOf<'taskEnded'>, 'at' | 'visit' | 'branch' | 'attempt' | 'status' | 'workerId'>,
  reason: string,
): TrailEntry {
  const { at, visit, branch, attempt, status, workerId } = event
  const task = taskId(job.id, visit, branch)
  const late = `${status} of ${task}, try ${attempt}, by ${workerId}: ${reason}`
  return { at, event: 'result_ignored', state: job.state, note: late, workerId, taskId: task, attempt, code: reason }
}

function create(script: Script, event: EventOf<'created'>): Decision {
  const { request, at, id } = event
  const { from } = request
  const job: Job = {
    id,
    blueprint: script.name,
    blueprintVersion: script.version,
    client: request.client,
    status: 'pending',
    state: from?.state ?? script.start,
    visit: 1,
    enteredAt: at,
    failures: 0,
    initialData: request.initialData,
    stateHistory: from?.stateHistory ?? {},
    ...(from?.results === undefined ? {} : { results: from.results }),
    branches: {},
    priority: request.priority ?? 0,
    parent: request.parent,
    depth: request.depth ?? 0,
    dispatchTimeoutMs: request.dispatchTimeoutMs,
    resultTimeoutMs: request.resultTimeoutMs,
    executionTimeoutMs: request.executionTimeoutMs ?? script.policy.executionTimeoutMs,
    tracing: request.tracing,
    metadata: request.metadata,
    webhookUrl: request.webhookUrl,
    trail: [],
    createdAt: at,
    updatedAt: at,
  }
  const draft = openDraft(script, job, at)
  note(draft, 'job_created', from && `again from state ${from.state} of ${from.jobId}`)
  remark(draft, 'state_started')
  draft.effects.push({ type: 'turn', visit: 1, delayMs: 0 })
  armLife(draft)
  return conclude(draft)
}

function applyToOpen(draft: Draft, event: Exclude<JobEvent, { type: 'created' }>): IgnoredReason | undefined {
  const refusal = compensationRefusal(draft.job, event.type)
  if (refusal !== undefined) return refusal
  switch (event.type) {
    case 'turnBegun':
      return beginTurn(draft, event)
    case 'turnTaken':
      return takeTurn(draft, event)
    case 'turnFailed':
      return failTurn(draft, event)
    case 'taskEnded':
      return endTask(draft, event)
    case 'taskExpired':
      return expireTask(draft, event)
    case 'taskAbandoned':
      return abandonTask(draft, event)
    case 'progressed':
      return progressTask(draft, event)
    case 'metered':
      return meterTask(draft, event)
    case 'eventRaised':
      return raiseEvent(draft, event)
    case 'childEnded':
      return endChild(draft, event)
    case 'decisionMade':
      return makeDecision(draft, event)
    case 'approvalExpired':
      return expireApproval(draft, event)
    case 'reminderDue':
      return remindPerson(draft, event)
    case 'eventSent':
      return receiveEvent(draft, event)
    case 'eventWaitExpired':
      return expireEventWait(draft, event)
    case 'sleepEnded':
      return endSleep(draft, event)
    case 'cancelled':
      return cancel(draft, event)
    case 'timeRanOut':
      return runOutOfTime(draft)
    case 'migrated':
      return migrate(draft, event)
    case 'stranded':
      quarantine(draft, event.error)
      return undefined
    case 'retried':
    case 'discarded':
      return 'job_not_quarantined'
  }
}

/** Nothing but a person (or the parent's end) moves a quarantined job. */
function applyToQuarantined(draft: Draft, event: Exclude<JobEvent, { type: 'created' }>): IgnoredReason | undefined {
  const { job } = draft
  const refusal = compensationRefusal(job, event.type)
  if (refusal !== undefined) return refusal
  if (event.type === 'cancelled') return cancel(draft, event)
  if (event.type === 'eventSent') return receiveEvent(draft, event)
  if (event.type === 'discarded') {
    note(draft, 'job_discarded', `by ${event.by}`)
    remember(draft, event)
    if (job.compensation === undefined) end(draft, 'failed', {})
    else abandonCompensation(draft)
    return undefined
  }
  return event.type === 'retried' ? retry(draft, event) : 'job_quarantined'
}

function retry(draft: Draft, event: EventOf<'retried'>): IgnoredReason | undefined {
  const { job, script } = draft
  const { state, failure, event: sent, error } = job.onward ?? again(job)
  if (job.compensation === undefined && script.state(state) === undefined) return 'state_missing'
  draft.job.initialData = event.initialData ?? job.initialData
  draft.job.stateHistory = event.stateHistory ?? job.stateHistory
  draft.isEdited = true
  draft.job.error = error
  draft.job.loopFrom = job.visit
  note(draft, 'job_retried', `by ${event.by}`)
  remember(draft, event)
  if (job.compensation !== undefined) {
    nextUndo(draft)
    return undefined
  }
  enter(draft, state, failure, sent)
  // The time limit was paused while the job was in quarantine. It restarts, like the count of transitions.
  if (draft.job.status === 'running') armLife(draft)
  return undefined
}

/** Where a retry leads unless something has come of the present state: once more into that state. */
function again({ state, failure, event }: Job): Onward {
  return { state, failure, event }
}

function cancel(draft: Draft, event: EventOf<'cancelled'>): undefined {
  end(draft, 'cancelled', {
    error: { code: 'CANCELLED', message: event.reason ?? `Cancelled by ${event.by}.`, state: draft.job.state },
  })
}

function runOutOfTime(draft: Draft): IgnoredReason | undefined {
  const { job } = draft
  if (job.executionTimeoutMs === undefined) return 'no_time_limit'
  const seconds = job.executionTimeoutMs / 1000
  end(draft, 'failed', {
    error: { code: 'EXECUTION_TIMEOUT', message: `The job did not end within its ${seconds} s.`, state: job.state },
  })
  return undefined
}

function migrate(draft: Draft, event: EventOf<'migrated'>): undefined {
  const { job } = draft
  note(draft, 'job_migrated', `from version ${job.blueprintVersion} to ${event.version}`)
  draft.job.blueprintVersion = event.version
  draft.job.stateHistory = event.stateHistory
  if (job.compensation !== undefined) {
    leaveVisit(draft)
    nextUndo(draft)
    return
  }
  choose(draft, event.state, job.failure, job.event)
}
