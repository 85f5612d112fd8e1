import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoInstant, isoLocal } from '../moment.ts'
import { BEGINNING, occurrencesAfter } from '../series.ts'
import { Zone, Zones } from '../zone.ts'
import { withImpliedStart } from './implied-start.ts'
import { parseRule } from './parse.ts'
import { recurrence } from './recurrence.ts'
import type { RecurrenceOptions, RecurrenceSpec } from './recurrence.ts'
import { ruleInWords } from './words.ts'

const zones = new Zones()

function times(spec: RecurrenceSpec, zone = 'UTC', count = 10, options: RecurrenceOptions = {}): readonly string[] {
  const { series } = recurrence(spec, zones.named(zone), options)
  return occurrencesAfter(series, BEGINNING, count).map(({ at }) => isoInstant(at).replace(':00Z', 'Z'))
}

/** Only the days. */
function days(rrule: string, dtstart: string, count = 6): readonly string[] {
  return times({ rrule, dtstart }, 'UTC', count).map((time) => time.slice(0, 10))
}

describe('[K-03] a rule that is wrong is refused by the name of its part', () => {
  test.for([
    ['', /is no part of a rule/],
    ['COUNT=3', /needs a frequency/],
    ['FREQ=FORTNIGHTLY', /FREQ .*"FORTNIGHTLY" is none of YEARLY/],
    ['FREQ=DAILY;FREQ=DAILY', /FREQ .*twice/],
    ['FREQ=DAILY;BYEASTER=0', /no part "BYEASTER"/],
    ['FREQ=DAILY;X-NAME=1', /no part "X-NAME"/],
    ['FREQ=DAILY;COUNT', /"COUNT" is no part/],
    ['FREQ=DAILY;COUNT=', /COUNT .*no value/],
    ['FREQ=DAILY;;COUNT=2', /is no part of a rule/],
    ['FREQ=DAILY;COUNT=0', /COUNT .*1 to 100000/],
    ['FREQ=DAILY;COUNT=-1', /COUNT/],
    ['FREQ=DAILY;COUNT=99999999999', /COUNT/],
    ['FREQ=DAILY;INTERVAL=0', /INTERVAL/],
    ['FREQ=DAILY;INTERVAL=1.5', /INTERVAL/],
    ['FREQ=DAILY;COUNT=2;UNTIL=20260101T000000Z', /COUNT and UNTIL exclude each other/],
    ['FREQ=DAILY;UNTIL=tomorrow', /UNTIL "TOMORROW" is not a time/],
    ['FREQ=DAILY;UNTIL=20260230', /UNTIL .*no such day/],
    ['FREQ=DAILY;BYMONTH=13', /BYMONTH .*"13"/],
    ['FREQ=DAILY;BYMONTH=0', /BYMONTH/],
    ['FREQ=DAILY;BYMONTH=-1', /BYMONTH/],
    ['FREQ=YEARLY;BYMONTH=5L', /BYMONTH .*"5L"/],
    ['FREQ=MONTHLY;BYMONTHDAY=0', /BYMONTHDAY/],
    ['FREQ=MONTHLY;BYMONTHDAY=32', /BYMONTHDAY/],
    ['FREQ=MONTHLY;BYMONTHDAY=1,,2', /BYMONTHDAY/],
    ['FREQ=YEARLY;BYYEARDAY=367', /BYYEARDAY/],
    ['FREQ=YEARLY;BYWEEKNO=54', /BYWEEKNO/],
    ['FREQ=YEARLY;BYWEEKNO=0', /BYWEEKNO/],
    ['FREQ=DAILY;BYHOUR=24', /BYHOUR/],
    ['FREQ=DAILY;BYMINUTE=60', /BYMINUTE/],
    ['FREQ=DAILY;BYSECOND=61', /BYSECOND/],
    ['FREQ=MONTHLY;BYDAY=XX', /BYDAY .*"XX" is no day/],
    ['FREQ=MONTHLY;BYDAY=0MO', /BYDAY .*"0MO"/],
    ['FREQ=MONTHLY;BYDAY=54MO', /BYDAY/],
    ['FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0', /BYSETPOS/],
    ['FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367', /BYSETPOS/],
    ['FREQ=DAILY;BYSETPOS=1', /BYSETPOS .*needs another BY part/],
    ['FREQ=WEEKLY;WKST=XX', /WKST/],
    ['FREQ=MONTHLY;BYWEEKNO=20', /BYWEEKNO .*FREQ=YEARLY only/],
    ['FREQ=WEEKLY;BYMONTHDAY=1', /BYMONTHDAY .*FREQ=WEEKLY/],
    ['FREQ=DAILY;BYYEARDAY=1', /BYYEARDAY .*FREQ=DAILY/],
    ['FREQ=WEEKLY;BYYEARDAY=1', /BYYEARDAY/],
    ['FREQ=MONTHLY;BYYEARDAY=1', /BYYEARDAY/],
    ['FREQ=WEEKLY;BYDAY=1MO', /BYDAY .*FREQ=MONTHLY and FREQ=YEARLY only/],
    ['FREQ=DAILY;BYDAY=-1FR', /BYDAY/],
    ['FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO', /BYDAY .*BYWEEKNO/],
    ['RSCALE=CHINESE;FREQ=YEARLY', /RSCALE .*"CHINESE" is not supported/],
    ['RSCALE=HEBREW;FREQ=YEARLY;BYMONTH=5L', /RSCALE/],
    ['FREQ=MONTHLY;SKIP=FORWARD', /SKIP .*RSCALE=GREGORIAN/],
    ['RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=SIDEWAYS', /SKIP/],
    [`FREQ=DAILY;BYHOUR=${'1,'.repeat(2_000)}1`, /at most 4000 characters/],
  ] as const)('%s', ([rule, message]) => {
    expect(() => parseRule(rule)).toThrow(message)
  })

  test('and so are a start and dates that are none, and too many of them', () => {
    expect(() => times({ rrule: 'FREQ=DAILY', dtstart: '2026-02-30' })).toThrow(/^dtstart/)
    expect(() => times({ rrule: 'FREQ=DAILY', dtstart: '2026-01-01', exdates: ['soon'] })).toThrow(/^exdate/)
    expect(() => times({ rrule: 'FREQ=DAILY', dtstart: '2026-01-01', rdates: ['soon'] })).toThrow(/^rdate/)
    const many = Array.from({ length: 5_001 }, () => '2026-01-01')
    expect(() => times({ rrule: 'FREQ=DAILY', dtstart: '2026-01-01', exdates: many })).toThrow(/at most 5000 of exdate/)
  })
})

describe('[K-03] a rule is read in every spelling that people use', () => {
  test.for([
    'RRULE:FREQ=WEEKLY;BYDAY=MO,WE;COUNT=3',
    'rrule:freq=weekly;byday=mo,we;count=3',
    '  FREQ = WEEKLY ; BYDAY = MO , WE ; COUNT = 3 ',
    'COUNT=3;BYDAY=WE,MO,WE;FREQ=WEEKLY;INTERVAL=1;',
  ])('%s', (rule) => {
    expect(days(rule, '20250106T090000')).toEqual(['2025-01-06', '2025-01-08', '2025-01-13'])
  })

  test('with a plus before numbers, and with the sixtieth second taken for the one before', () => {
    expect(days('FREQ=MONTHLY;BYDAY=+1MO;COUNT=2', '20250101T090000')).toEqual(['2025-01-06', '2025-02-03'])
    expect(times({ rrule: 'FREQ=MINUTELY;BYSECOND=59,60;COUNT=2', dtstart: '20250101T000000' })).toEqual([
      '2025-01-01T00:00:59Z',
      '2025-01-01T00:01:59Z',
    ])
  })
})

describe('[K-03] a rule ends', () => {
  const daily = { rrule: 'FREQ=DAILY;COUNT=4', dtstart: '20250101T080000' }

  test('after COUNT occurrences, counting those that are left out and not those that are added', () => {
    const spec = { ...daily, exdates: ['20250102T080000'], rdates: ['20250101T120000', '20250110T080000'] }
    expect(times(spec)).toEqual([
      '2025-01-01T08:00Z',
      '2025-01-01T12:00Z',
      '2025-01-03T08:00Z',
      '2025-01-04T08:00Z',
      '2025-01-10T08:00Z',
    ])
  })

  test('after COUNT occurrences that really happen: a time in a gap is not counted', () => {
    const spec = { rrule: 'FREQ=DAILY;COUNT=3', dtstart: '20250308T023000' }
    expect(times(spec, 'America/New_York')).toEqual(['2025-03-08T07:30Z', '2025-03-10T06:30Z', '2025-03-11T06:30Z'])
  })

  test('the same wherever it is asked from, and however often', () => {
    const { series } = recurrence({ rrule: 'FREQ=DAILY;COUNT=1000', dtstart: '20200101T080000' }, zones.named('UTC'))
    const last = Date.UTC(2022, 8, 26, 8)
    expect(series.next(last)).toBeUndefined()
    expect(series.next(last - 1)?.at).toBe(last)
    expect(series.next(Date.UTC(2020, 0, 2))?.at).toBe(Date.UTC(2020, 0, 2, 8))
    expect(series.next(Date.UTC(2030, 0, 1))).toBeUndefined()
    expect(series.next(BEGINNING)?.at).toBe(Date.UTC(2020, 0, 1, 8))
  })

  test.for([
    ['UTC', 'UNTIL=20250703T060000Z', 3],
    ['UTC and a second too early', 'UNTIL=20250703T055959Z', 2],
    ['local time', 'UNTIL=20250703T090000', 3],
    ['local time and a second too early', 'UNTIL=20250703T085959', 2],
    ['a date, to its end', 'UNTIL=20250703', 3],
    ['before its start', 'UNTIL=20250630', 0],
  ] as const)('with UNTIL in %s', ([, until, count]) => {
    const spec = { rrule: `FREQ=DAILY;${until}`, dtstart: '20250701T090000' }
    expect(times(spec, 'Europe/Chisinau')).toHaveLength(count)
  })

  test('with UNTIL in a gap or a fold of the clock', () => {
    const inGap = { rrule: 'FREQ=DAILY;BYHOUR=1,3;BYMINUTE=0;UNTIL=20250309T023000', dtstart: '20250309T000000' }
    expect(times(inGap, 'America/New_York')).toEqual(['2025-03-09T06:00Z'])
    const hours = { rrule: 'FREQ=HOURLY;UNTIL=20251102T010000', dtstart: '20251102T000000' }
    expect(times(hours, 'America/New_York')).toEqual(['2025-11-02T04:00Z', '2025-11-02T05:00Z'])
    const before = { rrule: 'FREQ=HOURLY;UNTIL=20250309T023000', dtstart: '20250309T000000' }
    expect(times(before, 'America/New_York')).toEqual(['2025-03-09T05:00Z', '2025-03-09T06:00Z'])
  })

  test('at once if it never happens, however far one looks', () => {
    const never = [
      'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30',
      'FREQ=MONTHLY;BYMONTH=2,4;BYMONTHDAY=31',
      'FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30',
      'FREQ=HOURLY;BYMONTH=4;BYMONTHDAY=31',
      'FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=1',
      'FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29',
      'FREQ=MONTHLY;BYDAY=6MO',
      'FREQ=DAILY;INTERVAL=7;BYDAY=TU',
      'FREQ=HOURLY;INTERVAL=24;BYHOUR=10',
      'FREQ=MINUTELY;INTERVAL=60;BYMINUTE=7',
      'FREQ=SECONDLY;INTERVAL=3600;BYSECOND=1',
      'FREQ=DAILY;BYHOUR=9;BYSETPOS=2',
      'FREQ=MINUTELY;BYSECOND=0;BYSETPOS=2',
      'FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1',
      'FREQ=SECONDLY;BYYEARDAY=100;BYMONTH=1',
      'FREQ=DAILY;UNTIL=20000101T000000Z',
    ]
    for (const rrule of never) {
      for (const zone of ['UTC', 'Asia/Kolkata']) {
        expect([rrule, ...times({ rrule, dtstart: '20250106T090000' }, zone)]).toEqual([rrule])
      }
    }
  })

  test('with the year 9999', () => {
    expect(days('FREQ=YEARLY', '99970101T000000')).toEqual(['9997-01-01', '9998-01-01', '9999-01-01'])
    expect(days('FREQ=DAILY', '99991230T000000')).toEqual(['9999-12-30', '9999-12-31'])
    expect(days('FREQ=HOURLY;INTERVAL=12', '99991231T000000')).toEqual(['9999-12-31', '9999-12-31'])
    expect(days('FREQ=YEARLY;INTERVAL=2000000000', '20250101T000000')).toEqual(['2025-01-01'])
  })
})

describe('[K-03] times that are left out and added', () => {
  const spec = { rrule: 'FREQ=DAILY;BYHOUR=2,9;BYMINUTE=30', dtstart: '20250308T000000' }

  test.for([
    ['a local time', ['2025-03-08T09:30:00'], '2025-03-08T14:30Z'],
    ['a time in UTC', ['20250308T143000Z'], '2025-03-08T14:30Z'],
    ['a time with an offset', ['2025-03-08T09:30:00-05:00'], '2025-03-08T14:30Z'],
  ] as const)('are left out as %s', ([, exdates, gone]) => {
    const all = times(spec, 'America/New_York', 4)
    expect(all).toContain(gone)
    expect(times({ ...spec, exdates }, 'America/New_York', 3)).toEqual(all.filter((time) => time !== gone))
  })

  test('are left out as a whole day', () => {
    expect(times({ ...spec, exdates: ['2025-03-08'] }, 'America/New_York', 2)).toEqual([
      '2025-03-09T13:30Z',
      '2025-03-10T06:30Z',
    ])
  })

  test('are left out of the gap in which the rule would put them', () => {
    const options = { gap: 'first' } as const
    expect(times(spec, 'America/New_York', 4, options)).toContain('2025-03-09T07:00Z')
    const without = { ...spec, exdates: ['2025-03-09T02:30:00'] }
    expect(times(without, 'America/New_York', 4, options)).not.toContain('2025-03-09T07:00Z')
  })

  test('are added once where the rule has them, before the start as well, and in a gap behind it', () => {
    const added = { rrule: 'FREQ=DAILY;COUNT=1', dtstart: '20250309T090000' }
    const rdates = ['20250309T090000', '20250101T120000', '20250309T023000', '20250309T023000']
    expect(times({ ...added, rdates }, 'America/New_York')).toEqual([
      '2025-01-01T17:00Z',
      '2025-03-09T07:30Z',
      '2025-03-09T13:00Z',
    ])
  })

  test('can be all that there is', () => {
    expect(times({ dtstart: '20250101', rdates: ['20250102T080000'] })).toEqual(['2025-01-02T08:00Z'])
  })
})

describe('[K-03] years', () => {
  test('with weeks are those that the weeks belong to', () => {
    // The last days of 2024 are in the first week of 2025; every third year from there is 2028 and 2031.
    expect(days('FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO,TU;INTERVAL=3', '20241231T000000', 5)).toEqual([
      '2024-12-31',
      '2028-01-03',
      '2028-01-04',
      '2030-12-30',
      '2030-12-31',
    ])
    // The second of January 2010 is in the 53rd week of 2009; six years later there is one again.
    expect(days('FREQ=YEARLY;BYWEEKNO=53;BYDAY=SA;INTERVAL=6', '20100102T000000', 2)).toEqual([
      '2010-01-02',
      '2016-01-02',
    ])
  })

  test('with weeks alone have the weekday of the start', () => {
    expect(days('FREQ=YEARLY;BYWEEKNO=53', '20230101T000000', 2)).toEqual(['2027-01-03', '2033-01-02'])
    expect(days('FREQ=YEARLY;BYWEEKNO=-1', '20131224T000000', 2)).toEqual(['2013-12-24', '2014-12-23'])
  })

  test('with weeks and dates have what is in both, over the turn of the year', () => {
    expect(days('FREQ=YEARLY;BYWEEKNO=1;BYMONTHDAY=30', '20241230T000000', 3)).toEqual([
      '2024-12-30',
      '2025-12-30',
      '2030-12-30',
    ])
  })

  test('with days of the month and no month have them in all months', () => {
    expect(days('FREQ=YEARLY;BYMONTHDAY=31', '20250101T000000', 3)).toEqual(['2025-01-31', '2025-03-31', '2025-05-31'])
  })

  test('with days of the year and weekdays have what is both', () => {
    expect(days('FREQ=YEARLY;BYDAY=FR;BYYEARDAY=-275,-276,-277,-278,-279,-280,-281', '20060331T020000', 3)).toEqual([
      '2006-03-31',
      '2007-03-30',
      '2008-03-28',
    ])
  })
})

describe('[K-03] SKIP of RFC 7529', () => {
  const rule = (skip: string, rest: string): string => `RSCALE=GREGORIAN;${rest};SKIP=${skip}`

  test.for([
    ['OMIT', 'FREQ=MONTHLY', '20140131', ['2014-01-31', '2014-03-31', '2014-05-31', '2014-07-31']],
    ['BACKWARD', 'FREQ=MONTHLY', '20140131', ['2014-01-31', '2014-02-28', '2014-03-31', '2014-04-30']],
    ['FORWARD', 'FREQ=MONTHLY', '20140131', ['2014-01-31', '2014-03-01', '2014-03-31', '2014-05-01']],
    ['FORWARD', 'FREQ=YEARLY', '20160229', ['2016-02-29', '2017-03-01', '2018-03-01', '2019-03-01']],
    ['BACKWARD', 'FREQ=YEARLY', '20160229', ['2016-02-29', '2017-02-28', '2018-02-28', '2019-02-28']],
    ['FORWARD', 'FREQ=YEARLY;BYYEARDAY=366', '20161231', ['2016-12-31', '2018-01-01', '2019-01-01', '2020-01-01']],
    ['BACKWARD', 'FREQ=YEARLY;BYYEARDAY=-366', '20160101', ['2016-01-01', '2016-12-31', '2017-12-31', '2018-12-31']],
    ['BACKWARD', 'FREQ=MONTHLY;BYMONTHDAY=30,31', '20250401', ['2025-04-30', '2025-05-30', '2025-05-31', '2025-06-30']],
    ['FORWARD', 'FREQ=MONTHLY;BYMONTHDAY=1,31', '20250401', ['2025-04-01', '2025-05-01', '2025-05-31', '2025-06-01']],
    [
      'FORWARD',
      'FREQ=MONTHLY;BYMONTH=4;BYMONTHDAY=31',
      '20250401',
      ['2025-05-01', '2026-05-01', '2027-05-01', '2028-05-01'],
    ],
    // Days of the week choose among the days that were moved.
    [
      'FORWARD',
      'FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=TH',
      '20250401',
      ['2025-05-01', '2025-07-31', '2026-10-01', '2026-12-31'],
    ],
  ] as const)('%s with %s', ([skip, rest, dtstart, expected]) => {
    expect(days(rule(skip, rest), `${dtstart}T090000`, 4)).toEqual(expected)
  })
})

describe('[K-03] rules of hours and less count real time', () => {
  test('through the hour that comes twice: none is lost and none is double', () => {
    const spec = { rrule: 'FREQ=HOURLY;COUNT=4', dtstart: '20251102T000000' }
    expect(times(spec, 'America/New_York')).toEqual([
      '2025-11-02T04:00Z',
      '2025-11-02T05:00Z',
      '2025-11-02T06:00Z',
      '2025-11-02T07:00Z',
    ])
  })

  test('through the hour that is left out', () => {
    const spec = { rrule: 'FREQ=HOURLY;INTERVAL=2;COUNT=3', dtstart: '20250309T000000' }
    expect(times(spec, 'America/New_York')).toEqual(['2025-03-09T05:00Z', '2025-03-09T07:00Z', '2025-03-09T09:00Z'])
  })

  test('and their minutes are those of the clock, where it is changed by half an hour', () => {
    const spec = { rrule: 'FREQ=HOURLY;COUNT=5', dtstart: '20250406T001500' }
    const { series } = recurrence(spec, zones.named('Australia/Lord_Howe'))
    const shown = occurrencesAfter(series, BEGINNING, 5).map(({ local }) => isoLocal(local).slice(11, 16))
    expect(shown).toEqual(['00:15', '01:15', '02:15', '03:15', '04:15'])
  })

  test('and what else they ask for is compared with the clock', () => {
    const spec = { rrule: 'FREQ=MINUTELY;INTERVAL=30;BYHOUR=1;COUNT=4', dtstart: '20251102T000000' }
    expect(times(spec, 'America/New_York')).toEqual([
      '2025-11-02T05:00Z',
      '2025-11-02T05:30Z',
      '2025-11-02T06:00Z',
      '2025-11-02T06:30Z',
    ])
  })

  test('and positions are those within one period', () => {
    const rrule = 'FREQ=HOURLY;BYHOUR=3,6;BYMINUTE=5,15,25;INTERVAL=7;BYSETPOS=1,-1;COUNT=4'
    expect(times({ rrule, dtstart: '20250101T030500' })).toEqual([
      '2025-01-01T03:05Z',
      '2025-01-01T03:25Z',
      '2025-01-07T06:05Z',
      '2025-01-07T06:25Z',
    ])
  })

  test('from a start in a gap as long after it', () => {
    const spec = { rrule: 'FREQ=HOURLY;COUNT=2', dtstart: '20250309T023000' }
    expect(times(spec, 'America/New_York')).toEqual(['2025-03-09T07:30Z', '2025-03-09T08:30Z'])
  })
})

test('[K-03] positions are chosen from millions of times without making a list of them', () => {
  const all = (count: number): string => Array.from({ length: count }, (_, index) => index).join(',')
  const rrule = `FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=${all(24)};BYMINUTE=${all(60)};BYSECOND=${all(60)};BYSETPOS=-1,1`
  expect(times({ rrule, dtstart: '20250101T000000' }, 'UTC', 3)).toEqual([
    '2025-01-01T00:00Z',
    '2025-12-31T23:59:59Z',
    '2026-01-01T00:00Z',
  ])
})

test('[K-03] a start that is a date takes no times of day, as RFC 5545 says', () => {
  const spec = { rrule: 'FREQ=DAILY;BYHOUR=9;BYMINUTE=1,2;INTERVAL=2;COUNT=2', dtstart: '20241018' }
  expect(times(spec, 'UTC', 5, { isDate: true })).toEqual(['2024-10-18T00:00Z', '2024-10-20T00:00Z'])
  expect(times(spec, 'UTC', 1)).toEqual(['2024-10-18T09:01Z'])
})

describe('[K-03] a start that nobody has given', () => {
  const created = Date.parse('2025-06-10T14:34:56.789Z')
  const zone = new Zone('Europe/Chisinau')

  test.for([
    ['FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17', 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0'],
    ['FREQ=DAILY;BYHOUR=9;BYMINUTE=30', 'FREQ=DAILY;BYHOUR=9;BYMINUTE=30;BYSECOND=0'],
    ['FREQ=HOURLY;BYMINUTE=5', 'FREQ=HOURLY;BYMINUTE=5;BYSECOND=0'],
    ['FREQ=DAILY;BYSECOND=5;', 'FREQ=DAILY;BYSECOND=5'],
    ['rrule:freq=daily', 'FREQ=DAILY'],
    ['FREQ=MINUTELY;BYHOUR=9', 'FREQ=MINUTELY;BYHOUR=9'],
  ] as const)('makes %s precise', ([given, rrule]) => {
    expect(withImpliedStart(given, created, zone)).toEqual({ rrule, dtstart: '2025-06-10T17:34:57' })
  })

  test('counts nothing from before it', () => {
    const spec = withImpliedStart('FREQ=DAILY;BYHOUR=17;COUNT=2', created, zone)
    expect(times(spec, 'Europe/Chisinau')).toEqual(['2025-06-11T14:00Z', '2025-06-12T14:00Z'])
  })
})

test('[K-03] rules are told in words', () => {
  const words: Readonly<Record<string, string>> = {
    'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0': 'Every month on the last Friday of the month at 17:00',
    'FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH': 'Every 2 weeks on Tuesday and Thursday at 09:00',
    'FREQ=WEEKLY': 'Every week on Friday at 09:00',
    'FREQ=MONTHLY': 'Every month on the 31st at 09:00',
    'FREQ=YEARLY': 'Every year on the 31st of January at 09:00',
    'FREQ=YEARLY;BYMONTH=11;BYDAY=4TH': 'Every year on the fourth Thursday of November at 09:00',
    'FREQ=YEARLY;BYWEEKNO=20,-1;BYDAY=MO': 'Every year in week 20 and the last week on Monday at 09:00',
    'FREQ=YEARLY;BYYEARDAY=1,100,-1': 'Every year on the 1st, 100th and last day of the year at 09:00',
    'FREQ=YEARLY;BYMONTH=3;BYDAY=TH': 'Every year on Thursday in March at 09:00',
    'FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR': 'Every month on the 13th of the month, if it is a Friday, at 09:00',
    'FREQ=DAILY;BYMONTH=1,2,3;BYHOUR=9,18': 'Every day in January to March at 09:00 and 18:00',
    'FREQ=HOURLY;INTERVAL=3;BYHOUR=9,10,11': 'Every 3 hours at minute 0 in hours 9 to 11',
    'FREQ=MINUTELY;BYMINUTE=0,30;BYSECOND=15': 'Every minute in minutes 0 and 30 at second 15',
  }
  const start = Date.UTC(2025, 0, 31, 9)
  for (const [rule, sentence] of Object.entries(words)) {
    expect(ruleInWords(parseRule(rule), start)).toBe(`${sentence}, from 2025-01-31 09:00:00`)
  }
  expect(ruleInWords(parseRule('FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1;COUNT=2'), start)).toBe(
    'Every month on Monday and Tuesday at 09:00, only the last of these in each month, from 2025-01-31 09:00:00, 2 times',
  )
  expect(ruleInWords(parseRule('RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD;UNTIL=20260101'), start)).toBe(
    'Every month on the 31st at 09:00, a day that does not exist gives way to the day after, from 2025-01-31 09:00:00, until 2026-01-01',
  )
})

/** Rules of all frequencies with some of all parts, dense enough to have occurrences. */
const frequency = fc.constantFrom('YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY', 'SECONDLY')
const part = (name: string, min: number, max: number): fc.Arbitrary<string> =>
  fc
    .uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 })
    .map((values) => `;${name}=${values.join(',')}`)
const maybe = (one: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant('') }, one)
const anyRule = fc
  .tuple(
    frequency,
    maybe(fc.integer({ min: 1, max: 9 }).map((interval) => `;INTERVAL=${interval}`)),
    maybe(part('BYMONTH', 1, 12)),
    maybe(fc.constantFrom(';BYDAY=MO', ';BYDAY=SU,WE', ';BYDAY=MO,TU,WE,TH,FR')),
    maybe(part('BYHOUR', 0, 23)),
    maybe(part('BYMINUTE', 0, 59)),
    maybe(fc.constantFrom(';COUNT=5', ';COUNT=40', ';UNTIL=20280101T000000Z')),
  )
  .map(([first, ...rest]) => `FREQ=${first}${rest.join('')}`)
const anyZone = fc.constantFrom('UTC', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca', 'Pacific/Apia')
const anyStart = fc.integer({ min: 1_293_840_000, max: 1_750_000_000 }).map((second) => isoLocal(second * 1_000))

describe('[K-03] whatever the rule', () => {
  const options = { numRuns: 150 }

  test('times come one after the other, and asking from anywhere finds the same ones', { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(
        anyRule,
        anyZone,
        anyStart,
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (rrule, zone, dtstart, where) => {
          const { series } = recurrence({ rrule, dtstart }, zones.named(zone))
          const all = occurrencesAfter(series, BEGINNING, 30).map(({ at }) => at)
          for (const [index, at] of all.entries()) {
            expect(at).toBeGreaterThan(all[index - 1] ?? BEGINNING)
            const before = all[index - 1] ?? at - 86_400_000
            const anywhere = Math.floor(before + (at - before) * (where.next().value ?? 0))
            // A new instance has no counts and no cache.
            const fresh = recurrence({ rrule, dtstart }, zones.named(zone)).series
            expect(fresh.next(anywhere === at ? at - 1 : anywhere)?.at).toBe(at)
          }
          const isEnded = series.next(all.at(-1) ?? BEGINNING) === undefined
          expect(isEnded || all.length === 30).toBe(true)
        },
      ),
      options,
    )
  })

  test('EXDATE takes away exactly what it names', { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(
        anyRule,
        anyZone,
        anyStart,
        fc.array(fc.nat(19), { maxLength: 6 }),
        (rrule, zone, dtstart, indexes) => {
          const all = occurrencesAfter(recurrence({ rrule, dtstart }, zones.named(zone)).series, BEGINNING, 20)
          const gone = all.filter((_, index) => indexes.includes(index)).map(({ at }) => at)
          const { series } = recurrence({ rrule, dtstart, exdates: gone.map(isoInstant) }, zones.named(zone))
          const left = occurrencesAfter(series, BEGINNING, all.length - gone.length).map(({ at }) => at)
          expect(left).toEqual(all.map(({ at }) => at).filter((at) => !gone.includes(at)))
        },
      ),
      options,
    )
  })

  test('RDATE adds exactly what it names', () => {
    fc.assert(
      fc.property(anyRule, anyZone, anyStart, fc.nat(100_000_000), (rrule, zone, dtstart, seconds) => {
        const plain = recurrence({ rrule, dtstart }, zones.named(zone)).series
        const all = occurrencesAfter(plain, BEGINNING, 20).map(({ at }) => at)
        const extra = (all[0] ?? Date.UTC(2025, 0, 1)) + seconds * 1_000
        const { series } = recurrence({ rrule, dtstart, rdates: [isoInstant(extra)] }, zones.named(zone))
        const expected = [...new Set([...all, extra])].sort((a, b) => a - b).slice(0, all.length)
        expect(occurrencesAfter(series, BEGINNING, all.length).map(({ at }) => at)).toEqual(expected)
      }),
      options,
    )
  })
})
