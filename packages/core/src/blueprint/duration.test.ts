import { expect, test } from 'vitest'
import { durationMs } from './duration.ts'

test.each([
  [1500, 1500],
  [0, 0],
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5m', 90_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
])('[B-03] %s is %s milliseconds', (span, ms) => {
  expect(durationMs(span, 'timeout')).toBe(ms)
})

test.each([-1, Number.NaN, Infinity, '30', '30 s', '-3s', '1w', '', '900d'])('[B-03] %s is refused', (span) => {
  expect(() => durationMs(span, 'timeout')).toThrow(/^timeout is .*'30s'/)
})
