import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonSchema } from './tool.ts'

/** What does not fit a schema, as sentences; none when it fits. */
export type SchemaCheck = (value: unknown) => readonly string[]

/** Larger schemas are refused: each is compiled to code. */
const SCHEMA_CHARS_MAX = 65_536
const PROBLEMS_MAX = 10
/** Patterns run on data from outside. A schema whose pattern can take exponential time would stop the process. */
const KEYWORDS_REFUSED = new Set(['$ref', '$dynamicRef'])

const OPTIONS = {
  strict: false,
  allErrors: true,
  logger: false,
  validateFormats: false,
  code: { regExp: bounded },
} as const

/**
 * Says whether a schema is one. Made when it is first needed, and once: the schema of schemas takes 20 ms to compile, and an
 * orchestrator with the tools that are built in took half a second to start.
 */
let judge: Ajv2020 | undefined

/** Compiles a schema. One that is not valid is refused with the place and the reason. */
export function compileSchema(what: string, schema: JsonSchema): SchemaCheck {
  const text = JSON.stringify(schema)
  if (text.length > SCHEMA_CHARS_MAX) throw refused(what, `it has more than ${SCHEMA_CHARS_MAX} characters`)
  const outside = outsideReference(schema)
  if (outside !== undefined) throw refused(what, `"${outside}" refers to another document. Put it under $defs`)
  let check: ValidateFunction
  try {
    judge ??= new Ajv2020(OPTIONS)
    if (judge.validateSchema(schema, true) !== true) throw new Error('its own schema cannot be checked at once')
    // One for each schema: an instance keeps what it has compiled, by its $id, for ever.
    check = new Ajv2020({ ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  } catch (error) {
    throw refused(what, error instanceof Error ? error.message : 'it cannot be compiled')
  }
  return (value) => (check(value) ? [] : (check.errors ?? []).slice(0, PROBLEMS_MAX).map(sentenceOf))
}

function refused(what: string, problem: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `${what} is not a valid JSON Schema: ${problem}.`)
}

/** The first reference that leads out of the document. */
function outsideReference(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    if (KEYWORDS_REFUSED.has(key) && typeof inner === 'string' && !inner.startsWith('#')) return inner
    const found = outsideReference(inner)
    if (found !== undefined) return found
  }
  return undefined
}

/** `city: must be string`, with the way to the place. */
function sentenceOf({ instancePath, message = 'does not fit', params }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll('/', '.')
  const allowed: unknown = 'allowedValues' in params ? params['allowedValues'] : undefined
  const values = Array.isArray(allowed) ? `: ${allowed.map((value) => JSON.stringify(value)).join(', ')}` : ''
  const extra: unknown = 'additionalProperty' in params ? params['additionalProperty'] : undefined
  const named = typeof extra === 'string' ? ` (${extra})` : ''
  return `${place === '' ? '' : `${place}: `}${message}${values}${named}.`
}

/**
 * Patterns with a repetition inside a repetition, such as `(a+)+`, can take longer than the universe has time on 50
 * characters. They are refused when the schema is given; all others run on texts of at most 10,000 characters.
 */
function bounded(pattern: string, flags: string): RegExp {
  if (/\([^)]*[+*}][^)]*\)\s*(?:[+*]|\{\d*,?\d*\})/.test(pattern)) {
    throw new Error(`the pattern "${pattern}" repeats a repetition, which can take endless time`)
  }
  const expression = new RegExp(pattern, flags)
  return Object.assign(expression, {
    test: (text: string) => text.length <= 10_000 && RegExp.prototype.test.call(expression, text),
  })
}
bounded.code = 'bounded'
