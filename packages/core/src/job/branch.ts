import { taskErrorKind } from '@impresario/protocol'
import type { Json, JsonObject, TaskError } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import { backoffMs } from '../retry/backoff.ts'
import { dropBranch, end, enter, fail, note, ownTransition, quarantine } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf, TryRef } from './event.ts'
import { taskId } from './identity.ts'
import type { Branch, BranchOutcome, Job, TaskCall, Wait } from './job.ts'
import { dispatch } from './turn.ts'

interface OpenTask {
  readonly name: string
  readonly branch: Branch
  readonly call: TaskCall
  readonly wait: Extract<Wait, { kind: 'task' | 'parallel' }>
}

/** Finds the try that an event speaks of, unless it is over. */
function findTask(job: Job, ref: TryRef): OpenTask | undefined {
  const { wait } = job
  if (job.visit !== ref.visit || (wait?.kind !== 'task' && wait?.kind !== 'parallel')) return undefined
  const branch = Object.hasOwn(job.branches, ref.branch) ? job.branches[ref.branch] : undefined
  if (branch?.call.kind !== 'task' || branch.outcome !== undefined || branch.attempt !== ref.attempt) return undefined
  return { name: ref.branch, branch, call: branch.call, wait }
}

export function progressTask(draft: Draft, event: EventOf<'progressed'>): IgnoredReason | undefined {
  if (findTask(draft.job, event) === undefined) return 'stale_task'
  const { fraction, message } = event
  draft.job = { ...draft.job, progress: message === undefined ? { fraction } : { fraction, message } }
  return undefined
}

/** A worker reported. The status picks the way; for failures the error's code decides first. */
export function endTask(draft: Draft, event: EventOf<'taskEnded'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  draft.effects.push({ type: 'dropTask', visit: event.visit, branch: event.branch })
  if (event.status === 'failure') {
    const error = event.error ?? { code: 'TRANSIENT_ERROR', message: 'The worker reported a failure without an error.' }
    failTry(draft, task, { error, workerId: event.workerId, chance: event.chance })
    return undefined
  }
  note(draft, 'task_finished', `${task.call.type} ${event.status} by ${event.workerId}`)
  settleTask(draft, task, { status: event.status, data: event.data, error: event.error })
  return undefined
}

export function expireTask(draft: Draft, event: EventOf<'taskExpired'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  draft.effects.push({ type: 'dropTask', visit: event.visit, branch: event.branch })
  const { type } = task.call
  if (event.reason === 'result') {
    const error: TaskError = { code: 'TIMEOUT_ERROR', message: `No result of "${type}" came in time.` }
    failTry(draft, task, { error, workerId: event.workerId, chance: event.chance })
    return undefined
  }
  const error: TaskError = { code: 'TIMEOUT_ERROR', message: `No worker took "${type}" in time.` }
  note(draft, 'task_expired', error.message)
  giveUp(draft, task, error, 'fail')
  return undefined
}

/** Every worker that got the task fell silent. Perhaps the task kills them: a person should look. */
export function abandonTask(draft: Draft, event: EventOf<'taskAbandoned'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  draft.effects.push({ type: 'dropTask', visit: event.visit, branch: event.branch })
  const message = `"${task.call.type}" was handed out ${event.deliveries} times, and every worker that had it fell silent.`
  note(draft, 'task_abandoned', message)
  giveUp(draft, task, { code: 'PERMANENT_ERROR', message }, 'quarantine')
  return undefined
}

interface FailedTry {
  readonly error: TaskError
  readonly workerId: string | undefined
  readonly chance: number
}

function failTry(draft: Draft, task: OpenTask, failed: FailedTry): void {
  const { script, job } = draft
  const { error, workerId } = failed
  const kind = taskErrorKind(error.code)
  const attemptsMax = task.call.attemptsMax ?? script.policy.taskAttemptsMax
  note(draft, 'task_failed', `${task.call.type} ${error.code}: ${error.message}`)
  if (kind !== 'transient') {
    giveUp(draft, task, error, kind === 'permanent' ? 'quarantine' : 'fail')
    return
  }
  if (task.branch.attempt >= attemptsMax) {
    const message = `"${task.call.type}" failed ${task.branch.attempt} times: ${error.message}`
    giveUp(draft, task, { code: error.code, message }, 'quarantine')
    return
  }
  const attempt = task.branch.attempt + 1
  const failedWorkers = workerId === undefined ? (task.branch.failedWorkers ?? []) : [workerId]
  const branch: Branch = { ...task.branch, attempt, failedWorkers, lastError: error }
  draft.job = { ...job, branches: { ...job.branches, [task.name]: branch }, progress: undefined }
  const { backoffMs: baseMs, backoffMsMax: maxMs } = script.policy
  const delayMs = backoffMs({ baseMs, maxMs, attempt: task.branch.attempt, chance: failed.chance })
  dispatch(draft, { branch: task.name, attempt, delayMs, call: task.call, failedWorkers })
}

/** A try ended for good without success. A fan-out records it; a single task ends the job unless the blueprint has a way for it. */
function giveUp(draft: Draft, task: OpenTask, error: TaskError, otherwise: 'quarantine' | 'fail'): void {
  const { wait } = task
  const { state } = draft.job
  if (wait.kind === 'parallel') {
    closeBranch(draft, task.name, { status: 'failure', error }, wait)
    return
  }
  const target =
    (error.code === 'TIMEOUT_ERROR' ? ownTransition(wait.transitions, 'timeout') : undefined) ??
    ownTransition(wait.transitions, 'failure')
  markEnded(draft, task.name, { status: 'failure', error })
  const jobError = { code: error.code, message: error.message, state }
  if (target !== undefined) {
    draft.job = { ...draft.job, error: jobError }
    enter(draft, target)
  } else if (otherwise === 'quarantine') {
    quarantine(draft, jobError)
  } else {
    fail(draft, jobError)
  }
}

function settleTask(draft: Draft, task: OpenTask, outcome: BranchOutcome): void {
  const { wait } = task
  if (wait.kind === 'parallel') {
    closeBranch(draft, task.name, outcome, wait)
    return
  }
  const { job } = draft
  const stateHistory = mergeData(job.stateHistory, task.call.type, outcome.data)
  markEnded(draft, task.name, outcome)
  draft.job = { ...draft.job, stateHistory }
  follow(draft, wait.transitions, outcome.status)
}

function follow(draft: Draft, transitions: Readonly<Record<string, string>>, status: string): void {
  const target = ownTransition(transitions, status)
  const { state } = draft.job
  if (target !== undefined) {
    enter(draft, target)
  } else if (status === 'cancelled') {
    end(draft, 'cancelled', { error: { code: 'CANCELLED', message: 'The worker cancelled the task.', state } })
  } else {
    const message = `"${state}" has no transition for the status "${status}".`
    fail(draft, { code: 'UNHANDLED_STATUS', message, state })
  }
}

/** A child job ended, or asks for a person's help. */
export function endChild(draft: Draft, event: EventOf<'childEnded'>): IgnoredReason | undefined {
  const { job } = draft
  const { wait } = job
  const branch = Object.hasOwn(job.branches, event.branch) ? job.branches[event.branch] : undefined
  if (job.visit !== event.visit || branch?.call.kind !== 'child' || branch.outcome !== undefined) return 'stale_child'
  if (event.outcome === 'quarantined') return noticeQuarantinedChild(draft, branch.call.blueprint)
  const status = event.outcome === 'finished' ? 'success' : 'failure'
  const error: TaskError | undefined =
    status === 'success'
      ? undefined
      : { code: 'PERMANENT_ERROR', message: event.error?.message ?? `The child job ended as ${event.outcome}.` }
  note(draft, 'child_ended', `${branch.call.blueprint} ${event.outcome}`)
  const outcome: BranchOutcome = { status, data: event.result, error }
  if (wait?.kind === 'parallel') {
    closeBranch(draft, event.branch, outcome, wait)
    return undefined
  }
  markEnded(draft, event.branch, outcome)
  draft.job = { ...draft.job, stateHistory: setOwn(job.stateHistory, branch.call.blueprint, event.result) }
  const transitions = wait?.kind === 'child' ? wait.transitions : {}
  const exact = ownTransition(transitions, event.outcome)
  if (exact === undefined) follow(draft, transitions, status)
  else enter(draft, exact)
  return undefined
}

/** A person may still mend the child, so the parent waits on, unless its blueprint has a way for this. */
function noticeQuarantinedChild(draft: Draft, blueprint: string): undefined {
  const { wait } = draft.job
  note(draft, 'child_quarantined', blueprint)
  const target = wait?.kind === 'child' ? ownTransition(wait.transitions, 'quarantined') : undefined
  if (target !== undefined) enter(draft, target)
}

/** Records a branch's outcome; the last one (or the first failure, where the policy says so) enters the aggregator. */
function closeBranch(
  draft: Draft,
  name: string,
  outcome: BranchOutcome,
  wait: Extract<Wait, { kind: 'parallel' }>,
): void {
  markEnded(draft, name, outcome)
  if (wait.policy === 'fail_fast' && outcome.status === 'failure') closeOthers(draft)
  const { job } = draft
  const all = Object.entries(job.branches)
  if (all.some(([, branch]) => branch.outcome === undefined)) return
  const results: Record<string, BranchOutcome> = {}
  for (const [key, branch] of all) {
    if (branch.outcome !== undefined) results[taskId(job.id, job.visit, key)] = branch.outcome
  }
  draft.job = { ...job, aggregationResults: results }
  enter(draft, wait.into) // J5
}

function closeOthers(draft: Draft): void {
  for (const [name, branch] of Object.entries(draft.job.branches)) {
    if (branch.outcome !== undefined) continue
    dropBranch(draft, name, branch)
    markEnded(draft, name, { status: 'cancelled' })
  }
}

function markEnded(draft: Draft, name: string, outcome: BranchOutcome): void {
  const { job } = draft
  const branch = job.branches[name]
  if (branch === undefined) return
  draft.job = { ...job, branches: { ...job.branches, [name]: { ...branch, outcome } } }
}

/** A result's object is merged into the state history; anything else is kept there under the task's type. */
function mergeData(history: JsonObject, type: string, data: Json | undefined): JsonObject {
  if (data === undefined || data === null) return history
  return isJsonObject(data) ? { ...history, ...data } : setOwn(history, type, data)
}

function setOwn(history: JsonObject, key: string, value: Json | undefined): JsonObject {
  return value === undefined ? history : { ...history, [key]: value }
}
