import { isoDate, isoInstant, isoLocal } from '../moment.ts'
import type { Moment } from '../moment.ts'
import {
  capitalised,
  dayTimes,
  inUnit,
  listed,
  monthName,
  ordinal,
  position,
  rangeItems,
  ranges,
  weekdayName,
  weekdays,
} from '../words.ts'
import { startOf } from './days.ts'
import type { Start } from './days.ts'
import { timesOf } from './periods.ts'
import type { Rule } from './rule.ts'

const UNITS = {
  YEARLY: 'year',
  MONTHLY: 'month',
  WEEKLY: 'week',
  DAILY: 'day',
  HOURLY: 'hour',
  MINUTELY: 'minute',
  SECONDLY: 'second',
} as const

/** A rule in words: `Every 2 weeks on Tuesday and Thursday at 14:30, 10 times`. `start` is the local time of DTSTART. */
export function ruleInWords(rule: Rule, start: number): string {
  const unit = UNITS[rule.frequency]
  const rhythm = rule.interval === 1 ? `every ${unit}` : `every ${rule.interval} ${unit}s`
  const isElapsed = ['HOURLY', 'MINUTELY', 'SECONDLY'].includes(rule.frequency)
  const times = isElapsed ? withinDay(rule, start) : dayTimes(timesOf(rule, start))
  const parts = [rhythm, ...inMonths(rule), ...inWeeks(rule), ...onDays(rule, startOf(start))]
  const said = parts.join(' ')
  const hasComma = times.startsWith('every') || said.includes(', if it is ')
  const sentence = times === '' ? said : `${said}${hasComma ? ',' : ''} ${times}`
  const from = `from ${isoLocal(start).replace('T', ' ')}`
  return capitalised([sentence, ...positions(rule, unit), ...skipped(rule), from, ...end(rule)].join(', '))
}

function inMonths({ months, frequency }: Rule): readonly string[] {
  // A yearly rule with one month and one day of it is described together with the day.
  return months.length === 0 || frequency === 'YEARLY' ? [] : [`in ${ranges(months, monthName)}`]
}

function inWeeks({ weekNumbers }: Rule): readonly string[] {
  const [forward, backward] = [weekNumbers.filter((week) => week > 0), weekNumbers.filter((week) => week < 0)]
  const weeks = [
    ...(forward.length === 0 ? [] : [inUnit(forward, 'week')]),
    ...backward.toReversed().map((week) => `the ${position(week)} week`),
  ]
  return weeks.length === 0 ? [] : [`in ${listed(weeks)}`]
}

function onDays(rule: Rule, start: Start): readonly string[] {
  const { frequency, days, monthDays, yearDays, weekNumbers } = rule
  const months = rule.months.length === 0 ? '' : ` of ${ranges(rule.months, monthName)}`
  const monthPeriod = frequency === 'YEARLY' && months !== '' ? months : ' of the month'
  const chosen = [
    ...(yearDays.length === 0 ? [] : [`on ${daysFromBothEnds(yearDays)} of the year`]),
    ...(monthDays.length === 0 ? [] : [`on ${daysFromBothEnds(monthDays)}${monthPeriod}`]),
    ...(days.length === 0 ? [] : [`on ${byDay(rule, monthPeriod)}`]),
  ]
  const isSaid = chosen.some((part) => part.endsWith(months))
  if (chosen.length > 0) {
    const text = chosen
      .join(', if it is ')
      .replaceAll(/(if it is )on (?!the )/g, '$1a ')
      .replaceAll('if it is on ', 'if it is ')
    return [frequency === 'YEARLY' && months !== '' && !isSaid ? `${text} in${months.slice(3)}` : text]
  }
  if (weekNumbers.length > 0 || frequency === 'WEEKLY') return [`on ${weekdayName(start.weekday)}`]
  if (frequency === 'MONTHLY') return [`on the ${ordinal(start.day)}`]
  if (frequency === 'YEARLY') {
    return [`on the ${ordinal(start.day)}${months === '' ? ` of ${monthName(start.month)}` : months}`]
  }
  return []
}

/** `the 1st, 15th and last day` */
function daysFromBothEnds(days: readonly number[]): string {
  const forward = days.filter((day) => day > 0)
  const backward = days.filter((day) => day < 0).toReversed()
  const all = [...rangeItems(forward, ordinal), ...backward.map((day) => `${position(day)} day`)]
  return `the ${listed(all)}`
}

function byDay({ days, frequency, months }: Rule, monthPeriod: string): string {
  const each = days.filter(({ ordinal: nth }) => nth === 0).map(({ weekday }) => weekday)
  const counted = days.filter(({ ordinal: nth }) => nth !== 0)
  const period = frequency === 'MONTHLY' || months.length > 0 ? monthPeriod : ' of the year'
  const all = [
    ...(each.length === 0 ? [] : [weekdays(each)]),
    ...counted.map(({ ordinal: nth, weekday }) => `the ${position(nth)} ${weekdayName(weekday)}`),
  ]
  return `${listed(all)}${counted.length > 0 ? period : ''}`
}

/** The restrictions that hourly and shorter rules place on the clock. */
function withinDay({ frequency, hours, minutes, seconds }: Rule, start: number): string {
  const times = timesOf({ hours: [], minutes, seconds }, start)
  const parts: string[] = []
  if (frequency === 'HOURLY') parts.push(`at ${inUnit(times.minutes, 'minute')}`)
  else if (minutes.length > 0) parts.push(`in ${inUnit(minutes, 'minute')}`)
  const isOnTheMinute = times.seconds.length === 1 && times.seconds[0] === 0
  if (seconds.length > 0 || (frequency !== 'SECONDLY' && !isOnTheMinute)) {
    parts.push(`at ${inUnit(times.seconds, 'second')}`)
  }
  if (hours.length > 0) parts.push(`in ${inUnit(hours, 'hour')}`)
  return parts.join(' ')
}

function positions({ positions: all }: Rule, unit: string): readonly string[] {
  if (all.length === 0) return []
  return [`only the ${listed(all.map(position))} of these in each ${unit}`]
}

function skipped({ skip }: Rule): readonly string[] {
  if (skip === 'OMIT') return []
  return [`a day that does not exist gives way to the day ${skip === 'FORWARD' ? 'after' : 'before'}`]
}

function end({ count, until }: Rule): readonly string[] {
  if (count !== undefined) return [count === 1 ? 'once' : `${count} times`]
  return until === undefined ? [] : [`until ${momentInWords(until)}`]
}

function momentInWords(moment: Moment): string {
  switch (moment.kind) {
    case 'instant':
      return isoInstant(moment.at)
    case 'local':
      return isoLocal(moment.local).replace('T', ' ')
    case 'date':
      return isoDate(moment.dayNo)
  }
}
