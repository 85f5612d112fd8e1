import { expect, test } from 'vitest'
import { wallTime } from './wall-time.ts'

test('[H-07] the time of day is that of the wall clock, and of the only clock where there is no other', () => {
  const sleep = (): Promise<void> => Promise.resolve()
  expect(wallTime({ now: () => 1, wall: () => 2, sleep })).toBe(2)
  expect(wallTime({ now: () => 1, sleep })).toBe(1)
})
