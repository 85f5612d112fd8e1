import { DAY_MS } from '@impresario/protocol'
import { dateOf, daysInMonth, weekdayOf } from '@impresario/recurrence'
import type { Zone } from '@impresario/recurrence'
import type { Trigger } from './schedule.ts'

/** A trigger with all that its firings depend on. */
export interface Timetable {
  readonly trigger: Trigger
  readonly zone: Zone
  /** What an interval is counted from: its first run, or any later one. */
  readonly anchor: number
}

type DayTrigger = Exclude<Trigger, { kind: 'interval' }>

const MINUTE_MS = 60_000
/** A time that is skipped means the moment of the change; of a time that occurs twice, the first counts. */
const CLOCK_RULES = { gap: 'first', fold: 'first' } as const
/** The longest wait for a day: `monthly_dates = [31]` after the end of a January or of a July is less than 62 days. */
const DAYS_MAX = 64

/** The first firing later than `at`. */
export function firingAfter(timetable: Timetable, at: number): number {
  const { trigger, anchor } = timetable
  if (trigger.kind === 'interval') return lastTick(trigger.everyMs, anchor, at) + trigger.everyMs
  return search(trigger, timetable.zone, at, 1)
}

/** The last firing that is not later than `at`. */
export function firingUpTo(timetable: Timetable, at: number): number {
  const { trigger, anchor } = timetable
  if (trigger.kind === 'interval') return lastTick(trigger.everyMs, anchor, at)
  return search(trigger, timetable.zone, at, -1)
}

function lastTick(everyMs: number, anchor: number, at: number): number {
  return anchor + Math.floor((at - anchor) / everyMs) * everyMs
}

/**
 * Goes over the days, forwards or back, until one has a firing that will do. Begins a day on the other side of today: in
 * 2011 Samoa left out a whole day, and what was due on it fired on the next.
 */
function search(trigger: DayTrigger, zone: Zone, at: number, direction: 1 | -1): number {
  const today = Math.floor(zone.localOf(at) / DAY_MS)
  for (let step = -1; step <= DAYS_MAX; step += 1) {
    const dayNo = today + step * direction
    if (!isDayOf(trigger, dayNo)) continue
    const firing = zone.instantOf(dayNo * DAY_MS + trigger.at * MINUTE_MS, CLOCK_RULES)
    if (direction === 1 ? firing > at : firing <= at) return firing
  }
  // A trigger without any day. Where schedules are read it is refused; here it never fires.
  return direction * Number.POSITIVE_INFINITY
}

function isDayOf(trigger: DayTrigger, dayNo: number): boolean {
  switch (trigger.kind) {
    case 'daily':
      return true
    case 'weekly':
      return trigger.days.includes(weekdayOf(dayNo))
    case 'monthly': {
      const date = dateOf(dayNo)
      return (
        trigger.dates.includes(date.day) ||
        (trigger.dates.includes('last') && date.day === daysInMonth(date.year, date.month))
      )
    }
  }
}
