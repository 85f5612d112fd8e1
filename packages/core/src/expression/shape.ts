import { isAnyNumber, isJsonObject } from '@impresario/protocol'

/** One kind of JSON that a value can be. */
export interface Variant {
  readonly kind: 'string' | 'number' | 'boolean' | 'null' | 'array' | 'object'
  /** All that it can be, where that is known. */
  readonly values?: readonly unknown[]
  /** The JSON Schema of an object or a list. */
  readonly schema?: Readonly<Record<string, unknown>>
}

/** What a value can be: one of these, or anything. */
export type Shape = readonly Variant[] | 'anything'

const NULL: Variant = { kind: 'null' }
/** Keywords that say more than is read here. */
const UNREAD = ['$ref', '$dynamicRef', 'allOf', 'not', 'if', 'patternProperties', 'dependentSchemas']
const KINDS: ReadonlyMap<unknown, Variant['kind']> = new Map([
  ['string', 'string'],
  ['number', 'number'],
  ['integer', 'number'],
  ['boolean', 'boolean'],
  ['null', 'null'],
  ['array', 'array'],
  ['object', 'object'],
])

/** What a JSON Schema lets pass. Whatever cannot be told without doubt is anything. */
export function shapeOf(schema: unknown): Shape {
  if (schema === false) return []
  if (!isJsonObject(schema) || UNREAD.some((keyword) => keyword in schema)) return 'anything'
  const either = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(either)) return joined(either.map(shapeOf))
  if ('const' in schema) return [variantOf(schema['const'])]
  if (Array.isArray(schema['enum'])) return schema['enum'].map(variantOf)
  const types: readonly unknown[] = [schema['type']].flat()
  return joined(
    types.map((type): Shape => {
      const kind = KINDS.get(type)
      return kind === undefined ? 'anything' : [{ kind, schema }]
    }),
  )
}

/** One value alone. */
export function variantOf(value: unknown): Variant {
  if (value === null) return NULL
  if (isAnyNumber(value)) return { kind: 'number', values: [value] }
  if (typeof value === 'string') return { kind: 'string', values: [value] }
  if (typeof value === 'boolean') return { kind: 'boolean', values: [value] }
  return { kind: Array.isArray(value) ? 'array' : 'object', schema: {} }
}

function joined(shapes: readonly Shape[]): Shape {
  const variants: Variant[] = []
  for (const shape of shapes) {
    if (shape === 'anything') return 'anything'
    variants.push(...shape)
  }
  return variants
}

/** What is found under a key; `undefined` when it is never there. What is only sometimes there is sometimes null. */
export function shapeAt(variants: readonly Variant[], key: string | number): Shape | undefined {
  const found = variants.map((variant) => partOf(variant, key))
  const there = found.filter((part) => part !== undefined)
  if (there.length === 0) return undefined
  return joined(there.length === found.length ? there : [...there, [NULL]])
}

function partOf({ kind, schema }: Variant, key: string | number): Shape | undefined {
  if (schema === undefined) return undefined
  if (kind === 'array') return itemOf(schema, key)
  return kind === 'object' ? propertyOf(schema, String(key)) : undefined
}

function itemOf(schema: Readonly<Record<string, unknown>>, key: string | number): Shape | undefined {
  if (key === 'length') return [{ kind: 'number' }]
  if (typeof key === 'string') return undefined
  return joined([itemsOf(schema), [NULL]])
}

/** What the items of a list can be. */
export function itemsOf(schema: Readonly<Record<string, unknown>>): Shape {
  return 'prefixItems' in schema ? 'anything' : shapeOf(schema['items'])
}

function propertyOf(schema: Readonly<Record<string, unknown>>, key: string): Shape | undefined {
  const { properties, required, additionalProperties: others } = schema
  if (isJsonObject(properties) && Object.hasOwn(properties, key)) {
    const isRequired = Array.isArray(required) && required.includes(key)
    return joined([shapeOf(properties[key]), isRequired ? [] : [NULL]])
  }
  return others === false ? undefined : joined([shapeOf(others), [NULL]])
}

/** The keys that are known, for a refusal. */
export function keysOf(variants: readonly Variant[]): readonly string[] {
  return variants.flatMap(({ schema }) => {
    const properties = schema?.['properties']
    return isJsonObject(properties) ? Object.keys(properties) : []
  })
}
