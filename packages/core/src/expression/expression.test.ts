import { ExactNumber, isImpresarioError, LIMITS } from '@impresario/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileExpression } from './expression.ts'

const context = {
  jobId: 'j1',
  currentState: 'start',
  initialData: {
    quality: 'low',
    code: '007',
    size: 7,
    urgent: true,
    nothing: null,
    tags: ['a', 'b'],
    nested: { list: [{ 'odd key': 1 }], on: false },
  },
  stateHistory: { tries: 2 },
  client: { id: 'c1', plan: 'gold', params: { region: 'eu' } },
  aggregationResults: { 0: { status: 'success' } },
}
const evaluate = (source: string): unknown => compileExpression(source).evaluate({ context })
const holds = (source: string): boolean => compileExpression(source).test({ context })

function refusalOf(source: string): { readonly message: string; readonly position: unknown } {
  try {
    compileExpression(source)
  } catch (error) {
    if (isImpresarioError(error, 'INVALID_EXPRESSION')) {
      return { message: error.message, position: error.details['position'] }
    }
    throw error
  }
  throw new Error(`"${source}" was not refused`)
}

describe('[A-04] paths', () => {
  test.each([
    ['context.initial_data.quality', 'low'],
    ['context.initialData.quality', 'low'],
    ['context.state_history.tries', 2],
    ['context.stateHistory.tries', 2],
    ['context.client.plan', 'gold'],
    ['context.client.params.region', 'eu'],
    ['context.job_id', 'j1'],
    ['context.current_state', 'start'],
    ["context.aggregation_results['0'].status", 'success'],
    ["context['initial_data'].nested.list[0]['odd key']", 1],
    ['context.initial_data.tags[1]', 'b'],
    ['context.initial_data.tags.length', 2],
    ['context.initial_data.tags[7]', null],
    ['context.initial_data.missing.deeper[0]', null],
    ['context.initial_data.quality.length', null],
    ['context.initial_data.toString', null],
    ['context.tracing_context.id', null],
    ['context.tracingContext.id', null],
    ['context.tracing.id', null],
  ])('%s', (source, value) => {
    expect(evaluate(source)).toEqual(value)
  })

  test('a getter is not run', () => {
    const trap = {
      get field(): never {
        throw new Error('ran')
      },
    }
    expect(compileExpression('data.field', { roots: ['data'] }).evaluate({ data: trap })).toBeNull()
  })

  test('other roots can be allowed', () => {
    const compiled = compileExpression("event.kind == 'x' and not params.off or 'a' in [event.kind]", {
      roots: ['event', 'params'],
    })
    expect(compiled.test({ event: { kind: 'x' } })).toBe(true)
    expect(compiled.paths).toEqual(['event.kind', 'params.off'])
    expect(compiled.source).toMatch(/^event/)
  })

  test('the whole context can be named', () => {
    expect(holds('context')).toBe(true)
  })
})

describe('[A-04] [J-21] values and operators', () => {
  test.each([
    ["context.initial_data.quality == 'low'", true],
    ['context.initial_data.quality == "low"', true],
    ["context.initial_data.quality != 'low'", false],
    // A condition with `True` that never matched a boolean, and '007' that became 7: both were real defects elsewhere.
    ['context.initial_data.urgent == True', true],
    ['context.initial_data.urgent == true', true],
    ["context.initial_data.urgent == 'true'", false],
    ['context.initial_data.urgent == 1', false],
    ["context.initial_data.code == '007'", true],
    ['context.initial_data.code == 7', false],
    ['context.initial_data.nothing == null', true],
    ['context.initial_data.absent == None', true],
    ['context.initial_data.nested.on == False', true],
    ['context.initial_data.size == 7.0', true],
    ['context.initial_data.size >= 7', true],
    ['context.initial_data.size > 7', false],
    ['context.initial_data.size < 7e1', true],
    ['context.initial_data.size <= -1', false],
    ["context.initial_data.size < '9'", false],
    ["'a' < 'b'", true],
    ["'b' > 'a'", true],
    ["'a' <= 'a'", true],
    ["'a' < null", false],
    ['null < 1', false],
    ["'low' in ['low', 'high']", true],
    ["'x' not in context.initial_data.tags", true],
    ["'ow' in context.initial_data.quality", true],
    ["'quality' in context.initial_data", true],
    ["'toString' in context.initial_data", false],
    ['1 in context.initial_data', false],
    ["'a' in null", false],
    ["'a' in 5", false],
    ["context.initial_data.tags == ['a', 'b']", true],
    ["context.initial_data.tags == ['a']", false],
    ["context.initial_data.tags == ['a', 'c']", false],
    ['context.initial_data.tags == context.initial_data.nested', false],
    ['context.initial_data.nested == context.initial_data.nested', true],
    ['context.initial_data == context.client', false],
    ['context.client == context.client.params', false],
    ['[[1], [2]] == [[1], [2]]', true],
    ['[] == []', true],
    ['context.state_history == null', false],
    ['true or false and false', true],
    ['(true or false) and false', false],
    ['not true == false', true],
    ['not (true and false)', true],
    ['!false && true || false', true],
    ['false || false', false],
    ['not 1 in [2]', true],
    ['true and not false', true],
  ])('%s', (source, expected) => {
    expect(evaluate(source)).toBe(expected)
  })

  test.each([
    ['null', false],
    ['0', false],
    ["''", false],
    ['[]', false],
    ['[0]', true],
    ["'no'", true],
    ['-1', true],
    ['context.initial_data.missing', false],
  ])('%s counts as %s', (source, expected) => {
    expect(holds(source)).toBe(expected)
  })

  test.each([
    ['context.initial_data.id == 9007199254740993', true],
    ['context.initial_data.id == 9007199254740992', false],
    ['context.initial_data.id != 9007199254740992', true],
    ['context.initial_data.id > 9007199254740992', true],
    ['context.initial_data.id < 9007199254740994', true],
    ['context.initial_data.id >= 9007199254740993', true],
    ['context.initial_data.id > 5', true],
    ['context.initial_data.id > 9007199254740992.5', true],
    ['context.initial_data.id == -9007199254740993', false],
    ['-9007199254740993 < context.initial_data.id', true],
    ["context.initial_data.id == '9007199254740993'", false],
    ['context.initial_data.id in [1, 9007199254740993]', true],
    ['context.initial_data.price == 0.30000000000000001', true],
    ['context.initial_data.price > 0.3', true],
    ['context.initial_data.price == 0.3', false],
    ['-0.30000000000000001 < 0', true],
    ['context.initial_data.tiny > 0', true],
    ['context.initial_data.tiny == 0', false],
    ['context.initial_data.price == context.initial_data', false],
    ['[context.initial_data.id] == [9007199254740993]', true],
  ])('[A-04] numbers of any length compare exactly: %s', (source, expected) => {
    const exact = {
      initialData: {
        id: 9_007_199_254_740_993n,
        price: new ExactNumber('0.30000000000000001'),
        tiny: new ExactNumber('1e-400'),
      },
    }
    expect(compileExpression(source).evaluate({ context: exact })).toBe(expected)
  })

  test('[A-04] a number of many digits counts as true, and 9007199254740993 is no index', () => {
    expect(
      compileExpression('data.a and data.b', { roots: ['data'] }).test({
        data: { a: 2n ** 60n, b: new ExactNumber('1e-400') },
      }),
    ).toBe(true)
    expect(refusalOf('context.initial_data.tags[9007199254740993]').message).toMatch(/not an index/)
  })

  test('strings know escapes', () => {
    expect(evaluate(String.raw`'it\'s "so"\n\t\r\\'`)).toBe('it\'s "so"\n\t\r\\')
  })
})

describe('[A-04] what cannot be read is refused with its position and a hint', () => {
  test.each([
    ["context.initial_data.quality = 'low'", 29, /Use "==" to compare/],
    ['true & false', 5, /Use "and"/],
    ['true | false', 5, /Use "or"/],
    ['1 + 1', 2, /do not calculate/],
    ['§', 0, /Remove it/],
    ['', 0, /ends too early.*missing/],
    ['true and', 8, /ends too early/],
    ['and true', 0, /unexpected "and"/],
    ['true true', 5, /Join conditions/],
    ['true not false', 5, /unexpected "not"/],
    ['true not', 5, /unexpected "not"/],
    ['== 1', 0, /A value is missing/],
    ['1 < 2 < 3', 2, /cannot be chained/],
    ['1 not in [1] == true', 2, /cannot be chained/],
    ['(true', 5, /Close the parenthesis/],
    ['[1 2]', 3, /Put "," between/],
    ['[1', 2, /Put ","/],
    ["'open", 0, /not closed.*Close it with '/],
    [String.raw`'\q'`, 1, /unknown escape/],
    ['007', 0, /not a number.*Quote it/],
    ['1.', 0, /not a number/],
    ['1e999', 0, /too large/],
    ['-true', 1, /minus stands only before a number/],
    ['quality == 1', 0, /"quality" is not known here.*Begin with context/],
    ['context.initial_dta.x', 0, /has no "initial_dta".*initial_data/],
    ['context.', 8, /A name follows a dot/],
    ['context[true', 12, /Close the bracket/],
    ['context[(', 8, /belongs in brackets/],
    ['context.initial_data[1.5]', 21, /not an index/],
    ['context.initial_data.size()', 25, /cannot be called/],
    ['context.__proto__', 8, /"__proto__" is not allowed/],
    ["context.initial_data['constructor']", 21, /"constructor" is not allowed/],
    ['prototype', 0, /"prototype" is not allowed/],
  ])('%s', (source, position, message) => {
    const refusal = refusalOf(source)
    expect(refusal.message).toMatch(message)
    expect(refusal.position).toBe(position)
  })

  test('what is too long or too deep', () => {
    expect(refusalOf('1'.repeat(LIMITS.expressionCharsMax + 1)).message).toMatch(/longer than 2000/)
    const depth = LIMITS.expressionDepthMax
    expect(refusalOf(`${'('.repeat(depth)}1${')'.repeat(depth)}`).message).toMatch(/deeper than 64/)
    expect(holds(`${'('.repeat(depth - 1)}1${')'.repeat(depth - 1)}`)).toBe(true)
    expect(refusalOf(`${'!'.repeat(depth)}1`).message).toMatch(/deeper/)
    expect(refusalOf('['.repeat(depth)).message).toMatch(/deeper/)
  })

  test('a long flat expression is fine', () => {
    expect(holds(Array.from({ length: 300 }, () => '0').join(' or '))).toBe(false)
  })
})

describe('[A-04] whatever is written', () => {
  const words = fc.constantFrom(
    'context',
    'initial_data',
    'client',
    'and',
    'or',
    'not',
    'in',
    'true',
    'None',
    '__proto__',
    "'s'",
    '"',
    "'",
    '==',
    '!=',
    '<',
    '>=',
    '=',
    '(',
    ')',
    '[',
    ']',
    '.',
    ',',
    '-',
    '!',
    '&&',
    '||',
    '0',
    '1.5',
    '7e',
    '\\',
    ' ',
  )
  const source = fc.oneof(
    fc.string(),
    fc.array(words, { maxLength: 30 }).map((parts) => parts.join(' ')),
  )

  const compiledOr = (text: string) => {
    try {
      return compileExpression(text, { roots: ['context', 'in', 's'] })
    } catch (error) {
      if (isImpresarioError(error, 'INVALID_EXPRESSION')) return undefined
      throw error
    }
  }

  test('nothing but a refusal comes out of the parser, and nothing at all out of the evaluator', () => {
    fc.assert(
      fc.property(source, fc.jsonValue(), (text, data) => {
        const compiled = compiledOr(text)
        if (compiled === undefined) return
        expect(compiled.test({ context: data })).toBeTypeOf('boolean')
        compiled.evaluate({ context: { initialData: data, client: data } })
      }),
      { numRuns: 2_000 },
    )
  })

  test('a value equals itself, and another type never does', () => {
    const same = compileExpression('a == b', { roots: ['a', 'b'] })
    const other = compileExpression('a != b', { roots: ['a', 'b'] })
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(same.test({ a, b: JSON.parse(JSON.stringify(a)) })).toBe(true)
        expect(same.test({ a, b })).toBe(!other.test({ a, b }))
        expect(same.test({ a, b }) && typeof a !== typeof b).toBe(false)
      }),
    )
  })
})
