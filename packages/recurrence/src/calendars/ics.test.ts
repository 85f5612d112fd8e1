import { isImpresarioError } from '@impresario/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoInstant } from '../moment.ts'
import { Zones } from '../zone.ts'
import { calendar } from './calendar.ts'
import { importIcs } from './ics.ts'

const zones = new Zones()

function file(...lines: readonly string[]): string {
  return ['BEGIN:VCALENDAR', 'VERSION:2.0', ...lines, 'END:VCALENDAR', ''].join('\r\n')
}

function vevent(...lines: readonly string[]): readonly string[] {
  return ['BEGIN:VEVENT', ...lines, 'END:VEVENT']
}

function event(...lines: readonly string[]): string {
  return file(...vevent(...lines))
}

function read(text: string) {
  const { entries, problems } = importIcs(text, zones)
  expect(problems).toEqual([])
  return calendar({ name: 'imported', entries }, zones, zones.named('Europe/Berlin'))
}

/** How it ends: `read`, or the code of the refusal. */
function codeOf(reading: () => unknown): string {
  try {
    reading()
    return 'read'
  } catch (error) {
    return isImpresarioError(error) ? error.code : String(error)
  }
}

function at(time: string): number {
  return Date.parse(time)
}

describe('[K-14] an iCalendar file', () => {
  test('has days, with folded lines and escaped text', () => {
    const text = event(
      'UID:1@example',
      'DTSTART;VALUE=DATE:20261225',
      'DTEND;VALUE=DATE:20261227',
      String.raw`SUMMARY:Christmas\, both days\; a lo`,
      String.raw` ng\nweekend`,
      'BEGIN:VALARM',
      'TRIGGER:-PT15M',
      'END:VALARM',
    )
    expect(importIcs(text, zones).entries).toEqual([
      { kind: 'days', first: '2026-12-25', last: '2026-12-26', label: 'Christmas, both days; a long weekend' },
    ])
    const holidays = read(text)
    expect(holidays.at(at('2026-12-26T22:59:59Z'))?.label).toMatch(/^Christmas/)
    expect(holidays.at(at('2026-12-26T23:00:00Z'))).toBeUndefined()
  })

  test('has events that repeat, with exceptions and additions in other zones', () => {
    const maintenance = read(
      event(
        'DTSTART;TZID=America/New_York:20260104T020000',
        'DURATION:PT1H30M',
        'RRULE:FREQ=WEEKLY;COUNT=4',
        'EXDATE;TZID=America/New_York:20260111T020000',
        'EXDATE:20260118T070000Z',
        'RDATE;TZID=Europe/Berlin;VALUE=DATE-TIME:20260201T120000,20260202T120000',
        'SUMMARY:Maintenance',
      ),
    )
    const starts: string[] = []
    for (let start = maintenance.next(0); start !== undefined; start = maintenance.next(start)) {
      starts.push(isoInstant(start))
    }
    expect(starts).toEqual([
      '2026-01-04T07:00:00Z',
      '2026-01-25T07:00:00Z',
      '2026-02-01T11:00:00Z',
      '2026-02-02T11:00:00Z',
    ])
    expect(maintenance.at(at('2026-01-25T08:29:59Z'))?.label).toBe('Maintenance')
    expect(maintenance.at(at('2026-01-25T08:30:00Z'))).toBeUndefined()
  })

  test('has occurrences that were moved or cancelled', () => {
    const text = file(
      ...vevent('UID:a', 'DTSTART;VALUE=DATE:20260105', 'RRULE:FREQ=WEEKLY;COUNT=3'),
      ...vevent('UID:a', 'RECURRENCE-ID;VALUE=DATE:20260112', 'DTSTART;VALUE=DATE:20260113'),
      ...vevent('UID:a', 'RECURRENCE-ID;VALUE=DATE:20260119', 'DTSTART;VALUE=DATE:20260119', 'STATUS:CANCELLED'),
      ...vevent('UID:b', 'DTSTART;VALUE=DATE:20260301', 'STATUS:CANCELLED'),
    )
    const days = ['2026-01-05', '2026-01-12', '2026-01-13', '2026-01-19', '2026-03-01'].filter(
      (day) => read(text).at(at(`${day}T12:00:00Z`)) !== undefined,
    )
    expect(days).toEqual(['2026-01-05', '2026-01-13'])
  })

  test.for([
    ['Europe/Berlin', '2026-01-05T09:00:00Z'],
    ['/citadel.org/20260101_1/Europe/Berlin', '2026-01-05T09:00:00Z'],
    ['W. Europe Standard Time', '2026-01-05T09:00:00Z'],
    ['"Eastern Standard Time"', '2026-01-05T15:00:00Z'],
    ['My own zone', '2026-01-05T01:00:00Z'],
  ] as const)('knows the zone %s', ([tzid, instant]) => {
    const text = file(
      'BEGIN:VTIMEZONE',
      'TZID:My own zone',
      'X-LIC-LOCATION:Asia/Tokyo',
      'END:VTIMEZONE',
      ...vevent(`DTSTART;TZID=${tzid}:20260105T100000`, 'DTEND;TZID=UTC:20270105T100000'),
    )
    expect(read(text).next(0)).toBe(at(instant))
  })

  test('measures from one zone to another, in UTC, by DURATION, and from nothing', () => {
    const lengthOf = (...lines: readonly string[]): number => {
      const one = read(event(...lines))
      const start = one.next(0) ?? 0
      return ((one.at(start)?.to ?? 0) - start) / 60_000
    }
    const flight = ['DTSTART;TZID=Europe/Berlin:20260105T100000', 'DTEND;TZID=America/New_York:20260105T123000']
    expect(lengthOf(...flight)).toBe(510)
    expect(lengthOf('DTSTART:20260105T100000Z', 'DTEND:20260105T110000Z')).toBe(60)
    expect(lengthOf('DTSTART:20260105T100000Z', 'DURATION:P1DT1H1M')).toBe(1_501)
    expect(lengthOf('DTSTART:20260105T100000Z', 'DURATION:P1W')).toBe(7 * 1_440)
    expect(lengthOf('DTSTART;VALUE=DATE:20260105')).toBe(1_440)
    expect(lengthOf('DTSTART;VALUE=DATE:20260105', 'DURATION:PT1H')).toBe(1_440)
    expect(lengthOf('DTSTART:20260105T100000Z')).toBeLessThan(1)
  })

  test('has an event at its start, also where its rule has none', () => {
    const days = read(event('DTSTART;VALUE=DATE:20260107', 'RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=1'))
    expect(days.at(at('2026-01-07T12:00:00Z'))).toBeDefined()
    expect(days.at(at('2026-01-12T12:00:00Z'))).toBeDefined()
    const entries = [{ kind: 'rule', dtstart: '2026-01-07', rrule: 'FREQ=WEEKLY;BYDAY=MO' }] as const
    const own = calendar({ name: 'own', entries }, zones, zones.named('UTC'))
    expect(own.at(at('2026-01-07T12:00:00Z'))).toBeUndefined()
  })

  test('is read with Unix line ends, a mark at its beginning, and small letters', () => {
    const text =
      '\uFEFFbegin:vcalendar\nbegin:vevent\ndtstart;value=date:20261225\nsummary:x\nend:vevent\nend:vcalendar'
    expect(importIcs(text, zones).entries).toHaveLength(1)
  })

  test('may end with the marks of old programs', () => {
    const text = event('DTSTART;VALUE=DATE:20261225')
    for (const end of ['\0', '\u001A', '\r\n\u001A\0']) expect(importIcs(text + end, zones).entries).toHaveLength(1)
  })

  test('has whole days whose exceptions are written as times', () => {
    const days = read(
      file(
        ...vevent(
          'UID:d',
          'DTSTART;VALUE=DATE:20260301',
          'RRULE:FREQ=DAILY;COUNT=4',
          'EXDATE;TZID=Europe/Berlin:20260302T000000',
        ),
        ...vevent('UID:d', 'RECURRENCE-ID;TZID=Europe/Berlin:20260303T000000', 'DTSTART;VALUE=DATE:20260310'),
      ),
    )
    const found = [1, 2, 3, 4, 10].filter((day) => days.at(Date.UTC(2026, 2, day, 12)) !== undefined)
    expect(found).toEqual([1, 4, 10])
  })

  test.for([
    ['tzone://Microsoft/Utc', [], '2026-03-10T09:00:00Z'],
    ['/citadel.org/20210210_1/America/Port-au-Prince', [], '2026-03-10T13:00:00Z'],
    ['GMT+0230', ['+0230'], '2026-03-10T06:30:00Z'],
    ['Customized Time Zone', ['-0300', '-0300'], '2026-03-10T12:00:00Z'],
  ] as const)('has the time zone %s', ([tzid, offsets, start]) => {
    const parts = offsets.flatMap((to) => ['BEGIN:STANDARD', `TZOFFSETTO:${to}`, 'END:STANDARD'])
    const text = file(
      'BEGIN:VTIMEZONE',
      `TZID:${tzid}`,
      ...parts,
      'END:VTIMEZONE',
      ...vevent(`DTSTART;TZID="${tzid}":20260310T090000`, 'DURATION:PT1H'),
    )
    expect(importIcs(text, zones)).toMatchObject({ entries: [{ kind: 'window', start }], unread: 0 })
  })

  test('has an own time zone with summer time, which is not known', () => {
    const parts = ['+0100', '+0200'].flatMap((to) => ['BEGIN:STANDARD', `TZOFFSETTO:${to}`, 'END:STANDARD'])
    const text = file(
      'BEGIN:VTIMEZONE',
      'TZID:Own',
      ...parts,
      'END:VTIMEZONE',
      ...vevent('DTSTART;TZID=Own:20260310T090000'),
    )
    expect(importIcs(text, zones).problems[0]?.message).toMatch(/"Own" is not known/)
  })

  test.for([
    ['no start', ['SUMMARY:x'], /Line 3 .*no DTSTART/],
    ['no date', ['DTSTART;VALUE=DATE:2026'], /Line 4 .*"2026" is no date/],
    ['no time', ['DTSTART:2026-01-05T10:00:00'], /Line 4 .*is no time/],
    ['a day that is none', ['DTSTART:20260230T100000'], /no such day/],
    ['an unknown zone', ['DTSTART;TZID=Mars/Olympus:20260105T100000'], /Line 4 .*"Mars\/Olympus" is not known/],
    ['a wrong rule', ['DTSTART:20260105T100000', 'RRULE:FREQ=HOURLY;BYFOO=1'], /no part "BYFOO"/],
    ['two rules', ['DTSTART:20260105T100000', 'RRULE:FREQ=DAILY', 'RRULE:FREQ=DAILY'], /more than one RRULE/],
    ['EXRULE', ['DTSTART:20260105T100000', 'EXRULE:FREQ=DAILY'], /EXRULE is not supported/],
    ['an end before its start', ['DTSTART:20260105T100000', 'DTEND:20260105T090000'], /Line 5 .*before DTSTART/],
    ['ends of two kinds', ['DTSTART:20260105T100000', 'DTEND;VALUE=DATE:20260105'], /a date, the other a time/],
    ['a wrong duration', ['DTSTART:20260105T100000', 'DURATION:PT'], /Line 5 .*"PT" is no duration/],
    ['a negative duration', ['DTSTART:20260105T100000', 'DURATION:-PT1H'], /no duration/],
    ['a line that is not folded', ['DTSTART:20260105', 'DESCRIPTION:one', 'two'], /Line 6 .*"two" has no name/],
    ['an open quotation', ['DTSTART:20260105', 'X;A="b:c'], /Line 5 .*NAME=value/],
    ['a parameter without a name', ['DTSTART:20260105', 'X;=b:c'], /Line 5 .*NAME=value/],
    ['a property without a value', ['DTSTART:20260105', 'X;A=b'], /Line 5 .*no value/],
    [
      'a change of all later occurrences',
      ['DTSTART:20260105', 'RECURRENCE-ID;RANGE=THISANDFUTURE:20260105'],
      /Line 5 .*RANGE.* not supported/,
    ],
  ] as const)('tells of an event with %s and reads the others', ([, lines, message]) => {
    const good = vevent('DTSTART;VALUE=DATE:20261225')
    const { entries, problems, unread } = importIcs(file(...vevent(...lines), ...good), zones)
    expect(entries).toHaveLength(1)
    expect(unread).toBe(1)
    expect(problems[0]?.message).toMatch(message)
  })
})

describe('[K-14] a hostile file is refused', () => {
  test.for([
    ['that is none', '<html>Sign in: please</html>', /no BEGIN:VCALENDAR/],
    ['that is empty', '', /no BEGIN:VCALENDAR/],
    ['that is a to-do list', 'BEGIN:VTODO\nEND:VTODO', /no BEGIN:VCALENDAR/],
    ['that ends too early', 'BEGIN:VCALENDAR\nBEGIN:VEVENT', /Line 2 .*VEVENT has no END/],
    ['whose ends are crossed', 'BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR', /Line 3 .*does not close VEVENT/],
    ['with something outside', 'X:1\nBEGIN:VCALENDAR\nEND:VCALENDAR', /Line 1 .*outside of a calendar/],
    ['that is nested deeply', 'BEGIN:VCALENDAR\n'.repeat(100_000), /nested more than 8 deep/],
    ['with too many lines', `BEGIN:VCALENDAR${'\n'.repeat(200_001)}`, /200002 lines/],
    ['with a line before it', 'hello\nBEGIN:VCALENDAR\nEND:VCALENDAR', /Line 1 .*no name/],
    ['with one endless line', `BEGIN:VCALENDAR\nX:${'x'.repeat(100_001)}`, /Line 2 .*longer than 100000/],
    ['with one endless folded line', `BEGIN:VCALENDAR\nX:\n${' xxxxxxxxx\n'.repeat(20_000)}`, /longer than 100000/],
    ['that is too long', 'x'.repeat(2_000_001), /2000001 characters/],
  ] as const)('%s', ([, text, message]) => {
    expect(() => importIcs(text, zones)).toThrow(message)
  })

  test('with too many events, and with too many problems', () => {
    const many = (count: number, ...lines: readonly string[]): string =>
      file(...Array.from({ length: count }, () => vevent(...lines)).flat())
    expect(() => importIcs(many(5_001), zones)).toThrow(/5001 events/)
    const { problems, unread } = importIcs(many(100), zones)
    expect(problems).toHaveLength(20)
    expect(unread).toBe(100)
    const rules = importIcs(many(501, 'DTSTART:20260101T000000Z', 'RRULE:FREQ=SECONDLY'), zones)
    expect(() => calendar({ name: 'x', entries: rules.entries }, zones, zones.named('UTC'))).toThrow(
      /entries that repeat/,
    )
  })

  test('whatever it is made of, it is read or refused in a sentence', () => {
    const word = fc.constantFrom(
      'BEGIN',
      'END',
      'VEVENT',
      'VCALENDAR',
      ':',
      ';',
      '=',
      '"',
      '\n',
      ' ',
      ',',
      'DTSTART',
      '20260101',
      'T000000',
      'Z',
      'RRULE',
      'FREQ=DAILY',
      'TZID',
      '\\',
      '\u0000',
      'é',
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), (words) => {
        expect(codeOf(() => importIcs(words.join(''), zones))).toMatch(/^(read|INVALID_REQUEST)$/)
      }),
      { numRuns: 2_000 },
    )
  })
})
