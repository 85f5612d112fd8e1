import { expect, test } from 'vitest'
import { en } from './en.ts'
import { es } from './es.ts'
import { ru } from './ru.ts'
import { triggerWords } from './schedule-words.ts'
import type { TriggerShape } from './schedule-words.ts'
import { translator } from './translate.ts'

const TRIGGERS: readonly TriggerShape[] = [
  { kind: 'interval', every_seconds: 900 },
  { kind: 'interval', every_seconds: 86_400 },
  { kind: 'daily', time: '03:30' },
  { kind: 'weekly', time: '07:05', days: [1, 5] },
  { kind: 'monthly', time: '23:59', dates: [1, 'last'] },
]

test('[M-07] [F-04] when a schedule fires is said in the words of the language', () => {
  const words = (language: 'en' | 'es' | 'ru'): readonly string[] =>
    TRIGGERS.map((trigger) =>
      triggerWords(trigger, translator(language, { en, es, ru }[language]), language).replaceAll(/\s/g, ' '),
    )
  expect(words('en')).toEqual([
    'Every 15 min',
    'Every day',
    'Every day at 03:30',
    'Monday and Friday at 07:05',
    'Of each month: day 1 and the last day, at 23:59',
  ])
  expect(words('es')).toEqual([
    'Cada 15 min',
    'Cada día',
    'Cada día a las 03:30',
    'Lunes y viernes a las 07:05',
    'Cada mes: día 1 y el último día, a las 23:59',
  ])
  expect(words('ru')).toEqual([
    'Каждые 15 мин',
    'Каждый день',
    'Каждый день в 03:30',
    'Понедельник и пятница в 07:05',
    'Каждый месяц: 1-е число и последний день, в 23:59',
  ])
})
