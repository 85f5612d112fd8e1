import { describe, expect, test } from 'vitest'
import { calendar } from './calendars/calendar.ts'
import { isoInstant } from './moment.ts'
import { preview } from './preview.ts'
import { anyOf, every, lastOccurrence, occurrencesBetween } from './series.ts'
import { trigger } from './trigger.ts'
import type { TriggerSpec } from './trigger.ts'
import { Zones } from './zone.ts'

const zones = new Zones()

function shown(specs: readonly TriggerSpec[], after: string, count: number, more: object = {}) {
  const { firings, leftOut, ...rest } = preview({
    triggers: specs.map((spec) => trigger(spec, zones)),
    after: Date.parse(after),
    count,
    ...more,
  })
  return {
    ...rest,
    firings: firings.map(({ local, notes }) => [local, ...notes]),
    leftOut: leftOut.map(({ local, reason }) => [local, reason]),
  }
}

describe('[K-03] a preview', () => {
  test('tells the next times, in words and with their offset', () => {
    const spec = { kind: 'cron', cron: '0 9 * * 1-5', timezone: 'Europe/Chisinau' } as const
    expect(shown([spec], '2025-03-28T00:00:00Z', 2)).toEqual({
      words: ['At 09:00, Monday to Friday, Europe/Chisinau'],
      firings: [['2025-03-28T09:00:00+02:00'], ['2025-03-31T09:00:00+03:00']],
      leftOut: [],
      isMoreLeftOut: false,
      isComplete: false,
    })
  })

  test('notes what clock changes do to cron', () => {
    const gap = { kind: 'cron', cron: '30 2 * * *', timezone: 'America/New_York' } as const
    expect(shown([gap], '2025-03-09T00:00:00Z', 1).firings).toEqual([
      ['2025-03-09T03:00:00-04:00', '02:30 does not exist on that day: the clock goes from 02:00 to 03:00.'],
    ])
    const fold = { kind: 'cron', cron: '30 1 * * *', timezone: 'America/New_York' } as const
    expect(shown([fold], '2025-11-02T00:00:00Z', 1).firings).toEqual([
      ['2025-11-02T01:30:00-04:00', '01:30 comes twice on that day; this is the first.'],
    ])
    const both = { kind: 'cron', cron: '30 * * * *', timezone: 'America/New_York' } as const
    expect(shown([both], '2025-11-02T05:00:00Z', 2).firings).toEqual([
      ['2025-11-02T01:30:00-04:00', '01:30 comes twice on that day; this is the first.'],
      ['2025-11-02T01:30:00-05:00', '01:30 comes twice on that day; this is the second.'],
    ])
    const dropped = { ...gap, gap: 'drop' } as const
    expect(shown([dropped], '2025-03-09T00:00:00Z', 1)).toMatchObject({
      firings: [['2025-03-10T02:30:00-04:00']],
      leftOut: [['2025-03-09T02:30:00', '02:30 does not exist on that day: the clock goes from 02:00 to 03:00.']],
    })
  })

  test('notes a day that an island has left out, and a single time in a gap', () => {
    const rule = { kind: 'rrule', rrule: 'FREQ=DAILY', dtstart: '2011-12-29T10:00', timezone: 'Pacific/Apia' } as const
    expect(shown([rule], '2011-01-01T00:00:00Z', 2).leftOut).toEqual([
      [
        '2011-12-30T10:00:00',
        '10:00 does not exist on that day: the clock goes from 2011-12-30 00:00 to 2011-12-31 00:00.',
      ],
    ])
    const once = { kind: 'once', at: '2025-03-09T02:30', timezone: 'America/New_York' } as const
    expect(shown([once], '2025-01-01T00:00:00Z', 1)).toMatchObject({
      words: ['Once at 2025-03-09 02:30:00, America/New_York'],
      firings: [['2025-03-09T03:30:00-04:00', '02:30 does not exist on that day: the clock goes from 02:00 to 03:00.']],
    })
  })

  test('tells what a rule drops at a clock change, but not what was left out anyway', () => {
    const spec = {
      kind: 'rrule',
      rrule: 'FREQ=DAILY',
      dtstart: '2025-03-08T02:30:00',
      timezone: 'America/New_York',
    } as const
    const { firings, leftOut } = shown([spec], '2025-03-01T00:00:00Z', 2)
    expect(firings).toEqual([['2025-03-08T02:30:00-05:00'], ['2025-03-10T02:30:00-04:00']])
    expect(leftOut).toHaveLength(1)
    const without = { ...spec, exdates: ['2025-03-09T02:30:00'] }
    expect(shown([without], '2025-03-01T00:00:00Z', 2).leftOut).toEqual([])
  })

  test('[K-14] tells what EXDATE leaves out, up to the last time that is shown or to the end', () => {
    const spec = {
      kind: 'rrule',
      rrule: 'FREQ=DAILY;COUNT=4',
      dtstart: '2026-05-01T09:00:00',
      exdates: ['2026-05-02T09:00:00', '2026-05-04'],
      timezone: 'Europe/Berlin',
    } as const
    const reason = 'Left out by an EXDATE of the rule.'
    const first = shown([spec], '2026-01-01T00:00:00Z', 2)
    expect(first.firings).toEqual([['2026-05-01T09:00:00+02:00'], ['2026-05-03T09:00:00+02:00']])
    expect(first.leftOut).toEqual([['2026-05-02T09:00:00+02:00', reason]])
    const all = shown([spec], '2026-01-01T00:00:00Z', 5)
    expect(all.leftOut).toEqual([
      ['2026-05-02T09:00:00+02:00', reason],
      ['2026-05-04T09:00:00+02:00', reason],
    ])
    const seconds = { ...spec, rrule: 'FREQ=SECONDLY', exdates: ['2026-05-01'] }
    expect(shown([seconds], '2026-01-01T00:00:00Z', 1)).toMatchObject({ isMoreLeftOut: true })
  })

  test('tells that a rule never happens, because clocks always jump over it', () => {
    const spec = {
      kind: 'rrule',
      rrule: 'FREQ=YEARLY;BYMONTH=3;BYDAY=2SU;BYHOUR=2;BYMINUTE=30',
      dtstart: '2024-01-01T00:00:00',
      timezone: 'America/New_York',
    } as const
    expect(shown([spec], '2024-01-01T00:00:00Z', 3)).toMatchObject({ firings: [], isComplete: true })
    expect(shown([{ ...spec, gap: 'first' }], '2024-01-01T00:00:00Z', 1).firings[0]?.[0]).toBe(
      '2024-03-10T03:00:00-04:00',
    )
  })

  test('joins several triggers, and tells which calendars leave out what', () => {
    const utc = zones.named('UTC')
    const holidays = calendar(
      { name: 'holidays', entries: [{ kind: 'days', first: '2026-12-25', label: 'Christmas' }] },
      zones,
      utc,
    )
    const business = calendar(
      { name: 'business', entries: [{ kind: 'weekdays', weekdays: [1, 2, 3, 4, 5] }] },
      zones,
      utc,
    )
    const specs = [
      { kind: 'cron', cron: '0 9 * * *', timezone: 'UTC' },
      { kind: 'once', at: '2026-12-24T12:00:00Z', timezone: 'UTC' },
    ] as const
    const restriction = { exclude: [holidays], only: [business] }
    const { firings, leftOut, words } = shown(specs, '2026-12-24T00:00:00Z', 3, { restriction })
    expect(words).toEqual(['At 09:00 every day, UTC', 'Once at 2026-12-24 12:00:00, UTC'])
    expect(firings.flat()).toEqual([
      '2026-12-24T09:00:00+00:00',
      '2026-12-24T12:00:00+00:00',
      '2026-12-28T09:00:00+00:00',
    ])
    expect(leftOut).toEqual([
      ['2026-12-25T09:00:00+00:00', 'In the calendar "holidays": Christmas.'],
      ['2026-12-26T09:00:00+00:00', 'Outside of the calendar "business".'],
      ['2026-12-27T09:00:00+00:00', 'Outside of the calendar "business".'],
    ])
  })

  test('has a bound for what is left out, and comes to an end', () => {
    const utc = zones.named('UTC')
    const all = calendar({ name: 'all', entries: [{ kind: 'weekdays', weekdays: [1, 2, 3, 4, 5, 6, 7] }] }, zones, utc)
    const never = { kind: 'cron', cron: '0 9 * * *', timezone: 'UTC' } as const
    const { firings, leftOut, isMoreLeftOut } = shown([never], '2026-01-01T00:00:00Z', 1, {
      restriction: { exclude: [all], only: [] },
    })
    expect(firings).toEqual([])
    expect(leftOut).toHaveLength(100)
    expect(isMoreLeftOut).toBe(true)
  })

  test('tells that a series is at its end', () => {
    const spec = { kind: 'rrule', rrule: 'FREQ=DAILY;COUNT=2', dtstart: '2026-01-01T09:00', timezone: 'UTC' } as const
    expect(shown([spec], '2025-01-01T00:00:00Z', 5)).toMatchObject({ isComplete: true })
    expect(shown([spec], '2025-01-01T00:00:00Z', 2)).toMatchObject({ isComplete: true })
    expect(shown([spec], '2025-01-01T00:00:00Z', 1)).toMatchObject({ isComplete: false })
    expect(shown([spec], '2025-01-01T00:00:00Z', 0)).toMatchObject({ firings: [], isComplete: false })
  })

  test('tells of changes to a rule', () => {
    const spec = { kind: 'rrule', rrule: 'FREQ=DAILY', dtstart: '2026-01-01T09:00', timezone: 'UTC' } as const
    expect(trigger({ ...spec, exdates: ['2026-01-02'], rdates: ['2026-02-01', '2026-02-02'] }, zones).words).toBe(
      'Every day at 09:00, from 2026-01-01 09:00:00, 1 time left out, 2 times added, UTC',
    )
  })
})

describe('[K-03] once', () => {
  test.for([
    ['2025-12-25T09:00:00+02:00', 'America/New_York', '2025-12-25T07:00:00Z'],
    ['2025-12-25T09:00:00Z', 'America/New_York', '2025-12-25T09:00:00Z'],
    ['2025-12-25T09:00:00', 'America/New_York', '2025-12-25T14:00:00Z'],
    ['2025-12-25', 'America/New_York', '2025-12-25T05:00:00Z'],
    ['2025-03-09T02:30:00', 'America/New_York', '2025-03-09T07:30:00Z'],
    ['2025-11-02T01:30:00', 'America/New_York', '2025-11-02T05:30:00Z'],
  ] as const)('%s in %s', ([written, timezone, expected]) => {
    const { series } = trigger({ kind: 'once', at: written, timezone }, zones)
    const found = series.next(Number.NEGATIVE_INFINITY)
    expect(isoInstant(found?.at ?? 0)).toBe(expected)
    expect(series.next(found?.at ?? 0)).toBeUndefined()
  })

  test('is refused if it is no time', () => {
    expect(() => trigger({ kind: 'once', at: 'next friday', timezone: 'UTC' }, zones)).toThrow(
      /once "next friday" is not a time/,
    )
    expect(() => trigger({ kind: 'once', at: '2025-12-25', timezone: 'Mars' }, zones)).toThrow(/no time zone "Mars"/)
  })
})

describe('[K-03] intervals', () => {
  test('are counted from their anchor', () => {
    const spec = { kind: 'every', everyMs: 90_000, anchor: 1_000, timezone: 'UTC' } as const
    const { series, words } = trigger(spec, zones)
    expect(words).toBe('Every 90 seconds, UTC')
    expect(series.next(Number.NEGATIVE_INFINITY)?.at).toBe(1_000)
    expect(series.next(1_000)?.at).toBe(91_000)
    expect(series.next(90_999)?.at).toBe(91_000)
    expect(occurrencesBetween(series, 1_000, 300_000, 10)).toHaveLength(3)
    expect(lastOccurrence(series, 1_000, 300_000)?.at).toBe(271_000)
    expect(lastOccurrence(series, 271_000, 300_000)).toBeUndefined()
    const wordsOf = (seconds: number): string => trigger({ ...spec, everyMs: seconds * 1_000 }, zones).words
    expect([1, 60, 900, 3_600, 86_400].map(wordsOf)).toEqual([
      'Every second, UTC',
      'Every minute, UTC',
      'Every 15 minutes, UTC',
      'Every hour, UTC',
      'Every 24 hours, UTC',
    ])
    expect(() => trigger({ ...spec, everyMs: 10 }, zones)).toThrow(/at least one second/)
  })

  test('go together with others', () => {
    const series = anyOf([every(3_000, 0), every(5_000, 0), { next: () => undefined }])
    const found: number[] = []
    for (let last = 0; found.length < 7; last = found.at(-1) ?? 0) found.push(series.next(last)?.at ?? 0)
    expect(found).toEqual([3_000, 5_000, 6_000, 9_000, 10_000, 12_000, 15_000])
  })
})
