import { duration } from '../data/format.ts'
import type { Language, Translate } from './translate.ts'

/** When a schedule fires, as its wire form says it. */
export interface TriggerShape {
  readonly kind: 'interval' | 'daily' | 'weekly' | 'monthly'
  readonly every_seconds?: number
  readonly time?: string
  readonly days?: readonly number[]
  readonly dates?: readonly (number | 'last')[]
}

/** "Every 1 hour" is no way to say it in any language. */
const ONE_UNIT: Readonly<Record<number, Parameters<Translate>[0]>> = {
  1: 'schedule.everySecond',
  60: 'schedule.everyMinute',
  3_600: 'schedule.everyHour',
  86_400: 'schedule.everyDay',
}

/** When a schedule fires, in the words of the language. */
export function triggerWords(trigger: TriggerShape, t: Translate, language: Language): string {
  const { kind, every_seconds: every = 0, time = '', days = [], dates = [] } = trigger
  const list = new Intl.ListFormat(language, { style: 'long', type: 'conjunction' })
  switch (kind) {
    case 'interval':
      return ONE_UNIT[every] === undefined
        ? t('schedule.every', { span: duration(every * 1_000, language) })
        : t(ONE_UNIT[every])
    case 'daily':
      return t('schedule.daily', { time })
    case 'weekly':
      return upper(t('schedule.weekly', { days: list.format(days.map((day) => dayName(day, language))), time }))
    case 'monthly': {
      const named = dates.map((date) => (date === 'last' ? t('schedule.lastDay') : t('schedule.date', { n: date })))
      return t('schedule.monthly', { dates: list.format(named), time })
    }
  }
}

/** From 1, Monday. The fifth of January 1970 was one. */
function dayName(day: number, language: Language): string {
  const format = new Intl.DateTimeFormat(language, { weekday: 'long', timeZone: 'UTC' })
  return format.format(Date.UTC(1970, 0, 4 + day))
}

function upper(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
