import { expect, test } from 'vitest'
import { nextLookMs } from './poll-rotation.ts'

test('[E-05] an orchestrator that became ready in the moment of the look is asked at once, and not forgotten', () => {
  const free = { canTake: true, heldBackMs: 500 }
  expect(nextLookMs([0], free)).toBe(0)
  expect(nextLookMs([undefined, 0, 30], free)).toBe(0)
  expect(nextLookMs([80, 30, undefined], free)).toBe(30)
  // Not registered: its registration is announced.
  expect(nextLookMs([undefined], free)).toBeUndefined()
})

test('[E-05] a worker that may take nothing does not look again and again', () => {
  expect(nextLookMs([0], { canTake: false, heldBackMs: 500 })).toBe(500)
  expect(nextLookMs([30], { canTake: false, heldBackMs: 500 })).toBe(30)
  expect(nextLookMs([0], { canTake: false, heldBackMs: undefined })).toBeUndefined()
})
