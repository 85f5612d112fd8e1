import { expect, test } from 'vitest'
import { dayKey, monthDays, monthOf, shiftedMonth } from './month.ts'

test('[M-02] a month of the calendar has whole weeks from Monday, each day once', () => {
  for (let number = 0; number < 60; number += 1) {
    const month = new Date(2024, number, 1)
    const days = monthDays(month)
    expect(days.length % 7).toBe(0)
    expect(days[0]?.getDay()).toBe(1)
    expect(new Set(days.map(dayKey)).size).toBe(days.length)
    expect(days.some((day) => dayKey(day) === dayKey(month))).toBe(true)
    expect(monthOf(shiftedMonth(month, 1), month)).toEqual(new Date(2024, number + 1, 1))
  }
  expect(monthOf('2026-13', new Date(2026, 10, 17))).toEqual(new Date(2026, 10, 1))
})
