import { HOUR_MS, MINUTE_MS, SECOND_MS } from '@impresario/protocol'
import { cronClockRules, cronWallSeries } from './cron/cron.ts'
import { parseCron } from './cron/expression.ts'
import { cronInWords } from './cron/words.ts'
import { isoLocal } from './moment.ts'
import { onceSeries, parseOnce } from './once.ts'
import { refusal } from './refusal.ts'
import { recurrence } from './rrule/recurrence.ts'
import type { RecurrenceSpec } from './rrule/recurrence.ts'
import { ruleInWords } from './rrule/words.ts'
import { every } from './series.ts'
import type { Occurrence, Series } from './series.ts'
import { droppedBetween, onClock } from './wall-clock.ts'
import type { WallSeries } from './wall-clock.ts'
import { capitalised, everyUnit } from './words.ts'
import type { Gap, Zone, Zones } from './zone.ts'

/** When something is to happen, in the form given by the user. */
export type TriggerSpec =
  | { readonly kind: 'cron'; readonly cron: string; readonly timezone: string; readonly gap?: Gap | undefined }
  | (RecurrenceSpec & {
      readonly kind: 'rrule'
      readonly rrule: string
      readonly timezone: string
      readonly gap?: Gap | undefined
    })
  | { readonly kind: 'once'; readonly at: string; readonly timezone: string }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: number; readonly timezone: string }

/** A parsed trigger. */
export interface Trigger {
  readonly kind: TriggerSpec['kind']
  readonly zone: Zone
  readonly series: Series
  /** In words, with the name of the zone. */
  readonly words: string
  /** The local times in (after, upTo] that clock changes skip and that are therefore dropped. */
  dropped(range: Range): readonly Occurrence[]
  /** The occurrences in (after, upTo] that EXDATE leaves out. */
  excluded(range: Range): readonly Occurrence[]
}

interface Range {
  readonly after: number
  readonly upTo: number
  readonly max: number
}

/** Parses a trigger. An error says where it is wrong and why. */
export function trigger(spec: TriggerSpec, zones: Zones): Trigger {
  const zone = zones.named(spec.timezone)
  switch (spec.kind) {
    case 'cron': {
      const expression = parseCron(spec.cron)
      const wall = cronWallSeries(expression)
      const rules = cronClockRules(expression, spec.gap)
      const series = onClock(wall, zone, rules)
      // Open hours do not fire in a gap, and no run is lost there.
      const lost = rules.fold === 'first' && rules.gap === 'drop' ? wall : undefined
      return made(spec.kind, zone, { series, words: () => cronInWords(expression), lost })
    }
    case 'rrule': {
      const { series, rule, start, wall, isExcluded, whole } = recurrence(spec, zone, { gap: spec.gap })
      const words = (): string =>
        [
          ...(rule === undefined ? [] : [ruleInWords(rule, start)]),
          ...changes(spec.exdates?.length ?? 0, 'left out'),
          ...changes(spec.rdates?.length ?? 0, 'added'),
        ].join(', ')
      const lost = (spec.gap ?? 'drop') === 'drop' ? wall : undefined
      return made(spec.kind, zone, { series, words, lost, isExcluded, whole })
    }
    case 'once': {
      const occurrence = parseOnce(spec.at, zone)
      const words = (): string => `Once at ${isoLocal(occurrence.local).replace('T', ' ')}`
      return made(spec.kind, zone, { series: onceSeries(occurrence), words })
    }
    case 'every':
      return made(spec.kind, zone, everyTrigger(spec.everyMs, spec.anchor))
  }
}

function changes(count: number, what: string): readonly string[] {
  return count === 0 ? [] : [`${count} time${count === 1 ? '' : 's'} ${what}`]
}

function everyTrigger(everyMs: number, anchor: number): Parts {
  if (!Number.isSafeInteger(everyMs) || everyMs < 1_000) {
    throw refusal('every', 'An interval is a whole number of milliseconds and at least one second.')
  }
  return { series: every(everyMs, anchor), words: () => interval(everyMs) }
}

const UNITS = [
  [HOUR_MS, 'hour'],
  [MINUTE_MS, 'minute'],
  [SECOND_MS, 'second'],
] as const

/** In the largest unit that fits. No days: a day is not always 24 hours. */
function interval(everyMs: number): string {
  const [ms, unit] = UNITS.find(([length]) => everyMs % length === 0) ?? [SECOND_MS, 'second']
  return capitalised(everyUnit(everyMs / ms, unit))
}

interface Parts {
  readonly series: Series
  /** Built on request: few of a hundred thousand triggers are ever displayed. */
  readonly words: () => string
  /** Where times are dropped at clock changes. */
  readonly lost?: WallSeries | undefined
  readonly isExcluded?: ((occurrence: Occurrence) => boolean) | undefined
  /** With what is excluded. */
  readonly whole?: Series | undefined
}

function made(kind: TriggerSpec['kind'], zone: Zone, { series, words, lost, isExcluded, whole }: Parts): Trigger {
  return {
    kind,
    zone,
    series,
    get words() {
      return `${words()}, ${zone.name}`
    },
    dropped: (range) => {
      const all = lost === undefined ? [] : droppedBetween(lost, zone, range)
      return isExcluded === undefined ? all : all.filter((occurrence) => !isExcluded(occurrence))
    },
    excluded: (range) => (whole === undefined || isExcluded === undefined ? [] : excludedIn(whole, isExcluded, range)),
  }
}

/** A rule may have thousands of occurrences on a day that is left out. */
const LOOKS_MAX = 5_000

function excludedIn(
  whole: Series,
  isExcluded: (occurrence: Occurrence) => boolean,
  { after, upTo, max }: Range,
): readonly Occurrence[] {
  const found: Occurrence[] = []
  let last = after
  for (let looks = 0; looks < LOOKS_MAX && found.length < max; looks += 1) {
    const next = whole.next(last)
    if (next === undefined || next.at > upTo) break
    last = next.at
    if (isExcluded(next)) found.push(next)
  }
  return found
}
