import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateOf, dayNumber, daysInMonth, weekdayOf } from './civil.ts'

test('[K-03] day numbers and dates agree with the calendar of the language, 500 years in both directions', () => {
  fc.assert(
    fc.property(fc.integer({ min: -200_000, max: 200_000 }), (dayNo) => {
      const date = new Date(dayNo * 86_400_000)
      const civil = dateOf(dayNo)
      expect(civil).toEqual({ year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() })
      expect(dayNumber(civil.year, civil.month, civil.day)).toBe(dayNo)
      expect(weekdayOf(dayNo) % 7).toBe(date.getUTCDay())
    }),
  )
})

test('[K-03] months have their lengths, in leap years too', () => {
  const lengths = (year: number): number[] =>
    Array.from({ length: 12 }, (_unused, index) => daysInMonth(year, index + 1))
  expect(lengths(2026)).toEqual([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
  expect([2000, 2024, 2100].map((year) => lengths(year)[1])).toEqual([29, 29, 28])
})
