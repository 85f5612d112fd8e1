import { snakeName } from '@impresario/protocol/light'

/**
 * The one boundary between the wire, where names are in snake_case, and programs, where they are in camelCase. What
 * belongs to users (data, and names that they chose as keys) is left as it is.
 */

/** Fields whose value is the users' own, or has nothing to convert. */
const OPAQUE = [
  'initial_data',
  'state_history',
  'result',
  'metadata',
  'trail',
  'context_snapshot',
  'worker_info_snapshot',
  'body',
  'contract',
  'input_schema',
  'form',
  'properties',
  'installed_software',
  'cost_per_skill',
  'decision_urls',
  'jobs',
  'fields',
  'definition',
  'search',
  'params',
  'with',
  'input',
  'output',
  'payload',
  'values',
  'details',
  'input_schema',
  'output_schema',
] as const
type Opaque = (typeof OPAQUE)[number]

type CamelKey<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelKey<Tail>>}` : K

/** The same shape with names in camelCase. */
export type CamelCased<T> = T extends readonly (infer Item)[]
  ? readonly CamelCased<Item>[]
  : T extends object
    ? { readonly [K in keyof T as CamelKey<K>]: K extends Opaque ? T[K] : Named<K, T[K]> }
    : T

/** The names of fields are converted with the fields. */
type Named<K, V> = K extends 'omitted_fields' ? CamelNames<V> : CamelCased<V>
type CamelNames<V> = V extends readonly (infer Name)[] ? readonly CamelKey<Name>[] : V

/** What came over the wire, for programs. */
export function fromWire<T>(value: T): CamelCased<T> {
  return converted(value, camelName) as CamelCased<T>
}

/** What programs have, as it stands on the wire. Names that are in snake_case stay. */
export function toWire(value: unknown): unknown {
  return converted(value, wireName)
}

const camelNames = new Map<string, string>()
const wireNames = new Map<string, string>()
/** Names come from a fixed set; where others get in, the caches must not grow with them. */
const CACHED_MAX = 1_000

function camelName(name: string): string {
  return cached(camelNames, name, () => name.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase()))
}

export function wireName(name: string): string {
  return cached(wireNames, name, () => snakeName(name))
}

function cached(names: Map<string, string>, name: string, make: () => string): string {
  const known = names.get(name)
  if (known !== undefined) return known
  const made = make()
  if (names.size < CACHED_MAX) names.set(name, made)
  return made
}

const KEPT: ReadonlySet<string> = new Set(OPAQUE)

function converted(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => converted(item, rename))
  if (!isPlainObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [rename(name), convertedField(wireName(name), inner, rename)]),
  )
}

function convertedField(name: string, value: unknown, rename: (name: string) => string): unknown {
  if (KEPT.has(name)) return value
  if (name === 'omitted_fields' && Array.isArray(value)) return value.map((field) => rename(String(field)))
  return converted(value, rename)
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
