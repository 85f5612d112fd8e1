import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { compileExpression } from './expression.ts'

const data = z.object({
  quality: z.enum(['low', 'high']).default('high'),
  size: z.number(),
  title: z.string().optional(),
  isDraft: z.boolean(),
  code: z.literal([1, 2, 'x']),
  tags: z.array(z.enum(['red', 'blue'])),
  pair: z.tuple([z.string(), z.number()]),
  owner: z.object({ name: z.string(), age: z.number().nullable() }),
  prices: z.record(z.string(), z.number()),
  loose: z.looseObject({ known: z.string() }),
  way: z.discriminatedUnion('by', [
    z.object({ by: z.literal('mail'), address: z.string() }),
    z.object({ by: z.literal('phone'), number: z.number() }),
  ]),
  any: z.any(),
  date: z.date(),
  nothing: z.null(),
  never: z.never().optional(),
})
const initialData: unknown = z.toJSONSchema(data, { io: 'output', unrepresentable: 'any' })
const schema = {
  type: 'object',
  properties: { context: { type: 'object', properties: { initialData }, required: ['initialData'] } },
  required: ['context'],
}

/** A condition in which `$` stands for the data. */
const problemsOf = (condition: string): readonly string[] =>
  compileExpression(condition.replaceAll('$', 'context.initial_data')).problemsUnder(schema)

describe('[A-04] what can come out both ways passes', () => {
  test.each([
    "$.quality == 'low'",
    "'high' != $.quality",
    "$.quality in ['low', 'high', null]",
    '$.size > 3 and $.size <= 10.5 or not $.isDraft',
    '$.isDraft == true',
    "$.code == 2 or $.code == 'x'",
    "$.title < 'm'",
    '$.title == null or $.quality == null or $.size != null',
    "'red' in $.tags and $.tags[0] != 'blue' and $.tags.length > 1",
    "$.pair[0] == 'a' and $.pair[7] == 3",
    "$.owner.name == 'Ann' and $.owner.age > 3",
    "$.owner in [$.owner] and 'age' in $.owner and $.title in $.owner",
    "$.prices.anything > 3 and $.prices['a b'] < 4",
    "$.loose.known == 'x' and $.loose.other == 3",
    "$.way.address == 'a' or $.way.number == 3 or $.way.by == 'mail'",
    '$.any.at.all == 3 and $.any < 3 and 3 in $.any and $.any in [1] and $.size in $.any and $.size < $.any',
    "$.date.deep == 'x'",
    "'ann' in $.owner.name",
    '$.size == $.owner.age and $.quality == $.title',
    '[1, 2] == [1, 2] and $.tags == []',
    "$.never == 'x'",
    'context.failure.code',
    'context',
    'true',
    "context.state_history.anything == 'x'",
  ])('%s', (condition) => {
    expect(problemsOf(condition)).toEqual([])
  })

  test('and so does everything where nothing is known', () => {
    for (const open of [undefined, {}, true, { $ref: '#' }, { allOf: [] }, { type: 'strange' }, { anyOf: [{}, {}] }]) {
      expect(compileExpression("context.client.plan.x == 'a'").problemsUnder(open)).toEqual([])
    }
  })
})

describe('[A-04] what can never come out is named', () => {
  test.each([
    [
      "$.qualty == 'low'",
      'it reads context.initial_data.qualty, which is never there: context.initial_data has only quality, size, title, ' +
        'isDraft, code, tags, pair, owner, prices, loose, way, any. Correct the path, or add it to the schema',
    ],
    [
      '$.owner.nam',
      'it reads context.initial_data.owner.nam, which is never there: context.initial_data.owner has only name, age.',
    ],
    [
      '$.title.length > 3',
      'context.initial_data.title.length, which is never there: context.initial_data.title has nothing below it',
    ],
    ['not $.tags.first', 'it reads context.initial_data.tags.first, which is never there'],
    ['$.tags[0].x', 'it reads context.initial_data.tags[0].x, which is never there'],
    ['$.way.street', 'which is never there: context.initial_data.way has only by, address, number'],
    ['[$.a] == [1]', 'it reads context.initial_data.a, which'],
    [
      "$.quality == 'medium'",
      "'low' or 'high' and 'medium' are never equal. So the comparison never holds: correct the value",
    ],
    ["$.quality != 'lwo'", 'So the comparison always holds'],
    ["$.quality in ['low', 'medum']", "'low' or 'high' and 'medum' are never equal"],
    ["$.quality not in ['medium']", 'are never equal'],
    ['$.quality in []', 'nothing is in an empty list. Name the values'],
    ['$.quality in [$.oops]', 'it reads context.initial_data.oops, which'],
    ['$.size == 3 or $.size == "3"', "a number and '3' are never equal"],
    ['$.title == 3', 'a text or null and 3 are never equal'],
    ['$.isDraft == 1', 'true or false and 1 are never equal'],
    ['$.code == 3', "1 or 2 or 'x' and 3 are never equal"],
    ["$.size > 'a'", "a number and 'a' have no order. So the comparison never holds"],
    ['$.owner < $.any', 'an object and any value have no order'],
    ['$.size < null', 'a number and null have no order'],
    ["'green' in $.tags", "'green' is never in a list"],
    ['3 in $.title', '3 is never in a text or null'],
    ["'street' not in $.owner", "'street' is never in an object. So the comparison always holds"],
    ['$.isDraft == ($.size > 3) and $.size == (not $.isDraft)', 'a number and true or false are never equal'],
    ["$.tags == 'red'", "a list and 'red' are never equal"],
  ])('%s', (condition, problem) => {
    const problems = problemsOf(condition)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(problem)
  })

  test('all problems of a condition are told', () => {
    expect(problemsOf("$.a == 1 and ($.quality == 'x' or not ($.size == 'y'))")).toHaveLength(3)
  })

  test('a list of false has no items, and a value of an empty schema is nothing', () => {
    const odd = { type: 'object', properties: { context: { enum: [] } } }
    expect(compileExpression("context == 'x'").problemsUnder({ ...odd, required: ['context'] })).toEqual([
      "nothing and 'x' are never equal. So the comparison never holds: correct the value or the path",
    ])
    const flag = { properties: { context: { const: true } }, type: 'object', required: ['context'] }
    expect(compileExpression('context == false').problemsUnder(flag)).toHaveLength(1)
    const list = { properties: { context: { const: [1] } }, type: 'object', required: ['context'] }
    expect(compileExpression('context == false').problemsUnder(list)).toHaveLength(1)
    const none = { properties: { context: { type: 'array', items: false } }, type: 'object', required: ['context'] }
    expect(compileExpression('1 in context').problemsUnder(none)).toHaveLength(1)
    const constant = { properties: { context: { const: { a: 1 } } }, type: 'object', required: ['context'] }
    expect(compileExpression("context == 'x'").problemsUnder(constant)).toHaveLength(1)
  })
})
