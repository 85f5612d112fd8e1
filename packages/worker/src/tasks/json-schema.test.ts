import type { JsonObject } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { jsonSchema } from './json-schema.ts'

async function problems(schema: JsonObject | boolean, value: unknown): Promise<readonly string[]> {
  const result = await jsonSchema(schema)['~standard'].validate(value)
  return (result.issues ?? []).map(({ path, message }) => `${(path ?? []).map(String).join('.')}: ${message}`)
}

/** As text: an object with `then` looks like a promise. */
const CONDITIONAL = parsed('{"if":{"type":"string"},"then":{"minLength":2},"else":{"type":"number"}}')

function parsed(text: string): JsonObject {
  return JSON.parse(text) as JsonObject
}

/** A schema, values that fit, and values that do not. */
const CASES: readonly (readonly [JsonObject | boolean, readonly unknown[], readonly unknown[]])[] = [
  [true, [1, null], []],
  [false, [], [1]],
  [{ type: 'string' }, ['a', ''], [1, null, {}]],
  [{ type: ['integer', 'null'] }, [1, -2, null], [1.5, '1']],
  [{ type: 'number' }, [1.5], ['1']],
  [{ type: 'boolean' }, [false], [0]],
  [{ type: 'array' }, [[]], [{}]],
  [{ type: 'object' }, [{}], [[], null]],
  [{ enum: [1, { a: 1, b: 2 }] }, [1, { b: 2, a: 1 }], [2, { a: 1 }]],
  [{ const: [1] }, [[1]], [[1, 2]]],
  [{ required: ['a'] }, [{ a: null }, 5], [{}]],
  [{ properties: { a: { type: 'string' } } }, [{ a: 'x' }, { b: 1 }, []], [{ a: 1 }]],
  [{ properties: { a: true }, additionalProperties: false }, [{ a: 1 }], [{ b: 1 }]],
  [{ additionalProperties: { type: 'string' } }, [{ a: 'x' }], [{ a: 1 }]],
  [{ patternProperties: { '^n_': { type: 'number' } } }, [{ n_a: 1, b: 'x' }], [{ n_a: 'x' }]],
  [{ propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
  [{ dependentRequired: { a: ['b'] } }, [{}, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 1, c: 1 }]],
  [{ items: { type: 'string' } }, [[], ['a'], 'a'], [['a', 1]]],
  [{ prefixItems: [{ type: 'string' }], items: false }, [['a'], []], [['a', 1], [1]]],
  [{ prefixItems: [{ type: 'string' }] }, [['a', 1]], [[1]]],
  [{ contains: { type: 'string' } }, [[1, 'a']], [[1]]],
  [{ minItems: 1, maxItems: 2 }, [[1]], [[], [1, 2, 3]]],
  [
    { uniqueItems: true },
    [[1, 2]],
    [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
  ],
  [{ minimum: 1, maximum: 3 }, [1, 3, 'x'], [0, 4]],
  [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
  [{ multipleOf: 0.1 }, [0.3, 7], [0.35]],
  [{ minLength: 1, maxLength: 2 }, ['a', '😀😀'], ['', 'abc']],
  [{ pattern: '^a+$' }, ['aa', 1], ['b']],
  [{ allOf: [{ type: 'string' }, { minLength: 2 }] }, ['ab'], ['a', 1]],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, ['a', 1], [null]],
  [{ oneOf: [{ type: 'number' }, { minimum: 5 }] }, [1, 'x'], [6]],
  [{ not: { type: 'string' } }, [1], ['a']],
  [CONDITIONAL, ['ab', 1], ['a', null]],
  [{ properties: { a: true }, unevaluatedProperties: false }, [{ a: 1 }], [{ b: 1 }]],
  [{ $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, ['x'], [1]],
  [{ type: 'string', format: 'email', title: 't', default: 'x' }, ['not an address'], []],
]

test.for(CASES)('[E-05] a JSON Schema decides what fits: %j', async ([schema, good, bad]) => {
  for (const value of good) expect(await problems(schema, value)).toEqual([])
  for (const value of bad) expect((await problems(schema, value)).length).toBeGreaterThan(0)
})

test('[E-05] problems say where they are', async () => {
  const schema = { type: 'object', required: ['path'], properties: { sizes: { items: { type: 'integer' } } } }
  expect(await problems(schema, { sizes: [1, 'two'] })).toEqual(['path: is missing', 'sizes.1: must be integer'])
})

test('[E-05] a schema may contain itself, and values that are nested too deeply are refused', async () => {
  const tree = {
    $ref: '#/$defs/node',
    $defs: { node: { properties: { next: { $ref: '#/$defs/node' } }, required: ['n'] } },
  }
  expect(await problems(tree, { n: 1, next: { n: 2 } })).toEqual([])
  expect(await problems(tree, { n: 1, next: {} })).toEqual(['next.n: is missing'])
  let deep: object = { n: 0 }
  for (let n = 1; n < 20_000; n += 1) deep = { n, next: deep }
  expect((await problems(tree, deep)).join('')).toContain('too deeply')
})

test.for([
  [{ properties: { a: { typ: 'string' } } }, 'unknown keyword: "typ"'],
  [{ type: 'text' }, '#/type'],
  [{ minimum: '1' }, '#/minimum'],
  [{ pattern: '(' }, 'Invalid regular expression: /(/'],
  [{ $ref: '#/$defs/none' }, '#/$defs/none'],
  [{ $ref: 'https://example.com/schema' }, 'https://example.com/schema'],
  [{ anyOf: {} }, '#/anyOf'],
  [{ items: 5 }, '#/items'],
] as const)('[E-05] a schema that would not be checked as it is meant is refused: %j', ([schema, place]) => {
  expect(() => jsonSchema(schema)).toThrow(place)
})
