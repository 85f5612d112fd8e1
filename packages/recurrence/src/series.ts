/** One time of a series. */
export interface Occurrence {
  /** When it happens. */
  readonly at: number
  /** The local time that the rule asks for. In a gap it differs from the local time at `at`. */
  readonly local: number
}

/** Ordered times, infinite or finite. The cost of a query does not depend on the position. */
export interface Series {
  /** The first occurrence later than `after`; `undefined` if there is none. */
  next(after: number): Occurrence | undefined
}

/** Earlier than everything. */
export const BEGINNING = Number.NEGATIVE_INFINITY

/** At most `count` occurrences later than `after`, in order. */
export function occurrencesAfter(series: Series, after: number, count: number): readonly Occurrence[] {
  const found: Occurrence[] = []
  let last = after
  while (found.length < count) {
    const occurrence = series.next(last)
    if (occurrence === undefined) break
    found.push(occurrence)
    last = occurrence.at
  }
  return found
}

/** All occurrences in (after, upTo], but at most `max`. */
export function occurrencesBetween(series: Series, after: number, upTo: number, max: number): readonly Occurrence[] {
  const found: Occurrence[] = []
  let last = after
  while (found.length < max) {
    const occurrence = series.next(last)
    if (occurrence === undefined || occurrence.at > upTo) break
    found.push(occurrence)
    last = occurrence.at
  }
  return found
}

/**
 * The last occurrence in (after, upTo]. A series can only compute the next occurrence, so the position is found by
 * binary search: some forty queries, however many occurrences there are.
 */
export function lastOccurrence(series: Series, after: number, upTo: number): Occurrence | undefined {
  let found = series.next(after)
  if (found === undefined || found.at > upTo) return undefined
  let [low, high] = [found.at, upTo]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    // Queried from just before, so that an occurrence at `middle` itself counts as well.
    const next = series.next(middle - 1)
    if (next === undefined || next.at > upTo) {
      high = middle - 1
    } else {
      found = next
      low = next.at
    }
  }
  return found
}

/** The union of these series. Occurrences at the same time count once. */
export function anyOf(all: readonly Series[]): Series {
  return {
    next: (after) => {
      let earliest: Occurrence | undefined
      for (const series of all) {
        const next = series.next(after)
        if (next !== undefined && (earliest === undefined || next.at < earliest.at)) earliest = next
      }
      return earliest
    },
  }
}

/** Fires at a fixed interval in milliseconds, counted from `anchor`, which is the first. */
export function every(everyMs: number, anchor: number): Series {
  return {
    next: (after) => {
      const at = after < anchor ? anchor : anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs
      return { at, local: at }
    },
  }
}
