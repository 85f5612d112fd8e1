import type { Zone } from '@impresario/recurrence'
import type { ScheduleRecord } from '../ports/storage.ts'
import { firingAfter, firingUpTo } from './firing.ts'
import type { Timetable } from './firing.ts'
import { triggerKey } from './schedule.ts'
import type { Schedule } from './schedule.ts'

/** What a schedule asks for at a moment. */
export type Plan =
  /** Nothing until then. */
  | { readonly type: 'wait'; readonly nextAt: number }
  /** One job for each of these times, oldest first; never empty. */
  | { readonly type: 'fire'; readonly times: readonly [number, ...number[]] }
  /** Nothing until somebody resumes it. */
  | { readonly type: 'paused' }
  /** No job, but it must be written that all up to then is settled. */
  | { readonly type: 'note'; readonly upTo: number; readonly reason: 'begun' | 'missed' | 'clock went back' }

/** A firing that is served later than this was missed. A change of leaders takes less. */
const MISSED_MS = 60_000
/** A record that lies further ahead than this was written by a clock that was wrong, and would silence the schedule. */
const AHEAD_MS_MAX = 7 * 86_400_000

/**
 * Decides what is due. Whatever has been served is in the record, so a clock that goes back fires nothing again; one
 * that jumps ahead is like a time in which nothing ran.
 */
export function plan(schedule: Schedule, zone: Zone, record: ScheduleRecord | undefined, now: number): Plan {
  const { trigger } = schedule
  if (record?.paused !== undefined) return { type: 'paused' }
  if (record?.trigger !== triggerKey(schedule)) {
    return trigger.kind === 'interval' ? { type: 'fire', times: [now] } : { type: 'note', upTo: now, reason: 'begun' }
  }
  const { firedFor } = record
  if (firedFor > now + AHEAD_MS_MAX) return { type: 'note', upTo: now, reason: 'clock went back' }
  const timetable: Timetable = { trigger, zone, anchor: firedFor }
  const newest = firingUpTo(timetable, now)
  if (newest <= firedFor) return { type: 'wait', nextAt: firingAfter(timetable, Math.max(now, firedFor)) }
  switch (schedule.misfire) {
    case 'skip':
      return now - newest > MISSED_MS
        ? { type: 'note', upTo: newest, reason: 'missed' }
        : { type: 'fire', times: [newest] }
    case 'run_once':
      return { type: 'fire', times: [newest] }
    case 'catch_up':
      return { type: 'fire', times: newestFirings(timetable, newest, schedule.catchUpMax) }
  }
}

/** From the newest back to those that the record's own time does not cover, at most `max`; oldest first. */
function newestFirings(timetable: Timetable, newest: number, max: number): readonly [number, ...number[]] {
  const older: number[] = []
  let oldest = newest
  while (older.length < max - 1) {
    const before = firingUpTo(timetable, oldest - 1)
    if (before <= timetable.anchor) break
    older.push(before)
    oldest = before
  }
  const [first, ...rest] = older.toReversed()
  return first === undefined ? [newest] : [first, ...rest, newest]
}
