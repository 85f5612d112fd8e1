import type { Chance } from './chance.fixture.ts'

/** As much of JSON Schema as our own documents use. */
export interface SchemaNode {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly allOf?: readonly SchemaNode[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | SchemaNode
  readonly items?: SchemaNode
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly pattern?: string
  readonly format?: string
  readonly $ref?: string
}

export interface Sampler {
  readonly chance: Chance
  /** Values that exist in the server under test, by the name of the field that takes them. */
  readonly known: Readonly<Record<string, readonly string[]>>
  /** Follows `#/components/schemas/…`. */
  readonly resolve: (ref: string) => SchemaNode
}

const DEPTH_MAX = 6

/** A value that the schema allows, as far as it says. */
export function sample(schema: SchemaNode, sampler: Sampler, name = '', depth = 0): unknown {
  const { chance, known, resolve } = sampler
  if (schema.$ref !== undefined) return sample(resolve(schema.$ref), sampler, name, depth)
  if ('const' in schema) return schema.const
  if (schema.enum !== undefined) return chance.pick(schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return sample(chance.pick(choices), sampler, name, depth)
  const [first] = schema.allOf ?? []
  if (first !== undefined) return sample(first, sampler, name, depth)
  const type = typeof schema.type === 'string' ? schema.type : chance.pick(schema.type ?? TYPES)
  const existing = known[name]
  if (type === 'string' && existing !== undefined && existing.length > 0 && chance.isTrue(0.8)) {
    return chance.pick(existing)
  }
  switch (type) {
    case 'object':
      return sampleObject(schema, sampler, depth)
    case 'array':
      return sampleList(schema, sampler, name, depth)
    case 'string':
      return sampleText(schema, chance)
    case 'integer':
    case 'number':
      return sampleNumber(schema, chance, type === 'integer')
    case 'boolean':
      return chance.isTrue(0.5)
    default:
      return null
  }
}

const TYPES = ['string', 'number', 'boolean', 'null', 'object', 'array'] as const

function sampleObject(schema: SchemaNode, sampler: Sampler, depth: number): Record<string, unknown> {
  const { chance } = sampler
  const made: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    const isRequired = schema.required?.includes(key) === true
    if (isRequired || (depth < DEPTH_MAX && chance.isTrue(0.5))) made[key] = sample(inner, sampler, key, depth + 1)
  }
  const extra = schema.additionalProperties
  if (extra !== false && schema.properties === undefined && depth < DEPTH_MAX) {
    const inner = typeof extra === 'object' ? extra : { type: ['string', 'number', 'boolean', 'null'] }
    for (let count = chance.below(3); count > 0; count -= 1) made[word(chance)] = sample(inner, sampler, '', depth + 1)
  }
  return made
}

function sampleList(schema: SchemaNode, sampler: Sampler, name: string, depth: number): unknown[] {
  const { minItems = 0, maxItems = minItems + 3, items = {} } = schema
  const length = depth >= DEPTH_MAX ? minItems : minItems + sampler.chance.below(Math.min(maxItems - minItems, 3) + 1)
  return Array.from({ length }, () => sample(items, sampler, name, depth + 1))
}

const FORMATS: Readonly<Record<string, readonly string[]>> = {
  uuid: ['018f2f6e-9c2b-7b3a-8d4e-5f6a7b8c9d0e', '018f2f6e-0000-7000-8000-000000000000'],
  uri: ['https://example.com/hook', 'http://127.0.0.1/', 'https://user@example.com:99999/'],
  'date-time': ['2026-11-16T00:00:00Z', '2026-02-30T25:61:00Z'],
}

function sampleText(schema: SchemaNode, chance: Chance, length?: number): string {
  const ofFormat = schema.format === undefined ? undefined : FORMATS[schema.format]
  if (ofFormat !== undefined && length === undefined) return chance.pick(ofFormat)
  const { minLength = 0, maxLength = minLength + 12 } = schema
  const wanted = length ?? minLength + chance.below(Math.min(maxLength - minLength, 12) + 1)
  const made = word(chance)
  return made.repeat(Math.ceil(wanted / made.length)).slice(0, wanted)
}

function sampleNumber(schema: SchemaNode, chance: Chance, isWhole: boolean): number {
  const least = schema.minimum ?? schema.exclusiveMinimum ?? -10
  const most = schema.maximum ?? schema.exclusiveMaximum ?? least + 100
  const value = least + chance.next() * (most - least)
  return isWhole ? Math.round(value) : value
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz_0123456789-'

function word(chance: Chance): string {
  const length = 3 + chance.below(6)
  return Array.from({ length }, () => LETTERS[chance.below(length > 1 ? 26 : LETTERS.length)]).join('')
}

/** One bound of the schema, and a way to put a value on it, just inside and just outside. */
export interface Bound {
  readonly path: readonly (string | number)[]
  readonly values: readonly unknown[]
}

/** Every bound that the schema names. */
export function boundsOf(
  schema: SchemaNode,
  sampler: Sampler,
  path: readonly (string | number)[] = [],
): readonly Bound[] {
  if (path.length > DEPTH_MAX) return []
  if (schema.$ref !== undefined) return boundsOf(sampler.resolve(schema.$ref), sampler, path)
  const found: Bound[] = []
  const values = [...lengthEdges(schema, sampler), ...numberEdges(schema), ...listEdges(schema, sampler)]
  if (values.length > 0) found.push({ path, values })
  for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    found.push(...boundsOf(inner, sampler, path))
  }
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    found.push(...boundsOf(inner, sampler, [...path, key]))
  }
  if (schema.items !== undefined) found.push(...boundsOf(schema.items, sampler, [...path, 0]))
  return found
}

/** A list or a text of this length is no test of a bound any more but one of memory. */
const LENGTH_MAX = 300_000

function around(bound: number | undefined): readonly number[] {
  return bound === undefined ? [] : [bound - 1, bound, bound + 1]
}

function lengthEdges(schema: SchemaNode, { chance }: Sampler): readonly string[] {
  return [...around(schema.minLength), ...around(schema.maxLength)]
    .filter((length) => length >= 0 && length <= LENGTH_MAX)
    .map((length) => sampleText(schema, chance, length))
}

function numberEdges(schema: SchemaNode): readonly number[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  return [minimum, maximum, exclusiveMinimum, exclusiveMaximum].flatMap(around)
}

function listEdges(schema: SchemaNode, sampler: Sampler): readonly unknown[][] {
  const item = schema.items ?? {}
  return [...around(schema.minItems), ...around(schema.maxItems)]
    .filter((length) => length >= 0 && length <= 2_000)
    .map((length) => Array.from({ length }, () => sample(item, sampler)))
}
