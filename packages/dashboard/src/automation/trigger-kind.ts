import type { Draft } from './draft.ts'
import { textOf } from './draft.ts'

export const TRIGGER_KINDS = [
  'daily',
  'weekdays',
  'weekly',
  'monthly',
  'every',
  'once',
  'cron',
  'rrule',
  'event',
  'condition',
  'webhook',
] as const
export type TriggerKind = (typeof TRIGGER_KINDS)[number]

/** Times of the day that a cron expression stands for, where it is a plain one. */
export interface PlainTime {
  readonly kind: 'daily' | 'weekdays' | 'weekly' | 'monthly'
  /** `09:30`. */
  readonly time: string
  /** Of the week from 0 (Sunday), or of the month. */
  readonly day: number
}

const PLAIN = /^(?<minute>\d{1,2}) (?<hour>\d{1,2}) (?<date>\*|\d{1,2}) \* (?<week>\*|1-5|[0-6])$/

export function plainTime(cron: string): PlainTime | undefined {
  const { minute = '', hour = '', date = '', week = '' } = PLAIN.exec(cron)?.groups ?? {}
  if (minute === '' || Number(minute) > 59 || Number(hour) > 23) return undefined
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (date !== '*') return week === '*' ? { kind: 'monthly', time, day: Number(date) } : undefined
  if (week === '*') return { kind: 'daily', time, day: 1 }
  return week === '1-5' ? { kind: 'weekdays', time, day: 1 } : { kind: 'weekly', time, day: Number(week) }
}

export function cronOf({ kind, time, day }: PlainTime): string {
  const [hour = 9, minute = 0] = time.split(':').map(Number)
  const at = `${minute} ${hour}`
  if (kind === 'monthly') return `${at} ${day} * *`
  return `${at} * * ${kind === 'daily' ? '*' : kind === 'weekdays' ? '1-5' : day}`
}

export function kindOf(trigger: Draft): TriggerKind {
  if (trigger['kind'] === 'webhook') return 'webhook'
  for (const kind of ['every', 'once', 'rrule', 'event', 'condition'] as const) if (kind in trigger) return kind
  return plainTime(textOf(trigger['cron']))?.kind ?? 'cron'
}

/** A trigger of another kind, with what usually stands there. */
export function triggerOf(kind: TriggerKind, before: Draft): Draft {
  const { time = '09:00' } = plainTime(textOf(before['cron'])) ?? {}
  switch (kind) {
    case 'daily':
    case 'weekdays':
    case 'weekly':
    case 'monthly':
      return { cron: cronOf({ kind, time, day: 1 }) }
    case 'every':
      return { every: 900 }
    case 'once':
      return { once: new Date(Date.now() + 86_400_000).toISOString().slice(0, 16) }
    case 'cron':
      return { cron: '*/15 9-17 * * 1-5' }
    case 'rrule':
      return { rrule: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0' }
    case 'event':
      return { event: 'order.paid' }
    case 'condition':
      return { condition: 'output.error_rate > 5' }
    case 'webhook':
      return { kind: 'webhook', source: '' }
  }
}
