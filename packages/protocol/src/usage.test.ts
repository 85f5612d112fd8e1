import { expect, test } from 'vitest'
import { addUsage, NO_USAGE, readUsage } from './usage.ts'

test('[K-16] a report names what was used; what is not named is nothing', () => {
  expect(readUsage({ usd: 0.5, tokens: null })).toEqual({ usd: 0.5, tokens: 0, seconds: 0 })
  let sum = NO_USAGE
  for (let count = 0; count < 1_000; count += 1) sum = addUsage(sum, { usd: 0.01, tokens: 1, seconds: 0.1 })
  expect(sum).toEqual({ usd: 10, tokens: 1_000, seconds: 100 })
})

test.each([
  [{}, 'at least one of usd, tokens, seconds'],
  [{ usd: 0 }, 'with more than 0'],
  [{ usd: -1 }, '"usd" must be a number from 0'],
  [{ tokens: Number.NaN }, '"tokens" must be a number'],
  [{ seconds: Number.POSITIVE_INFINITY }, '"seconds" must be a number'],
  [{ usd: '5' }, '"usd" must be a number'],
  [{ usd: 1e13 }, 'to 1000000000000'],
  [{ euros: 1 }, 'no measure "euros"'],
])('[K-16] the report %j is refused', (report, reason) => {
  expect(readUsage(report)).toContain(reason)
})
