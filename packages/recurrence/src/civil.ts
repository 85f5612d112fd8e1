import { DAY_MS } from '@impresario/protocol'

/**
 * Dates of the proleptic Gregorian calendar as whole numbers: days are counted from 1970-01-01.
 * Nothing here knows time zones, so every day has the same length.
 */
export interface CivilDate {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  /** 1 to 31. */
  readonly day: number
}

/** The Gregorian calendar repeats after 400 years, weekdays included: 146,097 days are 20,871 weeks. */
export const ERA_DAYS = 146_097
/** From the first of March of the year 0. */
const DAYS_TO_1970 = 719_468

/** Dates beyond this cannot be written with four digits. */
export const YEAR_MIN = 1
export const YEAR_MAX = 9_999

/** Years begin in March here: the leap day is then the last of its year, and months follow a rule of 153 days in five. */
export function dayNumber(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * ERA_DAYS + dayOfEra - DAYS_TO_1970
}

export function dateOf(dayNo: number): CivilDate {
  const shifted = dayNo + DAYS_TO_1970
  const era = Math.floor(shifted / ERA_DAYS)
  const dayOfEra = shifted - era * ERA_DAYS
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  }
}

/** 1 for Monday to 7 for Sunday. The first day of 1970 was a Thursday. */
export function weekdayOf(dayNo: number): number {
  return ((((dayNo + 3) % 7) + 7) % 7) + 1
}

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

export function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : (MONTH_DAYS[month - 1] ?? 0)
}

export function daysInYear(year: number): number {
  return isLeapYear(year) ? 366 : 365
}

/** The last moment that anything here is computed for, as a local time. */
export const HORIZON = dayNumber(YEAR_MAX + 1, 1, 1) * DAY_MS - 1

/** The day that a local time lies in. */
export function dayOf(local: number): number {
  return Math.floor(local / DAY_MS)
}

/** Milliseconds since the beginning of its day. */
export function timeOf(local: number): number {
  return local - dayOf(local) * DAY_MS
}
