import { dayNumber, daysInMonth, weekdayOf } from '../civil.ts'

/** Which days of a month match, and how the two day fields are combined. */
export interface DayRules {
  readonly months: readonly number[]
  readonly daysOfMonth: readonly number[]
  /** Days before the last day of the month: `L` is 0 and `L-3` is 3. */
  readonly fromLast: readonly number[]
  /** `15W`: the weekday (Monday to Friday) that is nearest to that day, in the same month. */
  readonly nearestWeekday: readonly number[]
  /** `LW`. */
  readonly hasLastWeekday: boolean
  /** 0 is Sunday. */
  readonly weekdays: readonly number[]
  /** `5#3`, the third Friday. */
  readonly nthWeekdays: readonly { readonly weekday: number; readonly nth: number }[]
  /** `5L`, the last Friday. */
  readonly lastWeekdays: readonly number[]
  /** Both fields restrict days: a day that either of them names matches. Otherwise both must agree. */
  readonly isEither: boolean
}

/** The matching days of a month as bits: bit 1 is the first. */
function matchingDays(rules: DayRules, length: number, firstWeekday: number): number {
  const byDate = bitsOf(daysByDate(rules, length, firstWeekday), length)
  const byWeekday = bitsOf(daysByWeekday(rules, length, firstWeekday), length)
  return rules.isEither ? byDate | byWeekday : byDate & byWeekday
}

function bitsOf(days: readonly number[], length: number): number {
  return days.reduce((bits, day) => (day >= 1 && day <= length ? bits | (1 << day) : bits), 0)
}

/** The matching days of months, computed once for each of the 28 combinations of length and first weekday. */
export function daysOfMonths(rules: DayRules): (year: number, month: number) => number {
  const known = new Map<number, number>()
  return (year, month) => {
    if (!rules.months.includes(month)) return 0
    const length = daysInMonth(year, month)
    const firstWeekday = weekdayOf(dayNumber(year, month, 1)) % 7
    const kind = length * 7 + firstWeekday
    const bits = known.get(kind) ?? matchingDays(rules, length, firstWeekday)
    known.set(kind, bits)
    return bits
  }
}

/** Whether any month of any year has a matching day. */
export function hasAnyDay(rules: DayRules): boolean {
  const matching = daysOfMonths(rules)
  // 28 years of the 2000s have every weekday with every length of every month.
  for (let year = 2_000; year < 2_028; year += 1) {
    for (const month of rules.months) if (matching(year, month) !== 0) return true
  }
  return false
}

function daysByDate(rules: DayRules, length: number, firstWeekday: number): readonly number[] {
  const near = rules.nearestWeekday.filter((day) => day <= length)
  return [
    ...rules.daysOfMonth,
    ...rules.fromLast.map((back) => length - back),
    ...[...near, ...(rules.hasLastWeekday ? [length] : [])].map((day) => nearestWeekday(day, length, firstWeekday)),
  ]
}

function daysByWeekday(rules: DayRules, length: number, firstWeekday: number): readonly number[] {
  const firstOf = (weekday: number): number => 1 + ((weekday - firstWeekday + 7) % 7)
  return [
    ...rules.weekdays.map(firstOf).flatMap((first) => [0, 7, 14, 21, 28].map((days) => first + days)),
    ...rules.nthWeekdays.map(({ weekday, nth }) => firstOf(weekday) + (nth - 1) * 7),
    ...rules.lastWeekdays.map(firstOf).map((first) => first + Math.floor((length - first) / 7) * 7),
  ]
}

/** Saturday moves to Friday and Sunday to Monday, unless that is in another month. */
function nearestWeekday(day: number, length: number, firstWeekday: number): number {
  const weekday = (firstWeekday + day - 1) % 7
  if (weekday === 6) return day === 1 ? 3 : day - 1
  if (weekday === 0) return day === length ? day - 2 : day + 1
  return day
}
