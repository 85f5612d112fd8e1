import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { parse as parseToml } from 'smol-toml'
import { LOG_LEVELS } from './log.ts'
import type { LogLevel } from './log.ts'

/** Everything that can be set, with the types that the program uses. */
export interface Settings {
  readonly apiHost: string
  readonly apiPort: number
  readonly clientApiPrefix: string
  readonly blueprintsDir: string
  readonly clientsConfigPath: string
  readonly workersConfigPath: string
  readonly clientToken: string
  readonly workerToken: string
  readonly instanceId: string
  readonly timeZone: string
  readonly logLevel: LogLevel
  readonly logFormat: 'json' | 'text'
  readonly storageUrl: string
  readonly workerPollTimeoutSeconds: number
  readonly workerHealthCheckIntervalSeconds: number
  readonly workerTimeoutSeconds: number
  readonly workerLeaseSeconds: number
  readonly workerPickupSeconds: number
  readonly jobMaxRetries: number
  readonly executorMaxConcurrentJobs: number
  readonly maxTransitionsPerJob: number
  readonly shutdownTimeoutSeconds: number
  readonly bodyLimitBytes: number
}

interface Text {
  readonly type: 'text' | 'secret' | 'path' | 'prefix' | 'time zone'
}
interface Count {
  readonly type: 'integer' | 'seconds'
  readonly min: number
  readonly max: number
}
interface Choice {
  readonly type: 'choice'
  readonly of: readonly string[]
}

export type ConfigKey = (Text | Count | Choice) & {
  /** The names in the environment, the preferred one first. In a file: the same in lower case. */
  readonly names: readonly [string, ...string[]]
  readonly default: string | number
  readonly description: string
}

const DAY_S = 86_400

/** The one table of all keys: it is read by the parser and printed as the reference. */
export const CONFIG_KEYS: Readonly<Record<keyof Settings, ConfigKey>> = {
  apiHost: { names: ['API_HOST'], type: 'text', default: '0.0.0.0', description: 'Address to listen on.' },
  apiPort: {
    names: ['API_PORT'],
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8_080,
    description: 'Port to listen on; 0 takes any that is free.',
  },
  clientApiPrefix: {
    names: ['CLIENT_API_PREFIX'],
    type: 'prefix',
    default: 'api',
    description: 'First part of the path of the client API.',
  },
  blueprintsDir: {
    names: ['BLUEPRINTS_DIR'],
    type: 'path',
    default: '',
    description: 'Directory with blueprints (.ts, .js, .mjs). Empty: only those that are registered in code.',
  },
  clientsConfigPath: {
    names: ['CLIENTS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description: 'TOML file with one table per client: token, plan, monthly_attempts, params.',
  },
  workersConfigPath: {
    names: ['WORKERS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description: 'TOML file with one table per worker id: token, description.',
  },
  clientToken: {
    names: ['CLIENT_TOKEN'],
    type: 'secret',
    default: '',
    description: 'Token of a single client named "default".',
  },
  workerToken: {
    names: ['WORKER_TOKEN', 'GLOBAL_WORKER_TOKEN'],
    type: 'secret',
    default: '',
    description: 'Token of every worker that has none of its own.',
  },
  instanceId: {
    names: ['INSTANCE_ID'],
    type: 'text',
    default: hostname(),
    description: 'Name of this instance, in every line of the log. The host name without it.',
  },
  timeZone: { names: ['TZ'], type: 'time zone', default: 'UTC', description: 'Time zone of the log.' },
  logLevel: {
    names: ['LOG_LEVEL'],
    type: 'choice',
    of: LOG_LEVELS,
    default: 'info',
    description: 'Least level that is logged.',
  },
  logFormat: {
    names: ['LOG_FORMAT'],
    type: 'choice',
    of: ['json', 'text'],
    default: 'json',
    description: 'json for programs, text for people.',
  },
  storageUrl: {
    names: ['STORAGE_URL'],
    type: 'text',
    default: 'file:./impresario-data',
    description: 'memory: (nothing survives a restart) or file:<directory>.',
  },
  workerPollTimeoutSeconds: {
    names: ['WORKER_POLL_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: LIMITS.longPollMsMax / 1_000,
    default: 30,
    description: 'How long a poll is held when the worker names no time.',
  },
  workerHealthCheckIntervalSeconds: {
    names: ['WORKER_HEALTH_CHECK_INTERVAL_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: DAY_S,
    default: 60,
    description: 'A worker that is silent for twice as long gets no more tasks.',
  },
  workerTimeoutSeconds: {
    names: ['WORKER_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: 30 * DAY_S,
    default: 300,
    description:
      'Longest time that a worker has for a task, from its pickup, where neither the task, the job nor the blueprint names one.',
  },
  workerLeaseSeconds: {
    names: ['WORKER_LEASE_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: DAY_S,
    default: 30,
    description: 'How long a worker keeps its tasks without a sign of life.',
  },
  workerPickupSeconds: {
    names: ['WORKER_PICKUP_SECONDS'],
    type: 'seconds',
    min: 0.01,
    max: DAY_S,
    default: 5,
    description: 'A task that its chosen worker has not picked up for so long is open to others.',
  },
  jobMaxRetries: {
    names: ['JOB_MAX_RETRIES'],
    type: 'integer',
    min: 0,
    max: 99,
    default: 3,
    description: 'Tries after the first one, for a task or a handler that failed, where the blueprint names no number.',
  },
  executorMaxConcurrentJobs: {
    names: ['EXECUTOR_MAX_CONCURRENT_JOBS'],
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1_000,
    description: 'Handlers that run at the same time.',
  },
  maxTransitionsPerJob: {
    names: ['MAX_TRANSITIONS_PER_JOB'],
    type: 'integer',
    min: 1,
    max: LIMITS.transitionsMaxCeiling,
    default: LIMITS.transitionsMaxDefault,
    description: 'States that a job may enter before it counts as a loop, where the blueprint names no number.',
  },
  shutdownTimeoutSeconds: {
    names: ['SHUTDOWN_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 3_600,
    default: 25,
    description: 'How long a stop waits for what is running.',
  },
  bodyLimitBytes: {
    names: ['BODY_LIMIT_BYTES'],
    type: 'integer',
    min: 1_024,
    max: 64 * LIMITS.bodyBytesMax,
    default: LIMITS.bodyBytesMax,
    description: 'Largest body of a request.',
  },
}

type Raw = string | number | boolean

export interface ConfigSource {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where a file is looked for when none is named. */
  readonly directory: string
}

/** Reads the environment and, below it, the configuration file. Refuses what it does not understand. */
export function loadSettings(source: ConfigSource): Settings {
  const file = readConfigFile(source)
  const values: Partial<Record<keyof Settings, string | number>> = {}
  for (const field of settingNames()) {
    const key = CONFIG_KEYS[field]
    const found = lookUp(key, source.environment, file)
    values[field] = found === undefined ? key.default : parseValue(key, found.value, found.from)
  }
  return asSettings(values)
}

/** The defaults, with what the program itself sets on top. */
export function settingsOf(given: Partial<Settings> = {}): Settings {
  const values: Partial<Record<keyof Settings, string | number>> = {}
  for (const field of settingNames()) {
    const key = CONFIG_KEYS[field]
    const value = given[field]
    values[field] = value === undefined ? key.default : parseValue(key, value, `settings.${field}`)
  }
  return asSettings(values)
}

function settingNames(): readonly (keyof Settings)[] {
  return Object.keys(CONFIG_KEYS) as (keyof Settings)[]
}

/** Every value has passed `parseValue` with the key that stands for its type. */
function asSettings(values: Partial<Record<keyof Settings, string | number>>): Settings {
  return values as unknown as Settings
}

interface ConfigFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

function lookUp(
  key: ConfigKey,
  environment: ConfigSource['environment'],
  file: ConfigFile | undefined,
): { value: unknown; from: string } | undefined {
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
    throw invalid(`${path}: ${name} is not a key of the configuration. Known keys: ${[...known].join(', ')}.`)
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
    throw invalid(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`, error)
  }
}

function parseValue(key: ConfigKey, value: unknown, from: string): string | number {
  if (!isRaw(value)) throw invalid(`${from} must be ${allowed(key)}, not a list or a table.`)
  switch (key.type) {
    case 'integer':
    case 'seconds': {
      const text = String(value).trim()
      const number = text === '' ? Number.NaN : Number(text)
      const isGood = key.type === 'integer' ? Number.isInteger(number) : Number.isFinite(number)
      if (isGood && number >= key.min && number <= key.max) return number
      throw invalid(`${from} is ${show(key, value)}. It must be ${allowed(key)}.`)
    }
    case 'choice': {
      const text = String(value).trim().toLowerCase()
      const word = text === 'warning' ? 'warn' : text === 'critical' ? 'error' : text
      if (key.of.includes(word)) return word
      throw invalid(`${from} is ${show(key, value)}. It must be ${allowed(key)}.`)
    }
    case 'prefix': {
      const text = String(value).replaceAll(/^\/+|\/+$/g, '')
      if (/^[a-z\d][\w-]*(?:\/[\w-]+)*$/i.test(text)) return text
      throw invalid(`${from} is ${show(key, value)}. It must be ${allowed(key)}.`)
    }
    case 'time zone':
      if (isTimeZone(String(value))) return String(value)
      throw invalid(`${from} is ${show(key, value)}. It must be ${allowed(key)}.`)
    case 'text':
    case 'secret':
    case 'path':
      return String(value)
  }
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

function show(key: ConfigKey, value: Raw): string {
  return key.type === 'secret' ? '(hidden)' : JSON.stringify(value)
}

function allowed(key: ConfigKey): string {
  switch (key.type) {
    case 'integer':
      return `a whole number from ${key.min} to ${key.max}`
    case 'seconds':
      return `a number of seconds from ${key.min} to ${key.max}`
    case 'choice':
      return `one of ${key.of.join(', ')}`
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
  const rows = Object.values(CONFIG_KEYS).map((key) => {
    const names = key.names.map((name) => `\`${name}\``).join(', ')
    const standard = key.names[0] === 'INSTANCE_ID' ? 'host name' : key.default === '' ? '' : `\`${key.default}\``
    return `| ${names} | ${allowed(key)} | ${standard} | ${key.description} |`
  })
  return ['| key | value | default | meaning |', '|---|---|---|---|', ...rows, ''].join('\n')
}
