import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const chance = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })

test('[C-03] the wait doubles with every attempt and is drawn from the whole span', () => {
  const at = (attempt: number, drawn: number) => backoffMs({ baseMs: 1_000, maxMs: 900_000, attempt, chance: drawn })
  expect([1, 2, 3, 4].map((attempt) => at(attempt, 1))).toEqual([1_000, 2_000, 4_000, 8_000])
  expect([1, 2, 3, 4].map((attempt) => at(attempt, 0))).toEqual([500, 500, 500, 500])
  expect(at(2, 0.5)).toBe(1_250)
  expect(at(30, 1)).toBe(900_000)
})

test('[C-03] the wait grows by another factor where one is given', () => {
  const at = (attempt: number, factor: number) => backoffMs({ baseMs: 100, maxMs: 5_000, factor, attempt, chance: 1 })
  expect([1, 2, 3, 4, 5].map((attempt) => at(attempt, 3))).toEqual([100, 300, 900, 2_700, 5_000])
  expect([1, 2, 3].map((attempt) => at(attempt, 1))).toEqual([100, 100, 100])
  expect(at(3, Number.NaN)).toBe(100)
})

test('[C-03] the wait stays between half the base and the ceiling, and its upper bound never falls', () => {
  const span = fc.integer({ min: 0, max: 10_000_000 })
  fc.assert(
    fc.property(span, span, fc.integer({ min: 1, max: 10_000 }), chance, (baseMs, maxMs, attempt, drawn) => {
      const wait = backoffMs({ baseMs, maxMs, attempt, chance: drawn })
      expect(wait).toBeGreaterThanOrEqual(Math.min(baseMs / 2, maxMs))
      expect(wait).toBeLessThanOrEqual(maxMs)
      expect(Number.isSafeInteger(wait)).toBe(true)
      const [now, later] = [attempt, attempt + 1].map((n) => backoffMs({ baseMs, maxMs, attempt: n, chance: 1 }))
      expect(later).toBeGreaterThanOrEqual(Number(now))
    }),
  )
})

test('[C-03] settings that make no sense give a wait that does', () => {
  const any = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, Infinity, -Infinity, -1, 0))
  fc.assert(
    fc.property(any, any, any, any, (baseMs, maxMs, attempt, drawn) => {
      const wait = backoffMs({ baseMs, maxMs, attempt, chance: drawn })
      expect(wait).toBeGreaterThanOrEqual(0)
      expect(Number.isSafeInteger(wait)).toBe(true)
    }),
  )
})
