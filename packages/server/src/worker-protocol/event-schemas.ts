import type { WorkerRecord } from '@impresario/core'
import { isJsonObject, LIMITS, roughCopy } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { Ajv } from 'ajv'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

type Verdict = { readonly isValid: true } | { readonly isValid: false; readonly problem: string }

const VALID: Verdict = { isValid: true }

/**
 * What workers have declared about their events (`events_schema` of a skill), held against what they send.
 *
 * A schema comes from outside, and so does what it is held against: it is bounded in size and in references, refers
 * neither to anything outside of itself nor in circles, and the few keywords whose cost a hostile one could let explode
 * are left out (`pattern`, `patternProperties`, `uniqueItems`). What is left costs at most the product of both lengths,
 * which is bounded too. Compiled ones are kept, the oldest go first.
 */
export class EventSchemas {
  readonly #compiled = new Map<string, ValidateFunction | string>()

  /** An event that several skills declare must fit one of them; one that none declares is free. */
  check(worker: WorkerRecord | undefined, eventType: string, payload: JsonObject): Verdict {
    const schemas = schemasFor(worker, eventType)
    if (schemas.size > LIMITS.eventSchemasOfTypeMax) {
      return { isValid: false, problem: 'The event is declared in too many different ways.' }
    }
    // The bounds are on the work for one event, so they hold for all of its schemas together.
    const chars = [...schemas.keys()].reduce((sum, text) => sum + text.length, 0)
    if (schemas.size > 0 && chars * JSON.stringify(payload).length > LIMITS.eventCheckCharsMax) {
      return { isValid: false, problem: 'payload is too long for a schema of this length' }
    }
    if (schemas.size > 1 && chars > LIMITS.eventSchemaCharsMax) {
      return { isValid: false, problem: 'The schemas of the event are together too long.' }
    }
    let problem: string | undefined
    for (const [text, schema] of schemas) {
      problem = this.#problemOf(schema, text, payload)
      if (problem === undefined) return VALID
    }
    return problem === undefined ? VALID : { isValid: false, problem }
  }

  #problemOf(schema: JsonObject, text: string, payload: JsonObject): string | undefined {
    const validate = this.#compile(schema, text)
    if (typeof validate === 'string') return validate
    try {
      // Schemas know numbers as doubles; the payload itself stays exact.
      if (validate(roughCopy(payload))) return undefined
    } catch {
      return 'payload cannot be held against its schema, which is too deep'
    }
    const [error] = validate.errors ?? []
    return `payload${error?.instancePath ?? ''} ${error?.message ?? 'does not fit its schema'}`
  }

  #compile(schema: JsonObject, text: string): ValidateFunction | string {
    const known = this.#compiled.get(text)
    if (known !== undefined) return known
    const compiled =
      text.length > LIMITS.eventSchemaCharsMax ? 'The schema of the event is too long.' : compile(schema, text)
    this.#compiled.set(text, compiled)
    if (this.#compiled.size > LIMITS.eventSchemasMax) {
      const [oldest] = this.#compiled.keys()
      if (oldest !== undefined) this.#compiled.delete(oldest)
    }
    return compiled
  }
}

function compile(schema: JsonObject, text: string): ValidateFunction | string {
  if (text.split('"$ref"').length - 1 > LIMITS.eventSchemaRefsMax) return 'The schema of the event has too many $ref.'
  if (isCircular(schema)) return 'The schema of the event refers to itself, or by other means than #/….'
  // One for each schema: names in one cannot be those of another, and all of it goes when it is dropped.
  // Draft 2020-12, as the SDK has it; a list of schemas in `items` is how older drafts write what is `prefixItems` there.
  const Dialect = text.includes('"items":[') ? Ajv : Ajv2020
  const ajv = new Dialect({
    strict: false,
    allErrors: false,
    logger: false,
    validateFormats: false,
    multipleOfPrecision: 9,
  })
  for (const keyword of ['pattern', 'patternProperties', 'uniqueItems']) ajv.removeKeyword(keyword)
  try {
    // An asynchronous one would answer with a promise, and a promise that is refused ends the process.
    const { $schema: _, $id: __, $async: ___, ...rest } = schema
    return ajv.compile(rest)
  } catch (error) {
    return `The schema of the event cannot be used: ${error instanceof Error ? error.message.slice(0, 200) : 'unknown'}`
  }
}

/**
 * Two references back to the beginning, below one property, are tried twice as often with every level of the payload: at
 * 60 levels for longer than any caller waits. Without cycles the bound on references bounds the work as well.
 */
function isCircular(schema: JsonObject): boolean {
  const open = new Set<string>()
  const done = new Set<string>()
  const follow = (pointer: string): boolean => {
    if (done.has(pointer)) return false
    if (open.has(pointer)) return true
    open.add(pointer)
    const isBad = leadsBack(resolved(schema, pointer))
    open.delete(pointer)
    done.add(pointer)
    return isBad
  }
  const leadsBack = (value: Json | undefined): boolean => {
    if (typeof value !== 'object' || value === null) return false
    return Object.entries(value).some(([key, inner]: [string, Json]) =>
      key === '$ref' && typeof inner === 'string' ? !/^#(?:\/|$)/.test(inner) || follow(inner) : leadsBack(inner),
    )
  }
  return follow('#')
}

/** What a reference of the form `#/a/b` points to. One that points nowhere is refused when it is compiled. */
function resolved(schema: JsonObject, pointer: string): Json | undefined {
  let found: Json | undefined = schema
  for (const part of pointer.split('/').slice(1)) {
    const key = unescaped(part)
    if (typeof found !== 'object' || found === null) return undefined
    found = Object.entries(found).find(([name]: [string, Json]) => name === key)?.[1]
  }
  return found
}

function unescaped(part: string): string {
  const text = part.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** By their text: skills often declare the same. */
function schemasFor(worker: WorkerRecord | undefined, eventType: string): ReadonlyMap<string, JsonObject> {
  const found = new Map<string, JsonObject>()
  for (const skill of worker?.skillInfo ?? []) {
    const declared: Json | undefined = skill['events_schema']
    if (!isJsonObject(declared) || !Object.hasOwn(declared, eventType)) continue
    const schema = declared[eventType]
    if (isJsonObject(schema)) found.set(JSON.stringify(schema), schema)
  }
  return found
}
