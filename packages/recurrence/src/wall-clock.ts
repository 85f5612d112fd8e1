import { DAY_MS } from '@impresario/protocol'
import type { Occurrence, Series } from './series.ts'
import type { Gap, Stretch, Zone } from './zone.ts'

/** Local times in order, as if clocks were never put forward or back. */
export interface WallSeries {
  /** The first local time later than `after`; nothing if there is none. */
  next(after: number): number | undefined
}

/** How clock changes are taken. */
export interface ClockRules {
  readonly gap: Gap
  /** A local time that comes twice: at the first of the two only, or at both. */
  readonly fold: 'first' | 'both'
}

/** So many clock changes in a row that leave out all that was asked for mean that it never happens. */
const FRUITLESS_MAX = 128
/** No zone has ever been so far from UTC. */
const OFFSET_MAX_MS = DAY_MS

/**
 * Puts local times on the clock of a zone.
 *
 * Goes over the stretches in which the clock goes evenly. In each, local times and instants differ by a number. What is
 * left out at its beginning is added there, if the rules say so; what is repeated there is left out, if they say so.
 */
export function onClock(series: WallSeries, zone: Zone, rules: ClockRules): Series {
  return {
    next: (after) => {
      let lower = after === Number.NEGATIVE_INFINITY ? firstGuess(series) : after
      if (lower === undefined) return undefined
      for (let round = 0; round < FRUITLESS_MAX; round += 1) {
        const stretch: Stretch = zone.stretchAt(lower + 1)
        const local = series.next(lowerLocal(stretch, lower, rules))
        const regular = local === undefined ? undefined : { at: local - stretch.offsetMs, local }
        const inGap = occurrenceInGap(series, stretch, lower, rules.gap)
        const found = inGap === undefined || (regular !== undefined && regular.at <= inGap.at) ? regular : inGap
        if (found !== undefined && found.at < stretch.to) return found
        if (local === undefined) return undefined
        // Nothing comes before `local`, so there is nothing to look at in between.
        lower = Math.max(stretch.to - 1, local - OFFSET_MAX_MS)
      }
      return undefined
    },
  }
}

function firstGuess(series: WallSeries): number | undefined {
  const first = series.next(Number.NEGATIVE_INFINITY)
  return first === undefined ? undefined : first - OFFSET_MAX_MS
}

/** The local time after which something may happen in this stretch. */
function lowerLocal({ from, offsetMs, offsetBeforeMs }: Stretch, lower: number, { fold }: ClockRules): number {
  const shown = lower + offsetMs
  return fold === 'first' && offsetBeforeMs > offsetMs ? Math.max(shown, from + offsetBeforeMs - 1) : shown
}

/** What was asked for in the time that the clock jumped over at the beginning of this stretch. */
function occurrenceInGap(series: WallSeries, stretch: Stretch, lower: number, gap: Gap): Occurrence | undefined {
  const { from, offsetMs, offsetBeforeMs } = stretch
  if (gap === 'drop' || offsetBeforeMs >= offsetMs) return undefined
  if (gap === 'first' && from <= lower) return undefined
  const begin = from + offsetBeforeMs - 1
  const local = series.next(gap === 'first' ? begin : Math.max(begin, lower + offsetBeforeMs))
  if (local === undefined || local >= from + offsetMs) return undefined
  return { at: gap === 'first' ? from : local - offsetBeforeMs, local }
}

/** The local times that clock changes in (after, upTo] leave out, at most `max`: what `drop` drops. */
export function droppedBetween(
  series: WallSeries,
  zone: Zone,
  { after, upTo, max }: { readonly after: number; readonly upTo: number; readonly max: number },
): readonly Occurrence[] {
  const dropped: Occurrence[] = []
  for (let stretch = zone.stretchAt(after); stretch.to <= upTo && dropped.length < max;) {
    stretch = zone.stretchAt(stretch.to)
    let lower = stretch.from - 1
    while (dropped.length < max) {
      const found = occurrenceInGap(series, stretch, lower, 'shift')
      if (found === undefined) break
      dropped.push(found)
      lower = found.at
    }
  }
  return dropped
}
