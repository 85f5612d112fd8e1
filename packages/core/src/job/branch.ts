import { LIMITS, isJsonObject, isTaskErrorCode, taskErrorKind } from '@impresario/protocol'
import type { Json, JsonObject, TaskError } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'
import { backoffMs } from '../retry/backoff.ts'
import { canHold } from './capacity.ts'
import { branchError, callFailure, nameOf } from './call-failure.ts'
import type { Called } from './call-failure.ts'
import { expiryOf, timeLeft } from './deadline.ts'
import { finishUndo } from './compensation.ts'
import { end, enter, fail, quarantine } from './course.ts'
import { dropBranch, note, ownTransition } from './draft.ts'
import type { Draft, Facts } from './draft.ts'
import type { Effect, IgnoredReason } from './effect.ts'
import type { EventOf, TryRef } from './event.ts'
import { answerId, taskId, tryId } from './identity.ts'
import type { Branch, BranchOutcome, Call, Job, JobError, JobFailure, TaskCall, Transitions, Wait } from './job.ts'
import { addResult } from './result.ts'
import { dispatch } from './turn.ts'

interface OpenTask {
  readonly name: string
  readonly branch: Branch
  readonly call: TaskCall
  readonly wait: Extract<Wait, { kind: 'task' | 'parallel' }>
}

/** Finds the try that an event speaks of, unless it is over. */
export function findTask(job: Job, ref: TryRef): OpenTask | undefined {
  const { wait } = job
  if (job.visit !== ref.visit || (wait?.kind !== 'task' && wait?.kind !== 'parallel')) return undefined
  const branch = Object.hasOwn(job.branches, ref.branch) ? job.branches[ref.branch] : undefined
  if (branch?.call.kind !== 'task' || branch.outcome !== undefined || branch.attempt !== ref.attempt) return undefined
  return { name: ref.branch, branch, call: branch.call, wait }
}

function dropOf({ visit, branch, attempt }: TryRef): Effect {
  return { type: 'dropTask', visit, branch, attempt }
}

export function progressTask(draft: Draft, event: EventOf<'progressed'>): IgnoredReason | undefined {
  if (findTask(draft.job, event) === undefined) return 'stale_task'
  const { fraction, message } = event
  draft.job.progress = message === undefined ? { fraction } : { fraction, message }
  return undefined
}

/** Who ended a try, by which delivery, and with which error. */
interface Ending {
  readonly workerId?: string | undefined
  readonly delivery?: string | undefined
  readonly error?: TaskError | undefined
}

/** What the history says of a try, and the job's record. */
function factsOf({ job, at }: Draft, { name, branch }: OpenTask, ending: Ending): Facts {
  const { workerId, delivery, error } = ending
  const { attempt, sentAt } = branch
  const durationMs = sentAt === undefined ? undefined : at - sentAt
  return { taskId: taskId(job.id, job.visit, name), attempt, workerId, durationMs, delivery, code: error?.code }
}

function answerOf({ workerId, visit, branch, attempt, token }: EventOf<'taskEnded'>): Ending {
  return { workerId, delivery: token === undefined ? undefined : answerId({ visit, branch, attempt, token }) }
}

/** A worker reported. The status picks the way; for failures the error's code decides first. */
export function endTask(draft: Draft, event: EventOf<'taskEnded'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  if (event.status !== 'failure' && !fits(draft, task, event.data)) return 'too_large'
  draft.effects.push(dropOf(event))
  if (event.status === 'failure') {
    const error = event.error ?? { code: 'TRANSIENT_ERROR', message: 'The worker reported a failure without an error.' }
    failTry(draft, task, { ...answerOf(event), error, chance: event.chance, stack: event.stack })
    return undefined
  }
  const { type } = task.call
  note(draft, 'task_finished', `${type} ${event.status} by ${event.workerId}`, factsOf(draft, task, answerOf(event)))
  settleTask(draft, task, { status: event.status, data: event.data, error: event.error })
  return undefined
}

/** Whether the state history can take a result. A fan-out keeps its results apart, and bounds them together. */
function fits({ job, script }: Draft, { wait, call }: OpenTask, data: Json | undefined): boolean {
  const { stateHistory } = job
  return (
    wait.kind === 'parallel' || canHold(stateHistory, mergeData(stateHistory, call.type, data), script.policy.offloads)
  )
}

export function expireTask(draft: Draft, event: EventOf<'taskExpired'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  draft.effects.push(dropOf(event))
  const delivery = tryId(event)
  const { limit, error } = expiryOf(task.branch, task.call, event)
  if (limit !== 'dispatch') {
    failTry(draft, task, { error, workerId: event.workerId, delivery, chance: event.chance })
    return undefined
  }
  note(draft, 'task_expired', error.message, factsOf(draft, task, { delivery, error }))
  giveUp(draft, task, error, 'fail')
  return undefined
}

/** Every worker that got the task fell silent. Perhaps the task kills them: a person should look. */
export function abandonTask(draft: Draft, event: EventOf<'taskAbandoned'>): IgnoredReason | undefined {
  const task = findTask(draft.job, event)
  if (task === undefined) return 'stale_task' // J3
  draft.effects.push(dropOf(event))
  const message = `"${task.call.type}" was handed out ${event.deliveries} times, and every worker that had it fell silent.`
  const error: TaskError = { code: 'PERMANENT_ERROR', message }
  note(draft, 'task_abandoned', message, factsOf(draft, task, { delivery: tryId(event), error }))
  giveUp(draft, task, error, 'quarantine')
  return undefined
}

interface FailedTry extends Ending {
  readonly error: TaskError
  readonly chance: number
  readonly stack?: string | undefined
}

function failTry(draft: Draft, tried: OpenTask, failed: FailedTry): void {
  const { script } = draft
  const task = withStack(tried, failed.stack)
  const { error } = failed
  const kind = taskErrorKind(error.code)
  const attemptsMax = task.call.attemptsMax ?? script.policy.taskAttemptsMax
  note(draft, 'task_failed', `${task.call.type} ${error.code}: ${error.message}`, factsOf(draft, task, failed))
  const isTimeout = kind === 'timeout'
  if (kind === 'permanent' || kind === 'invalid_input' || (isTimeout && task.call.retryTimeouts !== true)) {
    giveUp(draft, task, error, kind === 'permanent' ? 'quarantine' : 'fail')
    return
  }
  if (task.branch.attempt >= attemptsMax) {
    const { attempt } = task.branch
    const message = `"${task.call.type}" failed ${attempt === 1 ? 'once' : `${attempt} times`}: ${error.message}`
    giveUp(draft, task, { code: error.code, message }, isTimeout ? 'fail' : 'quarantine')
    return
  }
  tryAgain(draft, task, failed)
}

/** The newest stack is kept with the task, until it is known what becomes of it: the last try may end without one. */
function withStack(task: OpenTask, stack: string | undefined): OpenTask {
  return stack === undefined ? task : { ...task, branch: { ...task.branch, lastStack: stack } }
}

function tryAgain(draft: Draft, task: OpenTask, { error, workerId, chance }: FailedTry): void {
  const { script, job, at } = draft
  const { call } = task
  const { backoffMs: baseMs, backoffMsMax: maxMs, backoffFactor: factor } = script.policy
  const delayMs = backoffMs({ baseMs, maxMs, factor, attempt: task.branch.attempt, chance })
  const resultMs = timeLeft(task.branch, call, { at, delayMs })
  if (resultMs === 'none') {
    const message =
      `"${call.type}" failed, and its result timeout leaves no time for another try. ` +
      `The error was: ${error.message}`
    giveUp(draft, task, { code: 'TIMEOUT_ERROR', message }, 'fail')
    return
  }
  const attempt = task.branch.attempt + 1
  const failedWorkers = addNewest(task.branch.failedWorkers ?? [], workerId)
  const branch: Branch = { ...task.branch, attempt, sentAt: at, failedWorkers, lastError: error }
  draft.job.branches = { ...job.branches, [task.name]: branch }
  draft.job.progress = undefined
  dispatch(draft, { branch: task.name, attempt, delayMs, call, failedWorkers, resultMs })
}

function addNewest(workers: readonly string[], workerId: string | undefined): readonly string[] {
  return workerId === undefined ? workers : [...workers.filter((id) => id !== workerId), workerId]
}

/** A try ended for good without success. A fan-out records it; a single task ends the job unless the blueprint has a way for it. */
function giveUp(draft: Draft, task: OpenTask, error: TaskError, otherwise: 'quarantine' | 'fail'): void {
  const { wait } = task
  const { state } = draft.job
  if (wait.kind === 'parallel') {
    if (wait.policy === 'by_code' && otherwise === 'quarantine') {
      markEnded(draft, task.name, task.branch, { status: 'failure', error })
      quarantine(draft, jobErrorOf(task, error, state))
    } else {
      closeBranch(draft, task, { status: 'failure', error }, wait)
    }
    return
  }
  const target =
    (error.code === 'TIMEOUT_ERROR' ? ownTransition(wait.transitions, 'timeout') : undefined) ??
    ownTransition(wait.transitions, 'failure')
  markEnded(draft, task.name, task.branch, { status: 'failure', error })
  const jobError = jobErrorOf(task, error, state)
  if (target === undefined && otherwise === 'quarantine') quarantine(draft, jobError)
  else failThrough(draft, target, jobError, callFailure(draft, task, jobError))
}

function jobErrorOf({ branch }: OpenTask, { code, message }: TaskError, state: string): JobError {
  const { lastStack: stack } = branch
  return stack === undefined ? { code, message, state } : { code, message, state, stack }
}

function settleTask(draft: Draft, task: OpenTask, outcome: BranchOutcome): void {
  const { wait } = task
  if (draft.job.compensation !== undefined) {
    settleUndo(draft, outcome.status)
    return
  }
  if (wait.kind === 'parallel') {
    closeBranch(draft, task, outcome, wait)
    return
  }
  const { job } = draft
  const stateHistory = mergeData(job.stateHistory, task.call.type, outcome.data)
  markEnded(draft, task.name, task.branch, outcome)
  draft.job.stateHistory = stateHistory
  follow(draft, wait.transitions, outcome.status, task)
}

/** A worker or a child has finished the undo of a state. A cancelled one has not. */
function settleUndo(draft: Draft, status: string): void {
  const { state } = draft.job
  if (status === 'cancelled') fail(draft, { code: 'CANCELLED', message: 'The worker cancelled the undo.', state })
  else finishUndo(draft)
}

/** Goes where a status leads that is no failure by itself; a worker that cancels its task is one. */
function follow(draft: Draft, transitions: Transitions, status: string, called: Called): void {
  const target = ownTransition(transitions, status)
  const { state } = draft.job
  const cancelled: JobError = { code: 'CANCELLED', message: 'The worker cancelled the task.', state }
  if (target !== undefined) {
    enter(draft, target, status === 'cancelled' ? callFailure(draft, called, cancelled) : undefined)
  } else if (status === 'cancelled') {
    end(draft, 'cancelled', { error: cancelled })
  } else {
    const message = `"${state}" has no transition for the status "${status}".`
    const error: JobError = { code: 'UNHANDLED_STATUS', message, state }
    fail(draft, error, callFailure(draft, called, error))
  }
}

/** A child job ended, or asks for a person's help. */
export function endChild(draft: Draft, event: EventOf<'childEnded'>): IgnoredReason | undefined {
  const { job } = draft
  const { wait } = job
  const branch = Object.hasOwn(job.branches, event.branch) ? job.branches[event.branch] : undefined
  if (job.visit !== event.visit || (wait?.kind !== 'child' && wait?.kind !== 'parallel')) return 'stale_child'
  if (branch?.call.kind !== 'child' || branch.outcome !== undefined) return 'stale_child'
  const { blueprint } = branch.call
  const called: Called = { name: event.branch, branch, ending: event }
  if (event.outcome === 'quarantined') return noticeQuarantinedChild(draft, wait, called, event.error)
  const status = event.outcome === 'finished' ? 'success' : 'failure'
  const error: TaskError | undefined = status === 'success' ? undefined : childError(event)
  note(draft, 'child_ended', `${blueprint} ${event.outcome}`)
  const outcome: BranchOutcome = { status, data: event.result, error }
  if (wait.kind === 'parallel') {
    closeBranch(draft, called, outcome, wait)
    return undefined
  }
  if (job.compensation !== undefined && error === undefined) {
    settleUndo(draft, status)
    return undefined
  }
  markEnded(draft, event.branch, branch, outcome)
  draft.job.stateHistory = setOwn(job.stateHistory, blueprint, event.result)
  const target = ownTransition(wait.transitions, event.outcome) ?? ownTransition(wait.transitions, status)
  if (error !== undefined) {
    const jobError = branchError(branch.call, error, job.state)
    failThrough(draft, target, jobError, callFailure(draft, called, jobError))
  } else if (target === undefined) {
    follow(draft, wait.transitions, status, called)
  } else {
    enter(draft, target)
  }
  return undefined
}

/** The child's own code, where it is one that tasks have. */
function childError({ error, outcome }: EventOf<'childEnded'>): TaskError {
  const code = isTaskErrorCode(error?.code) ? error.code : 'PERMANENT_ERROR'
  return { code, message: error?.message ?? `The child job ended as ${outcome}.` }
}

/** Something that the job waited for went wrong: the blueprint's own way for that, else the state `failed`. */
function failThrough(draft: Draft, target: string | undefined, error: JobError, failure: JobFailure): void {
  if (target === undefined) {
    fail(draft, error, failure)
    return
  }
  draft.job.error = error
  enter(draft, target, failure)
}

type ChildError = EventOf<'childEnded'>['error']

/** A person may still mend the child, so the parent waits on, unless its blueprint has a way for this. */
function noticeQuarantinedChild(draft: Draft, wait: Wait, called: Called, error: ChildError): undefined {
  const name = nameOf(called.branch.call)
  note(draft, 'child_quarantined', name)
  const target = wait.kind === 'child' ? ownTransition(wait.transitions, 'quarantined') : undefined
  if (target === undefined) return
  const message = `"${name}" is quarantined: ${error?.message ?? 'a person is asked to look at it.'}`
  const jobError: JobError = { code: 'CHILD_QUARANTINED', message, state: draft.job.state }
  enter(draft, target, callFailure(draft, called, jobError))
}

/** Records a branch's outcome; the last one (or the first failure, where the policy says so) enters the aggregator. */
function closeBranch(draft: Draft, closed: Called, reported: BranchOutcome, wait: ParallelWait): void {
  const outcome = bounded(draft, closed.branch.call, reported, wait)
  markEnded(draft, closed.name, closed.branch, outcome)
  const { job } = draft
  const { error } = outcome
  const jobError =
    error !== undefined && outcome.status === 'failure' ? branchError(closed.branch.call, error, job.state) : undefined
  const failure = jobError && callFailure(draft, closed, jobError)
  if (jobError !== undefined && wait.policy === 'by_code') {
    fail(draft, jobError, failure)
    return
  }
  const isCutShort = failure !== undefined && wait.policy === 'fail_fast'
  if (isCutShort) closeOthers(draft)
  const results: Record<string, BranchOutcome> = {}
  for (const [name, branch] of Object.entries(job.branches)) {
    if (branch.outcome === undefined) return
    results[taskId(job.id, job.visit, name)] = namedOutcome(branch.call, branch.outcome)
  }
  draft.job.aggregationResults = results
  enter(draft, wait.into, isCutShort ? failure : undefined) // J5
}

function namedOutcome({ as }: Call, outcome: BranchOutcome): BranchOutcome {
  return as === undefined ? outcome : { as, ...outcome }
}

type ParallelWait = Extract<Wait, { kind: 'parallel' }>

/**
 * All branches leave their data in one record. What no longer fits is refused for its branch alone: the others, and the
 * aggregator's view of them, stay as they are.
 */
function bounded(draft: Draft, call: Call, outcome: BranchOutcome, wait: ParallelWait): BranchOutcome {
  if (outcome.data === undefined) return outcome
  const size = jsonSize(outcome.data)
  const resultBytes = (wait.resultBytes ?? 0) + size
  if (resultBytes <= LIMITS.branchResultsBytesMax) {
    draft.job.wait = { ...wait, resultBytes }
    return outcome
  }
  const name = nameOf(call)
  const message =
    `The branches of this fan-out may leave ${LIMITS.branchResultsBytesMax} bytes together; the ${size} bytes of ` +
    `"${name}" are too many and were dropped. Return a reference to a file instead.`
  note(draft, 'branch_result_refused', message)
  return { status: 'failure', error: { code: 'LIMIT_EXCEEDED_ERROR', message } }
}

function closeOthers(draft: Draft): void {
  for (const [name, branch] of Object.entries(draft.job.branches)) {
    if (branch.outcome !== undefined) continue
    dropBranch(draft, name, branch)
    markEnded(draft, name, branch, { status: 'cancelled' })
  }
}

function markEnded(draft: Draft, name: string, branch: Branch, outcome: BranchOutcome): void {
  const { job } = draft
  draft.job.branches = { ...job.branches, [name]: { ...branch, outcome } }
  if (job.wait?.kind !== 'parallel') draft.job.results = addResult(job, branch.call, outcome)
}

/** A result's object is merged into the state history; anything else is kept there under the task's type. */
function mergeData(history: JsonObject, type: string, data: Json | undefined): JsonObject {
  if (data === undefined || data === null) return history
  return isJsonObject(data) ? { ...history, ...data } : setOwn(history, type, data)
}

function setOwn(history: JsonObject, key: string, value: Json | undefined): JsonObject {
  return value === undefined ? history : { ...history, [key]: value }
}
