import { expect, test } from 'vitest'
import { bytes, duration, relative } from './format.ts'

/** Blanks that keep a number and its unit on one line differ between languages. */
const said = (ms: number, language: string): string => duration(ms, language).replaceAll(/\s/g, ' ')

test('[M-07] a duration is said in the words of the language', () => {
  const spans = [820, 3_250, 33_000, 250_000, 7_500_000, 273_600_000]
  expect(spans.map((ms) => said(ms, 'en'))).toEqual([
    '820 ms',
    '3.2 sec',
    '33 sec',
    '4 min 10 sec',
    '2 hr 5 min',
    '3 days 4 hr',
  ])
  expect(spans.map((ms) => said(ms, 'ru'))).toEqual(['820 мс', '3,2 с', '33 с', '4 мин 10 с', '2 ч 5 мин', '3 дн. 4 ч'])
  expect(spans.map((ms) => said(ms, 'es'))).toEqual(['820 ms', '3,2 s', '33 s', '4 min 10 s', '2 h 5 min', '3 d 4 h'])
  expect([said(120_000, 'en'), said(Number.NaN, 'en'), said(-1, 'en')]).toEqual(['2 min', '–', '–'])
})

test('[M-07] a time to come is rounded, an age is counted in whole units, and no day is named wrongly', () => {
  const now = Date.UTC(2026, 10, 18, 23, 0)
  const within = (seconds: number, language: string): string =>
    relative(now / 1_000 + seconds, now, language).replaceAll(/\s/g, ' ')
  const day = 86_400
  expect([2 * day - 30, day, 3_590, -2 * day + 30, -day, 0.2].map((seconds) => within(seconds, 'en'))).toEqual([
    'in 2 days',
    'in 1 day',
    'in 60 min.',
    '1 day ago',
    '1 day ago',
    'now',
  ])
  expect(within(2 * day - 30, 'ru')).toBe('через 2 дня')
})

test('[M-07] no unit of a relative time can be taken for another one', () => {
  const spans = [5, 300, 7_200, 2 * 86_400, 32 * 86_400, 800 * 86_400]
  const within = (language: string): readonly string[] =>
    spans.map((seconds) => relative(seconds, 0, language).replaceAll(/\s/g, ' '))
  expect(within('en')).toEqual(['in 5 sec.', 'in 5 min.', 'in 2 hr.', 'in 2 days', 'in 1 month', 'in 2 years'])
  expect(within('es')).toEqual([
    'dentro de 5 s',
    'dentro de 5 min',
    'dentro de 2 h',
    'dentro de 2 días',
    'dentro de 1 mes',
    'dentro de 2 años',
  ])
  expect(within('ru')).toEqual([
    'через 5 сек.',
    'через 5 мин.',
    'через 2 ч',
    'через 2 дня',
    'через 1 месяц',
    'через 2 года',
  ])
})

test('[M-07] sizes are said in the words of the language', () => {
  const size = (count: number, language: string): string => bytes(count, language).replaceAll(/\s/g, ' ')
  const sizes = [63, 1_434, 24_576, 1_048_576]
  expect(sizes.map((count) => size(count, 'en'))).toEqual(['63 B', '1.4 kB', '24 kB', '1 MB'])
  // Versions of the language data differ in the case of the first letter.
  expect(sizes.map((count) => size(count, 'ru').toLowerCase())).toEqual(['63 б', '1,4 кб', '24 кб', '1 мб'])
})
