import { expect, test } from 'vitest'
import { en } from './en.ts'
import { es } from './es.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'
import { whenWords } from './when-words.ts'

const SAID = ['At 09:00 on Monday, Europe/Madrid']
const inRussian = { t: translator('ru', ru), language: 'ru' } as const
const inSpanish = { t: translator('es', es), language: 'es' } as const

test('[M-07] when an automation runs is said in the language of the page', () => {
  const weekly = { timezone: 'Europe/Madrid', triggers: [{ cron: '0 9 * * 1' }] }
  expect(whenWords(weekly, SAID, { t: translator('en', en), language: 'en' })).toEqual(SAID)
  expect(whenWords(weekly, SAID, inRussian)).toEqual(['Понедельник в 09:00, Europe/Madrid'])
  expect(whenWords(weekly, SAID, inSpanish)).toEqual(['Lunes a las 09:00, Europe/Madrid'])
  const spoken = (trigger: object): readonly string[] => whenWords({ trigger }, ['English'], inRussian)
  expect(spoken({ cron: '5 7 * * *' })).toEqual(['Каждый день в 07:05, UTC'])
  expect(spoken({ cron: '5 7 * * 0', timezone: 'Asia/Tokyo' })).toEqual(['Воскресенье в 07:05, Asia/Tokyo'])
  expect(spoken({ every: 3_600 })).toEqual(['Каждый час'])
  expect(spoken({ event: 'order.paid' })).toEqual(['После события order.paid'])
  expect(spoken({ kind: 'webhook', source: 'shop' })).toEqual(['После вебхука от shop'])
  expect(spoken({ kind: 'manual' })).toEqual(['Только вручную'])
})

test('[M-07] what these words cannot say stays in those of the server', () => {
  for (const trigger of [
    { cron: '*/5 9-17 * * 1-5' },
    { rrule: 'FREQ=DAILY' },
    { event: 'order.*', filter: 'event.total > 100' },
    { every: 60, anchor: '2026-01-01T00:00:00Z' },
    'odd',
  ]) {
    expect(whenWords({ triggers: [trigger] }, ['English'], inRussian)).toEqual(['English'])
  }
  expect(whenWords({ triggers: [] }, ['English'], inRussian)).toEqual(['English'])
})
