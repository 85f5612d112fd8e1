import { DAY_MS } from '@impresario/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCron } from '../cron/expression.ts'
import { cronSeries } from '../cron/cron.ts'
import { isoInstant } from '../moment.ts'
import { occurrencesAfter } from '../series.ts'
import { Zones } from '../zone.ts'
import { calendar } from './calendar.ts'
import type { CalendarEntry } from './calendar.ts'
import { exclusionOf, restricted } from './restriction.ts'

const zones = new Zones()
const CHISINAU = zones.named('Europe/Chisinau')

function made(entries: readonly CalendarEntry[], timezone?: string) {
  return calendar({ name: 'holidays', entries, ...(timezone === undefined ? {} : { timezone }) }, zones, CHISINAU)
}

function at(time: string): number {
  return Date.parse(time)
}

const HOLIDAYS: readonly CalendarEntry[] = [
  { kind: 'days', first: '2026-12-25', label: 'Christmas' },
  { kind: 'days', first: '2026-01-01', last: '2026-01-02', label: 'New Year' },
  { kind: 'rule', dtstart: '2020-08-27', rrule: 'FREQ=YEARLY', label: 'Independence Day' },
]

describe('[K-14] a calendar', () => {
  test('has whole days, from midnight to midnight where they are kept', () => {
    const holidays = made(HOLIDAYS)
    expect(holidays.at(at('2026-12-24T21:59:59Z'))).toBeUndefined()
    expect(holidays.at(at('2026-12-24T22:00:00Z'))).toEqual({ to: at('2026-12-25T22:00:00Z'), label: 'Christmas' })
    expect(holidays.at(at('2026-12-25T22:00:00Z'))).toBeUndefined()
    expect(holidays.at(at('2026-01-02T12:00:00Z'))?.label).toBe('New Year')
    expect(holidays.at(at('2026-01-03T12:00:00Z'))).toBeUndefined()
    expect(holidays.at(at('2031-08-27T12:00:00+03:00'))?.label).toBe('Independence Day')
    expect(made(HOLIDAYS, 'Asia/Tokyo').at(at('2026-12-24T15:00:00Z'))?.label).toBe('Christmas')
  })

  test('has the label of the last entry that lists a day, and begins its next day where that is', () => {
    const [firstDay, dayCount] = [at('2026-01-01T00:00:00Z') / DAY_MS, 40]
    const text = (day: number): string => new Date((firstDay + day) * DAY_MS).toISOString().slice(0, 10)
    const entry = fc
      .tuple(fc.nat(dayCount - 1), fc.nat(9), fc.constantFrom('a', 'b', 'c'))
      .map(([first, more, label]) => ({ first, last: Math.min(first + more, dayCount - 1), label }))
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), (listed) => {
        const whole = calendar(
          {
            name: 'x',
            entries: listed.map((one) => ({ ...one, kind: 'days', first: text(one.first), last: text(one.last) })),
          },
          zones,
          zones.named('UTC'),
        )
        const labelOf = (day: number) => listed.findLast(({ first, last }) => first <= day && day <= last)?.label
        for (let day = 0; day < dayCount; day += 1) {
          const noon = (firstDay + day + 0.5) * DAY_MS
          const next = Array.from({ length: dayCount - day }, (_, index) => day + 1 + index).find((one) => labelOf(one))
          expect(whole.at(noon)?.label).toBe(labelOf(day))
          expect(whole.next(noon)).toBe(next === undefined ? undefined : (firstDay + next) * DAY_MS)
        }
      }),
      { numRuns: 200, seed: 11 },
    )
  })

  test('[C-10] takes as much of the memory as its definition, however many days it lists', () => {
    const decade = (year: number) => ({ kind: 'days' as const, first: `${year}-01-01`, last: `${year + 9}-12-31` })
    const entries = Array.from({ length: 899 }, (_, index) => decade(1_000 + 10 * index))
    const before = process.memoryUsage().heapUsed
    const all = Array.from({ length: 5 }, () => made(entries))
    // Each has three million days: day by day these are 800 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(150_000_000)
    expect(all[4]?.at(at('2026-01-01T12:00:00Z'))).toBeDefined()
  })

  test('[C-10] counts the occurrences of its rules up to a bound, over all of them', () => {
    const counting = (count: number): CalendarEntry => ({
      kind: 'rule',
      dtstart: '2026-01-01T00:00',
      rrule: `FREQ=DAILY;COUNT=${count}`,
    })
    expect(() => made([counting(50_000), counting(50_000)])).not.toThrow()
    expect(() => made([counting(50_000), counting(50_001)])).toThrow(/have a COUNT of 100001 together/)
  })

  test('says the same of every moment, whatever was asked before', () => {
    const entries: readonly CalendarEntry[] = [
      { kind: 'rule', dtstart: '2026-01-05T09:00', rrule: 'FREQ=DAILY;INTERVAL=3', durationMs: 36 * 3_600_000 },
      { kind: 'rule', dtstart: '2026-02-01', rrule: 'FREQ=MONTHLY;COUNT=3' },
      { kind: 'rule', dtstart: '2026-01-01T00:00', rrule: 'FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30' },
    ]
    const one = made(entries)
    const moments = fc.array(fc.integer({ min: at('2025-12-20T00:00:00Z'), max: at('2026-06-01T00:00:00Z') }), {
      maxLength: 8,
    })
    fc.assert(
      fc.property(moments, (instants) => {
        for (const instant of instants) {
          const fresh = made(entries)
          expect([one.at(instant), one.next(instant)]).toEqual([fresh.at(instant), fresh.next(instant)])
        }
      }),
      { numRuns: 50, seed: 5 },
    )
  })

  test('has days that are an hour shorter, and days without a midnight', () => {
    const spring = made([{ kind: 'days', first: '2025-03-30' }])
    expect(spring.at(at('2025-03-30T12:00:00+03:00'))).toEqual({
      to: at('2025-03-31T00:00:00+03:00'),
      label: 'holidays',
    })
    const brazil = made([{ kind: 'days', first: '2018-11-04' }], 'America/Sao_Paulo')
    expect(brazil.next(at('2018-11-01T00:00:00Z'))).toBe(at('2018-11-04T03:00:00Z'))
    expect(brazil.at(at('2018-11-04T02:59:59Z'))).toBeUndefined()
  })

  test('has days of the week', () => {
    const business = made([{ kind: 'weekdays', weekdays: [1, 2, 3, 4, 5] }])
    expect(business.at(at('2026-11-13T23:59:59+02:00'))).toBeDefined()
    expect(business.at(at('2026-11-14T00:00:00+02:00'))).toBeUndefined()
    expect(business.next(at('2026-11-14T12:00:00Z'))).toBe(at('2026-11-16T00:00:00+02:00'))
  })

  test('has windows, once and again and again, in their own zone', () => {
    const maintenance = made([
      { kind: 'window', start: '2026-11-20T22:00', end: '2026-11-21T02:00', label: 'Move' },
      {
        kind: 'rule',
        dtstart: '2026-01-04T02:00',
        rrule: 'FREQ=WEEKLY',
        durationMs: 7_200_000,
        timezone: 'Europe/London',
      },
    ])
    expect(maintenance.at(at('2026-11-20T20:00:00Z'))).toEqual({ to: at('2026-11-21T00:00:00Z'), label: 'Move' })
    expect(maintenance.at(at('2026-11-21T00:00:00Z'))).toBeUndefined()
    expect(maintenance.at(at('2026-07-05T01:00:00Z'))).toEqual({ to: at('2026-07-05T03:00:00Z'), label: 'holidays' })
    expect(maintenance.at(at('2026-07-05T02:59:59Z'))).toBeDefined()
    expect(maintenance.at(at('2026-07-05T03:00:00Z'))).toBeUndefined()
    expect(maintenance.next(at('2026-07-05T01:00:00Z'))).toBe(at('2026-07-12T01:00:00Z'))
  })

  test('has several days in a row that come again', () => {
    const weekend = made([{ kind: 'rule', dtstart: '2026-01-03', rrule: 'FREQ=WEEKLY', durationMs: 2 * 86_400_000 }])
    expect(weekend.at(at('2026-11-14T10:00:00Z'))).toEqual({ to: at('2026-11-16T00:00:00+02:00'), label: 'holidays' })
    expect(weekend.at(at('2026-11-15T21:59:59Z'))).toBeDefined()
    expect(weekend.at(at('2026-11-16T10:00:00Z'))).toBeUndefined()
    expect(weekend.next(at('2026-11-14T10:00:00Z'))).toBe(at('2026-11-21T00:00:00+02:00'))
  })

  test('knows when its next time begins, and that there is none', () => {
    const holidays = made(HOLIDAYS.slice(0, 2))
    expect(holidays.next(at('2026-01-01T12:00:00Z'))).toBe(at('2026-01-02T00:00:00+02:00'))
    expect(holidays.next(at('2026-01-02T12:00:00Z'))).toBe(at('2026-12-25T00:00:00+02:00'))
    expect(holidays.next(at('2026-12-26T00:00:00Z'))).toBeUndefined()
    expect(made([]).next(0)).toBeUndefined()
    expect(made([]).at(0)).toBeUndefined()
  })

  test.for([
    [{ kind: 'days', first: '2026-12-25T10:00' }, /a date such as 2026-12-25/],
    [{ kind: 'days', first: '2026-12-25', last: '2026-12-24' }, /are none/],
    [{ kind: 'days', first: '2000-01-01', last: '2026-12-24' }, /more than ten years/],
    [{ kind: 'weekdays', weekdays: [0] }, /from 1 \(Monday\) to 7/],
    [{ kind: 'weekdays', weekdays: [] }, /from 1 \(Monday\) to 7/],
    [{ kind: 'window', start: '2026-12-25T10:00', end: '2026-12-25T10:00' }, /has no length/],
    [{ kind: 'rule', dtstart: '2026-12-25', rrule: 'FREQ=NEVER' }, /FREQ/],
    [{ kind: 'rule', dtstart: '2026-12-25', durationMs: 1 }, /in whole days/],
    [{ kind: 'rule', dtstart: '2026-12-25', durationMs: -1 }, /duration/],
    [{ kind: 'rule', dtstart: '2026-12-25T10:00', durationMs: Number.NaN }, /duration/],
    [{ kind: 'rule', dtstart: '2026-12-25', timezone: 'Mars/Olympus' }, /no time zone "Mars\/Olympus"/],
  ] as const)('is refused with %j', ([entry, message]) => {
    expect(() => made([entry])).toThrow(message)
  })

  test('has a bound', () => {
    const day = { kind: 'days', first: '2026-12-25' } as const
    expect(() => made(Array.from({ length: 5_001 }, () => day))).toThrow(/5001 entries/)
    const rule = { kind: 'rule', dtstart: '2026-12-25', rrule: 'FREQ=YEARLY' } as const
    expect(() => made(Array.from({ length: 501 }, () => rule))).toThrow(/501 entries that repeat/)
  })
})

describe('[K-14] a series with calendars', () => {
  const nine = cronSeries(parseCron('0 9 * * *'), CHISINAU)
  const business = calendar(
    { name: 'business days', entries: [{ kind: 'weekdays', weekdays: [1, 2, 3, 4, 5] }] },
    zones,
    CHISINAU,
  )
  const holidays = made(HOLIDAYS)

  test('leaves out what one of them excludes and what not all of the others have', () => {
    const series = restricted(nine, { exclude: [holidays], only: [business] })
    const found = occurrencesAfter(series, at('2026-12-23T00:00:00Z'), 4).map((one) => isoInstant(one.at))
    expect(found).toEqual([
      '2026-12-23T07:00:00Z',
      '2026-12-24T07:00:00Z',
      '2026-12-28T07:00:00Z',
      '2026-12-29T07:00:00Z',
    ])
  })

  test('says why', () => {
    const restriction = { exclude: [holidays], only: [business] }
    expect(exclusionOf(restriction, at('2026-12-25T09:00:00+02:00'))).toEqual({
      calendar: 'holidays',
      label: 'Christmas',
      until: at('2026-12-26T00:00:00+02:00'),
    })
    expect(exclusionOf(restriction, at('2026-12-26T09:00:00+02:00'))).toEqual({
      calendar: 'business days',
      label: undefined,
      until: at('2026-12-28T00:00:00+02:00'),
    })
    expect(exclusionOf(restriction, at('2026-12-28T09:00:00+02:00'))).toBeUndefined()
  })

  test('goes over what is excluded in one step', () => {
    let asked = 0
    const everySecond = cronSeries(parseCron('* * * * * *'), CHISINAU)
    const counted = {
      next: (after: number) => {
        asked += 1
        return everySecond.next(after)
      },
    }
    const series = restricted(counted, { exclude: [holidays], only: [] })
    expect(series.next(at('2026-12-24T23:59:59+02:00'))?.at).toBe(at('2026-12-26T00:00:00+02:00'))
    expect(asked).toBe(2)
  })

  test('ends where calendars leave nothing over', () => {
    const never = calendar({ name: 'never', entries: [] }, zones, CHISINAU)
    expect(restricted(nine, { exclude: [], only: [never] }).next(0)).toBeUndefined()
    const always = calendar(
      { name: 'always', entries: [{ kind: 'weekdays', weekdays: [1, 2, 3, 4, 5, 6, 7] }] },
      zones,
      CHISINAU,
    )
    expect(restricted(nine, { exclude: [always], only: [] }).next(0)).toBeUndefined()
  })
})
