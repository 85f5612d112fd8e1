import {
  ImpresarioError,
  allowedValues,
  isJsonObject,
  isSettingType,
  readSetting,
  settingsTable,
  type Json,
  type JsonObject,
} from '@impresario/protocol'
import { ENVIRONMENT_KEYS, type EnvironmentKey, type WorkerEnvironment } from './environment-keys.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads every variable of the table. An empty one counts as not set; one that makes no sense is refused by its name. */
export function readEnvironment(env: Environment): WorkerEnvironment {
  const values = Object.entries(ENVIRONMENT_KEYS).map(([field, key]) => {
    const name = key.names.find((one) => (env[one] ?? '').trim() !== '')
    return [field, name === undefined ? standardOf(key) : parse(key, name, (env[name] ?? '').trim())] as const
  })
  return environmentOf(Object.fromEntries(values))
}

/** Every value has passed `parse` with the key that stands for its type. */
function environmentOf(values: object): WorkerEnvironment {
  return values as WorkerEnvironment
}

function standardOf(key: EnvironmentKey): string | number | boolean | undefined {
  return key.type === 'choice' ? String(key.default).toLowerCase() : key.default
}

function parse(key: EnvironmentKey, name: string, text: string): string | number | boolean {
  if (isSettingType(key)) {
    const value = readSetting(key, text)
    if (value === undefined) throw wrong(name, allowed(key), text)
    return value
  }
  if (key.type === 'json') jsonIn(name, text)
  return text
}

const ALLOWED = { text: 'a text', secret: 'a text', path: 'a path', json: 'JSON' } as const

function allowed(key: EnvironmentKey): string {
  return isSettingType(key) ? allowedValues(key) : ALLOWED[key.type]
}

/** The reference of all variables, as a Markdown table. */
export function describeEnvironment(): string {
  const settings = Object.values(ENVIRONMENT_KEYS).map((key) => ({
    names: key.names,
    allowed: allowed(key),
    standard: key.standard ?? (key.default === undefined ? '' : `\`${key.default}\``),
    description: key.description,
  }))
  return settingsTable('variable', settings)
}

const EXTRA = 'WORKER_EXTRA_'

/** `WORKER_EXTRA_ZONE=eu` becomes `zone: 'eu'`. Values are JSON where they can be read so, and text otherwise. */
export function extraFrom(env: Environment): JsonObject {
  const names = Object.keys(env).filter((name) => name.startsWith(EXTRA) && name.length > EXTRA.length)
  return Object.fromEntries(names.map((name) => [name.slice(EXTRA.length).toLowerCase(), valueOf(env[name] ?? '')]))
}

function valueOf(text: string): Json {
  try {
    return jsonOf(text)
  } catch {
    return text
  }
}

/** The boundary: what `JSON.parse` returns is JSON. */
function jsonOf(text: string): Json {
  return JSON.parse(text) as Json
}

function jsonIn(name: string, text: string): Json {
  try {
    return jsonOf(text)
  } catch {
    throw wrong(name, 'JSON')
  }
}

/** An object of a list, with the text by which it is known. */
export interface Named {
  readonly key: string
  readonly fields: JsonObject
}

/** A list of objects that have this field as a text; entries that are only texts stand for it. */
export function objectsIn(name: string, text: string, field: string): readonly Named[] {
  const list = jsonIn(name, text)
  const wanted = `a list of objects with "${field}"`
  if (!Array.isArray(list)) throw wrong(name, wanted)
  return list.map((entry: unknown) => {
    if (typeof entry === 'string') return { key: entry, fields: {} }
    const key = isJsonObject(entry) ? entry[field] : undefined
    if (!isJsonObject(entry) || typeof key !== 'string') throw wrong(name, wanted)
    return { key, fields: entry }
  })
}

export function numbersIn(name: string, text: string): Readonly<Record<string, number>> {
  const value = jsonIn(name, text)
  if (!isJsonObject(value)) throw wrong(name, 'an object of numbers')
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      if (typeof one !== 'number') throw wrong(name, 'an object of numbers')
      return [key, one]
    }),
  )
}

export function textsIn(name: string, text: string): Readonly<Record<string, string>> {
  const value = jsonIn(name, text)
  if (!isJsonObject(value)) throw wrong(name, 'an object of texts')
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, typeof one === 'string' ? one : JSON.stringify(one)]),
  )
}

export function wrong(name: string, wanted: string, value?: string): ImpresarioError {
  const said = value === undefined ? '' : ` It is ${JSON.stringify(value)}.`
  return new ImpresarioError('INVALID_CONFIGURATION', `${name} must be ${wanted}.${said}`)
}
