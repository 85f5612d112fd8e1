import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ExactNumber, numberFrom } from './exact-number.ts'
import { parseExact, readJson, stringifyExact, writeJson } from './exact-json.ts'
import { plainCopy } from './plain-copy.ts'

const UNUSUAL: readonly (readonly [string, unknown])[] = [
  ['a large integer', 2 ** 53],
  ['a large double', 1e300],
  ['minus zero', -0],
  ['a bigint', 5n],
  ['an exact number', numberFrom('0.1234567890123456789012')],
  ['no number', Number.NaN],
  ['a marked text', '\uFDD05'],
  ['a date', new Date(0)],
  ['something with toJSON', { toJSON: () => 1 }],
  ['a function', () => 1],
  ['an object without a prototype', Object.create(null)],
  ['an instance', new Map()],
  ['a key that is the prototype', JSON.parse('{"__proto__":1}')],
]

test.each(UNUSUAL)('[A-10] %s takes the way by its text', (_name, value) => {
  expect(plainCopy(value)).toBeUndefined()
  expect(plainCopy({ deep: [value] })).toBeUndefined()
})

test('[A-10] what is nested deep, or in itself, takes the way by its text', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  expect(plainCopy(cycle)).toBeUndefined()
})

test('[A-10] nothing of a copy is shared, and what is undefined is left out', () => {
  const given = { list: [{ a: 1 }], none: undefined, no: null }
  const copy = plainCopy(given)
  given.list[0]!.a = 2
  expect(copy).toStrictEqual({ list: [{ a: 1 }], no: null })
})

test('[A-10] a copy is what writing and reading makes of it, in both directions', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  fc.assert(
    fc.property(value, (data) => {
      const copy = plainCopy(data)
      if (copy === undefined) return
      expect(copy).toStrictEqual(readJson(stringifyExact(data)))
      expect(copy).toStrictEqual(parseExact(writeJson(data)))
      expect(copy).not.toBeInstanceOf(ExactNumber)
    }),
    { numRuns: 500 },
  )
})
