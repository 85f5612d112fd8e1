import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isImpresarioError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { dataOf, doubleOf, parseExact, readJson, roughCopy, stringifyExact, writeJson } from './exact-json.ts'
import type { Data } from './exact-json.ts'
import { compareNumbers, ExactNumber, numberFrom } from './exact-number.ts'
import type { AnyNumber } from './exact-number.ts'
import { literalText, plainText } from './exact-text.ts'
import { jsonText, numberLiteral } from '../../../../test/odd-json.ts'
import { notANumberIn } from './text-path.ts'

/** The value of a literal as a fraction of two integers: the correct result, computed slowly. */
function valueOf(literal: string): { readonly top: bigint; readonly bottom: bigint } {
  const [, minus, whole = '', part = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  const top = BigInt(whole + part) * (minus === '-' ? -1n : 1n)
  const exponent = Number(power) - part.length
  return exponent >= 0 ? { top: top * 10n ** BigInt(exponent), bottom: 1n } : { top, bottom: 10n ** BigInt(-exponent) }
}

function isSameValue(a: string, b: string): boolean {
  const [left, right] = [valueOf(a), valueOf(b)]
  return left.top * right.bottom === right.top * left.bottom
}

describe('[H-01] what a number becomes', () => {
  test.each<[string, AnyNumber]>([
    ['7', 7],
    ['8.0', 8],
    ['1E2', 100],
    ['-0', -0],
    ['-0.0', -0],
    ['-0e7', -0],
    ['9007199254740991', 9_007_199_254_740_991],
    ['9007199254740992', 9_007_199_254_740_992n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['-9223372036854775808', -9_223_372_036_854_775_808n],
    ['123456789012345678901234567890', 123_456_789_012_345_678_901_234_567_890n],
    ['0.1', 0.1],
    ['0.30000000000000004', 0.1 + 0.2],
    // Printed with 17 digits, as others do: the same double.
    ['0.10000000000000001', 0.1],
    ['0.1000000000000000055511151231257827021181583404541015625', 0.1],
    ['0.30000000000000001', new ExactNumber('0.30000000000000001')],
    ['123456789.123456789123', new ExactNumber('123456789.123456789123')],
    ['1e-400', new ExactNumber('1e-400')],
    ['-1e-400', new ExactNumber('-1e-400')],
    ['5e-324', 5e-324],
    ['1e22', 1e22],
    ['1.7976931348623157e308', Number.MAX_VALUE],
  ])('%s', (literal, expected) => {
    const value = parseExact(`[${literal}]`)
    expect(value).toEqual([expected])
    expect(Object.is((value as readonly Data[])[0], -0)).toBe(Object.is(expected, -0))
  })

  test.each(['1e400', '-1e400', '1.5e309', '1e99999999999'])('%s is refused with its place', (literal) => {
    const text = `{"a":{"b":[0,"1e400",{"c d":${literal}}]}}`
    for (const read of [readJson, parseExact]) {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'LIMIT_EXCEEDED' }))
      expect(() => read(text)).toThrow(`a.b[2].c d is ${literal}`)
    }
  })

  test('thousands of digits are refused', () => {
    expect(() => readJson(`[${'1'.repeat(LIMITS.jsonNumberCharsMax + 1)}]`)).toThrow(/\[0\] is a number of 1001/)
    expect(writeJson(readJson(`[${'1'.repeat(LIMITS.jsonNumberCharsMax)}]`))).toBe(`[${'1'.repeat(1_000)}]`)
  })

  test('what Python writes for numbers that are none is found with its place', () => {
    expect(notANumberIn('{"a":[1,{"NaN":"Infinity","b":NaN}]}')).toEqual({ path: 'a[1].b', word: 'NaN' })
    expect(notANumberIn('[-Infinity]')).toEqual({ path: '[0]', word: '-Infinity' })
    expect(notANumberIn('NaN')).toEqual({ path: 'The body', word: 'NaN' })
    expect(notANumberIn('{"a":"NaN"}')).toBeUndefined()
  })
})

describe('[H-01] any JSON text', () => {
  const SEEDED = { numRuns: 2_000 }

  test('comes out of what is kept as it went in, number by number', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const written = writeJson(readJson(text))
        sameNumbers(text, written)
        expect(writeJson(readJson(written))).toBe(written)
        // Every storage keeps JSON.
        expect(writeJson(JSON.parse(JSON.stringify(readJson(text))))).toBe(written)
      }),
      SEEDED,
    )
  })

  test('comes out of what users see as it went in', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const seen = parseExact(text)
        const written = stringifyExact(seen)
        expect(written).toBe(writeJson(readJson(text)))
        expect(dataOf(readJson(text))).toEqual(seen)
        expect(stringifyExact(parseExact(written))).toBe(written)
        expect(stringifyExact(seen, 2)).toBe(indented(written))
      }),
      SEEDED,
    )
  })

  test('is read like JSON.parse where that alters nothing', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const plain: unknown = JSON.parse(text)
        if (JSON.stringify(plain) !== stringifyExact(plain)) return
        expect(writeJson(readJson(JSON.stringify(plain)))).toBe(JSON.stringify(plain))
      }),
      SEEDED,
    )
  })

  test('what is no JSON is refused, whatever it looks like', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          jsonText.map((text) => text.slice(1)),
        ),
        (text) => {
          const isJson = outcomeOf(() => JSON.parse(text)) !== 'SyntaxError'
          const found = outcomeOf(() => readJson(text))
          expect(isJson || found !== 'value').toBe(true)
          expect(found === 'SyntaxError' && isJson).toBe(false)
        },
      ),
      SEEDED,
    )
  })
})

function outcomeOf(work: () => unknown): string {
  try {
    work()
    return 'value'
  } catch (error) {
    return isImpresarioError(error) ? 'refusal' : error instanceof Error ? error.name : 'thrown'
  }
}

/** Both texts in the form in which every number is a string, so that JSON itself compares all the rest. */
function sameNumbers(before: string, after: string): void {
  const [left, right] = [JSON.parse(literalText(before)), JSON.parse(literalText(after))] as unknown[]
  compareParts(left, right)
}

function compareParts(left: unknown, right: unknown): void {
  if (typeof left === 'object' && left !== null) {
    expect(Object.keys(right ?? {})).toEqual(Object.keys(left))
    for (const key of Object.keys(left)) compareParts(partOf(left, key), partOf(right, key))
    return
  }
  if (left === right) return
  const [a, b] = [String(left).slice(1), String(right).slice(1)]
  const isDouble = typeof numberFrom(a) === 'number'
  // A double may be written with more digits than it needs; everything else is the same to the last digit.
  expect(isDouble ? Object.is(Number(a), Number(b)) : isSameValue(a, b) && a === b).toBe(true)
}

function partOf(value: unknown, key: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[key]
}

function indented(text: string): string {
  return plainText(JSON.stringify(JSON.parse(literalText(text)), undefined, 2))
}

describe('[A-04] numbers compare exactly', () => {
  test('as fractions of whole numbers do', () => {
    fc.assert(
      fc.property(numberLiteral, numberLiteral, (a, b) => {
        const [left, right] = [numberFrom(a), numberFrom(b)]
        if (left === 'overflow' || right === 'overflow') return
        const [x, y] = [valueOf(exactLiteral(left)), valueOf(exactLiteral(right))]
        const difference = x.top * y.bottom - y.top * x.bottom
        expect(Math.sign(compareNumbers(left, right))).toBe(difference < 0n ? -1 : difference > 0n ? 1 : 0)
      }),
      { numRuns: 1_000 },
    )
  })

  /** A double counts as the number that it is displayed as. */
  const exactLiteral = (number: AnyNumber): string => String(number).replace('e+', 'e')

  test('equal negative numbers give 0, which is not -0', () => {
    expect(compareNumbers(new ExactNumber('-1e-400'), new ExactNumber('-1e-400'))).toBe(0)
  })

  test('powers of any size take no time', () => {
    expect(compareNumbers(new ExactNumber('1e-999999999'), new ExactNumber('2e-999999999'))).toBeLessThan(0)
    expect(compareNumbers(new ExactNumber('-1e-999999999'), 0)).toBeLessThan(0)
  })
})

describe('[H-01] what cannot be written', () => {
  test.each([Number.NaN, Infinity, -Infinity])('%s is refused, where JSON.stringify would write null', (value) => {
    expect(() => stringifyExact({ a: [value] })).toThrow(TypeError)
  })

  test('an exact number is one, however it is made', () => {
    expect(() => new ExactNumber('NaN')).toThrow(TypeError)
    expect(() => new ExactNumber('1,5')).toThrow(TypeError)
    expect(stringifyExact([new ExactNumber('8.0'), 5n, new Date(0)])).toBe('[8,5,"1970-01-01T00:00:00.000Z"]')
    expect(() => stringifyExact(new ExactNumber('1e400'))).toThrow(TypeError)
    expect(Number(new ExactNumber('0.30000000000000001'))).toBe(0.3)
    expect(JSON.stringify(new ExactNumber('1e-400'))).toBe('"1e-400"')
  })

  test('what is only measured is the nearest double', () => {
    const kept = readJson(String.raw`{"a":9007199254740993,"b":["\ufdd05",-0],"c":1e-400}`)
    expect(roughCopy(kept)).toEqual({ a: 9_007_199_254_740_992, b: ['\uFDD05', -0], c: 0 })
    expect(doubleOf('5')).toBeUndefined()
    expect(doubleOf(5)).toBe(5)
  })
})
