import { DAY_MS } from '@impresario/protocol'

/**
 * The calendar that people write schedules in (proleptic Gregorian), as whole numbers: days are counted from 1970-01-01.
 * Nothing here knows of time zones, so every day has the same length.
 */
export interface CivilDate {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  /** 1 to 31. */
  readonly day: number
}

/** Years begin in March here: the leap day is then the last of its year, and months follow a rule of 153 days in five. */
export function dayNumber({ year, month, day }: CivilDate): number {
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * DAYS_PER_ERA + dayOfEra - DAYS_TO_1970
}

export function dateOf(dayNo: number): CivilDate {
  const shifted = dayNo + DAYS_TO_1970
  const era = Math.floor(shifted / DAYS_PER_ERA)
  const dayOfEra = shifted - era * DAYS_PER_ERA
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

const DAYS_PER_ERA = 146_097
/** From the first of March of the year 0. */
const DAYS_TO_1970 = 719_468

/** 1 for Monday to 7 for Sunday. The first day of 1970 was a Thursday. */
export function weekdayOf(dayNo: number): number {
  return ((((dayNo + 3) % 7) + 7) % 7) + 1
}

export function daysInMonth({ year, month }: Pick<CivilDate, 'year' | 'month'>): number {
  const next = month === 12 ? { year: year + 1, month: 1, day: 1 } : { year, month: month + 1, day: 1 }
  return dayNumber(next) - dayNumber({ year, month, day: 1 })
}

/** An instant for people and programs, such as `2026-03-29T01:00:00Z`. */
export function isoInstant(at: number): string {
  const dayNo = Math.floor(at / DAY_MS)
  const seconds = Math.floor((at - dayNo * DAY_MS) / 1_000)
  const { year, month, day } = dateOf(dayNo)
  const time = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60].map(twoDigits).join(':')
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}T${time}Z`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}
