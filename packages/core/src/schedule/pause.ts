import type { Zone } from '@impresario/recurrence'
import type { PastFiring, ScheduleRecord } from '../ports/storage.ts'
import { firingUpTo } from './firing.ts'
import { triggerKey } from './schedule.ts'
import type { Schedule } from './schedule.ts'

/** So many past firings are kept. */
export const RECENT_MAX = 10

/** Stops it from now on. One that has not begun yet begins here. */
export function pausedRecord(
  schedule: Schedule,
  record: ScheduleRecord | undefined,
  paused: { readonly at: number; readonly by: string },
): ScheduleRecord {
  const begun = { firedFor: paused.at, firedAt: paused.at, jobId: undefined, trigger: triggerKey(schedule) }
  return { ...(record ?? begun), paused }
}

/**
 * Lets it go on. Times that have passed meanwhile are left out, whatever it does with those that were missed: somebody did not
 * want them. With another trigger than before it begins anew.
 */
export function resumedRecord(schedule: Schedule, zone: Zone, before: ScheduleRecord, now: number): ScheduleRecord {
  const { paused: _over, ...record } = before
  if (record.trigger !== triggerKey(schedule)) return record
  const firedFor = firingUpTo({ trigger: schedule.trigger, zone, anchor: record.firedFor }, now)
  if (firedFor <= record.firedFor) return record
  const skipped: PastFiring = { firedFor, firedAt: now, jobId: undefined, skipped: 'paused' }
  return {
    firedFor,
    firedAt: now,
    jobId: undefined,
    trigger: record.trigger,
    recent: [skipped, ...(record.recent ?? [])].slice(0, RECENT_MAX),
  }
}
