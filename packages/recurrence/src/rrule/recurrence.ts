import { DAY_MS } from '@impresario/protocol'
import { HORIZON, dayOf } from '../civil.ts'
import { parseMoment } from '../moment.ts'
import type { Moment } from '../moment.ts'
import { refusal } from '../refusal.ts'
import type { Occurrence, Series } from '../series.ts'
import { onClock } from '../wall-clock.ts'
import type { WallSeries } from '../wall-clock.ts'
import type { Gap, Zone } from '../zone.ts'
import { elapsedSeries } from './elapsed.ts'
import { parseRule } from './parse.ts'
import { periodSeries } from './periods.ts'
import type { Rule } from './rule.ts'
import { LIMITS } from '../limits.ts'

export interface RecurrenceSpec {
  /** The value of an RRULE; without one there are only `rdates`. */
  readonly rrule?: string | undefined
  /** DTSTART: the local time at which the series begins, or a time with an offset. */
  readonly dtstart: string
  /** Times, or whole days, that are left out. */
  readonly exdates?: readonly string[] | undefined
  /** Times that are added. */
  readonly rdates?: readonly string[] | undefined
}

export interface RecurrenceOptions {
  /** How to handle local times that a clock change skips; `drop` by default. */
  readonly gap?: Gap | undefined
  /** DTSTART is a date: times of day in the rule are ignored, as RFC 5545 requires. */
  readonly isDate?: boolean | undefined
}

/** A series of RFC 5545 in a zone. */
export interface Recurrence {
  readonly rule: Rule | undefined
  /** The local time of DTSTART. */
  readonly start: number
  readonly series: Series
  /** The local times of the rule before they are mapped to instants; `undefined` for rules that count real time. */
  readonly wall: WallSeries | undefined
  /** Whether an occurrence of the rule is left out. */
  readonly isExcluded: (occurrence: Occurrence) => boolean
  /** The same series with what EXDATE leaves out; `undefined` if there is no EXDATE. */
  readonly whole: Series | undefined
}

export function recurrence(spec: RecurrenceSpec, zone: Zone, options: RecurrenceOptions = {}): Recurrence {
  const start = localOf(parseMoment('dtstart', spec.dtstart), zone)
  const parsed = spec.rrule === undefined ? undefined : parseRule(spec.rrule)
  const rule = parsed !== undefined && options.isDate === true ? withoutTimes(parsed) : parsed
  const exclusions = exclusionsOf(spec.exdates ?? [], zone)
  const added = additionsOf(spec.rdates ?? [], zone)
  const isElapsed = rule !== undefined && ['HOURLY', 'MINUTELY', 'SECONDLY'].includes(rule.frequency)
  const wall = rule === undefined || isElapsed ? undefined : periodSeries(rule, start)
  const series = rule === undefined ? undefined : ruleSeries(rule, zone, start, { wall, gap: options.gap ?? 'drop' })
  return {
    rule,
    start,
    wall,
    isExcluded: (occurrence) => exclusions.excludes(occurrence) !== undefined,
    series: { next: (after) => nextOfSet({ series, added, exclusions }, after) },
    whole:
      exclusions.size === 0 ? undefined : { next: (after) => nextOfSet({ series, added, exclusions: NOTHING }, after) },
  }
}

function localOf(moment: Moment, zone: Zone): number {
  switch (moment.kind) {
    case 'instant':
      return wholeSecond(zone.localOf(moment.at))
    case 'local':
      return wholeSecond(moment.local)
    case 'date':
      return moment.dayNo * DAY_MS
  }
}

function wholeSecond(local: number): number {
  return Math.floor(local / 1_000) * 1_000
}

/** Times of day cannot be combined with a start that is a date. */
function withoutTimes(rule: Rule): Rule {
  return { ...rule, hours: [], minutes: [], seconds: [] }
}

/** The rule alone, up to its COUNT or UNTIL. */
function ruleSeries(
  rule: Rule,
  zone: Zone,
  start: number,
  { wall, gap }: { readonly wall: WallSeries | undefined; readonly gap: Gap },
): Series {
  const until = rule.until === undefined ? undefined : lastMoment(rule.until, zone)
  const all =
    wall === undefined
      ? elapsedSeries(rule, zone, start)
      : onClock(until?.local === undefined ? wall : endingAt(wall, until.local), zone, { gap, fold: 'first' })
  if (until !== undefined && (until.local === undefined || wall === undefined)) return endingWith(all, until.at)
  return rule.count === undefined ? all : firstOf(all, rule.count)
}

/** UNTIL is inclusive. A date ends at the end of its day. */
function lastMoment(until: Moment, zone: Zone): { readonly at: number; readonly local?: number } {
  if (until.kind === 'instant') return { at: until.at }
  const local = until.kind === 'local' ? until.local : (until.dayNo + 1) * DAY_MS - 1
  const isGap = zone.gapAt(local) !== undefined
  return { at: zone.instantOf(local, { gap: 'first', fold: 'first' }) - (isGap ? 1 : 0), local }
}

function endingAt(wall: WallSeries, last: number): WallSeries {
  return {
    next: (after) => {
      const next = wall.next(after)
      return next === undefined || next > last ? undefined : next
    },
  }
}

function endingWith(series: Series, last: number): Series {
  return {
    next: (after) => {
      const next = series.next(after)
      return next === undefined || next.at > last ? undefined : next
    },
  }
}

/** The first `count` of a series. They have to be counted, but only once, and only as far as requested. */
function firstOf(series: Series, count: number): Series {
  let counted = 0
  let countedAt = Number.NEGATIVE_INFINITY
  return {
    next: (after) => {
      if (counted === count && after >= countedAt) return undefined
      const next = series.next(after)
      if (next === undefined) return undefined
      while (counted < count && countedAt < next.at) {
        const { at = Number.POSITIVE_INFINITY } = series.next(countedAt) ?? {}
        countedAt = at
        counted += 1
      }
      return next.at <= countedAt ? next : undefined
    },
  }
}

interface Exclusions {
  /** The instant up to which an occurrence is left out; `undefined` if it is not. */
  excludes(occurrence: Occurrence): number | undefined
  readonly size: number
}

const NOTHING: Exclusions = { size: 0, excludes: () => undefined }

function exclusionsOf(texts: readonly string[], zone: Zone): Exclusions {
  const [instants, locals, days] = [new Set<number>(), new Set<number>(), new Set<number>()]
  for (const moment of momentsOf('exdate', texts)) {
    if (moment.kind === 'instant') instants.add(moment.at)
    else if (moment.kind === 'date') days.add(moment.dayNo)
    else {
      locals.add(moment.local)
      instants.add(zone.instantOf(moment.local, { gap: 'shift', fold: 'first' }))
    }
  }
  return {
    size: texts.length,
    excludes: ({ at, local }) => {
      const isInGap = at + zone.offsetMs(at) !== local
      if (instants.has(at) || (isInGap && locals.has(local))) return at
      const dayNo = dayOf(local)
      if (!days.has(dayNo)) return undefined
      return Math.max(at, zone.instantOf((dayNo + 1) * DAY_MS, { gap: 'first', fold: 'first' }) - 1)
    },
  }
}

function additionsOf(texts: readonly string[], zone: Zone): readonly Occurrence[] {
  const added = momentsOf('rdate', texts).map((moment) => {
    if (moment.kind === 'instant') return { at: moment.at, local: zone.localOf(moment.at) }
    const local = localOf(moment, zone)
    return { at: zone.instantOf(local, { gap: 'shift', fold: 'first' }), local }
  })
  return added.sort((a, b) => a.at - b.at)
}

function momentsOf(field: string, texts: readonly string[]): readonly Moment[] {
  if (texts.length > LIMITS.dates) {
    throw refusal(field, `There may be at most ${LIMITS.dates} of ${field}. There are ${texts.length}.`)
  }
  return texts.map((text) => parseMoment(field, text))
}

interface RecurrenceSet {
  readonly series: Series | undefined
  readonly added: readonly Occurrence[]
  readonly exclusions: Exclusions
}

/** The rule's times and the added times, without those that are left out. COUNT includes those as well. */
function nextOfSet({ series, added, exclusions }: RecurrenceSet, after: number): Occurrence | undefined {
  for (let lower = after; ;) {
    const ruled = series?.next(lower)
    const extra = added.find(({ at }) => at > lower)
    const next = extra !== undefined && (ruled === undefined || extra.at < ruled.at) ? extra : ruled
    if (next === undefined || next.at > HORIZON) return undefined
    const excludedTo = exclusions.size === 0 ? undefined : exclusions.excludes(next)
    if (excludedTo === undefined) return next
    lower = excludedTo
  }
}
