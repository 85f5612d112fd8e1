import type { WorkerRecord } from '@impresario/core'
import { isJsonObject, LIMITS } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { Ajv } from 'ajv'
import type { ValidateFunction } from 'ajv'

type Verdict = { readonly isValid: true } | { readonly isValid: false; readonly problem: string }

const VALID: Verdict = { isValid: true }

/**
 * What workers have declared about their events (`events_schema` of a skill), held against what they send.
 *
 * A schema comes from outside, and so does what it is held against: it is bounded in size and in references, refers to
 * nothing outside of itself, and the few keywords whose cost a hostile one could let explode are left out (`pattern`,
 * `patternProperties`, `uniqueItems`). Compiled ones are kept, the oldest go first.
 */
export class EventContracts {
  readonly #compiled = new Map<string, ValidateFunction | string>()

  /** An event that several skills declare must fit one of them; one that none declares is free. */
  check(worker: WorkerRecord | undefined, eventType: string, payload: JsonObject): Verdict {
    const schemas = schemasFor(worker, eventType)
    let problem: string | undefined
    for (const schema of schemas) {
      problem = this.#problemOf(schema, payload)
      if (problem === undefined) return VALID
    }
    return problem === undefined ? VALID : { isValid: false, problem }
  }

  #problemOf(schema: JsonObject, payload: JsonObject): string | undefined {
    const validate = this.#compile(schema)
    if (typeof validate === 'string') return validate
    try {
      if (validate(payload)) return undefined
    } catch {
      return 'The schema of the event refers to itself without end.'
    }
    const [error] = validate.errors ?? []
    return `payload${error?.instancePath ?? ''} ${error?.message ?? 'does not fit its schema'}`
  }

  #compile(schema: JsonObject): ValidateFunction | string {
    const text = JSON.stringify(schema)
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
  // One for each schema: names in one cannot be those of another, and all of it goes when it is dropped.
  const ajv = new Ajv({ strict: false, allErrors: false, logger: false, validateFormats: false })
  for (const keyword of ['pattern', 'patternProperties', 'uniqueItems']) ajv.removeKeyword(keyword)
  try {
    const { $schema: _, $id: __, ...rest } = schema
    return ajv.compile(rest)
  } catch (error) {
    return `The schema of the event cannot be used: ${error instanceof Error ? error.message.slice(0, 200) : 'unknown'}`
  }
}

function schemasFor(worker: WorkerRecord | undefined, eventType: string): readonly JsonObject[] {
  const found: JsonObject[] = []
  for (const skill of worker?.skillInfo ?? []) {
    const declared: Json | undefined = skill['events_schema']
    if (!isJsonObject(declared) || !Object.hasOwn(declared, eventType)) continue
    const schema = declared[eventType]
    if (isJsonObject(schema)) found.push(schema)
  }
  return found
}
