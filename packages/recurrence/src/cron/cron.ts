import { DAY_MS } from '@impresario/protocol'
import { HORIZON, dateOf, dayNumber, dayOf, timeOf } from '../civil.ts'
import type { Series } from '../series.ts'
import { TimesOfDay } from '../times-of-day.ts'
import { onClock } from '../wall-clock.ts'
import type { ClockRules, WallSeries } from '../wall-clock.ts'
import type { Gap, Zone } from '../zone.ts'
import { daysOfMonths } from './days.ts'
import type { CronExpression } from './expression.ts'

/**
 * How an expression behaves across clock changes. An hour field that begins with `*` means real hours: a skipped hour
 * does not fire, a repeated hour fires twice. Named hours mean once a day: in a gap at the first moment after it, in a
 * fold at the first of the two.
 */
export function cronClockRules({ hours }: CronExpression, gap: Gap = 'first'): ClockRules {
  return hours.isOpen ? { gap: 'drop', fold: 'both' } : { gap, fold: 'first' }
}

/** The times of a cron expression in a zone. */
export function cronSeries(expression: CronExpression, zone: Zone, gap: Gap = 'first'): Series {
  return onClock(cronWallSeries(expression), zone, cronClockRules(expression, gap))
}

export function cronWallSeries({ seconds, minutes, hours, days }: CronExpression): WallSeries {
  const times = new TimesOfDay(hours.values, minutes.values, seconds.values)
  const matching = daysOfMonths(days)
  return {
    next: (after) => {
      const begin = Math.max(after, -DAY_MS * 719_162)
      const today = dayOf(begin)
      const { year, month, day } = dateOf(today)
      const index = times.indexAfter(timeOf(begin))
      let bits = matching(year, month)
      if (index < times.size && (bits & (1 << day)) !== 0) return today * DAY_MS + times.at(index)
      // Days up to and including today are done.
      bits &= day === 31 ? 0 : -1 << (day + 1)
      return nextMonths(matching, { year, month, bits }, times.at(0))
    },
  }
}

/** The first matching day, starting with a month whose remaining days are given. */
function nextMonths(
  matching: (year: number, month: number) => number,
  from: { readonly year: number; readonly month: number; readonly bits: number },
  timeMs: number,
): number | undefined {
  let { year, month, bits } = from
  // The calendar repeats after 400 years, so the search can end then; in fact it never takes more than 40.
  for (let count = 0; count <= 4_800; count += 1) {
    if (bits !== 0) {
      const day = 31 - Math.clz32(bits & -bits)
      const local = dayNumber(year, month, day) * DAY_MS + timeMs
      return local > HORIZON ? undefined : local
    }
    year = month === 12 ? year + 1 : year
    month = (month % 12) + 1
    bits = matching(year, month)
  }
  return undefined
}
