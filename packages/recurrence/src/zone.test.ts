import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { intlClock } from './intl-clock.fixture.ts'
import { isoInstant, parseMoment } from './moment.ts'
import { Zone, Zones } from './zone.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FIRST = { gap: 'first', fold: 'first' } as const

/** A local time as the number that zones use. */
function local(text: string): number {
  return Date.parse(`${text}Z`)
}

function resolved(zone: string, text: string): Readonly<Record<string, string | undefined>> {
  const one = new Zone(zone)
  const iso = (at: number | undefined): string | undefined => (at === undefined ? undefined : isoInstant(at))
  return {
    first: iso(one.instantOf(local(text), FIRST)),
    shift: iso(one.instantOf(local(text), { gap: 'shift', fold: 'first' })),
    drop: iso(one.instantOf(local(text), { gap: 'drop', fold: 'first' })),
    second: iso(one.instantOf(local(text), { gap: 'drop', fold: 'second' })),
  }
}

describe('[K-03] a local time that a clock change leaves out or repeats', () => {
  test('is left out for an hour in New York', () => {
    expect(resolved('America/New_York', '2025-03-09T02:30:00')).toEqual({
      first: '2025-03-09T07:00:00Z',
      shift: '2025-03-09T07:30:00Z',
      drop: undefined,
      second: undefined,
    })
  })

  test('is left out for half an hour on Lord Howe', () => {
    expect(resolved('Australia/Lord_Howe', '2025-10-05T02:15:00')).toEqual({
      first: '2025-10-04T15:30:00Z',
      shift: '2025-10-04T15:45:00Z',
      drop: undefined,
      second: undefined,
    })
  })

  test('is left out at midnight in São Paulo', () => {
    expect(resolved('America/Sao_Paulo', '2018-11-04T00:00:00')).toMatchObject({
      first: '2018-11-04T03:00:00Z',
      shift: '2018-11-04T03:00:00Z',
      drop: undefined,
    })
  })

  test('is left out for a whole day in Apia', () => {
    expect(resolved('Pacific/Apia', '2011-12-30T12:00:00')).toEqual({
      first: '2011-12-30T10:00:00Z',
      shift: '2011-12-30T22:00:00Z',
      drop: undefined,
      second: undefined,
    })
  })

  test('comes twice in New York', () => {
    expect(resolved('America/New_York', '2025-11-02T01:30:00')).toEqual({
      first: '2025-11-02T05:30:00Z',
      shift: '2025-11-02T05:30:00Z',
      drop: '2025-11-02T05:30:00Z',
      second: '2025-11-02T06:30:00Z',
    })
  })

  test('comes twice where Ramadan ends in Casablanca', () => {
    const instants = new Zone('Africa/Casablanca').instantsOf(local('2025-02-23T02:30:00'))
    expect(instants.map(isoInstant)).toEqual(['2025-02-23T01:30:00Z', '2025-02-23T02:30:00Z'])
  })

  test('is where the runtime says it is in Chișinău, whose rules have changed', () => {
    const clock = intlClock('Europe/Chisinau')
    const zone = new Zone('Europe/Chisinau')
    const midnight = local('2026-03-29T00:00:00')
    for (let at = midnight; at < midnight + 6 * HOUR_MS; at += HOUR_MS / 4) expect(zone.offsetMs(at)).toBe(clock(at))
  })
})

describe('[K-03] a zone', () => {
  test.for(['UTC', 'utc', 'Etc/UTC', 'GMT', '+05:30', '-03:00'])('%s has one stretch', (name) => {
    const zone = new Zone(name)
    expect(zone.stretchAt(0)).toBe(zone.stretchAt(1e14))
    expect(zone.instantsOf(0)).toHaveLength(1)
  })

  test('is refused if there is none of that name', () => {
    const names = ['', 'Nowhere/Place', 'Europe', '+25:00', '+0530', '12', 'x'.repeat(1_000), 'Europe/Berlin\n']
    for (const name of names) {
      expect(() => new Zone(name)).toThrow(/There is no time zone/)
    }
  })

  test('is made once for its name', () => {
    const zones = new Zones()
    expect(zones.named('Europe/Kyiv')).toBe(zones.named('Europe/Kyiv'))
    for (let index = 0; index < 900; index += 1) {
      const minutes = String(index % 60).padStart(2, '0')
      zones.named(`+${String(Math.floor(index / 60)).padStart(2, '0')}:${minutes}`)
    }
    expect(zones.named('Europe/Kyiv').name).toBe('Europe/Kyiv')
  })

  test('shows what Intl shows, in every zone there is, from 1970 to 2600', { timeout: 120_000 }, () => {
    for (const name of Intl.supportedValuesOf('timeZone')) {
      const [zone, clock] = [new Zone(name), intlClock(name)]
      fc.assert(
        fc.property(fc.integer({ min: 0, max: 19_880_899_200 }), (second) => {
          expect([name, zone.offsetMs(second * 1_000)]).toEqual([name, clock(second * 1_000)])
        }),
        { numRuns: 6 },
      )
    }
  })

  // Clocks that were changed back within a week, by the sun's seconds, for Ramadan, by half an hour, by two hours.
  test.for([
    ['Africa/Freetown', 1939],
    ['America/Recife', 2000],
    ['America/Noronha', 2000],
    ['Asia/Gaza', 2040],
    ['Africa/Casablanca', 2031],
    ['Pacific/Apia', 2011],
    ['Australia/Lord_Howe', 2025],
    ['Antarctica/Troll', 2025],
    ['Europe/Chisinau', 1918],
    ['Europe/Amsterdam', 1937],
  ] as const)('of %s in %i misses no change', ([name, year]) => {
    const [zone, clock] = [new Zone(name), intlClock(name)]
    const begin = Date.UTC(year, 0, 1)
    for (let at = begin; at < begin + 366 * DAY_MS; at += DAY_MS / 2) expect(zone.offsetMs(at)).toBe(clock(at))
    for (let stretch = zone.stretchAt(begin); stretch.to < begin + 366 * DAY_MS;) {
      stretch = zone.stretchAt(stretch.to)
      expect(clock(stretch.from)).toBe(stretch.offsetMs)
      expect(clock(stretch.from - 1_000)).toBe(stretch.offsetBeforeMs)
    }
  })

  test('goes on by its rules in far years, and asks about each only once', () => {
    const zone = new Zone('Europe/Berlin')
    expect(isoInstant(zone.instantOf(local('9999-07-01T12:00:00'), FIRST))).toBe('9999-07-01T10:00:00Z')
    expect(zone.offsetMs(Date.UTC(9_998, 0, 1))).toBe(HOUR_MS)
    for (let year = 1_000; year < 2_400; year += 1) zone.offsetMs(Date.UTC(year, 6, 1))
    expect(zone.offsetMs(Date.UTC(2_026, 6, 1))).toBe(2 * HOUR_MS)
  })

  test('finds its way from an instant to the clock and back', () => {
    const zones = new Zones()
    const names = ['Europe/London', 'Australia/Lord_Howe', 'America/Santiago', 'Pacific/Apia', 'Africa/Cairo']
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.integer({ min: 0, max: 4_000_000_000 }), (name, second) => {
        const [zone, at] = [zones.named(name), second * 1_000]
        const shown = zone.localOf(at)
        expect(zone.instantsOf(shown)).toContain(at)
        expect(zone.gapAt(shown)).toBeUndefined()
        expect(zone.instantOf(shown, FIRST)).toBeLessThanOrEqual(at)
      }),
    )
  })
})

describe('[K-03] a written time', () => {
  test.for([
    ['2026-01-31T09:00:00Z', { kind: 'instant', at: Date.UTC(2026, 0, 31, 9) }],
    ['2026-01-31T09:00:00+02:00', { kind: 'instant', at: Date.UTC(2026, 0, 31, 7) }],
    ['20260131T090000-0330', { kind: 'instant', at: Date.UTC(2026, 0, 31, 12, 30) }],
    ['2026-01-31t09:00:00.25z', { kind: 'instant', at: Date.UTC(2026, 0, 31, 9, 0, 0, 250) }],
    ['2026-01-31 09:00', { kind: 'local', local: Date.UTC(2026, 0, 31, 9) }],
    ['20260131T090000', { kind: 'local', local: Date.UTC(2026, 0, 31, 9) }],
    ['2016-12-31T23:59:60', { kind: 'local', local: Date.UTC(2016, 11, 31, 23, 59, 59) }],
    ['2024-02-29', { kind: 'date', dayNo: Date.UTC(2024, 1, 29) / DAY_MS }],
    [' 20240229 ', { kind: 'date', dayNo: Date.UTC(2024, 1, 29) / DAY_MS }],
  ] as const)('%s is read', ([text, moment]) => {
    expect(parseMoment('once', text)).toEqual(moment)
  })

  test.for([
    '',
    'now',
    'tomorrow',
    '2026',
    '2026-13-01',
    '2026-02-29',
    '2026-04-31T09:00',
    '0000-01-01',
    '2026-01-31T24:00:00',
    '2026-01-31T09:60',
    '2026-01-31T09:00:61',
    '2026-01-31T09:00:00+24:00',
    '2026-01-31T09:00:00+02:60',
    '2026-1-31',
    '2026-01-31T9:00',
    '1e10',
    '9'.repeat(5_000),
  ])('%s is refused', (text) => {
    expect(() => parseMoment('once', text)).toThrow(/^once /)
  })
})
