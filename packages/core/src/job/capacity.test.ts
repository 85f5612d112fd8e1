import { LIMITS } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { canHold, historyExcess } from './capacity.ts'

const text = (bytes: number): string => 'x'.repeat(bytes)
const many = (count: number, bytes: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, text(bytes)]))

describe('[J-01] the bound of a state history', () => {
  test('is one of all values where none is kept apart', () => {
    const half = { a: text(150_000) }
    expect(historyExcess(half, false)).toBeUndefined()
    expect(historyExcess({ ...half, b: text(150_000) }, false)).toBeGreaterThan(300_000)
    expect(canHold({}, { ...half, b: text(150_000) })).toBe(false)
  })
  test('is one of small values where large ones are kept apart, and a larger one of all', () => {
    expect(canHold({}, { a: text(150_000), b: text(150_000), c: text(900_000) }, true)).toBe(true)
    expect(canHold({}, many(100, LIMITS.offloadedValueBytesMin - 100), true)).toBe(false)
    expect(canHold({}, { all: text(LIMITS.offloadedHistoryBytesMax) }, true)).toBe(false)
    expect(historyExcess({ all: text(LIMITS.offloadedHistoryBytesMax) }, true)).toBeGreaterThan(4_194_304)
  })
  test('refuses nothing that stays as it was', () => {
    const full = { all: text(300_000) }
    expect(canHold(full, full)).toBe(true)
  })
})
