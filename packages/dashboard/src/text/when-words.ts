import { isDraft, textOf } from '../automation/draft.ts'
import type { Draft } from '../automation/draft.ts'
import { plainTime } from '../automation/trigger-kind.ts'
import type { PlainTime } from '../automation/trigger-kind.ts'
import { triggerWords } from './schedule-words.ts'
import type { TriggerShape } from './schedule-words.ts'
import type { Language, Translate } from './translate.ts'

interface Said {
  readonly t: Translate
  readonly language: Language
}

/**
 * When an automation runs, in the words of the language. The server has English words for every trigger; what is not plain
 * enough to be said here stays in those.
 */
export function whenWords(definition: Draft, said: readonly string[], { t, language }: Said): readonly string[] {
  if (language === 'en') return said
  const { triggers, trigger, timezone } = definition
  const all: readonly unknown[] = Array.isArray(triggers) ? triggers : [trigger]
  if (all.length !== said.length) return said
  return said.map((words, at) => {
    const given = all[at]
    return (isDraft(given) ? wordsOf(given, textOf(timezone), { t, language }) : undefined) ?? words
  })
}

function wordsOf(trigger: Draft, zone: string, { t, language }: Said): string | undefined {
  const { timezone, kind, ...rest } = trigger
  const [[name, value] = ['', undefined], ...more] = Object.entries(rest)
  // What stands beside it says more than these words would.
  if (more.length > 0) return undefined
  if (name === 'cron') {
    const plain = plainTime(textOf(value))
    if (plain === undefined) return undefined
    return `${triggerWords(shapeOf(plain), t, language)}, ${textOf(timezone) || zone || 'UTC'}`
  }
  if (name === 'every' && typeof value === 'number') {
    return triggerWords({ kind: 'interval', every_seconds: value }, t, language)
  }
  if (name === 'event') return t('when.event', { topic: textOf(value) })
  if (name === 'source' && kind === 'webhook') return t('when.webhook', { source: textOf(value) })
  return kind === 'manual' && name === '' ? t('when.manual') : undefined
}

function shapeOf({ kind, time, day }: PlainTime): TriggerShape {
  if (kind === 'monthly') return { kind, time, dates: [day] }
  if (kind === 'daily') return { kind, time }
  // Monday is the first day, and Sunday the last.
  return { kind: 'weekly', time, days: kind === 'weekdays' ? [1, 2, 3, 4, 5] : [day === 0 ? 7 : day] }
}
