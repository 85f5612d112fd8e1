import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { intlClock } from '../intl-clock.fixture.ts'
import { isoInstant } from '../moment.ts'
import { occurrencesAfter } from '../series.ts'
import { Zone, Zones } from '../zone.ts'
import { cronSeries } from './cron.ts'
import { parseCron } from './expression.ts'
import { cronInWords } from './words.ts'

const UTC = new Zone('UTC')
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

function times(expression: string, after: string, count = 5, zone = UTC): readonly string[] {
  const found = occurrencesAfter(cronSeries(parseCron(expression), zone), Date.parse(after), count)
  return found.map(({ at }) => isoInstant(at).replace(':00Z', 'Z'))
}

describe('[K-03] a cron expression', () => {
  test.for([
    ['0 0 L * *', ['2024-01-31T00:00Z', '2024-02-29T00:00Z', '2024-03-31T00:00Z']],
    ['0 0 L-2 * *', ['2024-01-29T00:00Z', '2024-02-27T00:00Z', '2024-03-29T00:00Z']],
    ['0 0 1,15,L * *', ['2024-01-15T00:00Z', '2024-01-31T00:00Z', '2024-02-01T00:00Z']],
    ['0 0 LW * *', ['2024-01-31T00:00Z', '2024-02-29T00:00Z', '2024-03-29T00:00Z']],
    // 15 June 2024 is a Saturday, 15 September a Sunday, 1 June a Saturday, 30 June a Sunday.
    ['0 0 15W 6,9 *', ['2024-06-14T00:00Z', '2024-09-16T00:00Z', '2025-06-16T00:00Z']],
    ['0 0 1W 6 *', ['2024-06-03T00:00Z', '2025-06-02T00:00Z', '2026-06-01T00:00Z']],
    ['0 0 30W 6 *', ['2024-06-28T00:00Z', '2025-06-30T00:00Z', '2026-06-30T00:00Z']],
    ['0 0 * * FRI#3', ['2024-01-19T00:00Z', '2024-02-16T00:00Z', '2024-03-15T00:00Z']],
    ['0 0 * * 1#5', ['2024-01-29T00:00Z', '2024-04-29T00:00Z', '2024-07-29T00:00Z']],
    ['0 0 * * 0L', ['2024-01-28T00:00Z', '2024-02-25T00:00Z', '2024-03-31T00:00Z']],
    ['0 0 * * 7L', ['2024-01-28T00:00Z', '2024-02-25T00:00Z', '2024-03-31T00:00Z']],
    ['0 0 * * fri-sun', ['2024-01-05T00:00Z', '2024-01-06T00:00Z', '2024-01-07T00:00Z']],
    ['0 0 29 2 *', ['2024-02-29T00:00Z', '2028-02-29T00:00Z', '2032-02-29T00:00Z']],
    // If one field begins with a star, the other one decides, as in crontab(5).
    ['0 0 */2 * 1', ['2024-01-15T00:00Z', '2024-01-29T00:00Z', '2024-02-05T00:00Z']],
    ['0 0 13 * ?', ['2024-01-13T00:00Z', '2024-02-13T00:00Z', '2024-03-13T00:00Z']],
    ['  0\t0  13  *   ?  ', ['2024-01-13T00:00Z', '2024-02-13T00:00Z', '2024-03-13T00:00Z']],
    ['@Weekly', ['2024-01-07T00:00Z', '2024-01-14T00:00Z', '2024-01-21T00:00Z']],
    ['@annually', ['2025-01-01T00:00Z', '2026-01-01T00:00Z', '2027-01-01T00:00Z']],
    ['@midnight', ['2024-01-02T00:00Z', '2024-01-03T00:00Z', '2024-01-04T00:00Z']],
    ['05 09 * * *', ['2024-01-01T09:05Z', '2024-01-02T09:05Z', '2024-01-03T09:05Z']],
    ['*/90 * * * *', ['2024-01-01T01:00Z', '2024-01-01T02:00Z', '2024-01-01T03:00Z']],
  ] as const)('%s', ([expression, expected]) => {
    expect(times(expression, '2024-01-01T00:00:00Z', 3)).toEqual(expected)
  })

  test('with six fields counts seconds', () => {
    const found = occurrencesAfter(cronSeries(parseCron('*/20 59 23 * * *'), UTC), Date.UTC(2024, 0, 1), 4)
    expect(found.map(({ at }) => isoInstant(at))).toEqual([
      '2024-01-01T23:59:00Z',
      '2024-01-01T23:59:20Z',
      '2024-01-01T23:59:40Z',
      '2024-01-02T23:59:00Z',
    ])
  })

  test('finds Sunday the 29th of February across 2100', () => {
    expect(times('0 0 29 2 */7', '2072-03-01T00:00:00Z', 1)).toEqual(['2088-02-29T00:00Z'])
    expect(times('0 0 29 2 */7', '2088-03-01T00:00:00Z', 1)).toEqual(['2128-02-29T00:00Z'])
  })

  test('ends with the year 9999', () => {
    expect(times('0 0 1 1 *', '9998-06-01T00:00:00Z', 3)).toEqual(['9999-01-01T00:00Z'])
  })
})

describe('[K-03] a cron expression that is wrong is refused by the name of its field', () => {
  test.for([
    ['60 * * * *', /minute "60".*60 is not in 0–59/],
    ['* 24 * * *', /hour "24".*24 is not in 0–23/],
    ['* * 0 * *', /day of month "0".*0 is not in 1–31/],
    ['* * * 13 *', /month "13".*13 is not in 1–12/],
    ['* * * * 8', /day of week "8".*8 is not in 0–7/],
    ['60 * * * * *', /second "60"/],
    ['* * * foo *', /month "foo".*neither a number nor a name/],
    ['* * * * monday', /day of week "monday"/],
    ['mon * * * *', /minute "mon".*no whole number/],
    ['1,,2 * * * *', /minute.*nothing between two commas/],
    ['1-2-3 * * * *', /minute.*a range has two ends/],
    ['1/2/3 * * * *', /minute.*more than one "\/"/],
    ['*/x * * * *', /minute.*a step is a whole number/],
    ['-5 * * * *', /minute/],
    ['* * 15W,32W * *', /day of month "32W".*32 is not in 1–31/],
    ['* * L-31 * *', /day of month "L-31"/],
    ['* * * * 5#6', /day of week "5#6".*6 is not in 1–5/],
    ['* * * * 5#0', /day of week "5#0"/],
    ['* * * * L', /day of week "L".*5L, the last Friday/],
    ['* * * * 9L', /day of week/],
    ['H * * * *', /minute "H"/],
    ['', /has 0 fields/],
    ['*', /has 1 field\./],
    ['* * * * * * 2026', /has 7 fields/],
    ['@every 5m', /there is no "@every 5m"/],
    ['0 0 31 2,4 *', /never matches/],
    ['0 0 30 feb *', /never matches/],
    ['x'.repeat(2_000), /at most 1000 characters/],
    [`${'1,'.repeat(499)}1 * * * *`, /at most 1000 characters/],
  ] as const)('%s', ([expression, message]) => {
    expect(() => parseCron(expression)).toThrow(message)
  })
})

/** Every minute of a zone's clock, one after the other: slow, and without any of our own arithmetic. */
function minuteByMinute(expression: string, name: string, after: number, days: number): readonly number[] {
  const clock = intlClock(name)
  const { minutes, hours } = parseCron(expression)
  const isOpen = expression.split(' ')[1]?.startsWith('*') === true
  const matches = (shown: number): boolean =>
    minutes.values.includes(new Date(shown).getUTCMinutes()) && hours.values.includes(new Date(shown).getUTCHours())
  const found = new Set<number>()
  const seen = new Set<number>()
  let before = after - DAY_MS + clock(after - DAY_MS)
  for (let at = after - DAY_MS + MINUTE_MS; at <= after + days * DAY_MS; at += MINUTE_MS) {
    const shown = at + clock(at)
    if (!isOpen) {
      for (let missing = before + MINUTE_MS; missing < shown; missing += MINUTE_MS) {
        if (matches(missing)) found.add(at)
      }
    }
    if (matches(shown) && (isOpen || !seen.has(shown))) found.add(at)
    seen.add(shown)
    before = shown
  }
  return [...found].filter((at) => at > after).sort((a, b) => a - b)
}

test('[K-03] cron agrees with a clock that is looked at every minute, over clock changes', { timeout: 120_000 }, () => {
  const zones = new Zones()
  const list = (max: number): fc.Arbitrary<string> =>
    fc.uniqueArray(fc.integer({ min: 0, max }), { minLength: 1, maxLength: 4 }).map((values) => values.join(','))
  const minute = fc.oneof(list(59), fc.constantFrom('*', '*/15', '*/7', '30-45'))
  const hour = fc.oneof(list(3), list(23), fc.constantFrom('*', '*/2', '1-4', '0'))
  const changes = fc.constantFrom(
    ['America/New_York', '2025-03-08'],
    ['America/New_York', '2025-11-01'],
    ['Australia/Lord_Howe', '2025-10-04'],
    ['Australia/Lord_Howe', '2025-04-05'],
    ['Antarctica/Troll', '2025-03-29'],
    ['America/Sao_Paulo', '2018-11-03'],
    ['America/Sao_Paulo', '2018-02-17'],
    ['Africa/Casablanca', '2025-04-05'],
    ['Africa/Cairo', '2024-10-31'],
    ['Asia/Kathmandu', '2025-06-01'],
    ['Pacific/Apia', '2011-12-29'],
  )
  fc.assert(
    fc.property(minute, hour, changes, fc.integer({ min: 0, max: 1_500 }), (m, h, [name = '', date = ''], minutes) => {
      const expression = `${m} ${h} * * *`
      const after = Date.parse(`${date}T00:00:00Z`) + minutes * MINUTE_MS
      const expected = minuteByMinute(expression, name, after, 2)
      const actual = occurrencesAfter(cronSeries(parseCron(expression), zones.named(name)), after, expected.length)
      expect(actual.map(({ at }) => isoInstant(at))).toEqual(expected.map(isoInstant))
    }),
    { numRuns: 60 },
  )
})

test('[K-03] cron is told in words', () => {
  const words: Readonly<Record<string, string>> = {
    '0 9 * * 1-5': 'At 09:00, Monday to Friday',
    '* * * * *': 'Every minute',
    '*/15 * * * *': 'Every 15 minutes',
    '*/10 9-17 * * MON-FRI': 'Every 10 minutes from 09:00 to 17:59, Monday to Friday',
    '0 */2 * * *': 'Every 2 hours',
    '15 */2 * * *': 'At minute 15 of every second hour',
    '0 0 13 * 5': 'At 00:00 on the 13th of the month or on Friday',
    '0 0 */2 * 1': 'At 00:00 on every second day of the month from the 1st, if it is a Monday',
    '0 0 1,15,L * *': 'At 00:00 on the 1st, 15th and last day of the month',
    '0 12 15W 6 *': 'At 12:00 on the weekday nearest to the 15th of June',
    '0 0 * 1 5#3,2L': 'At 00:00 on the third Friday and the last Tuesday of the month in January',
    '*/5 * * * * *': 'Every 5 seconds',
    '30 0 12 * * *': 'At 12:00:30 every day',
    '@yearly': 'At 00:00 on the 1st of January',
    '1-5 9,12,15,18 * * *': 'At minutes 1 to 5 in the hours 9, 12, 15 and 18',
  }
  for (const [expression, sentence] of Object.entries(words)) expect(cronInWords(parseCron(expression))).toBe(sentence)
})
