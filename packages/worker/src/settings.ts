import { randomUUID } from 'node:crypto'
import { hostname, networkInterfaces } from 'node:os'
import {
  ImpresarioError,
  isJsonObject,
  type Json,
  type JsonObject,
  type RegisterRequest,
  type WireArtifact,
} from '@impresario/protocol'
import type { Skill } from './handler.ts'
import { stderrLog, type Log } from './log.ts'
import type { WorkerTransport } from './transport.ts'

export interface OrchestratorOptions {
  readonly url: string
  readonly token?: string | undefined
  /** Lower first. */
  readonly priority?: number
  /** Its share in the round-robin mode. */
  readonly weight?: number
}

/** Everything has a default, most of them from the environment. */
export interface WorkerOptions {
  readonly url?: string
  readonly token?: string | undefined
  /** Several orchestrators instead of `url`. The worker registers with all of them. */
  readonly orchestrators?: readonly OrchestratorOptions[]
  /** `failover`: work comes from the first that answers. `round_robin`: from all in turn, by their weight. */
  readonly orchestratorMode?: 'failover' | 'round_robin'
  /** Instead of HTTP: an engine in the same process, for example. */
  readonly transport?: WorkerTransport
  /** `single`: never use the batched calls. */
  readonly mode?: 'auto' | 'single'
  readonly id?: string
  readonly type?: string
  readonly concurrency?: number
  /** The most tasks of a type at once. */
  readonly taskLimits?: Readonly<Record<string, number>>
  readonly cpuCores?: number
  readonly ramGb?: number
  readonly gpu?: { readonly model: string; readonly vramGb: number }
  readonly costPerSecond?: number
  readonly costPerSkill?: Readonly<Record<string, number>>
  readonly models?: readonly (string | { readonly name: string; readonly version?: string })[]
  readonly software?: Readonly<Record<string, string>>
  /** Anything else that tasks may require. */
  readonly extra?: JsonObject
  readonly heartbeatMs?: number
  readonly pollMs?: number
  /** How long `stop` waits for running tasks before it hands them back. */
  readonly shutdownMs?: number
  /** Without it, undelivered results are kept and sent again for as long as the worker runs. */
  readonly resultRetriesMax?: number
  readonly resultRetryMs?: number
  readonly log?: Log
}

export interface WorkerSettings {
  readonly orchestrators: readonly Required<Omit<OrchestratorOptions, 'token'>>[]
  readonly tokens: readonly (string | undefined)[]
  readonly orchestratorMode: 'failover' | 'round_robin'
  readonly mode: 'auto' | 'single'
  readonly id: string
  readonly type: string
  readonly concurrency: number
  readonly taskLimits: Readonly<Record<string, number>>
  readonly description: Omit<RegisterRequest, 'worker_id'>
  readonly heartbeatMs: number
  readonly pollMs: number
  readonly shutdownMs: number
  readonly resultRetriesMax: number
  readonly resultRetryMs: number
  readonly log: Log
}

type Environment = Readonly<Record<string, string | undefined>>

/** What was given counts first, then the environment, then the default. */
export function settingsOf(options: WorkerOptions, env: Environment): WorkerSettings {
  const concurrency = options.concurrency ?? numberFrom(env, 'MAX_CONCURRENT_TASKS') ?? 10
  if (!Number.isInteger(concurrency) || concurrency < 1) throw wrong('MAX_CONCURRENT_TASKS', 'a positive whole number')
  const token = options.token ?? env['WORKER_INDIVIDUAL_TOKEN'] ?? env['WORKER_TOKEN']
  const orchestrators = orchestratorsFrom(options, env)
  return {
    orchestrators: orchestrators.map(({ url, priority = 10, weight = 1 }) => ({ url, priority, weight })),
    tokens: orchestrators.map((one) => one.token ?? token),
    orchestratorMode: options.orchestratorMode ?? orchestratorModeFrom(env),
    mode: options.mode ?? 'auto',
    id: options.id ?? env['WORKER_ID'] ?? `worker-${randomUUID()}`,
    type: options.type ?? env['WORKER_TYPE'] ?? 'generic-cpu-worker',
    concurrency,
    taskLimits: options.taskLimits ?? {},
    description: describe(options, env, concurrency),
    heartbeatMs: options.heartbeatMs ?? secondsFrom(env, 'HEARTBEAT_INTERVAL') ?? 15_000,
    pollMs: options.pollMs ?? secondsFrom(env, 'TASK_POLL_TIMEOUT') ?? 30_000,
    shutdownMs: options.shutdownMs ?? secondsFrom(env, 'WORKER_SHUTDOWN_TIMEOUT') ?? 30_000,
    resultRetriesMax: options.resultRetriesMax ?? numberFrom(env, 'RESULT_MAX_RETRIES') ?? Number.POSITIVE_INFINITY,
    resultRetryMs: options.resultRetryMs ?? secondsFrom(env, 'RESULT_RETRY_INITIAL_DELAY') ?? 1_000,
    log: options.log ?? stderrLog,
  }
}

function orchestratorsFrom(options: WorkerOptions, env: Environment): readonly OrchestratorOptions[] {
  if (options.url !== undefined) return [{ url: options.url }]
  const several = options.orchestrators ?? orchestratorListFrom(env)
  if (several === undefined) return [{ url: env['ORCHESTRATOR_URL'] ?? 'http://localhost:8080' }]
  return several.toSorted((a, b) => (a.priority ?? 10) - (b.priority ?? 10) || a.url.localeCompare(b.url))
}

function orchestratorListFrom(env: Environment): readonly OrchestratorOptions[] | undefined {
  const list = jsonFrom(env, 'ORCHESTRATORS_CONFIG')
  if (list === undefined) return undefined
  if (!Array.isArray(list) || list.length === 0) throw wrong('ORCHESTRATORS_CONFIG', 'a list of objects with "url"')
  return list.map((entry: unknown) => {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string') {
      throw wrong('ORCHESTRATORS_CONFIG', 'a list of objects with "url"')
    }
    const { url, token, priority, weight } = entry
    return {
      url,
      ...(typeof token === 'string' ? { token } : {}),
      ...(typeof priority === 'number' ? { priority } : {}),
      ...(typeof weight === 'number' ? { weight } : {}),
    }
  })
}

function orchestratorModeFrom(env: Environment): 'failover' | 'round_robin' {
  const mode = env['MULTI_ORCHESTRATOR_MODE'] ?? 'FAILOVER'
  if (mode === 'FAILOVER') return 'failover'
  if (mode === 'ROUND_ROBIN') return 'round_robin'
  throw wrong('MULTI_ORCHESTRATOR_MODE', 'FAILOVER or ROUND_ROBIN')
}

function describe(options: WorkerOptions, env: Environment, concurrency: number): Omit<RegisterRequest, 'worker_id'> {
  const gpu = options.gpu ?? gpuFrom(env)
  const costPerSecond = options.costPerSecond ?? numberFrom(env, 'WORKER_COST_PER_SECOND')
  const ramGb = options.ramGb ?? numberFrom(env, 'RAM_GB')
  const address = addressOf()
  return {
    resources: {
      max_concurrent_tasks: concurrency,
      cpu_cores: options.cpuCores ?? numberFrom(env, 'CPU_CORES') ?? 4,
      gpu_info: gpu === undefined ? null : { model: gpu.model, vram_gb: gpu.vramGb },
      ...(ramGb === undefined ? {} : { ram_gb: ramGb }),
    },
    installed_software: options.software ?? textsFrom(env, 'INSTALLED_SOFTWARE') ?? { node: process.versions.node },
    installed_models: options.models?.map(artifactOf) ?? modelsFrom(env),
    capabilities: {
      hostname: hostname(),
      ...(address === undefined ? {} : { ip_address: address }),
      cost_per_skill: options.costPerSkill ?? numbersFrom(env, 'COST_PER_SKILL') ?? {},
      ...(costPerSecond === undefined ? {} : { cost_per_second: costPerSecond }),
      extra: { ...extraFrom(env), ...options.extra },
    },
  }
}

/** The whole message with which a worker introduces itself. The oldest orchestrators read `supported_tasks`. */
export function registration(settings: WorkerSettings, skills: readonly Skill[]): RegisterRequest {
  return {
    worker_id: settings.id,
    worker_type: settings.type,
    supported_skills: skills.map(({ name, outcomes }) =>
      outcomes.length === 0 ? { name } : { name, output_statuses: outcomes },
    ),
    supported_tasks: skills.map((skill) => skill.name),
    ...settings.description,
  }
}

function addressOf(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all.find((one) => !one.internal && one.family === 'IPv4')?.address
}

function artifactOf(model: string | { readonly name: string; readonly version?: string }): WireArtifact {
  return typeof model === 'string' ? { name: model } : model
}

function modelsFrom(env: Environment): readonly WireArtifact[] {
  const list = jsonFrom(env, 'INSTALLED_MODELS') ?? []
  if (!Array.isArray(list)) throw wrong('INSTALLED_MODELS', 'a list')
  return list.map((entry: unknown) => {
    if (typeof entry === 'string') return { name: entry }
    if (!isJsonObject(entry) || typeof entry['name'] !== 'string') throw wrong('INSTALLED_MODELS', 'a list with names')
    const version = entry['version']
    return { name: entry['name'], ...(typeof version === 'string' ? { version } : {}) }
  })
}

function gpuFrom(env: Environment): { readonly model: string; readonly vramGb: number } | undefined {
  const model = env['GPU_MODEL']
  return model === undefined || model === '' ? undefined : { model, vramGb: numberFrom(env, 'GPU_VRAM_GB') ?? 0 }
}

const EXTRA = 'WORKER_EXTRA_'

/** Values are JSON where they can be read so, and text otherwise. */
function extraFrom(env: Environment): JsonObject {
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

function jsonFrom(env: Environment, name: string): Json | undefined {
  const text = env[name]
  if (text === undefined || text === '') return undefined
  try {
    return jsonOf(text)
  } catch {
    throw wrong(name, 'JSON')
  }
}

function numberFrom(env: Environment, name: string): number | undefined {
  const text = env[name]
  if (text === undefined || text.trim() === '') return undefined
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0) throw wrong(name, 'a number that is not negative')
  return value
}

function secondsFrom(env: Environment, name: string): number | undefined {
  const seconds = numberFrom(env, name)
  return seconds === undefined ? undefined : seconds * 1_000
}

function numbersFrom(env: Environment, name: string): Readonly<Record<string, number>> | undefined {
  const value = jsonFrom(env, name)
  if (value === undefined) return undefined
  if (!isJsonObject(value)) throw wrong(name, 'an object of numbers')
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      if (typeof one !== 'number') throw wrong(name, 'an object of numbers')
      return [key, one]
    }),
  )
}

function textsFrom(env: Environment, name: string): Readonly<Record<string, string>> | undefined {
  const value = jsonFrom(env, name)
  if (value === undefined) return undefined
  if (!isJsonObject(value)) throw wrong(name, 'an object of texts')
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, typeof one === 'string' ? one : JSON.stringify(one)]),
  )
}

function wrong(name: string, wanted: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `${name} must be ${wanted}.`)
}
