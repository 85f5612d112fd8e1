import { HORIZON } from '../civil.ts'
import type { Occurrence, Series } from '../series.ts'
import type { Calendar } from './calendar.ts'

/** Calendars that have a say in when something happens. */
export interface Restriction {
  /** Nothing happens at their times. */
  readonly exclude: readonly Calendar[]
  /** It happens only at times that each of them has. */
  readonly only: readonly Calendar[]
}

export const UNRESTRICTED: Restriction = { exclude: [], only: [] }

/** Why an occurrence does not happen. */
export interface Exclusion {
  readonly calendar: string
  /** What the calendar has then: the name of a holiday, for example. Nothing where it has no time of its own. */
  readonly label: string | undefined
  /** Nothing else happens before this instant for the same reason. */
  readonly until: number
}

/** Why an occurrence does not happen; nothing if it does. */
export function exclusionOf({ exclude, only }: Restriction, at: number): Exclusion | undefined {
  for (const calendar of exclude) {
    const span = calendar.at(at)
    if (span !== undefined) return { calendar: calendar.name, label: span.label, until: span.to }
  }
  for (const calendar of only) {
    if (calendar.at(at) === undefined) {
      return { calendar: calendar.name, label: undefined, until: calendar.next(at) ?? HORIZON }
    }
  }
  return undefined
}

/** After so many exclusions in a row the series is at its end: no real calendar leaves out five years of days. */
const EXCLUSIONS_MAX = 2_000

/** A series without what calendars leave out. It goes from the end of an exclusion on, not over all that lies in it. */
export function restricted(series: Series, restriction: Restriction): Series {
  if (restriction.exclude.length + restriction.only.length === 0) return series
  return {
    next: (after) => {
      let lower = after
      for (let count = 0; count < EXCLUSIONS_MAX; count += 1) {
        const next: Occurrence | undefined = series.next(lower)
        if (next === undefined) return undefined
        const exclusion = exclusionOf(restriction, next.at)
        if (exclusion === undefined) return next
        lower = Math.max(next.at, exclusion.until - 1)
      }
      return undefined
    },
  }
}
