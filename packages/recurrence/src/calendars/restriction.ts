import { HORIZON } from '../civil.ts'
import type { Occurrence, Series } from '../series.ts'
import type { Calendar } from './calendar.ts'

/** Calendars that restrict when something happens. */
export interface Restriction {
  /** Nothing happens during their periods. */
  readonly exclude: readonly Calendar[]
  /** It happens only during periods that all of them have. */
  readonly only: readonly Calendar[]
}

export const UNRESTRICTED: Restriction = { exclude: [], only: [] }

/** Why an occurrence does not happen. */
export interface Exclusion {
  readonly calendar: string
  /** The label of the calendar's period: the name of a holiday, for example. `undefined` if it has no period then. */
  readonly label: string | undefined
  /** The same reason excludes everything before this instant. */
  readonly until: number
}

/** Why an occurrence does not happen; `undefined` if it does. */
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

/** After this many exclusions in a row the series counts as finished: no real calendar excludes five years of days. */
const EXCLUSIONS_MAX = 2_000

/**
 * A series without the occurrences that calendars exclude. It continues from the end of an exclusion instead of
 * stepping through it.
 */
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
