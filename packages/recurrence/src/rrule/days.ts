import { DAY_MS } from '@impresario/protocol'
import { ERA_DAYS, dateOf, dayNumber, daysInMonth, daysInYear, isLeapYear, weekdayOf } from '../civil.ts'
import type { Rule, Skip } from './rule.ts'

/** The days of a period that a rule selects, in ascending order, as offsets from the period's first day. */
type Days = readonly number[]

const WEEK: Days = [0, 1, 2, 3, 4, 5, 6]

/** Parts that the rule does not contain are taken from its start. */
export interface Start {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly weekday: number
}

export function startOf(local: number): Start {
  const dayNo = Math.floor(local / DAY_MS)
  return { ...dateOf(dayNo), weekday: weekdayOf(dayNo) }
}

/**
 * The days of a year. A year with weeks is the year that its weeks belong to: it may begin up to three days earlier and
 * end up to three days later. Years with the same first weekday, the same length and the same neighbours have the same
 * days, so each kind is computed once.
 */
export function yearDays(rule: Rule, start: Start): (year: number) => Days {
  const known = new Map<number, Days>()
  return (year) => {
    const leaps = [year - 1, year, year + 1].reduce((bits, one) => bits * 2 + (isLeapYear(one) ? 1 : 0), 0)
    const kind = weekdayOf(dayNumber(year, 1, 1)) * 8 + leaps
    const days = known.get(kind) ?? expandYear(rule, start, year)
    known.set(kind, days)
    return days
  }
}

function expandYear(rule: Rule, start: Start, year: number): Days {
  const first = dayNumber(year, 1, 1)
  if (rule.weekNumbers.length > 0) {
    return ascending(daysOfWeeks(rule, start, year).filter((day) => isAllowedDay(rule, first + day)))
  }
  const hasDay = rule.yearDays.length + rule.monthDays.length + rule.days.length > 0
  const isByMonthDay = rule.monthDays.length > 0 || !hasDay
  const sets: Days[] = []
  if (rule.yearDays.length > 0) {
    sets.push(rule.yearDays.flatMap((yearDay) => place(yearDay, daysInYear(year), rule.skip)))
  }
  if (isByMonthDay) sets.push(daysOfMonths(rule, start, year, hasDay))
  const all = sets[0] ?? Array.from({ length: daysInYear(year) }, (_, index) => index)
  const chosen = all.filter((day) => sets.every((set) => set.includes(day)))
  // Where days of months are selected, months have been selected before: the neighbour of a missing day may be in
  // another month.
  const inMonth = isByMonthDay ? chosen : chosen.filter(isInMonths(rule, first))
  return ascending(inMonth.filter((day) => isOnDay(rule, first + day, year)))
}

function isInMonths({ months }: Rule, first: number): (day: number) => boolean {
  return (day) => months.length === 0 || months.includes(dateOf(first + day).month)
}

/** BYMONTHDAY in each month, or the day of the start in its month. */
function daysOfMonths(rule: Rule, start: Start, year: number, hasDay: boolean): Days {
  const wanted = hasDay ? rule.monthDays : [start.day]
  const allMonths = hasDay ? Array.from({ length: 12 }, (_, index) => index + 1) : [start.month]
  const first = dayNumber(year, 1, 1)
  return (rule.months.length > 0 ? rule.months : allMonths).flatMap((month) => {
    const offset = dayNumber(year, month, 1) - first
    const length = daysInMonth(year, month)
    return wanted.flatMap((day) => place(day, length, rule.skip)).map((day) => offset + day)
  })
}

/**
 * The position of the n-th day of a month or year, from 0; negative numbers count from its end. A day that does not
 * exist is left out, or replaced by its neighbour, which may be outside.
 */
function place(nth: number, length: number, skip: Skip): Days {
  if (Math.abs(nth) <= length) return [nth > 0 ? nth - 1 : length + nth]
  if (skip === 'OMIT') return []
  if (nth > 0) return [skip === 'FORWARD' ? length : length - 1]
  return [skip === 'FORWARD' ? 0 : -1]
}

/**
 * All days of the weeks, or the weekday of the start if no other part selects days. The first week of a year is the
 * first one with at least four of its days.
 */
function daysOfWeeks(rule: Rule, start: Start, year: number): Days {
  const firstWeek = firstWeekOf(year, rule.weekStart)
  const count = (firstWeekOf(year + 1, rule.weekStart) - firstWeek) / 7
  const offset = firstWeek - dayNumber(year, 1, 1)
  const isWhole = rule.days.length + rule.yearDays.length + rule.monthDays.length > 0
  const onlyDay = (start.weekday - rule.weekStart + 7) % 7
  return rule.weekNumbers
    .map((week) => (week > 0 ? week - 1 : count + week))
    .filter((week) => week >= 0 && week < count)
    .flatMap((week) => (isWhole ? WEEK : [onlyDay]).map((day) => offset + week * 7 + day))
}

/** The day on which the first week of a year begins. */
export function firstWeekOf(year: number, weekStart: number): number {
  const fourth = dayNumber(year, 1, 4)
  return fourth - ((weekdayOf(fourth) - weekStart + 7) % 7)
}

/** Whether BYDAY names this day: each of a weekday, or the n-th of the month or year. */
function isOnDay(rule: Rule, dayNo: number, year: number): boolean {
  if (rule.days.length === 0) return true
  const weekday = weekdayOf(dayNo)
  const isMonthly = rule.frequency === 'MONTHLY' || rule.months.length > 0
  const date = dateOf(dayNo)
  const [first, length] = isMonthly
    ? [dayNo - date.day + 1, daysInMonth(date.year, date.month)]
    : [dayNumber(year, 1, 1), daysInYear(year)]
  return rule.days.some((by) => {
    if (by.weekday !== weekday) return false
    const index = dayNo - first
    if (by.ordinal > 0) return Math.floor(index / 7) + 1 === by.ordinal
    return by.ordinal === 0 || Math.floor((length - 1 - index) / 7) + 1 === -by.ordinal
  })
}

/** The days of a month, computed once for each of the 28 kinds of months. */
export function monthDays(rule: Rule, start: Start): (year: number, month: number) => Days {
  const known = new Map<number, Days>()
  return (year, month) => {
    if (rule.months.length > 0 && !rule.months.includes(month)) return []
    const kind = weekdayOf(dayNumber(year, month, 1)) * 32 + daysInMonth(year, month)
    const days = known.get(kind) ?? expandMonth(rule, start, year, month)
    known.set(kind, days)
    return days
  }
}

function expandMonth(rule: Rule, start: Start, year: number, month: number): Days {
  const first = dayNumber(year, month, 1)
  const length = daysInMonth(year, month)
  const hasDay = rule.monthDays.length + rule.days.length > 0
  const byMonthDay = (hasDay ? rule.monthDays : [start.day]).flatMap((day) => place(day, length, rule.skip))
  const all = rule.monthDays.length > 0 || !hasDay ? byMonthDay : Array.from({ length }, (_, index) => index)
  return ascending(all.filter((day) => isOnDay(rule, first + day, year)))
}

/** The days of a week, from the day on which it begins. */
export function weekDays(rule: Rule, start: Start): (firstDayNo: number) => Days {
  const weekdays = rule.days.length > 0 ? rule.days.map(({ weekday }) => weekday) : [start.weekday]
  const all = ascending(weekdays.map((weekday) => (weekday - rule.weekStart + 7) % 7))
  if (rule.months.length === 0) return () => all
  return (firstDayNo) => all.filter((day) => rule.months.includes(dateOf(firstDayNo + day).month))
}

/** Whether the parts that select days allow a single day, for daily and shorter frequencies. */
function isAllowedDay(rule: Rule, dayNo: number): boolean {
  if (rule.days.length > 0 && !rule.days.some(({ weekday }) => weekday === weekdayOf(dayNo))) return false
  if (rule.months.length + rule.monthDays.length + rule.yearDays.length === 0) return true
  const { year, month, day } = dateOf(dayNo)
  if (rule.months.length > 0 && !rule.months.includes(month)) return false
  if (rule.monthDays.length > 0) {
    const fromEnd = day - daysInMonth(year, month) - 1
    if (!rule.monthDays.includes(day) && !rule.monthDays.includes(fromEnd)) return false
  }
  if (rule.yearDays.length === 0) return true
  const yearDay = dayNo - dayNumber(year, 1, 1) + 1
  return rule.yearDays.includes(yearDay) || rule.yearDays.includes(yearDay - daysInYear(year) - 1)
}

/**
 * The first allowed day from here on; `undefined` if there is none up to `last`. 400 years contain every combination of
 * date and weekday.
 */
export function nextAllowedDay(rule: Rule, from: number, last: number): number | undefined {
  const end = Math.min(last, from + ERA_DAYS)
  for (let dayNo = from; dayNo <= end;) {
    if (isAllowedDay(rule, dayNo)) return dayNo
    dayNo = rule.months.length > 0 ? firstOfNextMonth(rule, dayNo) : dayNo + 1
  }
  return undefined
}

/** The next day, or the beginning of the next month that counts. */
function firstOfNextMonth({ months }: Rule, dayNo: number): number {
  const date = dateOf(dayNo)
  if (months.includes(date.month)) return dayNo + 1
  const month = months.find((candidate) => candidate > date.month)
  return month === undefined ? dayNumber(date.year + 1, months[0] ?? 1, 1) : dayNumber(date.year, month, 1)
}

/** Whether BYSETPOS can select anything from this many times in a period. */
export function hasPosition({ positions }: Rule, size: number): boolean {
  return positions.length === 0 || positions.some((position) => Math.abs(position) <= size)
}

function ascending(days: Days): Days {
  return [...new Set(days)].sort((a, b) => a - b)
}
