import {
  capitalised,
  dayTimes,
  listed,
  monthName,
  ordinal,
  position,
  rangeItems,
  ranges,
  weekdayName,
  weekdays,
} from '../words.ts'
import type { DayRules } from './days.ts'
import type { CronExpression } from './expression.ts'

/** An expression in words: `At 09:00, Monday to Friday`. */
export function cronInWords({ seconds, minutes, hours, months, days }: CronExpression): string {
  const times = dayTimes({ hours: hours.values, minutes: minutes.values, seconds: seconds.values })
  const names = months.values.length === 12 ? undefined : ranges(months.values, monthName)
  const byDate = datesInWords(days, names ?? 'the month')
  const byWeekday = weekdaysInWords(days)
  const inMonths = names === undefined || (byDate !== '' && byWeekday === '') ? '' : `in ${names}`
  const onDays = together(byDate, byWeekday, days.isEither)
  const everyDay = /^at \d/.test(times) && onDays === '' ? 'every day' : onDays
  const sentence = [times, everyDay, inMonths].filter((part) => part !== '').join(' ')
  return capitalised(sentence.replace(/ on (\w+day to \w+day)(?= in |$)/, ', $1'))
}

function together(byDate: string, byWeekday: string, isEither: boolean): string {
  if (byDate === '' || byWeekday === '') return byDate === '' ? byWeekday : byDate
  return isEither
    ? `${byDate} or ${byWeekday}`
    : `${byDate}, if it is ${byWeekday.replace(/^on (?!the )/, 'a ').replace(/^on /, '')}`
}

/** `on the 1st, 15th and last day of the month` */
function datesInWords({ daysOfMonth, fromLast, nearestWeekday, hasLastWeekday }: DayRules, month: string): string {
  if (daysOfMonth.length === 31) return ''
  const rhythm = everyNth(daysOfMonth)
  if (rhythm !== undefined) {
    return `on every ${position(rhythm)} day of ${month} from the ${ordinal(daysOfMonth[0] ?? 1)}`
  }
  const dates = [
    ...rangeItems(daysOfMonth, ordinal),
    ...fromLast.map((back) => `${position(-1 - back)} day`),
    ...(hasLastWeekday ? ['last weekday'] : []),
    ...nearestWeekday.map((day) => `weekday nearest to the ${ordinal(day)}`),
  ]
  return `on the ${listed(dates)} of ${month}`
}

/** Many evenly spaced days are described by their interval. */
function everyNth(days: readonly number[]): number | undefined {
  const [first = 0, second = 0] = days
  const step = second - first
  const isRhythm = days.length >= 4 && step >= 2 && days.every((day, index) => day === first + index * step)
  return isRhythm ? step : undefined
}

function weekdaysInWords({ weekdays: all, nthWeekdays, lastWeekdays }: DayRules): string {
  if (all.length === 7) return ''
  const ofMonth = [
    ...nthWeekdays.map(({ weekday, nth }) => `the ${position(nth)} ${weekdayName(weekday)}`),
    ...lastWeekdays.map((weekday) => `the last ${weekdayName(weekday)}`),
  ]
  const each = all.length === 0 ? [] : [weekdays(all)]
  return `on ${listed([...each, ...(ofMonth.length === 0 ? [] : [`${listed(ofMonth)} of the month`])])}`
}
