import { ImpresarioError, isJsonObject, type Json, type JsonObject } from '@impresario/protocol'
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

const ON = new Set(['true', 'yes', 'on', '1'])
const OFF = new Set(['false', 'no', 'off', '0'])

function parse(key: EnvironmentKey, name: string, text: string): string | number | boolean {
  switch (key.type) {
    case 'text':
    case 'secret':
    case 'path':
      return text
    case 'json':
      jsonIn(name, text)
      return text
    case 'integer':
    case 'number':
    case 'seconds': {
      const value = Number(text)
      const isGood = key.type === 'integer' ? Number.isInteger(value) : Number.isFinite(value)
      if (isGood && value >= key.min && value <= key.max) return value
      throw wrong(name, allowed(key), text)
    }
    case 'switch':
      if (ON.has(text.toLowerCase())) return true
      if (OFF.has(text.toLowerCase())) return false
      throw wrong(name, allowed(key), text)
    case 'choice': {
      const word = SYNONYMS[text.toLowerCase()] ?? text.toLowerCase()
      if (key.of.some((one) => one.toLowerCase() === word)) return word
      throw wrong(name, allowed(key), text)
    }
  }
}

/** The names of levels that other languages use. */
const SYNONYMS: Readonly<Record<string, string>> = { warning: 'warn', critical: 'error', fatal: 'error' }

function allowed(key: EnvironmentKey): string {
  switch (key.type) {
    case 'text':
    case 'secret':
      return 'a text'
    case 'path':
      return 'a path'
    case 'json':
      return 'JSON'
    case 'integer':
      return `a whole number from ${key.min} to ${key.max}`
    case 'number':
      return `a number from ${key.min} to ${key.max}`
    case 'seconds':
      return `a number of seconds from ${key.min} to ${key.max}`
    case 'switch':
      return 'true or false'
    case 'choice':
      return `one of ${key.of.join(', ')}`
  }
}

/** The reference of all variables, as a Markdown table. */
export function describeEnvironment(): string {
  const rows = Object.values(ENVIRONMENT_KEYS).map((key) => {
    const names = key.names.map((name) => `\`${name}\``).join(', ')
    const standard = key.standard ?? (key.default === undefined ? '' : `\`${key.default}\``)
    return `| ${names} | ${allowed(key)} | ${standard} | ${key.description} |`
  })
  return ['| variable | value | default | meaning |', '|---|---|---|---|', ...rows, ''].join('\n')
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
