import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nearWord } from '@impresario/core'
import { ImpresarioError, allowedValues, isSettingType, readSetting, settingsTable } from '@impresario/protocol'
import { parse as parseToml, TomlError } from 'smol-toml'
import { CONFIG_KEYS } from './config-keys.ts'
import type { ConfigKey, SettingName, Settings } from './config-keys.ts'
import { isInjectedPort, storageChoice } from './storage-choice.ts'
import type { RedisSettings } from './storage-choice.ts'

export { CONFIG_KEYS } from './config-keys.ts'
export type { ConfigKey, Settings } from './config-keys.ts'

/** A value of the configuration, as it is written or as it is used. */
type Raw = string | number | boolean

export interface ConfigSource {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where a file is looked for when none is named. */
  readonly directory: string
}

/** Reads the environment and, below it, the configuration file. Refuses what it does not understand. */
export function loadSettings(source: ConfigSource): Settings {
  const file = readConfigFile(source)
  const given = new Map<SettingName, Given>()
  for (const field of settingNames()) {
    const found = lookUp(CONFIG_KEYS[field], source.environment, file)
    if (found !== undefined && !isInjectedPort(field, found.value)) given.set(field, found)
  }
  const values: Partial<Record<SettingName, Raw>> = {}
  for (const field of settingNames()) {
    const key = CONFIG_KEYS[field]
    const found = given.get(field)
    values[field] = found === undefined ? key.default : parseValue(key, found.value, found.from)
  }
  return withStorageChosen(asSettings(values), given)
}

/** The defaults, with what the program itself sets on top. */
export function settingsOf(given: Partial<Settings> = {}): Settings {
  const values: Partial<Record<SettingName, Raw>> = {}
  for (const field of settingNames()) {
    const key = CONFIG_KEYS[field]
    const value = Object.hasOwn(given, field)
      ? (given as Readonly<Partial<Record<SettingName, Raw>>>)[field]
      : undefined
    values[field] = value === undefined ? key.default : parseValue(key, value, `settings.${field}`)
  }
  return asSettings(values)
}

function settingNames(): readonly SettingName[] {
  return Object.keys(CONFIG_KEYS) as SettingName[]
}

/** Every value has passed `parseValue` with the key that stands for its type. */
function asSettings(values: Partial<Record<SettingName, Raw>>): Settings & RedisSettings {
  return values as unknown as Settings & RedisSettings
}

/** A value that was set, and where. */
interface Given {
  readonly value: unknown
  readonly from: string
}

/** Where the storage is: by `STORAGE_URL`, or by the names that the documents of older systems have for Redis. */
function withStorageChosen(settings: Settings & RedisSettings, given: ReadonlyMap<SettingName, Given>): Settings {
  const choice = storageChoice(settings, (field) => given.get(field)?.from)
  if ('problem' in choice) throw invalid(choice.problem)
  return { ...settings, storageUrl: choice.storageUrl }
}

/** Variables of this program that have no setting, in capitals. */
const OTHER_VARIABLES = ['IMPRESARIO_CONFIG', 'IMPRESARIO_URL', 'IMPRESARIO_TOKEN']
const PREFIX = 'IMPRESARIO_'

/**
 * A sentence for each variable that is nearly the name of a setting, or has our prefix and is none. They are no errors: the
 * environment belongs to other programs too.
 */
export function doubtfulVariables(environment: ConfigSource['environment']): readonly string[] {
  const known = new Set([...OTHER_VARIABLES, ...Object.values(CONFIG_KEYS).flatMap(({ names }) => names)])
  return Object.keys(environment).flatMap((name) => {
    // Short names are near to many others, such as PORT to PATH.
    if (known.has(name) || name.length < 6) return []
    const meant = nearWord(name, known)
    if (meant === undefined && !name.startsWith(PREFIX)) return []
    return [`The variable ${name} is not a setting.${meant === undefined ? '' : ` Did you mean ${meant}?`}`]
  })
}

interface ConfigFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

function lookUp(
  key: ConfigKey,
  environment: ConfigSource['environment'],
  file: ConfigFile | undefined,
): Given | undefined {
  for (const name of key.names) {
    const value = environment[name]
    if (value !== undefined && value !== '') return { value, from: name }
  }
  if (file === undefined) return undefined
  for (const name of key.names) {
    const lower = name.toLowerCase()
    if (Object.hasOwn(file.values, lower)) return { value: file.values[lower], from: `${file.path}: ${lower}` }
  }
  return undefined
}

function readConfigFile({ environment, directory }: ConfigSource): ConfigFile | undefined {
  const named = environment['IMPRESARIO_CONFIG']
  const candidates =
    named === undefined || named === ''
      ? [join(directory, 'impresario.toml'), join(directory, 'impresario.json')].filter((path) => existsSync(path))
      : [named]
  const [path] = candidates
  if (path === undefined) return undefined
  const values = parseFile(path)
  const known = new Set(Object.values(CONFIG_KEYS).flatMap((key) => key.names.map((name) => name.toLowerCase())))
  for (const name of Object.keys(values)) {
    if (known.has(name)) continue
    const meant = nearWord(name.toLowerCase(), known)
    const hint = meant === undefined ? 'docs/reference/configuration.md lists all keys.' : `Did you mean ${meant}?`
    throw invalid(`${path}: ${name} is not a key of the configuration. ${hint}`)
  }
  return { path, values }
}

/** Reads TOML, or JSON where the name ends so. The file's own errors are told with its path. */
export function parseFile(path: string): Readonly<Record<string, unknown>> {
  try {
    const text = readFileSync(path, 'utf8')
    const parsed: unknown = path.endsWith('.json') ? JSON.parse(text) : parseToml(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw new Error('it must hold a table')
    return parsed as Record<string, unknown>
  } catch (error) {
    // Without the error as its cause: its text shows lines of the file, and these may be tokens.
    throw invalid(`${path} cannot be read: ${reasonOf(error)}`)
  }
}

/** What is wrong and where, without what stands there. */
function reasonOf(error: unknown): string {
  if (error instanceof TomlError) {
    const [what = ''] = error.message.split('\n', 1)
    return `${what} (line ${error.line}, column ${error.column})`
  }
  if (error instanceof SyntaxError) return 'it is not valid JSON'
  return error instanceof Error ? error.message : String(error)
}

function parseValue(key: ConfigKey, value: unknown, from: string): Raw {
  if (!isRaw(value)) throw invalid(`${from} must be ${allowed(key)}, not a list or a table.`)
  if (isSettingType(key)) {
    const read = readSetting(key, String(value))
    if (read === undefined) throw refused(key, value, from)
    return read
  }
  switch (key.type) {
    case 'prefix': {
      const text = String(value).replaceAll(/^\/+|\/+$/g, '')
      if (/^[a-z\d][\w-]*(?:\/[\w-]+)*$/i.test(text)) return text
      throw refused(key, value, from)
    }
    case 'time zone':
      if (isTimeZone(String(value))) return String(value)
      throw refused(key, value, from)
    case 'text':
    case 'secret':
    case 'path': {
      const problem = key.check?.(String(value))
      if (problem !== undefined) throw invalid(`${from} ${problem}`)
      return String(value)
    }
  }
}

function refused(key: ConfigKey, value: Raw, from: string): ImpresarioError {
  const shown = key.type === 'secret' ? '(hidden)' : JSON.stringify(value)
  return invalid(`${from} is ${shown}. It must be ${allowed(key)}.`)
}

function isRaw(value: unknown): value is Raw {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== ''
  } catch {
    return false
  }
}

function allowed(key: ConfigKey): string {
  if (isSettingType(key)) return allowedValues(key)
  switch (key.type) {
    case 'prefix':
      return 'a path of letters, digits, "_" and "-", such as api'
    case 'time zone':
      return 'the name of a time zone, such as UTC or Europe/Berlin'
    case 'text':
    case 'secret':
    case 'path':
      return 'a text'
  }
}

export function invalid(message: string, cause?: unknown): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', message, cause === undefined ? {} : { cause })
}

/** The reference of all keys, as a Markdown table. */
export function describeConfig(): string {
  const settings = Object.values(CONFIG_KEYS).map((key) => ({
    names: key.names,
    allowed: allowed(key),
    standard: key.names[0] === 'INSTANCE_ID' ? 'host name' : key.default === '' ? '' : `\`${key.default}\``,
    description: key.description,
  }))
  return settingsTable('key', settings)
}
