import { LIMITS } from '@impresario/protocol'
import type { Action } from './action.ts'
import { remember } from './command.ts'
import { enter, fail } from './course.ts'
import { announce, failureOf, note, ownTransition } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'
import type { HumanWait, JobError, JobFailure } from './job.ts'
import { approvalDetails, approvalIn, isDecision } from './outbox.ts'

/** Asks a person. The job waits for a decision or, if the blueprint sets a limit, until it has waited too long. */
export function awaitHuman(draft: Draft, action: Extract<Action, { type: 'human' }>): void {
  const { visit } = draft.job
  const { message, transitions, expiresMs, remindAfterMs, remindEveryMs, form, formFor = [] } = action
  const expiresAt = expiresMs === undefined ? undefined : draft.at + expiresMs
  const remindAt = nextReminder(draft.at, remindAfterMs ?? remindEveryMs, expiresAt)
  const wait: HumanWait = {
    kind: 'human',
    message,
    transitions,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(remindAt === undefined ? {} : { remindAt }),
    ...(remindEveryMs === undefined ? {} : { remindEveryMs }),
    ...(form === undefined ? {} : { form, formFor }),
  }
  draft.job.status = 'waiting_for_human'
  draft.job.wait = wait
  if (expiresMs !== undefined) draft.effects.push({ type: 'timer', timer: 'approval', visit, afterMs: expiresMs })
  armReminder(draft, remindAt)
  note(draft, 'approval_requested', message)
  announce(draft, 'approval_requested', 'approval', approvalDetails(approvalIn(visit, wait)))
}

/** A reminder at the moment of expiry or later is useless. */
function nextReminder(at: number, afterMs: number | undefined, expiresAt: number | undefined): number | undefined {
  if (afterMs === undefined) return undefined
  const remindAt = at + afterMs
  return expiresAt === undefined || remindAt < expiresAt ? remindAt : undefined
}

function armReminder(draft: Draft, remindAt: number | undefined): void {
  if (remindAt === undefined) return
  const { visit } = draft.job
  draft.effects.push({ type: 'timer', timer: 'reminder', visit, afterMs: remindAt - draft.at })
}

export function makeDecision(draft: Draft, event: EventOf<'decisionMade'>): IgnoredReason | undefined {
  const { job } = draft
  // A double click or an old link must not decide what was asked later.
  if (event.visit !== undefined && event.visit !== job.visit) return 'stale_decision'
  if (job.wait?.kind !== 'human') return 'not_waiting_for_human'
  const target = isDecision(event.decision) ? ownTransition(job.wait.transitions, event.decision) : undefined
  if (target === undefined) return 'unknown_decision'
  note(
    draft,
    'decision_made',
    `${event.decision} by "${event.by}"${event.comment === undefined ? '' : `: ${event.comment}`}`,
  )
  draft.job.stateHistory = {
    ...job.stateHistory,
    decision: {
      decision: event.decision,
      by: event.by,
      comment: event.comment ?? null,
      ...(event.data === undefined ? {} : { data: event.data }),
    },
  }
  remember(draft, event)
  enter(draft, target, event.decision === REJECTION ? rejectionOf(event, job.state) : undefined)
  return undefined
}

/** The decision that counts as a failure of what was asked for. All other names are ways like any other. */
const REJECTION = 'rejected'

function rejectionOf({ by, comment }: EventOf<'decisionMade'>, state: string): JobFailure {
  const message = `Rejected by "${by}"${comment === undefined ? '.' : `: ${comment}`}`
  return failureOf({ code: 'REJECTED', message, state })
}

export function expireApproval(draft: Draft, event: EventOf<'approvalExpired'>): IgnoredReason | undefined {
  const { job } = draft
  if (job.wait?.kind !== 'human' || job.visit !== event.visit) return 'not_waiting_for_human'
  note(draft, 'approval_expired')
  const target = ownTransition(job.wait.transitions, 'expired')
  const error: JobError = { code: 'APPROVAL_EXPIRED', message: 'No decision was made in time.', state: job.state }
  if (target === undefined) fail(draft, error)
  else enter(draft, target, failureOf(error))
  return undefined
}

/** There is no decision yet: reminds of the question, and again after a while, a limited number of times. */
export function remindPerson(draft: Draft, event: EventOf<'reminderDue'>): IgnoredReason | undefined {
  const { wait, visit } = draft.job
  if (wait?.kind !== 'human' || visit !== event.visit || wait.remindAt === undefined) return 'not_waiting_for_human'
  const reminders = (wait.reminders ?? 0) + 1
  const everyMs = reminders < LIMITS.remindersMax ? wait.remindEveryMs : undefined
  const remindAt = nextReminder(draft.at, everyMs, wait.expiresAt)
  const reminded: HumanWait = { ...wait, reminders, remindAt }
  draft.job.wait = reminded
  if (remindAt === undefined) draft.effects.push({ type: 'dropTimer', timer: 'reminder' })
  else armReminder(draft, remindAt)
  note(draft, 'approval_reminded', `reminder ${reminders}: ${wait.message}`)
  announce(draft, 'approval_reminder', `reminder_${reminders}`, approvalDetails(approvalIn(visit, reminded)))
  return undefined
}
