import fc from 'fast-check'
import { expect, test } from 'vitest'
import { roughJsonLength } from './rough-json-length.ts'

test('[C-10] the weight of a value is near its length as JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const length = JSON.stringify(value).length
      expect(roughJsonLength(value)).toBeGreaterThan(length / 8)
      expect(roughJsonLength(value)).toBeLessThan(12 * length + 20)
    }),
  )
  expect(roughJsonLength({ text: 'x'.repeat(1_000), list: [1, null, true, ['y']] })).toBeGreaterThan(1_000)
})

test('[C-10] nothing is counted beyond the bound', () => {
  const long = { many: Array.from({ length: 1_000 }, () => 'x'.repeat(100)) }
  expect(roughJsonLength(long)).toBeGreaterThan(100_000)
  expect(roughJsonLength(long, 1_000)).toBeLessThan(1_200)
})
