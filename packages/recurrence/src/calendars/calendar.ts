import { DAY_MS } from '@impresario/protocol'
import { dayOf, weekdayOf } from '../civil.ts'
import { parseMoment } from '../moment.ts'
import { quoted, refusal } from '../refusal.ts'
import { recurrence } from '../rrule/recurrence.ts'
import type { Occurrence, Series } from '../series.ts'
import { Zone } from '../zone.ts'
import type { Zones } from '../zone.ts'
import { LIMITS } from '../limits.ts'

/**
 * A part of a calendar. Whole days are those of the calendar's zone, or of the trigger's if it has none: a holiday
 * begins when the day begins in the place where it is observed.
 */
export type CalendarEntry =
  /** Whole days: `2026-12-25`, or from one to another, the last included. */
  | {
      readonly kind: 'days'
      readonly first: string
      readonly last?: string | undefined
      readonly label?: string | undefined
    }
  /** Days of the week, from 1 (Monday) to 7. */
  | { readonly kind: 'weekdays'; readonly weekdays: readonly number[]; readonly label?: string | undefined }
  /** From one time to another, the last not included. */
  | { readonly kind: 'window'; readonly start: string; readonly end: string; readonly label?: string | undefined }
  /**
   * Recurring: whole days if `dtstart` is a date, otherwise windows of that duration. Without a rule it is `dtstart`
   * and `rdates`.
   */
  | {
      readonly kind: 'rule'
      readonly rrule?: string | undefined
      readonly dtstart: string
      readonly exdates?: readonly string[] | undefined
      readonly rdates?: readonly string[] | undefined
      /** Milliseconds; for whole days a multiple of a day, which is the default for them. */
      readonly durationMs?: number | undefined
      /** The zone of this entry, if it is not the calendar's. */
      readonly timezone?: string | undefined
      readonly label?: string | undefined
    }

export interface CalendarSpec {
  readonly name: string
  readonly timezone?: string | undefined
  readonly entries: readonly CalendarEntry[]
}

/** A period of a calendar. */
interface Span {
  /** The first instant after it; another period may follow immediately. */
  readonly to: number
  readonly label: string
}

/** A named set of periods. */
export interface Calendar {
  readonly name: string
  /** The period of the calendar that contains this instant. */
  at(instant: number): Span | undefined
  /** The start of the first period of the calendar later than `after`. */
  next(after: number): number | undefined
}

type Part = Omit<Calendar, 'name'>

/** How many days ahead to search for the next whole day of a calendar. */
const DAYS_AHEAD = 366 * 8

/** Creates a calendar from its definition. `triggerZone` is the zone of days that have none of their own. */
export function calendar(spec: CalendarSpec, zones: Zones, triggerZone: Zone): Calendar {
  const { name, entries } = spec
  if (entries.length > LIMITS.entries) {
    throw refusal(
      'calendar',
      `The calendar ${quoted(name)} has ${entries.length} entries. It may have ${LIMITS.entries}.`,
    )
  }
  const rules = entries.filter(({ kind }) => kind === 'rule').length
  if (rules > LIMITS.rules) {
    throw refusal(
      'calendar',
      `The calendar ${quoted(name)} has ${rules} entries that repeat. It may have ${LIMITS.rules}.`,
    )
  }
  const zone = spec.timezone === undefined ? triggerZone : zones.named(spec.timezone)
  const listed = new ListedDays()
  const parts: Part[] = []
  let counted = 0
  for (const entry of entries) {
    const label = entry.label ?? name
    if (entry.kind === 'days') listed.put({ ...daysOf(entry), label })
    else if (entry.kind === 'weekdays') parts.push(weekdays(entry.weekdays, zone, label))
    else if (entry.kind === 'window') parts.push(window(entry, zone, label))
    else {
      const { part, count } = rule(entry, entry.timezone === undefined ? zone : zones.named(entry.timezone), label)
      parts.push(part)
      counted += count
    }
  }
  if (counted > LIMITS.count) {
    throw refusal(
      'calendar',
      `The rules of the calendar ${quoted(name)} have a COUNT of ${counted} together. It may be ${LIMITS.count}: write UNTIL instead.`,
    )
  }
  if (!listed.isEmpty) parts.push(days(listed, zone))
  return {
    name,
    at: (instant) => {
      for (const part of parts) {
        const span = part.at(instant)
        if (span !== undefined) return span
      }
      return undefined
    },
    next: (after) => {
      const starts = parts.map((part) => part.next(after)).filter((start) => start !== undefined)
      return starts.length === 0 ? undefined : Math.min(...starts)
    },
  }
}

/** Days from one to another, the last included. */
interface Days {
  readonly from: number
  readonly to: number
  readonly label: string
}

/**
 * Listed days, as rows of days with one label; of entries that overlap the later one counts. Day by day, a definition of 50 kB that
 * lists ten thousand years took 170 MB and a second.
 */
class ListedDays {
  /** In order, and apart from each other. */
  readonly #rows: Days[] = []

  get isEmpty(): boolean {
    return this.#rows.length === 0
  }

  put(added: Days): void {
    const start = this.#indexOf(added.from)
    let end = start
    for (let row = this.#rows[end]; row !== undefined && row.from <= added.to; row = this.#rows[end]) end += 1
    const [first, last] = [this.#rows[start], this.#rows[end - 1]]
    const before = first !== undefined && first.from < added.from ? [{ ...first, to: added.from - 1 }] : []
    const after = end > start && last !== undefined && last.to > added.to ? [{ ...last, from: added.to + 1 }] : []
    this.#rows.splice(start, end - start, ...before, added, ...after)
  }

  labelOf(day: number): string | undefined {
    const row = this.#rows[this.#indexOf(day)]
    return row === undefined || row.from > day ? undefined : row.label
  }

  /** The first listed day from this one on. */
  nextFrom(day: number): number | undefined {
    const row = this.#rows[this.#indexOf(day)]
    return row === undefined ? undefined : Math.max(row.from, day)
  }

  /** The place of the first row that does not end before this day. */
  #indexOf(day: number): number {
    let [low, high] = [0, this.#rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#rows[middle]?.to ?? day) < day) low = middle + 1
      else high = middle
    }
    return low
  }
}

function daysOf({ first, last = first }: { readonly first: string; readonly last?: string | undefined }): {
  readonly from: number
  readonly to: number
} {
  const [from, to] = [dateIn(first), dateIn(last)]
  if (to < from || to - from > 3_660) {
    throw refusal('calendar', `The days from ${quoted(first)} to ${quoted(last)} are none, or more than ten years.`)
  }
  return { from, to }
}

function dateIn(text: string): number {
  const moment = parseMoment('calendar', text)
  if (moment.kind !== 'date') {
    throw refusal('calendar', `A day of a calendar is a date such as 2026-12-25, not ${quoted(text)}.`)
  }
  return moment.dayNo
}

/** When a day begins. If midnight is skipped, it begins with the first time that exists. */
function beginningOf(dayNo: number, zone: Zone): number {
  return zone.instantOf(dayNo * DAY_MS, { gap: 'first', fold: 'first' })
}

function days(listed: ListedDays, zone: Zone): Part {
  return {
    at: (instant) => {
      const dayNo = dayOf(zone.localOf(instant))
      const label = listed.labelOf(dayNo)
      return label === undefined ? undefined : { to: beginningOf(dayNo + 1, zone), label }
    },
    next: (after) => {
      const today = dayOf(zone.localOf(after))
      const first = listed.nextFrom(today)
      const second = first === undefined ? undefined : listed.nextFrom(first + 1)
      return [first, second]
        .flatMap((dayNo) => (dayNo === undefined ? [] : [beginningOf(dayNo, zone)]))
        .find((start) => start > after)
    },
  }
}

function weekdays(allowed: readonly number[], zone: Zone, label: string): Part {
  if (allowed.length === 0 || allowed.some((day) => !Number.isInteger(day) || day < 1 || day > 7)) {
    throw refusal('calendar', 'Days of the week go from 1 (Monday) to 7 (Sunday).')
  }
  return wholeDays((dayNo) => allowed.includes(weekdayOf(dayNo)), zone, label)
}

function wholeDays(isDay: (dayNo: number) => boolean, zone: Zone, label: string): Part {
  return {
    at: (instant) => {
      const dayNo = dayOf(zone.localOf(instant))
      return isDay(dayNo) ? { to: beginningOf(dayNo + 1, zone), label } : undefined
    },
    next: (after) => {
      const today = dayOf(zone.localOf(after))
      for (let dayNo = today; dayNo <= today + DAYS_AHEAD; dayNo += 1) {
        const start = isDay(dayNo) ? beginningOf(dayNo, zone) : after
        if (start > after) return start
      }
      return undefined
    },
  }
}

function window(entry: { readonly start: string; readonly end: string }, zone: Zone, label: string): Part {
  const instant = (text: string): number => {
    const moment = parseMoment('calendar', text)
    if (moment.kind === 'instant') return moment.at
    return zone.instantOf(moment.kind === 'local' ? moment.local : moment.dayNo * DAY_MS, {
      gap: 'shift',
      fold: 'first',
    })
  }
  const [from, to] = [instant(entry.start), instant(entry.end)]
  if (to <= from) {
    throw refusal('calendar', `The window from ${quoted(entry.start)} to ${quoted(entry.end)} has no length.`)
  }
  return {
    at: (at) => (at >= from && at < to ? { to, label } : undefined),
    next: (after) => (from > after ? from : undefined),
  }
}

const UTC = new Zone('UTC')
const DURATION_MAX_MS = 366 * DAY_MS

/** An entry that repeats, and how many occurrences have to be counted for it. */
function rule(
  entry: Extract<CalendarEntry, { kind: 'rule' }>,
  zone: Zone,
  label: string,
): { readonly part: Part; readonly count: number } {
  const isDate = parseMoment('dtstart', entry.dtstart).kind === 'date'
  const durationMs = entry.durationMs ?? (isDate ? DAY_MS : 0)
  if (!(durationMs >= 0 && durationMs <= DURATION_MAX_MS) || (isDate && durationMs % DAY_MS !== 0)) {
    throw refusal('calendar', 'The duration of an entry is from nothing to a year, and of whole days in whole days.')
  }
  // Days have no zone: they are computed in UTC, and compared with the local date.
  const rdates = entry.rrule === undefined ? [entry.dtstart, ...(entry.rdates ?? [])] : entry.rdates
  const { series: whole, rule: read } = recurrence({ ...entry, rdates }, isDate ? UTC : zone, { isDate, gap: 'first' })
  const series = remembering(whole)
  const part = isDate ? repeatedDays(series, durationMs, zone, label) : repeatedWindows(series, durationMs, label)
  return { part, count: read?.count ?? 0 }
}

/**
 * The same series; the last answer holds until its time has come. A rule that never happens is searched for some milliseconds, and a
 * calendar may have hundreds of them and is asked for each occurrence of what it restricts.
 */
function remembering(series: Series): Series {
  let askedFor = Number.POSITIVE_INFINITY
  let found: Occurrence | undefined
  return {
    next: (after) => {
      if (after >= askedFor && (found === undefined || after < found.at)) return found
      found = series.next(after)
      askedFor = after
      return found
    },
  }
}

function repeatedWindows(series: Series, durationMs: number, label: string): Part {
  // With zero length it still contains its own instant.
  const lengthMs = Math.max(1, durationMs)
  return {
    at: (instant) => {
      const begun = series.next(instant - lengthMs)
      return begun === undefined || begun.at > instant ? undefined : { to: begun.at + lengthMs, label }
    },
    next: (after) => series.next(after)?.at,
  }
}

function repeatedDays(series: Series, durationMs: number, zone: Zone, label: string): Part {
  return {
    at: (instant) => {
      const today = dayOf(zone.localOf(instant)) * DAY_MS
      const begun = series.next(today - durationMs)
      if (begun === undefined || begun.at > today) return undefined
      return { to: beginningOf(dayOf(begun.at + durationMs), zone), label }
    },
    next: (after) => {
      const today = dayOf(zone.localOf(after)) * DAY_MS
      let day = series.next(today - 1)
      if (day !== undefined && beginningOf(dayOf(day.at), zone) <= after) day = series.next(day.at)
      return day === undefined ? undefined : beginningOf(dayOf(day.at), zone)
    },
  }
}
