import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateOf, dayNumber, daysInMonth, isoInstant, weekdayOf } from './calendar.ts'

test('[F-04] days and dates are the same thing, four hundred years to both sides', () => {
  fc.assert(
    fc.property(fc.integer({ min: -200_000, max: 200_000 }), (dayNo) => {
      const date = new Date(dayNo * 86_400_000)
      const civil = dateOf(dayNo)
      expect(civil).toEqual({ year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() })
      expect(dayNumber(civil)).toBe(dayNo)
      expect(weekdayOf(dayNo) % 7).toBe(date.getUTCDay())
    }),
  )
})

test('[F-04] months have their lengths, in leap years too', () => {
  const lengths = (year: number): number[] =>
    Array.from({ length: 12 }, (_unused, index) => daysInMonth({ year, month: index + 1 }))
  expect(lengths(2026)).toEqual([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
  expect([2000, 2024, 2100].map((year) => lengths(year)[1])).toEqual([29, 29, 28])
})

test('[F-04] an instant is written as programs read it', () => {
  expect(isoInstant(Date.UTC(2026, 2, 29, 1, 0, 5, 999))).toBe('2026-03-29T01:00:05Z')
})
