import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileExpression } from './expression.ts'

const ROOTS = ['params', 'event', 'steps', 'now']
const SCOPE = {
  now: '2026-01-31T09:00:00Z',
  params: {
    x: 10,
    half: 1.5,
    yes: true,
    none: null,
    name: 'Ann',
    list: [3, 1, 2],
    empty: [],
    big: 9_007_199_254_740_993n,
  },
  event: { topic: 'github.push', payload: { forced: false } },
  steps: {
    w: {
      items: [
        { p: 50, n: 'a' },
        { p: 150, n: 'b', tags: ['t'] },
        { p: 200, n: 'c' },
      ],
      temperature: 26,
    },
    'my-step': { ok: true },
  },
}
const value = (source: string): unknown => compileExpression(source, ROOTS).evaluate(SCOPE)

describe('[K-09] expressions read data', () => {
  test.each([
    ['params.x', 10],
    ['params.list[0]', 3],
    ['params.list[-1]', 2],
    ['params.list[1:]', [1, 2]],
    ['params.list[::-1]', [2, 1, 3]],
    ['steps["my-step"].ok', true],
    ['steps."my-step".ok', true],
    ['steps.w.items[*].n', ['a', 'b', 'c']],
    ['steps.w.items[?p > `100`].p', [150, 200]],
    ['steps.w.items[?p > 100].p', [150, 200]],
    ['steps.w.items[?p > $.params.x].n', ['a', 'b', 'c']],
    ['steps.w.items[].tags[]', ['t']],
    ['length(steps.w.items)', 3],
    ['sort_by(steps.w.items, &p)[0].p', 50],
    ['max_by(steps.w.items, &p).n', 'c'],
    ['map(&n, steps.w.items)', ['a', 'b', 'c']],
    ['steps.w.items | length(@)', 3],
    ['params.missing', undefined],
    ["params.missing || 'dflt'", 'dflt'],
    ["default(params.none, 'dflt')", 'dflt'],
    ['{n: params.name, all: [params.x, 1]}', { n: 'Ann', all: [10, 1] }],
    ['params.x + 5 * 2', 20],
    ['-(params.x - 4)', -6],
    ["'a' + params.name", 'aAnn'],
    ['now + 24h', '2026-02-01T09:00:00Z'],
    ['now - 30m', '2026-01-31T08:30:00Z'],
    ["date(now, 'Asia/Tokyo')", '2026-01-31'],
    ["time(now, 'Asia/Tokyo')", '18:00:00'],
    ["join(', ', steps.w.items[*].n)", 'a, b, c'],
    ['`{"a": [1]}`.a[0]', 1],
    ["if(params.x > 5, 'many', 'few')", 'many'],
    ['round(params.half * 1.111, 2)', 1.67],
    ['sum(params.list)', 6],
    ['to_number("12.5")', 12.5],
    ["url_encode('a b&c')", 'a%20b%26c'],
  ])('%s', (source, expected) => {
    expect(value(source)).toEqual(expected)
  })
})

describe('[K-09] conditions', () => {
  test.each([
    ['steps.w.temperature > 25', true],
    ['${steps.w.temperature > 25}', true],
    ["event.topic == 'github.push' and not event.payload.forced", true],
    ['!params.none', true],
    ['!steps.w.items', false],
    ['true', true],
    ['params.empty', false],
    ['params.missing', false],
    ['params.missing > 3', false],
    ['2 in params.list', true],
    ["'x' not in params.list", true],
    ["now < '2026-01-31T10:00:00+00:00'", true],
    ["now < '2026-01-31T10:00:00+02:00'", false],
    ['params.big == 9007199254740993', true],
    ['params.big == 9007199254740992', false],
  ])('%s', (source, expected) => {
    expect(compileExpression(source, ROOTS).test(SCOPE)).toBe(expected)
  })
})

describe('[K-09] a mistake is found before anything runs, with its position and a hint', () => {
  test.each([
    ['', /it is empty/],
    ['weather.temperature', /"weather" is not known here.*Known names: params, event/],
    ['params.x = 3', /position 10: unexpected "=". Use "==" to compare/],
    ['params.x >', /it ends too early/],
    ['params.x 5', /unexpected "5"/],
    ['nope(params.x)', /there is no function "nope".*Functions: abs/],
    ['length()', /length\(\) takes 1 arguments/],
    ["'open", /the string is not closed/],
    ['1 < 2 < 3', /comparisons cannot be chained/],
    ['params.constructor', /unexpected "constructor"/],
    ['12xy', /"12x" is not a number/],
    ['params.list[::0]', /the step of a slice cannot be 0/],
  ])('%s', (source, message) => {
    expect(() => compileExpression(source, ROOTS)).toThrow(message)
  })
})

test('[K-09] it says what it reads, so that a pipeline can be checked', () => {
  const { paths } = compileExpression('steps.w.items[?p > params.x && $.event.topic].n || length(now)', ROOTS)
  expect(paths).toEqual([['steps', 'w', 'items'], ['event', 'topic'], ['now']])
})

/** The code of what an expression throws, when it is compiled or when it runs. */
function codeOf(source: string): unknown {
  try {
    compileExpression(source, ROOTS).evaluate(SCOPE)
    return undefined
  } catch (error) {
    return (error as { code?: unknown }).code ?? error
  }
}

describe('[K-09] evaluation is safe and bounded', () => {
  test.each([
    ['params.name + 1', /cannot join text and a number/],
    ['params.x / 0', /has no result/],
    ['length(params.x)', /length\(\) needs a list, an object or text, not a number/],
    ['sort(steps.w.items)', /all numbers or all text/],
    ["date(now, 'Mars/Base')", /does not know the time zone "Mars\/Base"/],
  ])('%s fails with its reason', (source, message) => {
    expect(() => value(source)).toThrow(message)
  })

  test('a filter inside a filter over much data is cut off', () => {
    const params = { list: Array.from({ length: 2_000 }, (_, at) => at) }
    const nested = compileExpression('params.list[?length($.params.list[?@ > 0]) > 1]', ROOTS)
    expect(() => nested.evaluate({ params })).toThrow(/takes more than 200000 steps/)
  })

  test('no getter runs and no prototype is read', () => {
    const params = {
      get trap(): never {
        throw new Error('ran')
      },
    }
    expect(compileExpression('params.trap', ROOTS).evaluate({ params })).toBeUndefined()
    expect(compileExpression('params.toString', ROOTS).evaluate({ params })).toBeUndefined()
  })

  test('whatever is written gives a value or a refusal with a code', () => {
    const words = fc.constantFrom(
      'params',
      '.x',
      '[',
      ']',
      '?',
      '*',
      '(',
      ')',
      '1',
      '2h',
      "'a'",
      ' or ',
      '!',
      '&',
      '|',
      '{',
      '}',
      ':',
      ',',
      'length',
      '-',
      '`1`',
      '@',
      '$',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(words, { maxLength: 12 }), (parts) => {
        expect([undefined, 'INVALID_EXPRESSION']).toContain(codeOf(parts.join('')))
      }),
      { numRuns: 3_000 },
    )
  })
})

test('[K-06] `judge` tells what does not hold from what cannot be compared', () => {
  const judge = (source: string, output: unknown): boolean => compileExpression(source, ['output']).judge({ output })
  expect(judge('output.free < 10', { free: 5 })).toBe(true)
  expect(judge('output.free < 10', { free: 15 })).toBe(false)
  expect(() => judge('output.free < 10', {})).toThrow(/not there/)
  expect(() => judge('output.free < 10', { free: 'N/A' })).toThrow(/another kind/)
  expect(judge('output.error != null', {})).toBe(false)
  expect(judge('length(output.disks[?free < 10]) > 0', { disks: [{}, { free: 3 }] })).toBe(true)
})
