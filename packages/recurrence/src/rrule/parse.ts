import { parseMoment } from '../moment.ts'
import type { Moment } from '../moment.ts'
import { quoted, refusal } from '../refusal.ts'
import { FREQUENCIES } from './rule.ts'
import type { ByDay, Frequency, Rule, Skip } from './rule.ts'
import { LIMITS } from '../limits.ts'

const INTERVAL_MAX = 2_147_483_647

const WEEKDAYS: readonly string[] = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU']

const PARTS = [
  'FREQ',
  'INTERVAL',
  'COUNT',
  'UNTIL',
  'BYMONTH',
  'BYWEEKNO',
  'BYYEARDAY',
  'BYMONTHDAY',
  'BYDAY',
  'BYHOUR',
  'BYMINUTE',
  'BYSECOND',
  'BYSETPOS',
  'WKST',
  'RSCALE',
  'SKIP',
] as const

type PartName = (typeof PARTS)[number]
type Parts = ReadonlyMap<PartName, string>

/** Parses the value of an RRULE, with or without a leading `RRULE:`. Names and values are case-insensitive. */
export function parseRule(text: string): Rule {
  if (text.length > LIMITS.rruleLength) {
    throw refusal('rrule', `A rule has at most ${LIMITS.rruleLength} characters. This one has ${text.length}.`)
  }
  const written = text
    .trim()
    .replace(/^RRULE\s*:\s*/i, '')
    .toUpperCase()
  const parts = partsOf(written)
  const frequency = frequencyOf(parts)
  const skip = skipOf(parts)
  const rule: Rule = {
    text: written,
    frequency,
    interval: wholeNumber(parts, 'INTERVAL', INTERVAL_MAX) ?? 1,
    count: wholeNumber(parts, 'COUNT', LIMITS.count),
    until: untilOf(parts),
    months: numbers(parts, 'BYMONTH', { min: 1, max: 12 }),
    weekNumbers: numbers(parts, 'BYWEEKNO', { min: 1, max: 53, isSigned: true }),
    yearDays: numbers(parts, 'BYYEARDAY', { min: 1, max: 366, isSigned: true }),
    monthDays: numbers(parts, 'BYMONTHDAY', { min: 1, max: 31, isSigned: true }),
    days: byDay(parts),
    hours: numbers(parts, 'BYHOUR', { min: 0, max: 23 }),
    minutes: numbers(parts, 'BYMINUTE', { min: 0, max: 59 }),
    seconds: seconds(parts),
    positions: numbers(parts, 'BYSETPOS', { min: 1, max: 366, isSigned: true }),
    weekStart: weekStart(parts),
    skip,
  }
  checkTogether(rule, parts)
  return rule
}

function partsOf(text: string): Parts {
  const parts = new Map<PartName, string>()
  // A trailing semicolon is invalid, but occurs in practice.
  for (const part of text.replace(/;$/, '').split(';')) {
    const equals = part.indexOf('=')
    const [name, value] = [part.slice(0, Math.max(0, equals)).trim(), part.slice(equals + 1).trim()]
    if (!/^[A-Z-]+$/.test(name)) {
      throw refusal('rrule', `${quoted(part.trim())} is no part of a rule. A part looks like FREQ=DAILY.`)
    }
    const known = PARTS.find((candidate) => candidate === name)
    if (known === undefined) throw refusal('rrule', `A rule has no part ${quoted(name)}. It has ${PARTS.join(', ')}.`)
    if (parts.has(known)) throw wrong(known, 'it stands there twice')
    if (value === '') throw wrong(known, 'it has no value')
    parts.set(known, value)
  }
  return parts
}

function frequencyOf(parts: Parts): Frequency {
  const value = parts.get('FREQ')
  if (value === undefined) throw refusal('rrule.FREQ', 'A rule needs a frequency, such as FREQ=DAILY.')
  const frequency = FREQUENCIES.find((candidate) => candidate === value)
  if (frequency === undefined) throw wrong('FREQ', `${quoted(value)} is none of ${FREQUENCIES.join(', ')}`)
  return frequency
}

function wholeNumber(parts: Parts, name: PartName, max: number): number | undefined {
  const value = parts.get(name)
  if (value === undefined) return undefined
  const number = /^\d{1,15}$/.test(value) ? Number(value) : 0
  if (number < 1 || number > max) throw wrong(name, `${quoted(value)} is no whole number from 1 to ${max}`)
  return number
}

interface Bounds {
  readonly min: number
  readonly max: number
  /** Whether negative numbers count from the end. */
  readonly isSigned?: boolean
}

function numbers(parts: Parts, name: PartName, { min, max, isSigned = false }: Bounds): readonly number[] {
  const value = parts.get(name)
  if (value === undefined) return []
  const found = items(value).map((item) => {
    const number = (isSigned ? /^[+-]?\d{1,4}$/ : /^\d{1,4}$/).test(item) ? Number(item) : Number.NaN
    if (Math.abs(number) >= min && Math.abs(number) <= max) return number
    throw wrong(name, `${quoted(item)} is not in ${min} to ${max}${isSigned ? `, or -${max} to -${min}` : ''}`)
  })
  return ascending(found)
}

function items(value: string): readonly string[] {
  return value.split(',').map((item) => item.trim())
}

function ascending(values: readonly number[]): readonly number[] {
  return [...new Set(values)].sort((a, b) => a - b)
}

/** A leap second is read as the second before it, as RFC 5545 requires of implementations without leap seconds. */
function seconds(parts: Parts): readonly number[] {
  return ascending(numbers(parts, 'BYSECOND', { min: 0, max: 60 }).map((second) => Math.min(second, 59)))
}

function byDay(parts: Parts): readonly ByDay[] {
  const value = parts.get('BYDAY')
  if (value === undefined) return []
  const known = new Map<string, ByDay>()
  for (const item of items(value)) {
    const [, written, name = ''] = /^([+-]?\d{1,2})?([A-Z]{2})$/.exec(item) ?? []
    const weekday = weekdayNamed(name)
    if (weekday === undefined) throw wrong('BYDAY', `${quoted(item)} is no day such as MO, 2TU or -1FR`)
    const ordinal = Number(written ?? 0)
    if (Math.abs(ordinal) > 53 || (written !== undefined && ordinal === 0)) {
      throw wrong('BYDAY', `the number in ${quoted(item)} is not in 1 to 53, or -53 to -1`)
    }
    known.set(`${ordinal} ${weekday}`, { ordinal, weekday })
  }
  return [...known.values()]
}

function weekdayNamed(name: string): number | undefined {
  const index = WEEKDAYS.indexOf(name)
  return index === -1 ? undefined : index + 1
}

function weekStart(parts: Parts): number {
  const value = parts.get('WKST') ?? 'MO'
  const weekday = weekdayNamed(value)
  if (weekday === undefined) throw wrong('WKST', `${quoted(value)} is none of ${WEEKDAYS.join(', ')}`)
  return weekday
}

function skipOf(parts: Parts): Skip {
  const scale = parts.get('RSCALE')
  if (scale !== undefined && scale !== 'GREGORIAN') {
    throw wrong('RSCALE', `the calendar ${quoted(scale)} is not supported, only GREGORIAN is`)
  }
  const skip = parts.get('SKIP')
  if (skip === undefined) return 'OMIT'
  if (scale === undefined) throw wrong('SKIP', 'it needs RSCALE=GREGORIAN beside it (RFC 7529)')
  if (skip !== 'OMIT' && skip !== 'BACKWARD' && skip !== 'FORWARD') {
    throw wrong('SKIP', `${quoted(skip)} is none of OMIT, BACKWARD, FORWARD`)
  }
  return skip
}

function untilOf(parts: Parts): Moment | undefined {
  const value = parts.get('UNTIL')
  return value === undefined ? undefined : parseMoment('UNTIL', value)
}

/** Combinations that RFC 5545 §3.3.10 forbids. */
function checkTogether(rule: Rule, parts: Parts): void {
  const { frequency } = rule
  const isSubDaily = FREQUENCIES.indexOf(frequency) > FREQUENCIES.indexOf('DAILY')
  if (rule.count !== undefined && rule.until !== undefined) throw wrong('UNTIL', 'COUNT and UNTIL exclude each other')
  if (rule.weekNumbers.length > 0 && frequency !== 'YEARLY') throw wrong('BYWEEKNO', 'it goes with FREQ=YEARLY only')
  if (rule.yearDays.length > 0 && frequency !== 'YEARLY' && !isSubDaily) {
    throw wrong('BYYEARDAY', `it does not go with FREQ=${frequency}`)
  }
  if (rule.monthDays.length > 0 && frequency === 'WEEKLY') throw wrong('BYMONTHDAY', 'it does not go with FREQ=WEEKLY')
  if (rule.days.some(({ ordinal }) => ordinal !== 0)) {
    if (frequency !== 'MONTHLY' && frequency !== 'YEARLY') {
      throw wrong('BYDAY', 'days with a number go with FREQ=MONTHLY and FREQ=YEARLY only')
    }
    if (rule.weekNumbers.length > 0) throw wrong('BYDAY', 'days with a number do not go with BYWEEKNO')
  }
  const selects = PARTS.some((name) => name.startsWith('BY') && name !== 'BYSETPOS' && parts.has(name))
  if (rule.positions.length > 0 && !selects) throw wrong('BYSETPOS', 'it needs another BY part to choose from')
}

function wrong(part: PartName, reason: string): Error {
  return refusal(`rrule.${part}`, `${part} of the rule is wrong: ${reason}.`)
}
