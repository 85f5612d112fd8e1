import fc from 'fast-check'

/** Texts that look like numbers stored as texts, or like the mark around them. */
const hostileText = fc.constantFrom(
  '\uFDD0',
  '\uFDD05',
  '\uFDD0-0',
  '\uFDD09007199254740993',
  '\uFDD0\uFDD0',
  '\uFDD0\uFDD05',
  '\uFDD0"5"',
  '\uFDD0}',
  '"\uFDD05"',
  '\\"\uFDD05',
  String.raw`\uFDD05`,
  'a\uFDD05',
  '9007199254740993',
  '1e400',
  'NaN',
  '-0',
  '__proto',
)

const text = fc.oneof(fc.string({ maxLength: 8 }), fc.string({ unit: 'binary', maxLength: 8 }), hostileText)

const digits = (min: number, max: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom('0', '1', '2', '3', '4', '5', '6', '7', '8', '9'), minLength: min, maxLength: max })

const whole = fc.oneof(
  digits(1, 30).map((some) => some.replace(/^0+(?=\d)/, '')),
  fc.bigInt(-(2n ** 70n), 2n ** 70n).map(String),
  fc.constantFrom(
    '0',
    '-0',
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '9223372036854775807',
    '18446744073709551615',
    '123456789012345678901234567890',
    `1${'0'.repeat(400)}`,
  ),
)

const fraction = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits(1, 20).map((some) => some.replace(/^0+(?=\d)/, '')),
    digits(1, 25),
    fc.oneof(
      fc.constant(''),
      fc
        .tuple(fc.constantFrom('e', 'E', 'e+', 'E-', 'e-'), fc.integer({ min: 0, max: 280 }))
        .map((parts) => parts.join('')),
    ),
  )
  .map(([minus, before, after, power]) => `${minus}${before}.${after}${power}`)
  .filter((literal) => Number.isFinite(Number(literal)))

const odd = fc.constantFrom(
  '-0.0',
  '-0e3',
  '8.0',
  '1E2',
  '1e-400',
  '-1e-400',
  '0.1',
  '0.10000000000000001',
  '0.30000000000000001',
  '0.30000000000000004',
  '5e-324',
  '2.2250738585072014e-308',
  '1.7976931348623157e308',
  '1e22',
  '1e21',
)

/** A number as a program in any language might write it. */
export const numberLiteral: fc.Arbitrary<string> = fc.oneof(
  whole,
  fraction,
  odd,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((one) => JSON.stringify(one)),
)

const space = fc.constantFrom('', '', '', ' ', '\n', '\t ')

/** A string as JSON may write it: some with their characters escaped. */
const quoted = fc.tuple(text, fc.boolean()).map(([some, isEscaped]) => {
  const plain = JSON.stringify(some)
  if (!isEscaped) return plain
  return plain.replaceAll(/[\u0080-\uFFFF]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
})

/** JSON texts with strange numbers and hostile strings. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => {
  const spaced = fc.tuple(space, tie('value'), space).map((parts) => parts.join(''))
  const member = fc
    .tuple(space, quoted, space, spaced)
    .map(([before, key, after, one]) => `${before}${key}${after}:${one}`)
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      numberLiteral,
      quoted,
      fc.constantFrom('true', 'false', 'null'),
      fc.array(spaced, { maxLength: 5 }).map((items) => `[${items.join(',')}]`),
      fc.array(member, { maxLength: 5 }).map((members) => `{${members.join(',')}}`),
    ),
  }
}).value

/** An object with one strange value under each of some plain keys. */
export const objectText: fc.Arbitrary<string> = fc
  .array(jsonText, { minLength: 1, maxLength: 4 })
  .map((values) => `{${values.map((value, at) => `"k${at}":${value}`).join(',')}}`)
