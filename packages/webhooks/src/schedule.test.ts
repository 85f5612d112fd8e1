import { expect, test } from 'vitest'
import { readRetryAfter, RETRY_DELAYS_MS, retryDelayMs } from './schedule.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-03-01T12:00:00Z')

test('[H-07] ten attempts over about 75 hours, each later than the one before', () => {
  expect(RETRY_DELAYS_MS).toHaveLength(9)
  const total = RETRY_DELAYS_MS.reduce((sum, ms) => sum + ms, 0)
  expect(total / HOUR).toBeGreaterThan(75)
  expect(total / HOUR).toBeLessThan(76)
  expect([...RETRY_DELAYS_MS].sort((a, b) => a - b)).toEqual(RETRY_DELAYS_MS)
  expect(retryDelayMs(9, { chance: 0.5 })).toBe(24 * HOUR)
  expect(retryDelayMs(10, { chance: 0.5 })).toBeUndefined()
})

test('[H-07] chance moves an attempt by a tenth at most', () => {
  expect([0, 0.5, 1].map((chance) => retryDelayMs(1, { chance }))).toEqual([4_500, 5_000, 5_500])
})

test('[H-07] Retry-After counts when it asks for more than the schedule, up to a day', () => {
  expect(retryDelayMs(1, { chance: 0.5, retryAfterMs: 60_000 })).toBe(60_000)
  expect(retryDelayMs(3, { chance: 0.5, retryAfterMs: 60_000 })).toBe(1_800_000)
  expect(readRetryAfter('120', NOW)).toBe(120_000)
  expect(readRetryAfter(' 5 ', NOW)).toBe(5_000)
  expect(readRetryAfter('Sun, 01 Mar 2026 12:01:00 GMT', NOW)).toBe(60_000)
  expect(readRetryAfter('9999999999', NOW)).toBe(24 * HOUR)
  for (const header of [undefined, '', '0', '-5', 'soon', '1.5e3', 'Sun, 01 Mar 2020 12:00:00 GMT']) {
    expect(readRetryAfter(header, NOW)).toBeUndefined()
  }
})
