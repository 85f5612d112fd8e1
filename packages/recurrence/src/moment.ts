import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '@impresario/protocol'
import { YEAR_MAX, YEAR_MIN, dateOf, dayNumber, dayOf, daysInMonth, timeOf } from './civil.ts'
import { quoted, refusal } from './refusal.ts'

/** A point in time as a person wrote it. */
export type Moment =
  /** With an offset or `Z`: one point in time, independent of the zone. */
  | { readonly kind: 'instant'; readonly at: number }
  /** A local time. Which point in time it is depends on the zone. */
  | { readonly kind: 'local'; readonly local: number }
  /** A whole day. */
  | { readonly kind: 'date'; readonly dayNo: number }

/** Both formats of ISO 8601: 2026-03-29T02:30:00 and 20260329T023000. */
const EXTENDED =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i
const BASIC = /^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(?:(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i

/** Parses a time. `field` names it in the error. */
export function parseMoment(field: string, text: string): Moment {
  const written = text.trim()
  const found = written.length > 40 ? null : (EXTENDED.exec(written) ?? BASIC.exec(written))
  if (found === null) {
    throw refusal(field, `${field} ${quoted(text)} is not a time. Write it as 2026-01-31T09:00:00 or 2026-01-31.`)
  }
  const [, year = '', month = '', day = '', hour, minute = '', second = '0', fraction = '', offset] = found
  const dayNo = checkedDay(field, text, [Number(year), Number(month), Number(day)])
  if (hour === undefined) return { kind: 'date', dayNo }
  const ms = Number(fraction.padEnd(3, '0').slice(0, 3))
  const local = dayNo * DAY_MS + checkedTime(field, text, [Number(hour), Number(minute), Number(second)]) + ms
  return offset === undefined
    ? { kind: 'local', local }
    : { kind: 'instant', at: local - checkedOffset(field, text, offset) }
}

function checkedDay(field: string, text: string, [year, month, day]: readonly [number, number, number]): number {
  const isMonth = month >= 1 && month <= 12
  if (!isMonth || year < YEAR_MIN || year > YEAR_MAX || day < 1 || day > daysInMonth(year, month)) {
    const reason = isMonth ? 'that month has no such day' : 'there is no such month'
    throw refusal(field, `${field} ${quoted(text)} is not a date: ${year < YEAR_MIN ? 'years begin at 1' : reason}.`)
  }
  return dayNumber(year, month, day)
}

/** A leap second is read as the second before it, as RFC 5545 requires of implementations without leap seconds. */
function checkedTime(field: string, text: string, [hour, minute, second]: readonly [number, number, number]): number {
  if (hour > 23 || minute > 59 || second > 60) {
    throw refusal(field, `${field} ${quoted(text)} is not a time of day: it goes from 00:00:00 to 23:59:59.`)
  }
  return hour * HOUR_MS + minute * MINUTE_MS + Math.min(second, 59) * SECOND_MS
}

function checkedOffset(field: string, text: string, offset: string): number {
  const ms = offsetIn(offset)
  if (ms === undefined) throw refusal(field, `${field} ${quoted(text)} has an offset beyond 23:59.`)
  return ms
}

/** `Z`, `+02`, `+0200` or `+02:00`, in milliseconds. */
export function offsetIn(offset: string): number | undefined {
  if (offset.toUpperCase() === 'Z') return 0
  const [, sign, hours = '', minutes = '0'] = /^([+-])(\d{2}):?(\d{2})?$/.exec(offset) ?? []
  if (sign === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined
  const ms = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS
  return sign === '-' ? -ms : ms
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `2026-03-29` */
export function isoDate(dayNo: number): string {
  const { year, month, day } = dateOf(dayNo)
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
}

/** `02:30`, or `02:30:15` where the seconds are not 0. */
export function clockTime(timeMs: number): string {
  const seconds = Math.floor(timeMs / SECOND_MS)
  const text = `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}`
  return seconds % 60 === 0 ? text : `${text}:${two(seconds % 60)}`
}

/** `2026-03-29T02:30:00`, with a fraction if there is one. */
export function isoLocal(local: number): string {
  const time = timeOf(local)
  const seconds = Math.floor(time / SECOND_MS)
  const ms = time - seconds * SECOND_MS
  const clock = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60].map(two).join(':')
  return `${isoDate(dayOf(local))}T${clock}${ms === 0 ? '' : `.${String(ms).padStart(3, '0')}`}`
}

/** `2026-03-29T00:30:00Z` */
export function isoInstant(at: number): string {
  return `${isoLocal(at)}Z`
}

/** `+02:00`, with seconds for unusual historical offsets. */
export function isoOffset(offsetMs: number): string {
  const seconds = Math.abs(Math.round(offsetMs / SECOND_MS))
  const text = `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}`
  return `${offsetMs < 0 ? '-' : '+'}${text}${seconds % 60 === 0 ? '' : `:${two(seconds % 60)}`}`
}
