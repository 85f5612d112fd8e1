import { cronSeries, every, lastOccurrence, parseCron } from '@impresario/recurrence'
import type { Series, Zone } from '@impresario/recurrence'
import type { Trigger } from './schedule.ts'

/** A trigger with all that its firings depend on. */
export interface Timetable {
  readonly trigger: Trigger
  readonly zone: Zone
  /** What an interval is counted from: its first run, or any later one. Firings up to here were served. */
  readonly anchor: number
}

/** The first firing later than `at`. */
export function firingAfter(timetable: Timetable, at: number): number {
  return seriesOf(timetable)?.next(at)?.at ?? Number.POSITIVE_INFINITY
}

/** The last firing that is not later than `at`, among those after the anchor. */
export function firingUpTo(timetable: Timetable, at: number): number {
  const series = seriesOf(timetable)
  const last = series && lastOccurrence(series, timetable.anchor, at)
  return last?.at ?? Number.NEGATIVE_INFINITY
}

/** The times of a schedule, computed by the same code as those of automations. */
function seriesOf({ trigger, zone, anchor }: Timetable): Series | undefined {
  if (trigger.kind === 'interval') return every(trigger.everyMs, anchor)
  const expression = cronOf(trigger)
  return expression === undefined ? undefined : cronSeries(parseCron(expression), zone)
}

/** A trigger without any day never fires. Where schedules are read it is refused. */
function cronOf(trigger: Exclude<Trigger, { kind: 'interval' }>): string | undefined {
  const time = `${trigger.at % 60} ${Math.floor(trigger.at / 60)}`
  switch (trigger.kind) {
    case 'daily':
      return `${time} * * *`
    case 'weekly':
      return trigger.days.length === 0 ? undefined : `${time} * * ${trigger.days.join(',')}`
    case 'monthly': {
      const dates = trigger.dates.map((date) => (date === 'last' ? 'L' : date))
      return dates.length === 0 ? undefined : `${time} ${dates.join(',')} * *`
    }
  }
}
