import { ExactNumber, isImpresarioError, stringifyExact, writeJson } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonCopy, jsonObjectCopy, jsonSize, storedCopy } from './json-copy.ts'

test('[B-03] data is copied, so that nobody holds a part of a stored job', () => {
  const given = { list: [{ n: 1 }], none: undefined, nothing: null, yes: true, text: 't' }
  const copied = jsonObjectCopy(given, 'params')
  given.list[0]!.n = 2
  expect(copied).toEqual({ list: [{ n: 1 }], nothing: null, yes: true, text: 't' })
  expect(Object.keys(copied)).not.toContain('none')
})

test('[B-03] whatever JSON can hold survives, and any key is only a key', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(writeJson(jsonCopy(value, 'params'))).toBe(stringifyExact(value))
    }),
  )
  const copied = jsonCopy(JSON.parse('{"__proto__": {"polluted": 1}}'), 'params')
  expect(Object.keys(copied as object)).toEqual(['__proto__'])
  expect(Object.getPrototypeOf(copied)).toBe(Object.prototype)
  expect(jsonCopy(Object.assign(Object.create(null) as object, { a: 1 }), 'params')).toEqual({ a: 1 })
})

test('[B-03] numbers of any length and texts of any beginning come back as they were', () => {
  const given = {
    id: 9_007_199_254_740_993n,
    small: 7n,
    minus: -0,
    price: new ExactNumber('0.30000000000000001'),
    list: ['\uFDD05', '\uFDD0\uFDD0', 'plain'],
  }
  const kept = jsonObjectCopy(given, 'params')
  // What a storage does with it.
  const stored = JSON.parse(JSON.stringify(kept)) as JsonObject
  expect(storedCopy(stored)).toEqual({ ...given, small: 7 })
  expect(writeJson(stored)).toBe(stringifyExact(given))
})

const loop: { self?: unknown } = {}
loop.self = [loop]
const withHole: unknown[] = []
withHole.length = 1
let deep: unknown = 1
for (let level = 0; level < 65; level += 1) deep = [deep]

test.each<[string, unknown, RegExp]>([
  ['a function', { a: { b: () => 1 } }, /^params\.a\.b is a function, which JSON cannot hold/],
  ['a symbol', { a: Symbol('s') }, /params\.a is a symbol/],
  ['a giant', { a: 10n ** 1_000n }, /params\.a is a number of more than 1000 digits/],
  ['too much', { a: new ExactNumber('1e400') }, /params\.a is 1e400, which is beyond the range/],
  ['NaN', { a: [1, Number.NaN] }, /params\.a\[1\] is NaN.*finite number/],
  ['Infinity', { a: Infinity }, /params\.a is Infinity/],
  ['a date', { at: new Date(0) }, /params\.at is an instance of Date.*toISOString/],
  ['a map', { m: new Map() }, /instance of Map/],
  ['undefined in a list', { a: [undefined] }, /params\.a\[0\] is undefined/],
  ['a hole in a list', { a: withHole }, /params\.a\[0\] is undefined/],
  ['a cycle', loop, /params\.self\[0\] leads back to itself/],
  ['too deep', { deep }, /deeper than 64 levels/],
  ['a list', [], /params is a list\. Give an object/],
  ['null', null, /params is null\. Give an object/],
  ['nothing', undefined, /params is undefined/],
  ['a text', 'text', /params is a string/],
])('[B-03] %s is refused with its place', (_name, value, message) => {
  let refusal: unknown
  try {
    jsonObjectCopy(value, 'params')
  } catch (error) {
    refusal = error
  }
  expect(isImpresarioError(refusal, 'INPUT_REFUSED')).toBe(true)
  expect(String(refusal)).toMatch(new RegExp(message.source.replace('^', 'ImpresarioError: ')))
})

test('the size is that of the JSON', () => {
  expect(jsonSize({ a: [1, 'b'] })).toBe(13)
  expect(jsonSize({ a: [1, 'ä€😀'] })).toBe(21)
})
