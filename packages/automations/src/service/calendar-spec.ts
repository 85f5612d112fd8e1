import type { Data, DataObject } from '@impresario/protocol'
import { calendar, importIcs } from '@impresario/recurrence'
import type { CalendarEntry, CalendarSpec, IcsImport, Zones } from '@impresario/recurrence'
import { Problems } from '../pipeline/problem.ts'
import { FieldReader, isObject } from '../pipeline/reader.ts'

/** A calendar as it was read, and what an iCalendar file held that could not be. */
export interface ReadCalendar {
  readonly spec: CalendarSpec
  readonly description: string
  readonly unread: readonly string[]
}

const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const KINDS =
  '{"date": "2026-12-25"}, {"weekdays": ["mon", "fri"]}, {"start": …, "end": …} or {"rrule": …, "dtstart": …}'
const CALENDAR_NAME = /^[A-Za-z][\w-]{0,63}$/

/** Reads a calendar as it is written: `entries`, an iCalendar file as `ics`, or both. Refuses it with all its problems. */
export function readCalendar(name: string, body: DataObject, zones: Zones): ReadCalendar {
  const problems = new Problems()
  const fields = new FieldReader(body, '', problems)
  if (!CALENDAR_NAME.test(name)) {
    fields.refuse('name', 'Must begin with a letter and have up to 64 letters, digits, "_" and "-".')
  }
  const timezone = fields.text('timezone', { max: 100 })
  if (timezone !== undefined) problems.try('timezone', undefined, () => zones.named(timezone))
  const listed = (fields.list('entries') ?? []).flatMap((each, at) => entryIn(each, `entries[${at}]`, problems) ?? [])
  const ics = fields.text('ics', { max: 2_000_000 })
  const imported = ics === undefined ? undefined : problems.try('ics', undefined, () => importIcs(ics, zones))
  const description = fields.text('description', { max: 500 }) ?? ''
  fields.end()
  const entries = [...listed, ...(imported?.entries ?? [])]
  if (entries.length === 0 && problems.list.length === 0) {
    fields.refuse('entries', `Must have an entry: ${KINDS}; or give an iCalendar file as "ics".`)
  }
  const spec: CalendarSpec = { name, ...(timezone === undefined ? {} : { timezone }), entries }
  if (problems.list.length === 0) problems.try('entries', undefined, () => calendar(spec, zones, zones.named('UTC')))
  problems.throwIfAny('The calendar')
  return {
    spec,
    description,
    unread: imported === undefined ? [] : unreadOf(imported),
  }
}

/** What could not be read, each with its line. */
function unreadOf({ problems, unread }: IcsImport): readonly string[] {
  const told = problems.map(({ line, message }) => (/^Line \d/.test(message) ? message : `Line ${line}: ${message}`))
  const more = unread - problems.length
  return more === 0 ? told : [...told, `${more} more events could not be read.`]
}

function entryIn(value: Data, path: string, problems: Problems): CalendarEntry | undefined {
  if (!isObject(value)) {
    problems.add(path, `Must be an object: ${KINDS}.`)
    return undefined
  }
  const fields = new FieldReader(value, path, problems)
  const label = fields.text('label', { max: 200 })
  const entry = bodyIn(fields)
  fields.end()
  return entry === undefined ? undefined : { ...entry, ...(label === undefined ? {} : { label }) }
}

function bodyIn(fields: FieldReader): CalendarEntry | undefined {
  const time = (key: string): string | undefined => fields.text(key, { max: 40 })
  if (fields.has('date')) {
    const [first, last] = [time('date'), time('until')]
    return first === undefined ? undefined : { kind: 'days', first, ...(last === undefined ? {} : { last }) }
  }
  if (fields.has('weekdays')) {
    const weekdays = weekdaysIn(fields)
    return weekdays === undefined ? undefined : { kind: 'weekdays', weekdays }
  }
  if (fields.has('rrule') || fields.has('dtstart')) return ruleIn(fields)
  const [start, end] = [time('start'), time('end')]
  if (start !== undefined && end !== undefined) return { kind: 'window', start, end }
  return fields.refuse('date', `Must be one of ${KINDS}.`)
}

function weekdaysIn(fields: FieldReader): readonly number[] | undefined {
  const days = (fields.list('weekdays') ?? []).map((day) =>
    typeof day === 'string' ? WEEKDAYS.indexOf(day.toLowerCase().slice(0, 3)) + 1 : day,
  )
  const known = days.filter((day): day is number => typeof day === 'number' && day >= 1 && day <= 7)
  if (known.length === days.length && known.length > 0) return known
  return fields.refuse(
    'weekdays',
    'Must be a list of mon, tue, wed, thu, fri, sat, sun, or of numbers from 1 (Monday).',
  )
}

function ruleIn(fields: FieldReader): CalendarEntry | undefined {
  const rrule = fields.text('rrule', { max: 4_000 })
  const dtstart = fields.text('dtstart', { max: 40 })
  const seconds = fields.number('duration_seconds', { min: 0, max: 366 * 86_400 })
  const timezone = fields.text('timezone', { max: 100 })
  const [exdates, rdates] = [timesIn(fields, 'exdate'), timesIn(fields, 'rdate')]
  if (dtstart === undefined) return fields.refuse('dtstart', 'Say when the first one begins.')
  return {
    kind: 'rule',
    dtstart,
    ...(rrule === undefined ? {} : { rrule }),
    ...(seconds === undefined ? {} : { durationMs: seconds * 1_000 }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(exdates === undefined ? {} : { exdates }),
    ...(rdates === undefined ? {} : { rdates }),
  }
}

function timesIn(fields: FieldReader, key: string): readonly string[] | undefined {
  const value = fields.list(key)
  if (value === undefined) return undefined
  const times = value.filter((each): each is string => typeof each === 'string')
  return times.length === value.length ? times : fields.refuse(key, 'Must be a list of times.')
}
