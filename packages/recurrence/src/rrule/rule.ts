import type { Moment } from '../moment.ts'

/** From the longest period to the shortest. */
export const FREQUENCIES = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY', 'SECONDLY'] as const

export type Frequency = (typeof FREQUENCIES)[number]

/** `-1FR`: the last Friday. An ordinal of 0 means each. Weekdays go from 1 (Monday) to 7. */
export interface ByDay {
  readonly ordinal: number
  readonly weekday: number
}

/**
 * How to replace a day that a month or year does not have (RFC 7529): not at all, by the day before, by the day after.
 */
export type Skip = 'OMIT' | 'BACKWARD' | 'FORWARD'

/** A parsed and validated recurrence rule of RFC 5545. Lists are in ascending order; an empty list was not given. */
export interface Rule {
  readonly text: string
  readonly frequency: Frequency
  readonly interval: number
  readonly count: number | undefined
  readonly until: Moment | undefined
  readonly months: readonly number[]
  readonly weekNumbers: readonly number[]
  readonly yearDays: readonly number[]
  readonly monthDays: readonly number[]
  readonly days: readonly ByDay[]
  readonly hours: readonly number[]
  readonly minutes: readonly number[]
  readonly seconds: readonly number[]
  readonly positions: readonly number[]
  readonly weekStart: number
  readonly skip: Skip
}
