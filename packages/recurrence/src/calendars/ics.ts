import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, isImpresarioError } from '@impresario/protocol'
import { isoDate, isoInstant, parseMoment } from '../moment.ts'
import type { Moment } from '../moment.ts'
import { quoted, refusal } from '../refusal.ts'
import { parseRule } from '../rrule/parse.ts'
import type { Zones } from '../zone.ts'
import type { CalendarEntry } from './calendar.ts'
import { parseComponents, unescaped, wrong } from './ics-lines.ts'
import type { Component, Property } from './ics-lines.ts'
import { WINDOWS_ZONES } from './windows-zones.ts'
import { LIMITS } from '../limits.ts'

const PROBLEMS_MAX = 20

export interface IcsImport {
  readonly entries: readonly CalendarEntry[]
  /** Events that could not be parsed, by line; at most twenty are reported. */
  readonly problems: readonly { readonly line: number; readonly message: string }[]
  /** The number of events that could not be parsed. */
  readonly unread: number
}

type RuleEntry = Extract<CalendarEntry, { kind: 'rule' }>

/** An event with the properties that identify it and connect it with its changes. */
interface Event {
  readonly uid: string
  /** The occurrence that this event replaces; `undefined` for an independent event. */
  readonly replaces: string | undefined
  readonly isCancelled: boolean
  readonly entry: RuleEntry
}

/**
 * Reads the events of an iCalendar file (RFC 5545) as entries of a calendar. Alarms, to-dos and similar components are
 * ignored. An event that cannot be parsed is reported and does not affect the others; a file that is not a calendar is
 * refused.
 */
export function importIcs(text: string, zones: Zones): IcsImport {
  if (text.length > LIMITS.icsLength) {
    throw refusal('ics', `The calendar file has ${text.length} characters. It may have ${LIMITS.icsLength}.`)
  }
  // A page that asks for a password is what a private calendar's address often gives.
  if (!/^[\uFEFF \t]*BEGIN:VCALENDAR/im.test(text)) throw noCalendar()
  const calendars = parseComponents(text).filter(({ name }) => name === 'VCALENDAR')
  if (calendars.length === 0) throw noCalendar()
  const components = calendars.flatMap(({ components: all }) => all).filter(({ name }) => name === 'VEVENT')
  if (components.length > LIMITS.icsEvents) {
    throw refusal('ics', `The calendar file has ${components.length} events. It may have ${LIMITS.icsEvents}.`)
  }
  const reader: Reader = { zones, names: zoneNames(calendars) }
  const events: Event[] = []
  const problems: { readonly line: number; readonly message: string }[] = []
  for (const component of components) {
    try {
      events.push(eventOf(component, reader))
    } catch (error) {
      if (!isImpresarioError(error)) throw error
      problems.push({ line: component.line, message: error.message })
    }
  }
  const entries = joined(events).map((entry) => simplified(entry, zones))
  return { entries, problems: problems.slice(0, PROBLEMS_MAX), unread: problems.length }
}

function noCalendar(): Error {
  return refusal('ics', 'The file is no calendar: it has no BEGIN:VCALENDAR.')
}

/** An occurrence that was moved or cancelled is removed from the series. */
function joined(events: readonly Event[]): readonly RuleEntry[] {
  const replaced = new Map<string, string[]>()
  for (const { uid, replaces } of events) {
    if (replaces === undefined) continue
    const others = replaced.get(uid)
    if (others === undefined) replaced.set(uid, [replaces])
    else others.push(replaces)
  }
  return events
    .filter(({ isCancelled }) => !isCancelled)
    .map(({ uid, replaces, entry }) => {
      const gone = replaces === undefined ? (replaced.get(uid) ?? []) : []
      return gone.length === 0 ? entry : { ...entry, exdates: [...(entry.exdates ?? []), ...gone] }
    })
}

/** A single occurrence needs no rule: days and windows are faster to query. */
function simplified(entry: RuleEntry, zones: Zones): CalendarEntry {
  const { rrule, rdates = [], exdates = [], dtstart, durationMs = 0, timezone, label } = entry
  if (rrule !== undefined || rdates.length + exdates.length > 0) return entry
  const moment = parseMoment('DTSTART', dtstart)
  if (moment.kind === 'date') {
    const last = moment.dayNo + Math.max(1, durationMs / DAY_MS) - 1
    return { kind: 'days', first: isoDate(moment.dayNo), last: isoDate(last), label }
  }
  if (moment.kind === 'local' && timezone === undefined) return entry
  const at = instantOf(moment, timezone, zones)
  return { kind: 'window', start: isoInstant(at), end: isoInstant(at + Math.max(1_000, durationMs)), label }
}

function instantOf(moment: Moment, timezone: string | undefined, zones: Zones): number {
  if (moment.kind === 'instant') return moment.at
  const local = moment.kind === 'local' ? moment.local : moment.dayNo * DAY_MS
  return zones.named(timezone ?? 'UTC').instantOf(local, { gap: 'shift', fold: 'first' })
}

interface Reader {
  readonly zones: Zones
  /** The zone names of the file, and the zones that they stand for. */
  readonly names: ReadonlyMap<string, string>
}

function eventOf({ properties, line, fault }: Component, reader: Reader): Event {
  if (fault !== undefined) throw fault
  const find = (name: string): Property | undefined => properties.find((property) => property.name === name)
  const start = find('DTSTART')
  if (start === undefined) throw wrong(line, 'the event has no DTSTART')
  const rules = properties.filter(({ name }) => name === 'RRULE')
  if (rules.length > 1) throw wrong(line, 'the event has more than one RRULE')
  if (find('EXRULE') !== undefined) throw wrong(line, 'EXRULE is not supported; use EXDATE')
  const rrule = rules[0]?.value.trim()
  // Parsed now, so that an error can report the line.
  if (rrule !== undefined) parseRule(rrule)
  const { times, timezone } = timesIn(start, reader)
  const isDay = parseMoment('DTSTART', times[0] ?? '').kind === 'date'
  // Exchange writes the exceptions of whole days as midnights.
  const timesOf = (property: Property): readonly string[] =>
    isDay ? timesIn(property, reader).times.map((time) => time.slice(0, 8)) : timesFor(timezone, property, reader)
  const dates = (name: string): readonly string[] =>
    properties.filter((property) => property.name === name).flatMap(timesOf)
  const replaces = find('RECURRENCE-ID')
  if (replaces?.parameters.has('RANGE') === true) {
    throw wrong(replaces.line, 'RANGE, a change of all later occurrences, is not supported; split the series in two')
  }
  const exdates = dates('EXDATE')
  // An event always occurs at its DTSTART, even if its rule does not match it: RFC 5545 §3.8.5.3.
  const rdates = [...(rrule === undefined ? [] : times.slice(0, 1)), ...dates('RDATE')]
  const entry: RuleEntry = {
    kind: 'rule',
    dtstart: times[0] ?? '',
    durationMs: durationOf(start, find('DTEND'), find('DURATION'), reader),
    ...(rrule === undefined ? {} : { rrule }),
    ...(exdates.length === 0 ? {} : { exdates }),
    ...(rdates.length === 0 ? {} : { rdates }),
    ...(timezone === undefined ? {} : { timezone }),
    label: labelOf(find('SUMMARY')),
  }
  return {
    uid: find('UID')?.value ?? `line ${line}`,
    replaces: replaces === undefined ? undefined : timesOf(replaces)[0],
    isCancelled: find('STATUS')?.value.trim().toUpperCase() === 'CANCELLED',
    entry,
  }
}

function labelOf(summary: Property | undefined): string {
  return summary === undefined ? 'Event' : unescaped(summary.value).replaceAll(/\p{C}/gu, ' ').trim().slice(0, 200)
}

/** The times of a property and their zone. A period, which RDATE allows, counts by its start. */
function timesIn(property: Property, reader: Reader): { times: readonly string[]; timezone: string | undefined } {
  const { parameters, value, line } = property
  const isDate = parameters.get('VALUE')?.toUpperCase() === 'DATE'
  const tzid = parameters.get('TZID')
  const times = value.split(',').map((item) => {
    const [time = ''] = item.trim().split('/')
    if ((isDate ? /^\d{8}$/ : /^\d{8}(T\d{6}Z?)?$/i).test(time)) return time
    throw wrong(line, `${quoted(item)} is no ${isDate ? 'date such as 20261225' : 'time such as 20261225T090000'}`)
  })
  for (const time of times) parseMoment(property.name, time)
  if (times.some((time) => /Z$/i.test(time))) return { times, timezone: 'UTC' }
  return { times, timezone: tzid === undefined || isDate ? undefined : zoneOf(tzid, line, reader) }
}

/** The times of a property for an event in a zone: those in another zone become instants. */
function timesFor(timezone: string | undefined, property: Property, reader: Reader): readonly string[] {
  const found = timesIn(property, reader)
  if (found.timezone === undefined || found.timezone === timezone) return found.times
  return found.times.map((time) => {
    const moment = parseMoment(property.name, time)
    return moment.kind === 'date' ? time : isoInstant(instantOf(moment, found.timezone, reader.zones))
  })
}

/** DURATION, or how far DTEND is from DTSTART, or else a day for a date and nothing for a time. */
function durationOf(
  start: Property,
  end: Property | undefined,
  duration: Property | undefined,
  reader: Reader,
): number {
  const from = endpoint(start, reader)
  const isDate = from.moment.kind === 'date'
  if (duration !== undefined) {
    const ms = durationIn(duration)
    return isDate ? Math.max(1, Math.ceil(ms / DAY_MS)) * DAY_MS : ms
  }
  if (end === undefined) return isDate ? DAY_MS : 0
  const to = endpoint(end, reader)
  if ((to.moment.kind === 'date') !== isDate) {
    throw wrong(end.line, 'one of DTSTART and DTEND is a date, the other a time')
  }
  // Times of one zone differ by their local times; times of two zones differ by real time.
  const isSame = from.timezone === to.timezone
  const distance = isSame ? clock(to.moment) - clock(from.moment) : instant(to, reader) - instant(from, reader)
  if (distance < 0) throw wrong(end.line, 'DTEND lies before DTSTART')
  return isDate ? Math.max(DAY_MS, distance) : distance
}

interface Endpoint {
  readonly moment: Moment
  readonly timezone: string | undefined
}

function endpoint(property: Property, reader: Reader): Endpoint {
  const { times, timezone } = timesIn(property, reader)
  return { moment: parseMoment(property.name, times[0] ?? ''), timezone }
}

function clock(moment: Moment): number {
  if (moment.kind === 'date') return moment.dayNo * DAY_MS
  return moment.kind === 'local' ? moment.local : moment.at
}

function instant({ moment, timezone }: Endpoint, { zones }: Reader): number {
  return instantOf(moment, timezone, zones)
}

const DURATION = /^\+?P(?:(\d{1,4})W|(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?)$/i

function durationIn({ value, line }: Property): number {
  const text = value.trim()
  const found = DURATION.exec(text)
  if (found === null || /[PT]$/i.test(text)) throw wrong(line, `${quoted(value)} is no duration such as P1D or PT2H30M`)
  const [weeks, days, hours, minutes, seconds] = found.slice(1).map((part) => Number(part ?? 0))
  return (
    ((weeks ?? 0) * 7 + (days ?? 0)) * DAY_MS +
    (hours ?? 0) * HOUR_MS +
    (minutes ?? 0) * MINUTE_MS +
    (seconds ?? 0) * SECOND_MS
  )
}

/** What the zones of the file stand for: a name that it gives for one, or the offset of one that never changes. */
function zoneNames(calendars: readonly Component[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const { name, properties, components } of calendars.flatMap(({ components: all }) => all)) {
    const find = (wanted: string): string | undefined =>
      properties.find((property) => property.name === wanted)?.value.trim()
    const tzid = find('TZID')
    const meant = find('X-LIC-LOCATION') ?? onlyOffset(components)
    if (name === 'VTIMEZONE' && tzid !== undefined && meant !== undefined) names.set(tzid, meant)
  }
  return names
}

/** `+02:00`, if all parts of a zone have this offset. */
function onlyOffset(parts: readonly Component[]): string | undefined {
  const offsets = parts.flatMap(({ properties }) => properties.filter(({ name }) => name === 'TZOFFSETTO'))
  const [only, other] = [...new Set(offsets.map(({ value }) => value.trim()))]
  const found = /^([+-]\d{2})(\d{2})$/.exec(only ?? '')
  return found === null || other !== undefined ? undefined : `${found[1]}:${found[2]}`
}

/** The zone of a TZID: a name of the database, a name after a path, Microsoft's name for it, or what the file says. */
function zoneOf(tzid: string, line: number, { names, zones }: Reader): string {
  const path = /^\/.*?\/([A-Za-z]+(?:\/[A-Za-z0-9_+-]+){1,2})$/.exec(tzid)?.[1]
  const microsoft = WINDOWS_ZONES[tzid] ?? (/^tzone:\/\/Microsoft\/Utc$/i.test(tzid) ? 'UTC' : undefined)
  const candidates = [tzid, microsoft, names.get(tzid), path].filter((name) => name !== undefined)
  for (const name of candidates) {
    try {
      return zones.named(name).name
    } catch {
      // The next name may be known.
    }
  }
  throw wrong(line, `the time zone ${quoted(tzid)} is not known; use a name such as Europe/Berlin`)
}
