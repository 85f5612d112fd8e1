import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Zone } from './zone.ts'

/** The instant of a local time that is written without a zone. */
function instant(zone: string, local: string): string {
  const at = new Zone(zone).instantOf(Date.parse(`${local}Z`))
  return new Date(at).toISOString().replace('.000Z', 'Z')
}

test('[F-04] plain times, in zones of all kinds', () => {
  expect(instant('UTC', '2026-07-01T12:00')).toBe('2026-07-01T12:00:00Z')
  expect(instant('Europe/Berlin', '2026-07-01T12:00')).toBe('2026-07-01T10:00:00Z')
  expect(instant('Asia/Kathmandu', '2026-07-01T12:00')).toBe('2026-07-01T06:15:00Z')
  expect(instant('Pacific/Kiritimati', '2026-07-01T12:00')).toBe('2026-06-30T22:00:00Z')
})

test.each([
  // The clock goes from 02:00 to 03:00.
  ['Europe/Berlin', '2026-03-29T01:59', '2026-03-29T00:59:00Z'],
  ['Europe/Berlin', '2026-03-29T02:00', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-03-29T03:00', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-03-29T03:01', '2026-03-29T01:01:00Z'],
  ['America/New_York', '2026-03-08T02:30', '2026-03-08T07:00:00Z'],
  // Half an hour only: from 02:00 to 02:30.
  ['Australia/Lord_Howe', '2026-10-04T02:15', '2026-10-03T15:30:00Z'],
  ['Australia/Lord_Howe', '2026-10-04T02:30', '2026-10-03T15:30:00Z'],
  // The day begins at 01:00.
  ['America/Santiago', '2026-09-06T00:00', '2026-09-06T04:00:00Z'],
  ['America/Santiago', '2026-09-06T00:30', '2026-09-06T04:00:00Z'],
  ['Asia/Beirut', '2026-03-29T00:00', '2026-03-28T22:00:00Z'],
  // The 30th of December was left out altogether.
  ['Pacific/Apia', '2011-12-30T12:00', '2011-12-30T10:00:00Z'],
])('[F-04] %s: %s, which a clock put forward leaves out or not, means %s', (zone, local, expected) => {
  expect(instant(zone, local)).toBe(expected)
})

test.each([
  ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00Z'],
  ['Europe/Berlin', '2026-10-25T03:00', '2026-10-25T02:00:00Z'],
  ['America/New_York', '2026-11-01T01:30', '2026-11-01T05:30:00Z'],
  ['Australia/Lord_Howe', '2026-04-05T01:45', '2026-04-04T14:45:00Z'],
  ['America/Santiago', '2026-04-04T23:30', '2026-04-05T02:30:00Z'],
  ['Asia/Beirut', '2026-10-24T23:30', '2026-10-24T20:30:00Z'],
])('[F-04] %s: %s, which comes twice, means the first time: %s', (zone, local, expected) => {
  expect(instant(zone, local)).toBe(expected)
})

test('[F-04] later local times never mean earlier instants, and what a clock shows is what it was asked for', () => {
  const names = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Beirut', 'UTC']
  const zones = names.map((name) => new Zone(name))
  const local = fc.integer({ min: Date.UTC(2020, 0) / 60_000, max: Date.UTC(2030, 0) / 60_000 })
  fc.assert(
    fc.property(fc.constantFrom(...zones), local, fc.integer({ min: 0, max: 2_880 }), (zone, minute, later) => {
      const at = zone.instantOf(minute * 60_000)
      expect(zone.instantOf((minute + later) * 60_000)).toBeGreaterThanOrEqual(at)
      expect(zone.localOf(at)).toBeGreaterThanOrEqual(minute * 60_000)
    }),
  )
})

test('[F-04] fractions of a second stay what they are', () => {
  const at = Date.UTC(2026, 0, 1) + 123
  expect(new Zone('Asia/Tokyo').offsetMs(at)).toBe(9 * 3_600_000)
})

test('[F-04] a time zone that does not exist is refused by name', () => {
  expect(() => new Zone('Europe/Atlantis')).toThrow('There is no time zone "Europe/Atlantis"')
})
