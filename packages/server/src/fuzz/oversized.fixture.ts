import type { SchemaNode } from './schema-sampler.fixture.ts'

export type Path = readonly (string | number)[]

/** A field of a body that takes something whose size the sender chooses. */
export interface SizedField {
  readonly path: Path
  readonly takes: 'text' | 'list' | 'map'
  /** What stands in a list. */
  readonly item?: unknown
}

export interface Reading {
  readonly resolve: (ref: string) => SchemaNode
  /** Values that exist in the server under test, by the name of the field that takes them. */
  readonly known: Readonly<Record<string, unknown>>
}

const DEPTH_MAX = 6

/** The smallest value that the schema allows, as far as it says. */
export function least(schema: SchemaNode, reading: Reading, name = '', depth = 0): unknown {
  if (schema.$ref !== undefined) return least(reading.resolve(schema.$ref), reading, name, depth)
  if (name in reading.known) return reading.known[name]
  if ('const' in schema) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const [choice] = schema.anyOf ?? schema.oneOf ?? schema.allOf ?? []
  if (choice !== undefined) return least(choice, reading, name, depth)
  const [type] = [schema.type ?? 'object'].flat()
  if (type === 'string') return 'a'.repeat(Math.max(1, schema.minLength ?? 0))
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return false
  if (type === 'null') return null
  if (type === 'array') {
    return Array.from({ length: schema.minItems ?? 0 }, () => least(schema.items ?? {}, reading, name, depth + 1))
  }
  const required = depth > DEPTH_MAX ? [] : (schema.required ?? [])
  return Object.fromEntries(
    required.map((key) => [key, least(schema.properties?.[key] ?? {}, reading, key, depth + 1)]),
  )
}

/** Every field of a body that has a size. */
export function sizedFieldsOf(schema: SchemaNode, reading: Reading, path: Path = []): readonly SizedField[] {
  if (path.length > DEPTH_MAX) return []
  if (schema.$ref !== undefined) return sizedFieldsOf(reading.resolve(schema.$ref), reading, path)
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  const found: SizedField[] = inner.flatMap((one) => sizedFieldsOf(one, reading, path))
  const types = new Set([schema.type ?? []].flat())
  if (types.has('string') && schema.enum === undefined && !('const' in schema)) found.push({ path, takes: 'text' })
  if (types.has('array')) {
    const items = schema.items ?? {}
    found.push({ path, takes: 'list', item: least(items, reading) }, ...sizedFieldsOf(items, reading, [...path, 0]))
  }
  if (types.has('object') && schema.properties === undefined) found.push({ path, takes: 'map' })
  for (const [key, one] of Object.entries(schema.properties ?? {})) {
    found.push(...sizedFieldsOf(one, reading, [...path, key]))
  }
  return found
}

/** A copy with another value at the path; what is missing on the way there is made as the schema wants it. */
export function put(value: unknown, path: Path, wanted: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return wanted
  if (typeof key === 'number') return [put(Array.isArray(value) ? value[0] : undefined, rest, wanted)]
  const own = new Map<string, unknown>(
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [],
  )
  return Object.fromEntries([...own, [key, put(own.get(key), rest, wanted)]])
}
