import type { Approval } from '@impresario/core'
import { ImpresarioError, isJsonObject, roughCopy } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

/* What a question asks for beside the decision: a form that is made from a JSON Schema, and checked by it. */

/** What is wrong with a field, for texts in any language. */
export type ProblemKind =
  | 'needed'
  | 'number'
  | 'integer'
  | 'text'
  | 'choice'
  | 'least'
  | 'most'
  | 'shorter'
  | 'longer'
  | 'format'
  | 'unknown'
  | 'other'

export interface FormProblem {
  /** Names from the outside in, such as `address.city`. */
  readonly field: string
  readonly kind: ProblemKind
  /** The bound, the choices or the format, where there is one. */
  readonly limit: string
  /** In English, for programs and logs. */
  readonly message: string
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  // No address has more characters. Without a bound, one of 60,000 dots took three seconds.
  email: /^(?=.{1,254}$)[^\s@]+@[^\s@]+\.[^\s@]+$/,
  uri: /^[a-z][a-z\d+.-]*:\S+$/i,
  date: /^\d{4}-\d{2}-\d{2}$/,
  time: /^\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:\d{2})?$/i,
  'date-time': /^\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}/i,
  uuid: /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i,
}
/** Few blueprints ask for data, and each with a form or two. */
const KEPT_MAX = 100
const PROBLEMS_MAX = 50
/** What people write is kept in the state history, beside everything else. */
const DATA_CHARS_MAX = 65_536
const checks = new Map<string, ValidateFunction>()

/** The data that goes with the decision, if it fits; nothing where none is asked for. */
export function checkedForm(
  { form, formFor }: Pick<Approval, 'form' | 'formFor'>,
  decision: string,
  data: JsonObject | undefined,
): JsonObject | undefined {
  if (form === undefined) {
    if (data === undefined) return undefined
    throw new ImpresarioError('INPUT_REFUSED', 'This question asks for nothing but a decision: leave `data` out.')
  }
  if (data === undefined && !formFor.includes(decision)) return undefined
  if (JSON.stringify(data ?? {}).length > DATA_CHARS_MAX) {
    throw new ImpresarioError('INPUT_REFUSED', `\`data\` can have at most ${DATA_CHARS_MAX} characters.`)
  }
  const problems = formProblems(form, data ?? {})
  const [first] = problems
  if (first === undefined) return data ?? {}
  const more = problems.length === 1 ? '' : ` There are ${problems.length} such problems.`
  throw new ImpresarioError('INPUT_REFUSED', `The form is not complete: ${first.field} ${first.message}.${more}`, {
    problems: problems.map(({ field, message }) => ({ field: `data.${field}`, message })),
  })
}

export function formProblems(form: JsonObject, data: JsonObject): readonly FormProblem[] {
  const check = checkOf(form)
  // Schemas know numbers as doubles; the data itself stays exact.
  if (check(roughCopy(data))) return []
  const problems = (check.errors ?? []).slice(0, PROBLEMS_MAX).map(problemOf)
  // Of several things about one field, the first says enough.
  return problems.filter(({ field }, index) => problems.findIndex((one) => one.field === field) === index)
}

function checkOf(form: JsonObject): ValidateFunction {
  const text = JSON.stringify(form)
  const known = checks.get(text)
  if (known !== undefined) return known
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, formats: FORMATS, multipleOfPrecision: 9 })
  let check: ValidateFunction
  try {
    const { $schema: _, $id: __, $async: ___, ...schema } = form
    check = ajv.compile(schema)
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'unknown'
    throw new ImpresarioError(
      'INPUT_REFUSED',
      `The form of this question cannot be used: ${reason}. Correct its blueprint.`,
    )
  }
  checks.set(text, check)
  const [oldest] = checks.keys()
  if (checks.size > KEPT_MAX && oldest !== undefined) checks.delete(oldest)
  return check
}

function problemOf({ instancePath, keyword, params, message = 'does not fit' }: ErrorObject): FormProblem {
  const names = instancePath.split('/').slice(1).map(unescaped)
  const given = params as Readonly<Record<string, unknown>>
  const missing = keyword === 'required' ? given['missingProperty'] : given['additionalProperty']
  const field = [...names, ...(typeof missing === 'string' ? [missing] : [])].join('.')
  const said = (kind: ProblemKind, words: string, limit: unknown = ''): FormProblem => {
    const shown = shownLimit(limit)
    return { field: field === '' ? 'data' : field, kind, limit: shown, message: words.replace('{limit}', () => shown) }
  }
  switch (keyword) {
    case 'required':
      return said('needed', 'is needed')
    case 'additionalProperties':
      return said('unknown', 'is not asked for')
    case 'type':
      return typeProblem(given['type'], said)
    case 'enum':
      return said('choice', 'must be one of {limit}', given['allowedValues'])
    case 'const':
      return said('choice', 'must be {limit}', [given['allowedValue']])
    case 'minimum':
      return said('least', 'must be at least {limit}', given['limit'])
    case 'maximum':
      return said('most', 'must be at most {limit}', given['limit'])
    case 'minLength':
      return said('longer', 'needs at least {limit} characters', given['limit'])
    case 'maxLength':
      return said('shorter', 'can have at most {limit} characters', given['limit'])
    case 'format':
      return said('format', 'must have the format {limit}', given['format'])
    case 'pattern':
      return said('format', 'must have the form {limit}', given['pattern'])
    default:
      return said('other', message)
  }
}

type Say = (kind: ProblemKind, words: string, limit?: unknown) => FormProblem

function typeProblem(type: unknown, said: Say): FormProblem {
  if (type === 'integer') return said('integer', 'must be a whole number')
  if (type === 'number') return said('number', 'must be a number')
  if (type === 'string') return said('text', 'must be a text')
  return said('other', `must be of the type ${String(type)}`)
}

function shownLimit(limit: unknown): string {
  if (Array.isArray(limit)) return limit.map(shownLimit).join(', ')
  return typeof limit === 'string' ? limit : JSON.stringify(limit)
}

function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** One field of a form, as a page can show it. */
export interface FormField {
  readonly path: readonly string[]
  readonly schema: JsonObject
  readonly isRequired: boolean
  readonly kind: 'choice' | 'choices' | 'boolean' | 'number' | 'text' | 'long' | 'group' | 'json'
  /** Of a choice. */
  readonly choices: readonly Json[]
  /** Of a group. */
  readonly fields: readonly FormField[]
}

/** A text of more characters than this gets several lines. */
const LONG_CHARS = 200
const DEPTH_MAX = 5

export function fieldsOf(form: JsonObject, path: readonly string[] = []): readonly FormField[] {
  const properties = isJsonObject(form['properties']) ? form['properties'] : {}
  const required = Array.isArray(form['required']) ? form['required'] : []
  return Object.entries(properties).flatMap(([name, value]: [string, Json]) =>
    isJsonObject(value) ? [fieldOf([...path, name], plain(value), required.includes(name))] : [],
  )
}

/** A value that may also be null is asked for like one that may be left out. */
function plain(schema: JsonObject): JsonObject {
  const [way, ...ways] = listOf(schema['anyOf']).filter((one) => isJsonObject(one) && one['type'] !== 'null')
  if (isJsonObject(way) && ways.length === 0) return { ...schema, ...way }
  const [type, ...types] = listOf(schema['type']).filter((one) => one !== 'null')
  return type !== undefined && types.length === 0 ? { ...schema, type } : schema
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}

function fieldOf(path: readonly string[], schema: JsonObject, isRequired: boolean): FormField {
  const field = { path, schema, isRequired, choices: [], fields: [] }
  const { type } = schema
  if (Array.isArray(schema['enum'])) return { ...field, kind: 'choice', choices: schema['enum'] }
  if (type === 'boolean') return { ...field, kind: 'boolean' }
  if (type === 'number' || type === 'integer') return { ...field, kind: 'number' }
  if (type === 'string') {
    const { maxLength } = schema
    return { ...field, kind: typeof maxLength === 'number' && maxLength > LONG_CHARS ? 'long' : 'text' }
  }
  if (type === 'array' && isJsonObject(schema['items']) && Array.isArray(schema['items']['enum'])) {
    return { ...field, kind: 'choices', choices: schema['items']['enum'] }
  }
  if (type === 'object' && isJsonObject(schema['properties']) && path.length < DEPTH_MAX) {
    return { ...field, kind: 'group', fields: fieldsOf(schema, path) }
  }
  return { ...field, kind: 'json' }
}

/** The name of a field in a form that a browser sends. */
export function inputName(path: readonly string[], choice?: number): string {
  return `data${path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')}${choice === undefined ? '' : `#${choice}`}`
}

/** What a browser sent, as data. What cannot be read stays a text, and is refused by the check. */
export function dataIn(fields: readonly FormField[], sent: Readonly<Record<string, unknown>>): JsonObject {
  const entries = fields.flatMap((field): readonly (readonly [string, Json])[] => {
    const value = valueIn(field, sent)
    return value === undefined ? [] : [[field.path.at(-1) ?? '', value]]
  })
  return Object.fromEntries(entries)
}

function valueIn(field: FormField, sent: Readonly<Record<string, unknown>>): Json | undefined {
  const { path, kind, choices, isRequired } = field
  const given = sent[inputName(path)]
  if (kind === 'boolean') return given !== undefined
  if (kind === 'choices') {
    const chosen = choices.filter((_choice, index) => sent[inputName(path, index)] !== undefined)
    return chosen.length === 0 && !isRequired ? undefined : chosen
  }
  if (kind === 'group') {
    const inner = dataIn(field.fields, sent)
    // A group that may be left out is, if nothing in it was filled in.
    const isEmpty = Object.values(inner).every((value) => value === false || value === undefined)
    return isEmpty && !isRequired ? undefined : inner
  }
  if (typeof given !== 'string' || given === '') return undefined
  switch (kind) {
    case 'number': {
      const number = Number(given.replace(',', '.'))
      return given.trim() !== '' && Number.isFinite(number) ? number : given
    }
    case 'choice':
      return choices.find((choice) => JSON.stringify(choice) === given) ?? given
    case 'json':
      return parsed(given)
    default:
      // Browsers send line ends as two characters.
      return given.replaceAll('\r\n', '\n')
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
