import {
  ImpresarioError,
  isAnyNumber,
  isJsonObject,
  type Data,
  type Json,
  type JsonObject,
  type Schema,
  type SchemaIssue,
} from '@impresario/protocol'

/*
 * Contracts that are written as JSON Schema, because they are shared with other languages. The keywords that describe
 * data are all here; what is not here is refused when the schema is given, so that nothing is believed to be checked
 * that is not. `format` and the other annotations say nothing about validity, as the standard has it.
 */

type Path = readonly PropertyKey[]
type Check = (value: Data, path: Path) => readonly SchemaIssue[]
type Compile = (given: Json, place: string, schema: JsonObject) => Check

const ANNOTATIONS = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
  'deprecated',
  'readOnly',
  'writeOnly',
  'examples',
  'format',
  'contentEncoding',
  'contentMediaType',
])
/** Read together with a neighbour. */
const NEIGHBOURS = new Set(['additionalProperties', 'patternProperties', 'then', 'else', 'prefixItems'])

/** A schema for contracts, skills and events, from a JSON Schema (draft 2020-12). */
export function jsonSchema<T = unknown>(schema: JsonObject | boolean): Schema<T, T> {
  const check = new Compiler(schema).check
  const validate = (value: unknown) => {
    const issues = check(dataOf(value), [])
    return issues.length === 0 ? { value: valueOf<T>(value) } : { issues }
  }
  const described = { input: () => schema, output: () => schema }
  return { '~standard': standard<T>({ version: 1, vendor: 'impresario', validate, jsonSchema: described }) }
}

/** The boundaries: a value that has passed has the type that the caller gave the schema. */
function valueOf<T>(value: unknown): T {
  return value as T
}
function standard<T>(fields: object): Schema<T, T>['~standard'] {
  return fields as Schema<T, T>['~standard']
}
/** What arrives came from JSON; what a handler returns is written as JSON afterwards. */
function dataOf(value: unknown): Data {
  return value as Data
}

const REFERENCES_MAX = 64

class Compiler {
  readonly #root: Json
  readonly #named = new Map<string, Check>()
  readonly check: Check

  constructor(root: Json) {
    this.#root = root
    this.check = this.#compile(root, '#')
  }

  #compile(schema: Json, place: string): Check {
    if (schema === true) return () => []
    if (schema === false) return (_value, path) => [issue(path, 'nothing is allowed here')]
    if (!isJsonObject(schema)) throw invalid(place, 'is no schema')
    const checks: Check[] = []
    for (const [keyword, given] of Object.entries(schema)) {
      if (ANNOTATIONS.has(keyword) || NEIGHBOURS.has(keyword)) continue
      const compile = SIMPLE[keyword] ?? this.#applicators[keyword]
      if (compile === undefined) throw invalid(`${place}/${keyword}`, 'is a keyword that is not known here')
      checks.push(compile(given, `${place}/${keyword}`, schema))
    }
    if (!('properties' in schema) && ('additionalProperties' in schema || 'patternProperties' in schema)) {
      checks.push(this.#properties({}, `${place}/properties`, schema))
    }
    if (!('items' in schema) && 'prefixItems' in schema) checks.push(this.#items(true, `${place}/items`, schema))
    return (value, path) => checks.flatMap((check) => check(value, path))
  }

  #all(given: Json, place: string): readonly Check[] {
    if (!Array.isArray(given)) throw invalid(place, 'must be a list of schemas')
    return given.map((one: Json, index) => this.#compile(one, `${place}/${index}`))
  }

  #map(given: Json, place: string): ReadonlyMap<string, Check> {
    if (!isJsonObject(given)) throw invalid(place, 'must be an object of schemas')
    return new Map(Object.entries(given).map(([key, one]) => [key, this.#compile(one, `${place}/${key}`)]))
  }

  readonly #properties: Compile = (given, place, schema) => {
    const known = this.#map(given, place)
    const patterns = [...this.#map(schema['patternProperties'] ?? {}, `${place}/../patternProperties`)].map(
      ([text, check]) => [patternOf(text, place), check] as const,
    )
    const others = this.#compile(schema['additionalProperties'] ?? true, `${place}/../additionalProperties`)
    return (value, path) => {
      if (!isJsonObject(value)) return []
      return Object.entries(value).flatMap(([key, one]) => {
        const fitting = patterns.filter(([pattern]) => pattern.test(key)).map(([, check]) => check)
        const own = known.get(key)
        const checks = own === undefined ? fitting : [own, ...fitting]
        return (checks.length === 0 ? [others] : checks).flatMap((check) => check(one, [...path, key]))
      })
    }
  }

  readonly #items: Compile = (given, place, schema) => {
    const first = this.#all(schema['prefixItems'] ?? [], `${place}/../prefixItems`)
    const rest = this.#compile(given, place)
    return (value, path) => {
      if (!Array.isArray(value)) return []
      return value.flatMap((one: Data, index) => (first[index] ?? rest)(one, [...path, index]))
    }
  }

  readonly #reference: Compile = (given, place) => {
    const target = given
    if (typeof target !== 'string' || !target.startsWith('#')) {
      throw invalid(place, 'must stay inside the schema: #/$defs/…')
    }
    const schema = pointed(this.#root, target)
    if (schema === undefined) throw invalid(place, `points to ${target}, which is not there`)
    let depth = 0
    return (value, path) => {
      // Compiled when it is first needed: a schema may contain itself.
      let check = this.#named.get(target)
      if (check === undefined) {
        check = this.#compile(schema, target)
        this.#named.set(target, check)
      }
      depth += 1
      try {
        return depth > REFERENCES_MAX ? [issue(path, 'is nested too deeply')] : check(value, path)
      } finally {
        depth -= 1
      }
    }
  }

  readonly #applicators: Readonly<Record<string, Compile>> = {
    $ref: this.#reference,
    properties: this.#properties,
    items: this.#items,
    propertyNames: (given, place) => {
      const check = this.#compile(given, place)
      return (value, path) =>
        isJsonObject(value) ? Object.keys(value).flatMap((key) => check(key, [...path, key])) : []
    },
    contains: (given, place) => {
      const check = this.#compile(given, place)
      return (value, path) => {
        if (!Array.isArray(value) || value.some((one: Data) => check(one, path).length === 0)) return []
        return [issue(path, 'holds nothing of what it must contain')]
      }
    },
    allOf: (given, place) => {
      const checks = this.#all(given, place)
      return (value, path) => checks.flatMap((check) => check(value, path))
    },
    anyOf: (given, place) => {
      const checks = this.#all(given, place)
      return (value, path) => {
        const found = checks.map((check) => check(value, path))
        if (found.some((issues) => issues.length === 0)) return []
        const nearest = found.toSorted((a, b) => b.length - a.length).at(-1) ?? []
        return [issue(path, 'fits none of the allowed shapes'), ...nearest]
      }
    },
    oneOf: (given, place) => {
      const checks = this.#all(given, place)
      return (value, path) => {
        const fitting = checks.filter((check) => check(value, path).length === 0).length
        return fitting === 1 ? [] : [issue(path, `fits ${fitting} of the allowed shapes instead of one`)]
      }
    },
    not: (given, place) => {
      const check = this.#compile(given, place)
      return (value, path) => (check(value, path).length > 0 ? [] : [issue(path, 'has a shape that is not allowed')])
    },
    if: (given, place, schema) => {
      const condition = this.#compile(given, place)
      const yes = this.#compile(schema['then'] ?? true, `${place}/../then`)
      const no = this.#compile(schema['else'] ?? true, `${place}/../else`)
      return (value, path) => (condition(value, path).length === 0 ? yes : no)(value, path)
    },
  }
}

const TYPES: Readonly<Record<string, (value: Data) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: isAnyNumber,
  integer: (value) => typeof value === 'bigint' || Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: isJsonObject,
}

const SIMPLE: Readonly<Record<string, Compile>> = {
  type: (given, place) => {
    const names = (Array.isArray(given) ? given : [given]).map(String)
    const tests = names.map((name) => TYPES[name])
    if (tests.some((test) => test === undefined)) throw invalid(place, 'must be a type of JSON')
    return rule((value) => tests.some((test) => test?.(value) === true), `must be ${names.join(' or ')}`)
  },
  enum: (given, place) => {
    if (!Array.isArray(given)) throw invalid(place, 'must be a list')
    const texts = new Set(given.map(sameText))
    return rule(
      (value) => texts.has(sameText(value)),
      `must be one of ${given.map((one) => JSON.stringify(one)).join(', ')}`,
    )
  },
  const: (given) => rule((value) => sameText(value) === sameText(given), `must be ${JSON.stringify(given)}`),
  required: (given) => {
    const names = (Array.isArray(given) ? given : []).map(String)
    return (value, path) => {
      if (!isJsonObject(value)) return []
      return names.filter((name) => value[name] === undefined).map((name) => issue([...path, name], 'is missing'))
    }
  },
  dependentRequired: (given, place) => {
    if (!isJsonObject(given)) throw invalid(place, 'must be an object of lists')
    return (value, path) => {
      if (!isJsonObject(value)) return []
      return Object.entries(given).flatMap(([key, names]) =>
        value[key] === undefined || !Array.isArray(names)
          ? []
          : names
              .filter((name) => value[String(name)] === undefined)
              .map((name) => issue([...path, String(name)], `is missing beside "${key}"`)),
      )
    }
  },
  minimum: limit('number', (value, bound) => value >= bound, 'must be at least'),
  maximum: limit('number', (value, bound) => value <= bound, 'must be at most'),
  exclusiveMinimum: limit('number', (value, bound) => value > bound, 'must be more than'),
  exclusiveMaximum: limit('number', (value, bound) => value < bound, 'must be less than'),
  multipleOf: limit('number', (value, bound) => isMultiple(value, bound), 'must be a multiple of'),
  minLength: limit('text', (length, bound) => length >= bound, 'must have at least this many characters:'),
  maxLength: limit('text', (length, bound) => length <= bound, 'must have at most this many characters:'),
  minItems: limit('list', (length, bound) => length >= bound, 'must have at least this many items:'),
  maxItems: limit('list', (length, bound) => length <= bound, 'must have at most this many items:'),
  minProperties: limit('object', (length, bound) => length >= bound, 'must have at least this many fields:'),
  maxProperties: limit('object', (length, bound) => length <= bound, 'must have at most this many fields:'),
  uniqueItems: (given) =>
    rule(
      (value) => given !== true || !Array.isArray(value) || new Set(value.map(sameText)).size === value.length,
      'must not hold the same twice',
    ),
  pattern: (given, place) => {
    if (typeof given !== 'string') throw invalid(place, 'must be a text')
    const pattern = patternOf(given, place)
    return rule((value) => typeof value !== 'string' || pattern.test(value), `must match ${pattern.source}`)
  },
}

type Measured = 'number' | 'text' | 'list' | 'object'

function limit(kind: Measured, holds: (size: number, bound: number) => boolean, message: string): Compile {
  return (given, place) => {
    if (typeof given !== 'number') throw invalid(place, 'must be a number')
    return rule((value) => {
      const size = sizeOf(kind, value)
      return size === undefined || holds(size, given)
    }, `${message} ${given}`)
  }
}

/** What the bound is compared with; `undefined` for a value of another type, which the bound does not concern. */
function sizeOf(kind: Measured, value: Data): number | undefined {
  if (kind === 'number') return isAnyNumber(value) ? Number(value) : undefined
  if (kind === 'text') return typeof value === 'string' ? charactersOf(value) : undefined
  if (kind === 'list') return Array.isArray(value) ? value.length : undefined
  return isJsonObject(value) ? Object.keys(value).length : undefined
}

/** The standard counts code points, JavaScript units of 16 bits. */
function charactersOf(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** 0.3 is a multiple of 0.1, although their quotient in binary is not whole. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient))
}

function rule(holds: (value: Data) => boolean, message: string): Check {
  return (value, path) => (holds(value) ? [] : [issue(path, message)])
}

function issue(path: Path, message: string): SchemaIssue {
  return { message, path }
}

/** Equal for equal values, whatever the order of their keys. */
function sameText(value: Data): string {
  if (isAnyNumber(value)) return typeof value === 'number' ? JSON.stringify(value) : String(value)
  if (Array.isArray(value)) return `[${value.map(sameText).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, one]) => `${JSON.stringify(key)}:${sameText(one)}`).join(',')}}`
}

function patternOf(text: string, place: string): RegExp {
  try {
    return new RegExp(text, 'u')
  } catch {
    throw invalid(place, `has a pattern that cannot be read: ${text}`)
  }
}

function pointed(root: Json, pointer: string): Json | undefined {
  let place: Json | undefined = root
  for (const part of pointer.split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (isList(place)) place = place[Number(key)]
    else place = isJsonObject(place) && Object.hasOwn(place, key) ? place[key] : undefined
  }
  return place
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

function invalid(place: string, problem: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `JSON Schema: ${place} ${problem}.`)
}
