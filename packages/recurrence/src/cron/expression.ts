import { quoted, refusal } from '../refusal.ts'
import { hasAnyDay } from './days.ts'
import type { DayRules } from './days.ts'
import { parseField, wrong } from './fields.ts'
import type { Field, FieldShape } from './fields.ts'
import { LIMITS } from '../limits.ts'

/** A parsed cron expression. */
export interface CronExpression {
  readonly text: string
  readonly seconds: Field
  readonly minutes: Field
  readonly hours: Field
  readonly months: Field
  readonly days: DayRules
  /** How the two day fields were written, for the description in words. */
  readonly dayOfMonthText: string
  readonly dayOfWeekText: string
  readonly hasSeconds: boolean
}

const MACROS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

function numbered(names: readonly string[], first: number): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name, index) => [name, index + first]))
}

const MONTH_NAMES = numbered(['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'], 1)
const DAY_NAMES = numbered(['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'], 0)

const SECOND: FieldShape = { name: 'second', min: 0, max: 59 }
const MINUTE: FieldShape = { name: 'minute', min: 0, max: 59 }
const HOUR: FieldShape = { name: 'hour', min: 0, max: 23 }
const DAY_OF_MONTH: FieldShape = { name: 'day of month', min: 1, max: 31 }
const MONTH: FieldShape = { name: 'month', min: 1, max: 12, names: MONTH_NAMES }
const DAY_OF_WEEK: FieldShape = { name: 'day of week', min: 0, max: 7, names: DAY_NAMES }

/** Reads an expression of five fields, or of six with seconds in front, or a macro such as `@daily`. */
export function parseCron(text: string): CronExpression {
  if (text.length > LIMITS.cronLength) {
    throw refusal('cron', `A cron expression has at most ${LIMITS.cronLength} characters. This one has ${text.length}.`)
  }
  const written = text.trim()
  const fields = (written.startsWith('@') ? macro(written) : written).split(/\s+/)
  if (fields.length !== 5 && fields.length !== 6) throw wrongCount(text, written === '' ? 0 : fields.length)
  const [second = '0', minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] =
    fields.length === 6 ? fields : ['0', ...fields]
  const months = parseField(MONTH, month)
  const days = parseDays(dayOfMonth, dayOfWeek, months.values)
  if (!hasAnyDay(days)) {
    throw refusal('cron', `The cron expression ${quoted(text)} never matches: no month that it names has such a day.`)
  }
  return {
    text: written,
    seconds: parseField(SECOND, second),
    minutes: parseField(MINUTE, minute),
    hours: parseField(HOUR, hour),
    months,
    days,
    dayOfMonthText: dayOfMonth,
    dayOfWeekText: dayOfWeek,
    hasSeconds: fields.length === 6,
  }
}

function macro(text: string): string {
  const expression = MACROS[text.toLowerCase()]
  if (expression !== undefined) return expression
  const reason = /^@reboot$/i.test(text) ? '@reboot is not a time' : `there is no ${quoted(text)}`
  throw refusal('cron', `The cron expression cannot be used: ${reason}. There is ${Object.keys(MACROS).join(', ')}.`)
}

function wrongCount(text: string, count: number): Error {
  return refusal(
    'cron',
    `The cron expression ${quoted(text)} has ${count} field${count === 1 ? '' : 's'}. It takes five (minute, hour, day of ` +
      'month, month, day of week), or six with the second in front.',
  )
}

function parseDays(dayOfMonth: string, dayOfWeek: string, months: readonly number[]): DayRules {
  const fromLast = new Set<number>()
  const nearestWeekday = new Set<number>()
  let hasLastWeekday = false
  const byDate = parseField(
    {
      ...DAY_OF_MONTH,
      special: (item) => {
        const [isFromLast, back = '0'] = /^L(?:-(\d{1,2}))?$/.exec(item) ?? []
        const [, near] = /^(\d{1,2})W$/.exec(item) ?? []
        if (item === 'LW') hasLastWeekday = true
        else if (isFromLast !== undefined) fromLast.add(within(DAY_OF_MONTH, item, Number(back), [0, 30]))
        else if (near !== undefined) nearestWeekday.add(within(DAY_OF_MONTH, item, Number(near), [1, 31]))
        else return false
        return true
      },
    },
    dayOfMonth === '?' ? '*' : dayOfMonth,
  )
  const nthWeekdays: { readonly weekday: number; readonly nth: number }[] = []
  const lastWeekdays = new Set<number>()
  const byWeekday = parseField(
    {
      ...DAY_OF_WEEK,
      special: (item) => {
        const [, name, nth] = /^(\d|[A-Z]{3})(?:#(\d+)|L)$/.exec(item) ?? []
        if (item === 'L') throw wrong(DAY_OF_WEEK, item, 'L stands behind a day here, as in 5L, the last Friday')
        if (name === undefined) return false
        const [weekday = 0] = parseField(DAY_OF_WEEK, name).values.map((value) => value % 7)
        if (nth === undefined) lastWeekdays.add(weekday)
        else nthWeekdays.push({ weekday, nth: within(DAY_OF_WEEK, item, Number(nth), [1, 5]) })
        return true
      },
    },
    dayOfWeek === '?' ? '*' : dayOfWeek,
  )
  return {
    months,
    daysOfMonth: byDate.values,
    fromLast: [...fromLast],
    nearestWeekday: [...nearestWeekday],
    hasLastWeekday,
    weekdays: [...new Set(byWeekday.values.map((value) => value % 7))].sort((a, b) => a - b),
    nthWeekdays,
    lastWeekdays: [...lastWeekdays],
    isEither: !byDate.isOpen && !byWeekday.isOpen,
  }
}

function within(shape: FieldShape, item: string, value: number, [min, max]: readonly [number, number]): number {
  if (value < min || value > max) throw wrong(shape, item, `${value} is not in ${min}–${max}`)
  return value
}
