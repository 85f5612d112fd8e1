import fc from 'fast-check'
import { expect, test } from 'vitest'
import { intlClock } from '../intl-clock.fixture.ts'
import { isoInstant, isoLocal } from '../moment.ts'
import { occurrencesAfter } from '../series.ts'
import { Zones } from '../zone.ts'
import { recurrence } from './recurrence.ts'

const UNITS = { HOURLY: 3_600_000, MINUTELY: 60_000, SECONDLY: 1_000 } as const
const DAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const

/** Step by step in real time, and each time a look at the clock. */
function stepByStep(
  {
    unit,
    interval,
    hours,
    days,
  }: { unit: keyof typeof UNITS; interval: number; hours: readonly number[]; days: readonly string[] },
  zone: string,
  start: number,
  end: number,
): readonly number[] {
  const clock = intlClock(zone)
  const found: number[] = []
  for (let at = start; at < end; at += interval * UNITS[unit]) {
    const shown = new Date(at + clock(at))
    const isHour = hours.length === 0 || hours.includes(shown.getUTCHours())
    const isDay = days.length === 0 || days.includes(DAYS[shown.getUTCDay()] ?? '')
    if (isHour && isDay) found.push(at)
  }
  return found
}

test('[K-03] rules of hours and less go with real time through clock changes', { timeout: 120_000 }, () => {
  const zones = new Zones()
  const changes = fc.constantFrom(
    ['America/New_York', '2025-03-08T12:00:00Z'],
    ['America/New_York', '2025-11-01T12:00:00Z'],
    ['Europe/Berlin', '2025-03-29T12:00:00Z'],
    ['Antarctica/Troll', '2025-10-25T12:00:00Z'],
    ['America/Sao_Paulo', '2018-11-03T12:00:00Z'],
    ['Africa/Casablanca', '2025-02-22T12:00:00Z'],
    ['Pacific/Apia', '2011-12-29T12:00:00Z'],
  )
  const rule = fc.record({
    unit: fc.constantFrom('HOURLY' as const, 'MINUTELY' as const, 'SECONDLY' as const),
    interval: fc.integer({ min: 1, max: 50 }),
    hours: fc.uniqueArray(fc.integer({ min: 0, max: 23 }), { maxLength: 8 }),
    days: fc.uniqueArray(fc.constantFrom(...DAYS), { maxLength: 4 }),
  })
  fc.assert(
    fc.property(rule, changes, fc.nat(40_000), (one, [zone = '', around = ''], seconds) => {
      const interval = one.unit === 'SECONDLY' ? one.interval * 37 : one.interval
      const start = Date.parse(around) + seconds * 1_000
      const rrule = [
        `FREQ=${one.unit};INTERVAL=${interval}`,
        ...(one.hours.length === 0 ? [] : [`BYHOUR=${one.hours.join(',')}`]),
        ...(one.days.length === 0 ? [] : [`BYDAY=${one.days.join(',')}`]),
      ].join(';')
      const expected = stepByStep({ ...one, interval }, zone, start, start + 3 * 86_400_000).slice(0, 200)
      const dtstart = isoLocal(zones.named(zone).localOf(start))
      const { series } = recurrence({ rrule, dtstart }, zones.named(zone))
      expect(occurrencesAfter(series, 0, expected.length).map(({ at }) => isoInstant(at))).toEqual(
        expected.map(isoInstant),
      )
    }),
    { numRuns: 120 },
  )
})
