import { expect, test } from 'vitest'
import { jsonWeight } from './weight.ts'

test('[C-10] a list of empty objects weighs what V8 makes of it, and not what its text is long', () => {
  const text = `[${Array.from({ length: 100_000 }, () => '{}').join(',')}]`
  const value: unknown = JSON.parse(text)
  expect(jsonWeight(value)).toBeGreaterThan(20 * text.length)
})

test('[C-10] everything that a value holds is counted', () => {
  const long = 'x'.repeat(1_000)
  const weights = [null, true, 1, '', [], {}, 'ab', [1], { a: 1 }, [long], { a: [{ b: long }] }, { [long]: long }]
  const found = weights.map(jsonWeight)
  expect(found).toEqual([0, 0, 16, 24, 32, 56, 28, 56, 98, 2_064, 2_228, 4_104])
  expect(jsonWeight(undefined)).toBe(0)
})
