import { expect, test } from 'vitest'
import { traceContextOf, TRACESTATE_CHARS_MAX } from './trace-context.ts'

const ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const traceparent = `00-${ID}-${SPAN}-01`

test('[I-04] both fields are kept as they came', () => {
  expect(traceContextOf({ traceparent })).toEqual({ traceparent })
  const tracestate = 'rojo=00f067aa0ba902b7,tenant@congo=t61rcWkgMzE'
  expect(traceContextOf({ traceparent, tracestate })).toEqual({ traceparent, tracestate })
  expect(traceContextOf({ traceparent, tracestate: ' a=1 ,, b=2 ' })).toEqual({ traceparent, tracestate: 'a=1,b=2' })
})

test('[I-04] a later version may have more parts, the present one may not', () => {
  expect(traceContextOf({ traceparent: `01-${ID}-${SPAN}-01-more` })).toBeDefined()
  expect(traceContextOf({ traceparent: `${traceparent}-more` })).toBeUndefined()
})

test.each([
  undefined,
  1,
  ['a', 'b'],
  '',
  'x',
  `ff-${ID}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${ID}-${'0'.repeat(16)}-01`,
  `00-${ID.toUpperCase()}-${SPAN}-01`,
  `01-${ID}-${SPAN}-01-${'x'.repeat(200)}`,
  `${traceparent}\r\nx: y`,
])('[I-04] %j is no trace, and its state is not kept either', (wrong) => {
  expect(traceContextOf({ traceparent: wrong, tracestate: 'a=1' })).toBeUndefined()
})

test.each([
  ['', 'nothing'],
  ['a', 'no value'],
  ['A=1', 'a key in capitals'],
  ['a=1,a=2', 'a key twice'],
  ['a=é', 'a character outside ASCII'],
  ['a=1\r\nx: y', 'a line break'],
  [Array.from({ length: 33 }, (_unused, index) => `k${index}=1`).join(','), 'too many members'],
  ['a=1'.padEnd(10_000, ' '), 'far too long'],
])('[I-04] a state that is not valid is left out and the trace is kept: %#', (tracestate) => {
  expect(traceContextOf({ traceparent, tracestate })).toEqual({ traceparent })
})

test('[I-04] a state that is too long loses its long members, then its oldest ones', () => {
  const long = `long=${'x'.repeat(200)}`
  const short = Array.from({ length: 6 }, (_unused, index) => `k${index}=${'y'.repeat(90)}`)
  const { tracestate = '' } = traceContextOf({ traceparent, tracestate: [long, ...short].join(',') }) ?? {}
  expect(tracestate).toBe(short.slice(0, 5).join(','))
  expect(tracestate.length).toBeLessThanOrEqual(TRACESTATE_CHARS_MAX)
  const onlyLong = ['a', 'b', 'c'].map((key) => `${key}=${'x'.repeat(200)}`).join(',')
  expect(traceContextOf({ traceparent, tracestate: onlyLong })).toEqual({ traceparent })
})
