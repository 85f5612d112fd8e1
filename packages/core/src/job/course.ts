import { beginCompensation, closeJob, rememberDone } from './compensation.ts'
import type { Ending } from './compensation.ts'
import { announce, beginVisit, dropLife, failureOf, finishState, leaveVisit, mailParent, note } from './draft.ts'
import type { Draft } from './draft.ts'
import type { JobError, JobFailure, Onward, Outcome, SentEvent } from './job.ts'

/** Goes on to a state that code chose. When there is none, the job stays: after a retry the code makes a better choice. */
export function choose(draft: Draft, state: string, failure?: JobFailure, event?: SentEvent): void {
  const { job, script } = draft
  if (script.state(state) !== undefined) {
    enter(draft, state, failure, event)
    return
  }
  const message = `The blueprint "${script.name}" has no state "${state}". Add the state, or correct the transition in "${job.state}".`
  quarantine(draft, { code: 'UNKNOWN_STATE', message, state: job.state })
}

/**
 * Goes on to `state`: at once to the end where nothing is left to run, else by a turn. `failure` and
 * `event`: what led there, for the handler of that state.
 */
export function enter(draft: Draft, state: string, failure?: JobFailure, event?: SentEvent): void {
  const { job, script } = draft
  const target = script.state(state)
  if (target === undefined) {
    holdBefore(draft, { state, failure, event, error: job.error })
    return
  }
  leaveVisit(draft)
  // From quarantine a job comes back to a state that it had not finished, or goes on from one whose undo is remembered.
  const isQuarantined = job.status === 'quarantined'
  if (!isQuarantined || job.onward !== undefined) finishState(draft, state)
  if (!isQuarantined) rememberDone(draft, failure)
  const previousState = job.state
  const visit = job.visit + 1
  const keepResults = target.kind === 'aggregator' ? job.aggregationResults : undefined
  beginVisit(draft, state)
  draft.job.failure = failure
  draft.job.event = event
  draft.job.aggregationResults = keepResults
  if (visit - (job.loopFrom ?? 0) > script.policy.transitionsMax) {
    quarantine(draft, {
      code: 'LOOP_LIMIT',
      message: `The job entered ${script.policy.transitionsMax} states without ending. Check the blueprint "${script.name}" for a loop, or raise its transitionsMax.`,
      state,
    })
  } else if (target.kind === 'end' && !target.computes) {
    end(draft, target.outcome, { result: job.stateHistory })
  } else {
    note(draft, 'state_started', undefined, { previousState })
    draft.effects.push({ type: 'turn', visit, delayMs: 0 })
  }
}

/**
 * The blueprint has lost the state that a result, a decision or an event leads to. What came counts, so it is kept: a retry
 * goes on from here, and a worker or a person is not asked twice. If the job is given up instead, the state is undone.
 */
function holdBefore(draft: Draft, onward: Onward): void {
  const { job, script } = draft
  rememberDone(draft, onward.failure)
  quarantine(draft, {
    code: 'UNKNOWN_STATE',
    message: `The blueprint "${script.name}" has no state "${onward.state}". Add the state, then retry the job: it goes on there, and "${job.state}" is not repeated.`,
    state: job.state,
  })
  draft.job.onward = onward
}

/** The job is over, once it has undone what it did. */
export function end(draft: Draft, outcome: Outcome, ending: Ending): void {
  if (!beginCompensation(draft, outcome, ending)) closeJob(draft, outcome, ending)
}

/** The job goes to quarantine. Nothing moves it until a person retries or discards it; its time limit stops too. */
export function quarantine(draft: Draft, error: JobError): void {
  leaveVisit(draft)
  dropLife(draft)
  draft.job.status = 'quarantined'
  draft.job.wait = undefined
  draft.job.branches = {}
  draft.job.error = error
  note(draft, 'job_quarantined', error.message, { durationMs: draft.at - draft.job.createdAt })
  mailParent(draft, 'quarantined')
  announce(draft, 'job_quarantined', 'quarantined')
}

/** Fails the job: through the blueprint's own `failed` state, which exists even when the blueprint does not declare it. */
export function fail(draft: Draft, error: JobError, failure = failureOf(error)): void {
  if (draft.job.compensation !== undefined) {
    quarantine(draft, error)
    return
  }
  draft.job.error = error
  enter(draft, 'failed', failure)
}
