import { expect, test } from 'vitest'
import { TokenSource } from './token-source.ts'

test('[C-04] tokens of a later epoch are greater, and a full epoch goes over into the next', () => {
  const first = new TokenSource(1)
  const last = new TokenSource(1, 2 ** 32 - 2)
  const tokens = [first.next(), first.next(), last.next(), last.next(), last.next(), new TokenSource(3).next()]
  expect(tokens).toEqual(tokens.toSorted((a, b) => a - b))
  expect(new Set(tokens).size).toBe(tokens.length)
  expect(last.epoch).toBe(2)
})

test('[C-04] tokens are safe integers for two million openings', () => {
  expect(Number.isSafeInteger(new TokenSource(2 ** 21 - 1, 2 ** 32 - 2).next())).toBe(true)
})
