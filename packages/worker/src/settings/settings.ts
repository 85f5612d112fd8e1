import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ImpresarioError, type JsonObject, type RegisterRequest, type WireDevice } from '@impresario/protocol'
import { selfDescription } from './description.ts'
import { extraFrom, objectsIn, readEnvironment, wrong, type Environment } from './environment.ts'
import type { WorkerEnvironment } from './environment-keys.ts'
import { stderrLog, type Log } from '../runtime/log.ts'
import type { WorkerTransport } from '../transport/transport.ts'

export interface OrchestratorOptions {
  readonly url: string
  readonly token?: string | undefined
  /** Lower first. */
  readonly priority?: number
  /** Its share in the round-robin mode. */
  readonly weight?: number
}

export type OrchestratorMode = 'failover' | 'round_robin' | 'waterfall'

export interface TlsOptions {
  /** PEM files. The authority for a server with a certificate of one's own; certificate and key to be known by. */
  readonly caPath?: string
  readonly certPath?: string
  readonly keyPath?: string
}

/** Everything has a default, most of them from the environment: docs/reference/worker-configuration.md. */
export interface WorkerOptions {
  readonly url?: string
  readonly token?: string | undefined
  /** Several orchestrators instead of `url`. The worker registers with all of them. */
  readonly orchestrators?: readonly OrchestratorOptions[]
  /**
   * `failover`: work comes from the first that answers. `round_robin`: from all in turn, by their weight. `waterfall`:
   * from the first that has work.
   */
  readonly orchestratorMode?: OrchestratorMode
  /** Instead of HTTP: an engine in the same process, for example. */
  readonly transport?: WorkerTransport
  /** `single`: never use the batched calls. */
  readonly mode?: 'auto' | 'single'
  /** Keeps a WebSocket open beside the polls: commands arrive at once, and progress costs no request. */
  readonly webSockets?: boolean
  /** Trades the token or the client certificate for short-lived tokens. */
  readonly sts?: boolean
  /** Signs every message with the token. */
  readonly signing?: boolean
  readonly tls?: TlsOptions
  readonly id?: string
  readonly type?: string
  readonly concurrency?: number
  /** The most tasks of a type at once. */
  readonly taskLimits?: Readonly<Record<string, number>>
  /** Asked before each poll for every type that has room: `false` keeps new tasks of the type away for now. */
  readonly capacityChecker?: (type: string) => boolean
  /** A skill is hot when all the models that it is listed with here are. */
  readonly skillDependencies?: Readonly<Record<string, readonly string[]>>
  readonly cpuCores?: number
  readonly ramGb?: number
  readonly gpu?: { readonly model: string; readonly vramGb: number; readonly id?: string }
  readonly devices?: readonly WireDevice[]
  readonly costPerSecond?: number
  readonly costPerSkill?: Readonly<Record<string, number>>
  readonly models?: readonly (string | { readonly name: string; readonly version?: string })[]
  readonly software?: Readonly<Record<string, string>>
  /** Anything else that tasks may require. */
  readonly extra?: JsonObject
  readonly heartbeatMs?: number
  /** What changes within this time is told in one heartbeat. */
  readonly heartbeatDebounceMs?: number
  /** The least time between two heartbeats that changes cause. */
  readonly heartbeatCooldownMs?: number
  readonly registrationRetryMs?: number
  readonly registrationRetryMsMax?: number
  readonly pollMs?: number
  readonly idlePollMs?: number
  readonly pollRetryMs?: number
  readonly pollRetryMsMax?: number
  readonly pollRetryFactor?: number
  /** How long to leave an orchestrator in peace that says "too many requests" and not for how long. */
  readonly rateLimitMs?: number
  /** How long `stop` waits for running tasks before it hands them back. */
  readonly shutdownMs?: number
  /** Without it, undelivered results are kept and sent again for as long as the worker runs. */
  readonly resultRetriesMax?: number
  readonly resultRetryMs?: number
  /** Checks what handlers return against their contract; true without it. */
  readonly validateResults?: boolean
  /** Refuses events that their skill does not describe; true without it. */
  readonly strictEvents?: boolean
  /** Tells the use of processor and memory in heartbeats. */
  readonly telemetry?: boolean
  readonly telemetryDeadband?: number
  readonly telemetryForceMs?: number
  /** Answers `GET /health` on this port. */
  readonly healthPort?: number
  /** Where the files of tasks are copied to; a temporary directory without it. */
  readonly payloadDir?: string
  readonly skillsDir?: string
  readonly log?: Log
}

/** What a TLS connection needs, read from the files. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

interface OrchestratorSettings {
  readonly url: string
  readonly priority: number
  readonly weight: number
  readonly token: string | undefined
}

export interface WorkerSettings {
  readonly orchestrators: readonly OrchestratorSettings[]
  readonly orchestratorMode: OrchestratorMode
  readonly mode: 'auto' | 'single'
  readonly webSockets: boolean
  /** `if offered`: a client certificate is there, and an orchestrator that has no short-lived tokens is taken as it is. */
  readonly sts: 'yes' | 'no' | 'if offered'
  readonly signing: boolean
  readonly tls: TlsMaterial
  readonly id: string
  readonly type: string
  readonly concurrency: number
  readonly taskLimits: Readonly<Record<string, number>>
  readonly capacityChecker: ((type: string) => boolean) | undefined
  readonly skillDependencies: Readonly<Record<string, readonly string[]>>
  readonly description: Omit<RegisterRequest, 'worker_id'>
  readonly heartbeatMs: number
  readonly heartbeatDebounceMs: number
  readonly heartbeatCooldownMs: number
  readonly registrationRetryMs: number
  readonly registrationRetryMsMax: number
  readonly pollMs: number
  readonly idlePollMs: number
  readonly pollRetryMs: number
  readonly pollRetryMsMax: number
  readonly pollRetryFactor: number
  readonly rateLimitMs: number
  readonly shutdownMs: number
  readonly resultRetriesMax: number
  readonly resultRetryMs: number
  readonly validateResults: boolean
  readonly strictEvents: boolean
  readonly telemetry: { readonly deadband: number; readonly forceMs: number } | undefined
  readonly healthPort: number | undefined
  readonly payloadDir: string
  readonly skillsDir: string | undefined
  readonly log: Log
}

/** What was given counts first, then the environment, then the default. */
export function settingsOf(options: WorkerOptions, env: Environment): WorkerSettings {
  const said = readEnvironment(env)
  const concurrency = options.concurrency ?? said.maxConcurrentTasks
  if (!Number.isInteger(concurrency) || concurrency < 1) throw wrong('concurrency', 'a positive whole number')
  const tlsFiles = options.tls ?? tlsFrom(said)
  const sts = options.sts ?? said.useSts
  const id = workerId(options.id ?? said.workerId ?? `worker-${randomUUID()}`)
  return {
    ...timesOf(options, said),
    orchestrators: orchestratorsFrom(options, said),
    orchestratorMode: options.orchestratorMode ?? said.multiOrchestratorMode,
    mode: options.mode ?? 'auto',
    webSockets: options.webSockets ?? said.enableWebsockets,
    sts: sts === undefined ? (tlsFiles.certPath === undefined ? 'no' : 'if offered') : sts ? 'yes' : 'no',
    signing: options.signing ?? said.signMessages,
    tls: tlsMaterial(tlsFiles),
    id,
    type: options.type ?? said.workerType,
    concurrency,
    taskLimits: options.taskLimits ?? {},
    capacityChecker: options.capacityChecker,
    skillDependencies: options.skillDependencies ?? {},
    description: selfDescription(options, said, { concurrency, extra: extraFrom(env) }),
    resultRetriesMax: options.resultRetriesMax ?? said.resultMaxRetries ?? Number.POSITIVE_INFINITY,
    validateResults: options.validateResults ?? true,
    strictEvents: options.strictEvents ?? said.strictEventValidation,
    telemetry: telemetryOf(options, said),
    healthPort: options.healthPort ?? said.port,
    payloadDir: options.payloadDir ?? said.payloadDir ?? join(tmpdir(), `impresario-${id}`),
    skillsDir: options.skillsDir ?? said.skillsDir,
    log: options.log ?? stderrLog(said.logFormat, said.logLevel, said.timeZone),
  }
}

type Times = Pick<
  WorkerSettings,
  | 'heartbeatMs'
  | 'heartbeatDebounceMs'
  | 'heartbeatCooldownMs'
  | 'registrationRetryMs'
  | 'registrationRetryMsMax'
  | 'pollMs'
  | 'idlePollMs'
  | 'pollRetryMs'
  | 'pollRetryMsMax'
  | 'pollRetryFactor'
  | 'rateLimitMs'
  | 'shutdownMs'
  | 'resultRetryMs'
>

function timesOf(options: WorkerOptions, said: WorkerEnvironment): Times {
  return {
    heartbeatMs: options.heartbeatMs ?? said.heartbeatInterval * 1_000,
    heartbeatDebounceMs: options.heartbeatDebounceMs ?? said.heartbeatDebounceDelay * 1_000,
    heartbeatCooldownMs: options.heartbeatCooldownMs ?? said.heartbeatCooldown * 1_000,
    registrationRetryMs: options.registrationRetryMs ?? said.registrationRetryInitialDelay * 1_000,
    registrationRetryMsMax: options.registrationRetryMsMax ?? said.registrationRetryMaxDelay * 1_000,
    pollMs: options.pollMs ?? said.taskPollTimeout * 1_000,
    idlePollMs: options.idlePollMs ?? said.idlePollDelay * 1_000,
    pollRetryMs: options.pollRetryMs ?? said.pollBackoffInitial * 1_000,
    pollRetryMsMax: options.pollRetryMsMax ?? said.pollBackoffMax * 1_000,
    pollRetryFactor: options.pollRetryFactor ?? said.pollBackoffFactor,
    rateLimitMs: options.rateLimitMs ?? said.rateLimitBackoffFloor * 1_000,
    shutdownMs: options.shutdownMs ?? said.shutdownTimeout * 1_000,
    resultRetryMs: options.resultRetryMs ?? said.resultRetryInitialDelay * 1_000,
  }
}

function telemetryOf(options: WorkerOptions, said: WorkerEnvironment): WorkerSettings['telemetry'] {
  if (!(options.telemetry ?? said.enableMetrics)) return undefined
  return {
    deadband: options.telemetryDeadband ?? said.telemetryDeadband,
    forceMs: options.telemetryForceMs ?? said.telemetryForceInterval * 1_000,
  }
}

function workerId(id: string): string {
  if (/^[\w-]{1,200}$/.test(id)) return id
  throw wrong('WORKER_ID', 'at most 200 letters, digits, "_" and "-"', id)
}

function orchestratorsFrom(options: WorkerOptions, said: WorkerEnvironment): readonly OrchestratorSettings[] {
  const token = options.token ?? said.individualToken ?? said.token
  const several = options.url === undefined ? (options.orchestrators ?? listFrom(said.orchestratorsConfig)) : undefined
  const list = several ?? [{ url: options.url ?? said.orchestratorUrl }]
  return (
    list
      .map((one) => {
        if (!isHttp(one.url)) throw wrong('The address of an orchestrator', 'one with http: or https:', one.url)
        const { url, priority = 10, weight = 1 } = one
        return { url, priority, weight, token: one.token ?? token }
      })
      // Equal ones stay in the order of the list: work comes from the first.
      .toSorted((a, b) => a.priority - b.priority)
  )
}

function isHttp(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}

const LIST = 'ORCHESTRATORS_CONFIG'

function listFrom(text: string | undefined): readonly OrchestratorOptions[] | undefined {
  if (text === undefined) return undefined
  const list = objectsIn(LIST, text, 'url')
  if (list.length === 0) throw wrong(LIST, 'a list with at least one orchestrator')
  return list.map(({ key: url, fields: entry }) => {
    const token = entry['token']
    const isText = token === undefined || token === null || typeof token === 'string'
    if (!isText) throw wrong(LIST, 'a list in which every "token" is a text')
    return {
      url,
      priority: numberIn(entry, 'priority') ?? 10,
      weight: weightIn(entry),
      ...(typeof token === 'string' ? { token } : {}),
    }
  })
}

function weightIn(entry: JsonObject): number {
  const weight = numberIn(entry, 'weight') ?? 1
  if (weight > 0) return weight
  throw wrong(LIST, 'a list in which every "weight" is more than zero', JSON.stringify(entry))
}

function numberIn(entry: JsonObject, field: string): number | undefined {
  const value = entry[field]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number') return value
  throw wrong(LIST, `a list in which every "${field}" is a number`, JSON.stringify(value))
}

function tlsFrom(said: WorkerEnvironment): TlsOptions {
  const { tlsCaPath, tlsCertPath, tlsKeyPath } = said
  return {
    ...(tlsCaPath === undefined ? {} : { caPath: tlsCaPath }),
    ...(tlsCertPath === undefined ? {} : { certPath: tlsCertPath }),
    ...(tlsKeyPath === undefined ? {} : { keyPath: tlsKeyPath }),
  }
}

function tlsMaterial({ caPath, certPath, keyPath }: TlsOptions): TlsMaterial {
  if ((certPath === undefined) !== (keyPath === undefined)) {
    throw wrong('TLS_CERT_PATH and TLS_KEY_PATH', 'both set or both not')
  }
  return {
    ...(caPath === undefined ? {} : { ca: fileOf('TLS_CA_PATH', caPath) }),
    ...(certPath === undefined ? {} : { cert: fileOf('TLS_CERT_PATH', certPath) }),
    ...(keyPath === undefined ? {} : { key: fileOf('TLS_KEY_PATH', keyPath) }),
  }
}

function fileOf(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ImpresarioError('INVALID_CONFIGURATION', `${name}: the file ${path} cannot be read.`, { cause })
  }
}
