import { SECOND_MS } from '@impresario/protocol'
import { clockTime } from './moment.ts'

/* How numbers, days and times are put in words. */

const WEEKDAY_NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const
const MONTH_NAMES = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const

/** 1 is Monday; 0 and 7 are Sunday. */
export function weekdayName(weekday: number): string {
  return WEEKDAY_NAMES[(weekday + 6) % 7] ?? ''
}

export function monthName(month: number): string {
  return MONTH_NAMES[month - 1] ?? ''
}

/** `a`, `a and b`, `a, b and c` */
export function listed(items: readonly string[], last = 'and'): string {
  const end = items.at(-1) ?? ''
  return items.length < 2 ? end : `${items.slice(0, -1).join(', ')} ${last} ${end}`
}

/** `1st`, `22nd`, `13th` */
export function ordinal(value: number): string {
  const teen = value % 100 >= 11 && value % 100 <= 13
  const ending = teen ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th')
  return `${value}${ending}`
}

/** `first`, `third`, `last`, `second to last`, `20th` */
export function position(value: number): string {
  if (value === -1) return 'last'
  const named = ['', 'first', 'second', 'third', 'fourth', 'fifth'][Math.abs(value)] ?? ordinal(Math.abs(value))
  return value > 0 ? named : `${named} to last`
}

/** Three and more in a row become a range: `1 to 5, 8 and 10`. */
export function ranges(values: readonly number[], name: (value: number) => string): string {
  return listed(rangeItems(values, name))
}

export function rangeItems(values: readonly number[], name: (value: number) => string): readonly string[] {
  const items: string[] = []
  for (let index = 0; index < values.length;) {
    const first = values[index] ?? 0
    let length = 1
    while (values[index + length] === first + length) length += 1
    if (length >= 3) items.push(`${name(first)} to ${name(first + length - 1)}`)
    else for (let step = 0; step < length; step += 1) items.push(name(first + step))
    index += length
  }
  return items
}

/** Days of the week from Monday on. */
export function weekdays(days: readonly number[]): string {
  const fromMonday = [...new Set(days.map((day) => ((day + 6) % 7) + 1))].sort((a, b) => a - b)
  return ranges(fromMonday, weekdayName)
}

/** The step of values that are evenly spaced over a whole unit from its beginning: 15 for 0, 15, 30, 45. */
function stepOf(values: readonly number[], size: number): number | undefined {
  const step = values.length < 2 ? size : (values[1] ?? 0) - (values[0] ?? 0)
  if (values[0] !== 0 || size % step !== 0 || values.length !== size / step) return undefined
  return values.every((value, index) => value === index * step) ? step : undefined
}

/** `every minute`, `every 15 minutes` */
export function everyUnit(count: number, unit: string): string {
  return count === 1 ? `every ${unit}` : `every ${count} ${unit}s`
}

/** `minute 5`, `minutes 5 and 35` */
export function inUnit(values: readonly number[], unit: string): string {
  return `${unit}${values.length === 1 ? '' : 's'} ${ranges(values, String)}`
}

interface DayTimes {
  readonly hours: readonly number[]
  readonly minutes: readonly number[]
  readonly seconds: readonly number[]
}

const TIMES_MAX = 8

/** Times of a day: listed individually while they are few, as a rhythm where there is one, otherwise by parts. */
export function dayTimes({ hours, minutes, seconds }: DayTimes): string {
  if (hours.length * minutes.length * seconds.length <= TIMES_MAX) return `at ${eachTime({ hours, minutes, seconds })}`
  const isWhole = seconds.length === 1 && seconds[0] === 0
  const finest = isWhole ? finestMinutes(minutes, hours) : finestSeconds({ hours, minutes, seconds })
  return finest
}

function eachTime({ hours, minutes, seconds }: DayTimes): string {
  const times = hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => clockTime(((hour * 60 + minute) * 60 + second) * SECOND_MS))),
  )
  return listed(times)
}

function finestMinutes(minutes: readonly number[], hours: readonly number[]): string {
  const step = stepOf(minutes, 60)
  if (step !== undefined && step < 60) return `${everyUnit(step, 'minute')}${inHours(hours)}`
  const hourStep = stepOf(hours, 24)
  const isOnTheHour = minutes.length === 1 && minutes[0] === 0
  if (hourStep !== undefined && isOnTheHour) return everyUnit(hourStep, 'hour')
  return `at ${inUnit(minutes, 'minute')}${hourStep === undefined ? inHours(hours) : ` of every ${hourStep === 1 ? '' : `${position(hourStep)} `}hour`}`
}

function finestSeconds({ hours, minutes, seconds }: DayTimes): string {
  const step = stepOf(seconds, 60)
  const rhythm = step === undefined || step === 60 ? `at ${inUnit(seconds, 'second')}` : everyUnit(step, 'second')
  const minuteStep = stepOf(minutes, 60)
  if (minuteStep === 1) {
    return `${rhythm}${step === undefined || step === 60 ? ' of every minute' : ''}${inHours(hours)}`
  }
  const inMinutes =
    minuteStep === undefined || minuteStep === 60 ? inUnit(minutes, 'minute') : everyUnit(minuteStep, 'minute')
  return `${rhythm} of ${inMinutes}${inHours(hours)}`
}

function inHours(hours: readonly number[]): string {
  if (hours.length === 24) return ''
  const [first = 0, last = 0] = [hours[0], hours.at(-1)]
  if (hours.length === last - first + 1) {
    return ` from ${clockTime(first * 3_600_000)} to ${clockTime(last * 3_600_000 + 3_540_000)}`
  }
  const step = stepOf(hours, 24)
  return step === undefined ? ` in the ${inUnit(hours, 'hour')}` : ` of ${everyUnit(step, 'hour')}`
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
