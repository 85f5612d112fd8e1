import { isoInstant } from '@impresario/recurrence'
import { SPAN_MS_MAX } from '../blueprint/duration.ts'
import type { Action } from './action.ts'
import { enter, quarantine } from './course.ts'
import { note } from './draft.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'

/** Stops until a moment. The timer in the storage ends the sleep; the record only says for how long it is. */
export function fallAsleep(draft: Draft, { afterMs = 0, until: moment, to }: Extract<Action, { type: 'sleep' }>): void {
  const { visit, state } = draft.job
  const until = moment ?? draft.at + afterMs
  const leftMs = Math.max(0, until - draft.at)
  if (leftMs > SPAN_MS_MAX) {
    const message = `"${state}" sleeps until ${isoInstant(until)}. A job may sleep for two years at most. Correct the handler, then retry the job.`
    quarantine(draft, { code: 'HANDLER_FAILED', message, state })
    return
  }
  draft.job.status = 'waiting_for_time'
  draft.job.wait = { kind: 'sleep', until, to }
  draft.effects.push({ type: 'timer', timer: 'sleep', visit, afterMs: leftMs })
  note(draft, 'sleep_started', `until ${isoInstant(until)}`)
}

export function endSleep(draft: Draft, event: EventOf<'sleepEnded'>): IgnoredReason | undefined {
  const { wait, visit } = draft.job
  if (wait?.kind !== 'sleep' || visit !== event.visit) return 'not_sleeping'
  note(draft, 'sleep_ended')
  enter(draft, wait.to)
  return undefined
}
