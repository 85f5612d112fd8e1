import { LIMITS } from '@impresario/protocol'
import { backoffMs } from '../retry/backoff.ts'
import type { Action } from './action.ts'
import { awaitHuman } from './approval.ts'
import { deadlineOf } from './deadline.ts'
import { choose, end, quarantine } from './course.ts'
import { finishState, keep, note, remark } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'
import { finishUndo } from './compensation.ts'
import { awaitEvent } from './event-wait.ts'
import { fallAsleep } from './sleep.ts'
import { childJobId, orderId, taskId } from './identity.ts'
import type { Branch, Call, ChildCall, Job, JobError, JobStatus, TaskCall, Wait } from './job.ts'

/**
 * Counts a run before it begins. A handler that ends the process, or blocks it until it is killed,
 * would do so after every start; after a few times a person is asked.
 */
export function beginTurn(draft: Draft, event: EventOf<'turnBegun'>): IgnoredReason | undefined {
  const { job } = draft
  if (!isTurnOf(job, event.visit)) return 'stale_turn' // J4
  const [begun, lost] = [job.begun ?? 0, job.lost ?? 0]
  const isTooMany = event.hasReturned ? lost >= event.lostMax : begun >= event.begunMax
  if (!isTooMany) {
    // The run that is about to begin takes the place of one that returned.
    draft.job.begun = event.hasReturned ? begun : begun + 1
    draft.job.begunBy = event.token
    if (event.hasReturned) draft.job.lost = lost + 1
    return undefined
  }
  // Once more than was counted: the first run was one like any other.
  const what = event.hasReturned
    ? `returned ${lost + 1} times, and each time the process ended before the result was stored. Look for what it leaves running, such as timers and child processes.`
    : `was begun ${begun + 1} times and never ended: each time the process ended first. Look for an endless loop, for memory that grows, and for calls that end the process.`
  quarantine(draft, {
    code: 'HANDLER_NEVER_ENDED',
    message: `The handler of "${job.state}" ${what} Correct the handler, then retry the job.`,
    state: job.state,
  })
  return undefined
}

/** Applies what the handler of the present state chose. */
export function takeTurn(draft: Draft, event: EventOf<'turnTaken'>): IgnoredReason | undefined {
  if (!isTurnOf(draft.job, event.visit)) return 'stale_turn' // J4
  draft.job.stateHistory = event.stateHistory
  draft.job.begun = undefined
  draft.job.begunBy = undefined
  draft.job.lost = undefined
  if (isPossible(draft.job, event.action)) applyAction(draft, inForce(draft.job, event.action))
  else quarantine(draft, impossible(draft.job, event.action))
  return undefined
}

/** While a job undoes what it did, and only then, an undo may choose, and only what an undo can. */
function isPossible({ compensation }: Job, { type }: Action): boolean {
  return compensation === undefined ? type !== 'undone' : type === 'undone' || type === 'task' || type === 'child'
}

/** The task or the child of an undo leads nowhere but to the next undo, whatever transitions were stored with it. */
function inForce({ compensation }: Job, action: Action): Action {
  if (compensation === undefined || (action.type !== 'task' && action.type !== 'child')) return action
  const { call } = action
  return call.kind === 'task' ? { type: 'task', call, transitions: {} } : { type: 'child', call, transitions: {} }
}

function impossible({ state, compensation }: Job, { type }: Action): JobError {
  const who = compensation === undefined ? 'handler' : 'undo'
  return { code: 'HANDLER_FAILED', message: `The ${who} of "${state}" chose "${type}", which it cannot.`, state }
}

/** A handler threw: try again after a while, and after a few times ask a person. */
export function failTurn(draft: Draft, event: EventOf<'turnFailed'>): IgnoredReason | undefined {
  const { job, script } = draft
  if (!isTurnOf(job, event.visit)) return 'stale_turn' // J4
  const failures = job.failures + 1
  draft.job.status = 'running'
  draft.job.failures = failures
  // It has ended. It is still run with care: what stopped it may not stop it the next time.
  if (job.begun !== undefined) draft.job.begun = 0
  const durationMs = event.at - (job.enteredAt ?? job.createdAt)
  note(draft, 'state_failed', event.message, { attempt: failures, durationMs })
  if (failures >= script.policy.handlerAttemptsMax) {
    quarantine(draft, {
      code: 'HANDLER_FAILED',
      message: `The handler of "${job.state}" failed ${failures === 1 ? 'once' : `${failures} times`}: ${event.message}`,
      state: job.state,
      ...(event.stack === undefined ? {} : { stack: event.stack }),
    })
    return undefined
  }
  const { backoffMs: baseMs, backoffMsMax: maxMs, backoffFactor: factor } = script.policy
  draft.effects.push({
    type: 'turn',
    visit: job.visit,
    delayMs: backoffMs({ baseMs, maxMs, factor, attempt: failures, chance: event.chance }),
  })
  return undefined
}

function isTurnOf(job: Job, visit: number): boolean {
  return job.visit === visit && (job.status === 'running' || job.status === 'pending')
}

function applyAction(draft: Draft, action: Action): void {
  switch (action.type) {
    case 'transition':
      choose(draft, action.to)
      break
    case 'task':
      startTask(draft, action)
      break
    case 'child':
      startBranches(draft, 'waiting_for_child', { kind: 'child', transitions: action.transitions }, [action.call])
      break
    case 'parallel':
      startParallel(draft, action)
      break
    case 'human':
      awaitHuman(draft, action)
      break
    case 'event':
      awaitEvent(draft, action)
      break
    case 'sleep':
      fallAsleep(draft, action)
      break
    case 'undone':
      finishUndo(draft)
      break
    case 'end':
      endHere(draft, action)
      break
  }
}

function startTask(draft: Draft, { call, transitions, eventTransitions }: Extract<Action, { type: 'task' }>): void {
  const wait: Wait = { kind: 'task', transitions, ...(eventTransitions === undefined ? {} : { eventTransitions }) }
  startBranches(draft, 'waiting_for_worker', wait, [call])
}

function startParallel(draft: Draft, action: Extract<Action, { type: 'parallel' }>): void {
  if (action.calls.length > LIMITS.fanOutMax) {
    quarantine(draft, {
      code: 'FAN_OUT_TOO_LARGE',
      message: `"${draft.job.state}" sent out ${action.calls.length} branches; at most ${LIMITS.fanOutMax} are allowed. Split the work over child jobs.`,
      state: draft.job.state,
    })
    return
  }
  if (action.calls.length === 0) {
    // Nothing to wait for: the aggregator still runs, once, with no results.
    draft.job.aggregationResults = {}
    choose(draft, action.into)
    return
  }
  const wait: Wait = { kind: 'parallel', into: action.into, policy: action.policy }
  startBranches(draft, 'waiting_for_parallel', wait, action.calls)
}

function startBranches(draft: Draft, status: JobStatus, wait: Wait, calls: readonly Call[]): void {
  const tooDeep = draft.job.depth >= LIMITS.childDepthMax ? calls.find((call) => call.kind === 'child') : undefined
  if (tooDeep !== undefined) {
    quarantine(draft, {
      code: 'CHILD_TOO_DEEP',
      message: `"${tooDeep.blueprint}" would be child number ${draft.job.depth + 1} in a row; at most ${LIMITS.childDepthMax} are allowed. Check whether a blueprint runs itself.`,
      state: draft.job.state,
    })
    return
  }
  const branches: Record<string, Branch> = {}
  draft.job.status = status
  draft.job.wait = wait
  draft.job.branches = branches
  for (let index = 0; index < calls.length; index += 1) {
    const given = calls[index] as Call
    const branch = String(index)
    if (given.kind === 'task') {
      const call = timed(draft, given)
      branches[branch] = firstTry(draft, call)
      const { resultTimeoutMs: resultMs } = call
      dispatch(draft, { branch, attempt: 1, delayMs: 0, call, failedWorkers: NOBODY, resultMs })
    } else {
      branches[branch] = { call: given, attempt: 1, sentAt: draft.at }
      startChild(draft, branch, given)
    }
  }
  keep(draft, status === 'waiting_for_child' ? 'child_started' : 'task_dispatched', describeCalls(calls))
}

function firstTry({ at }: Draft, call: TaskCall): Branch {
  const deadlineAt = deadlineOf(call, at)
  return deadlineAt === undefined ? { call, attempt: 1, sentAt: at } : { call, attempt: 1, sentAt: at, deadlineAt }
}

const NOBODY: readonly string[] = []

function describeCalls(calls: readonly Call[]): string {
  const [only, another] = calls
  if (only !== undefined && another === undefined) return only.kind === 'task' ? only.type : only.blueprint
  const names = new Set(calls.map((call) => (call.kind === 'task' ? call.type : call.blueprint)))
  const list = [...names].join(', ')
  return `${calls.length} branches: ${list}`
}

export interface Dispatch {
  readonly branch: string
  readonly attempt: number
  readonly delayMs: number
  readonly call: TaskCall
  readonly failedWorkers: readonly string[]
  /** What this try has of the time for the result, from the moment it is due. */
  readonly resultMs: number | undefined
}

/** Sends out one try of a task. */
export function dispatch(draft: Draft, sent: Dispatch): void {
  const { id, visit } = draft.job
  const { branch, attempt, delayMs, call, failedWorkers, resultMs } = sent
  draft.effects.push({ type: 'task', visit, branch, attempt, delayMs, call, failedWorkers, resultMs })
  remark(draft, 'task_dispatched', sent.call.type, { taskId: taskId(id, visit, branch), attempt })
}

/**
 * The call with the job's and the blueprint's time limits where it names none, so that all its tries have them. A
 * deadline for the result that the call or the job names stands in place of the blueprint's time for runs.
 */
function timed({ job, script: { policy } }: Draft, call: TaskCall): TaskCall {
  const dispatchTimeoutMs = call.dispatchTimeoutMs ?? job.dispatchTimeoutMs
  const asked = call.resultTimeoutMs ?? job.resultTimeoutMs
  const resultTimeoutMs = asked ?? policy.resultTimeoutMs
  const runTimeoutMs = call.runTimeoutMs ?? (asked === undefined ? policy.runTimeoutMs : undefined)
  const isRetried = call.retryTimeouts === undefined && policy.retryTimeouts === true
  const isSame =
    dispatchTimeoutMs === call.dispatchTimeoutMs &&
    resultTimeoutMs === call.resultTimeoutMs &&
    runTimeoutMs === call.runTimeoutMs
  if (isSame && !isRetried) return call
  return {
    ...call,
    ...(dispatchTimeoutMs === undefined ? {} : { dispatchTimeoutMs }),
    ...(resultTimeoutMs === undefined ? {} : { resultTimeoutMs }),
    ...(runTimeoutMs === undefined ? {} : { runTimeoutMs }),
    ...(isRetried ? { retryTimeouts: true } : {}),
  }
}

function startChild(draft: Draft, branch: string, call: ChildCall): void {
  const { job } = draft
  const childId = childJobId(job.id, job.visit, branch)
  draft.effects.push({
    type: 'mail',
    to: childId,
    letterId: orderId(childId),
    letter: {
      type: 'create',
      request: {
        blueprint: call.blueprint,
        client: job.client,
        initialData: call.initialData,
        priority: job.priority,
        parent: { jobId: job.id, visit: job.visit, branch },
        depth: job.depth + 1,
        tracing: job.tracing,
      },
    },
  })
  remark(draft, 'child_started', `${call.blueprint} ${childId}`)
}

function endHere(draft: Draft, action: Extract<Action, { type: 'end' }>): void {
  const { job, script } = draft
  const state = script.state(job.state)
  const result = action.result === undefined ? job.stateHistory : action.result
  finishState(draft, undefined)
  end(draft, state?.kind === 'end' ? state.outcome : 'finished', { result })
}
