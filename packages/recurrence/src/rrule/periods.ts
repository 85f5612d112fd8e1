import { DAY_MS } from '@impresario/protocol'
import { HORIZON, YEAR_MAX, dateOf, dayNumber, dayOf, daysInYear, timeOf } from '../civil.ts'
import { TimesOfDay } from '../times-of-day.ts'
import type { WallSeries } from '../wall-clock.ts'
import { firstWeekOf, hasPosition, monthDays, nextAllowedDay, startOf, weekDays, yearDays } from './days.ts'
import type { Rule } from './rule.ts'

/** The periods of a daily, weekly, monthly or yearly rule. The period of the start has the number 0. */
interface Periods {
  /** The number of the first period that may have a day on or after this one. */
  from(dayNo: number): number
  /** The selected days of a period, in ascending order. */
  days(period: number): readonly number[]
  /** Periods up to this one can be skipped, given that this one has no days. */
  after(period: number): number
  readonly last: number
  readonly daysMax: number
}

/**
 * The local times of a rule whose periods are days or longer. `start` is the local time of DTSTART. The cost of one
 * query does not depend on how long ago that was.
 */
export function periodSeries(rule: Rule, start: number): WallSeries {
  const periods = periodsOf(rule, start)
  const times = timesOf(rule, start)
  if (!hasPosition(rule, periods.daysMax * times.size)) return { next: () => undefined }
  return {
    next: (after) => {
      const lower = Math.max(after, start - 1)
      for (let period = periods.from(dayOf(lower)); period <= periods.last;) {
        const days = periods.days(period)
        const found =
          rule.positions.length > 0
            ? firstOfPositions(days, times, rule.positions, lower)
            : firstOfDays(days, times, lower)
        if (found !== undefined) return found > HORIZON ? undefined : found
        period = days.length === 0 ? periods.after(period) : period + 1
      }
      return undefined
    },
  }
}

/** The times of a day, from the rule or else from its start. */
export function timesOf(rule: Pick<Rule, 'hours' | 'minutes' | 'seconds'>, start: number): TimesOfDay {
  const seconds = Math.floor(timeOf(start) / 1_000)
  const or = (values: readonly number[], value: number): readonly number[] => (values.length > 0 ? values : [value])
  return new TimesOfDay(
    or(rule.hours, Math.floor(seconds / 3_600)),
    or(rule.minutes, Math.floor(seconds / 60) % 60),
    or(rule.seconds, seconds % 60),
  )
}

function firstOfDays(days: readonly number[], times: TimesOfDay, lower: number): number | undefined {
  const today = dayOf(lower)
  for (const day of days) {
    if (day < today) continue
    const index = day === today ? times.indexAfter(timeOf(lower)) : 0
    if (index < times.size) return day * DAY_MS + times.at(index)
  }
  return undefined
}

/** BYSETPOS: selects the times of the period at these positions. The list of all times is never built. */
function firstOfPositions(
  days: readonly number[],
  times: TimesOfDay,
  positions: readonly number[],
  lower: number,
): number | undefined {
  const total = days.length * times.size
  let earliest: number | undefined
  for (const position of positions) {
    const index = position > 0 ? position - 1 : total + position
    const day = days[Math.floor(index / times.size)]
    if (index < 0 || day === undefined) continue
    const local = day * DAY_MS + times.at(index % times.size)
    if (local > lower && (earliest === undefined || local < earliest)) earliest = local
  }
  return earliest
}

function periodsOf(rule: Rule, start: number): Periods {
  switch (rule.frequency) {
    case 'YEARLY':
      return years(rule, start)
    case 'MONTHLY':
      return months(rule, start)
    case 'WEEKLY':
      return weeks(rule, start)
    default:
      return singleDays(rule, start)
  }
}

/** The neighbour of a missing day may be in the previous or the next period, so that one is checked as well. */
function numberFrom(distance: number, interval: number): number {
  return Math.max(0, Math.floor((distance - 1) / interval))
}

function years(rule: Rule, start: number): Periods {
  const begin = startOf(start)
  const daysIn = yearDays(rule, begin)
  const base = rule.weekNumbers.length > 0 ? yearOfWeeks(rule, start, daysIn) : begin.year
  return {
    from: (dayNo) => numberFrom(dateOf(dayNo).year - base, rule.interval),
    days: (period) => {
      const year = base + period * rule.interval
      const first = dayNumber(year, 1, 1)
      return daysIn(year).map((day) => first + day)
    },
    after: (period) => period + 1,
    last: Math.floor((YEAR_MAX + 1 - base) / rule.interval),
    daysMax: 371,
  }
}

/**
 * The year that counting starts from where weeks are selected. The first days of January may belong to the last week of
 * the previous year, and the last days of December to the first week of the next. Then it is that year, if the rule
 * selects a day there.
 */
function yearOfWeeks(rule: Rule, start: number, daysIn: (year: number) => readonly number[]): number {
  const { year } = startOf(start)
  const dayNo = dayOf(start)
  if (dayNo < firstWeekOf(year, rule.weekStart)) {
    return daysIn(year - 1).some((day) => day >= daysInYear(year - 1)) ? year - 1 : year
  }
  if (dayNo >= firstWeekOf(year + 1, rule.weekStart)) return daysIn(year + 1).length > 0 ? year + 1 : year
  return year
}

function months(rule: Rule, start: number): Periods {
  const begin = startOf(start)
  const daysIn = monthDays(rule, begin)
  const base = begin.year * 12 + begin.month - 1
  return {
    from: (dayNo) => {
      const { year, month } = dateOf(dayNo)
      return numberFrom(year * 12 + month - 1 - base, rule.interval)
    },
    days: (period) => {
      const index = base + period * rule.interval
      const [year, month] = [Math.floor(index / 12), (index % 12) + 1]
      const first = dayNumber(year, month, 1)
      return daysIn(year, month).map((day) => first + day)
    },
    after: (period) => period + 1,
    last: Math.floor((YEAR_MAX * 12 + 12 - base) / rule.interval),
    daysMax: 31,
  }
}

function weeks(rule: Rule, start: number): Periods {
  const begin = startOf(start)
  const daysIn = weekDays(rule, begin)
  const base = dayOf(start) - ((begin.weekday - rule.weekStart + 7) % 7)
  const lengthDays = rule.interval * 7
  return {
    from: (dayNo) => Math.max(0, Math.floor((dayNo - base) / lengthDays)),
    days: (period) => {
      const first = base + period * lengthDays
      return daysIn(first).map((day) => first + day)
    },
    after: (period) => period + 1,
    last: Math.floor((dayOf(HORIZON) - base) / lengthDays),
    daysMax: Math.max(1, rule.days.length),
  }
}

function singleDays(rule: Rule, start: number): Periods {
  const base = dayOf(start)
  const last = dayOf(HORIZON)
  return {
    from: (dayNo) => Math.max(0, Math.floor((dayNo - base) / rule.interval)),
    days: (period) => {
      const dayNo = base + period * rule.interval
      return nextAllowedDay(rule, dayNo, dayNo) === undefined ? [] : [dayNo]
    },
    after: (period) => {
      const next = nextAllowedDay(rule, base + (period + 1) * rule.interval, last)
      return next === undefined ? Infinity : Math.ceil((next - base) / rule.interval)
    },
    last: Math.floor((last - base) / rule.interval),
    daysMax: 1,
  }
}
