import { announce, beginVisit, dropLife, leaveVisit, mailParent, note } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { Job, JobError, JobFailure, Outcome, Undo } from './job.ts'

export interface Ending {
  readonly result?: Job['result']
  readonly error?: JobError
}

/**
 * Undoing what a job did before it ends otherwise than finished. Each state that was done and has an undo gets a turn of its
 * own, the newest first. The record says which are left, so that each is undone once whatever ends in between: the undo that
 * is under way is the first of those.
 */

/** A state is left. It was done unless it failed; after a timeout it may have been. */
export function rememberDone(draft: Draft, failure: JobFailure | undefined): void {
  const { job, script } = draft
  if (job.compensation !== undefined || script.state(job.state)?.hasUndo !== true) return
  const isTimeout = failure?.code === 'TIMEOUT_ERROR'
  if (failure !== undefined && !isTimeout) return
  draft.job.undos = [...(job.undos ?? []), { state: job.state, visit: job.visit, isCertain: !isTimeout }]
}

/** What has to be undone if the job ended now: also the present state while workers or children are at it. */
function undosOf({ job, script }: Draft): readonly Undo[] {
  const { wait, state, visit, undos = [] } = job
  const isAtWork = wait?.kind === 'task' || wait?.kind === 'child' || wait?.kind === 'parallel'
  if (!isAtWork || script.state(state)?.hasUndo !== true) return undos
  return [...undos, { state, visit, isCertain: false }]
}

/** Begins to undo before the job ends. False when there is nothing to undo. */
export function beginCompensation(draft: Draft, outcome: Outcome, ending: Ending): boolean {
  const { job } = draft
  if (outcome === 'finished' || job.compensation !== undefined) return false
  const undos = undosOf(draft)
  if (undos.length === 0) return false
  leaveVisit(draft)
  dropLife(draft)
  const error = ending.error ?? job.error
  draft.job.undos = undefined
  draft.job.compensation = {
    outcome,
    state: job.state,
    left: undos.toReversed(),
    undone: [],
    ...(error === undefined ? {} : { error }),
    ...(ending.result === undefined ? {} : { result: ending.result }),
  }
  draft.job.error = error
  note(draft, 'compensation_started', `${undos.length} to undo before it ends as ${outcome}`)
  nextUndo(draft)
  return true
}

/** Gives the next undo its turn, or the one that stood in quarantine another; ends the job when none is left. */
export function nextUndo(draft: Draft): void {
  const { compensation, visit } = draft.job
  if (compensation === undefined) return
  const [next] = compensation.left
  if (next === undefined) {
    const { outcome, state, error, result } = compensation
    draft.job.state = state
    closeJob(draft, outcome, { ...(error === undefined ? {} : { error }), ...(result === undefined ? {} : { result }) })
    return
  }
  beginVisit(draft, next.state)
  note(draft, 'undo_started', next.state)
  draft.effects.push({ type: 'turn', visit: visit + 1, delayMs: 0 })
}

/** The undo of the present state is done. */
export function finishUndo(draft: Draft): void {
  const { compensation } = draft.job
  if (compensation === undefined) return
  const { state } = draft.job
  leaveVisit(draft)
  note(draft, 'undo_finished', state)
  const { left, undone } = compensation
  draft.job.compensation = { ...compensation, left: left.slice(1), undone: [...undone, state] }
  nextUndo(draft)
}

/** A person gives up what is left to undo. The job ends as it would have. */
export function abandonCompensation(draft: Draft): void {
  const { compensation } = draft.job
  if (compensation === undefined) return
  const left = compensation.left.map(({ state }) => state)
  note(draft, 'compensation_abandoned', `not undone: ${left.join(', ')}`)
  draft.job.compensation = { ...compensation, left: [] }
  nextUndo(draft)
}

/** What cannot touch a job any more that undoes what it did: nothing ends that but its own undos, or a person. */
export function compensationRefusal({ compensation }: Job, type: string): IgnoredReason | undefined {
  const isRefused = type === 'cancelled' || type === 'timeRanOut' || type === 'eventSent'
  return compensation !== undefined && isRefused ? 'compensating' : undefined
}

/** The job is over. Its parent, if it has one, hears of it by mail. */
export function closeJob(draft: Draft, outcome: Outcome, ending: Ending): void {
  leaveVisit(draft)
  const { job } = draft
  dropLife(draft)
  draft.job.status = outcome
  draft.job.wait = undefined
  draft.job.branches = {}
  draft.job.aggregationResults = undefined
  draft.job.onward = undefined
  draft.job.result = ending.result
  draft.job.error = ending.error ?? (outcome === 'finished' ? undefined : job.error)
  draft.job.endedAt = draft.at
  draft.job.undos = undefined
  if (job.events !== undefined) draft.job.events = { kept: [], known: job.events.known }
  note(draft, `job_${outcome}`, ending.error?.message, { durationMs: draft.at - job.createdAt })
  mailParent(draft, outcome)
  announce(draft, `job_${outcome}`, outcome)
}
