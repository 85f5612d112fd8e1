import type { SettingType } from '@impresario/protocol'

/** What the environment can say, with the types that the program uses. `undefined`: not set, and no default. */
export interface WorkerEnvironment {
  readonly orchestratorUrl: string
  readonly orchestratorsConfig: string | undefined
  readonly multiOrchestratorMode: 'failover' | 'round_robin' | 'waterfall'
  readonly workerId: string | undefined
  readonly workerType: string
  readonly individualToken: string | undefined
  readonly token: string | undefined
  readonly useSts: boolean | undefined
  readonly signMessages: boolean
  readonly tlsCaPath: string | undefined
  readonly tlsCertPath: string | undefined
  readonly tlsKeyPath: string | undefined
  readonly maxConcurrentTasks: number
  readonly costPerSecond: number | undefined
  readonly costPerSkill: string | undefined
  readonly cpuCores: number
  readonly ramGb: number | undefined
  readonly gpuModel: string | undefined
  readonly gpuVramGb: number
  readonly gpuId: string | undefined
  readonly devices: string | undefined
  readonly installedSoftware: string | undefined
  readonly installedModels: string | undefined
  readonly installedArtifacts: string | undefined
  readonly payloadDir: string | undefined
  readonly skillsDir: string | undefined
  readonly heartbeatInterval: number
  readonly heartbeatDebounceDelay: number
  readonly heartbeatCooldown: number
  readonly registrationRetryInitialDelay: number
  readonly registrationRetryMaxDelay: number
  readonly taskPollTimeout: number
  readonly idlePollDelay: number
  readonly pollBackoffInitial: number
  readonly pollBackoffMax: number
  readonly pollBackoffFactor: number
  readonly rateLimitBackoffFloor: number
  readonly resultMaxRetries: number | undefined
  readonly resultRetryInitialDelay: number
  readonly shutdownTimeout: number
  readonly enableWebsockets: boolean
  readonly strictEventValidation: boolean
  readonly enableMetrics: boolean
  readonly telemetryDeadband: number
  readonly telemetryForceInterval: number
  readonly port: number | undefined
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  readonly logFormat: 'text' | 'json'
}

interface Text {
  readonly type: 'text' | 'secret' | 'path' | 'json'
}

export type EnvironmentKey = (Text | SettingType) & {
  /** The preferred name first; the others are names of earlier generations. */
  readonly names: readonly [string, ...string[]]
  readonly default?: string | number | boolean
  /** What the reference says instead, where the default is not a plain value. */
  readonly standard?: string
  readonly description: string
}

const HOUR_S = 3_600
const DAY_S = 86_400

const text = (name: string, description: string, more: Partial<EnvironmentKey> = {}): EnvironmentKey =>
  withMore({ names: [name], type: 'text', description }, more)
const secret = (name: string, description: string): EnvironmentKey => ({ names: [name], type: 'secret', description })
const path = (name: string, description: string): EnvironmentKey => ({ names: [name], type: 'path', description })
const json = (name: string, description: string, standard?: string): EnvironmentKey =>
  withMore({ names: [name], type: 'json', description }, standard === undefined ? {} : { standard })
const seconds = (name: string, standard: number, description: string, max: number = HOUR_S): EnvironmentKey => ({
  names: [name],
  type: 'seconds',
  min: 0,
  max,
  default: standard,
  description,
})
const number = (name: string, description: string, more: Partial<EnvironmentKey> = {}): EnvironmentKey =>
  withMore({ names: [name], type: 'number', min: 0, max: 1_000_000, description }, more)
const onOff = (name: string, standard: boolean, description: string): EnvironmentKey => ({
  names: [name],
  type: 'switch',
  default: standard,
  description,
})

/** The boundary: a key stays of its type, whatever details are added. */
function withMore(key: EnvironmentKey, more: Partial<EnvironmentKey>): EnvironmentKey {
  return { ...key, ...more } as EnvironmentKey
}

/** The one table of all variables: it is read by the parser and printed as the reference. */
export const ENVIRONMENT_KEYS: Readonly<Record<keyof WorkerEnvironment, EnvironmentKey>> = {
  orchestratorUrl: text('ORCHESTRATOR_URL', 'The orchestrator, when there is one.', {
    default: 'http://localhost:8080',
  }),
  orchestratorsConfig: json(
    'ORCHESTRATORS_CONFIG',
    'Several orchestrators instead: `[{"url", "priority": 10, "weight": 1, "token"}]`. The lowest priority comes first; equal ones as they are listed.',
  ),
  multiOrchestratorMode: {
    names: ['MULTI_ORCHESTRATOR_MODE'],
    type: 'choice',
    of: ['FAILOVER', 'ROUND_ROBIN', 'WATERFALL'],
    default: 'FAILOVER',
    description:
      'FAILOVER: work comes from the first that answers. ROUND_ROBIN: from all in turn, by weight. WATERFALL: from the next while the first has none.',
  },
  workerId: text('WORKER_ID', 'Name of this worker: letters, digits, `_` and `-`.', {
    standard: '`worker-` and a random id',
  }),
  workerType: text('WORKER_TYPE', 'Free text, for people.', { default: 'generic-cpu-worker' }),
  individualToken: secret('WORKER_INDIVIDUAL_TOKEN', 'The token of this worker alone. Goes before `WORKER_TOKEN`.'),
  token: secret('WORKER_TOKEN', 'The token that workers share.'),
  useSts: {
    names: ['WORKER_USE_STS'],
    type: 'switch',
    standard: 'true with a client certificate, else false',
    description: 'Trade the token, or the client certificate, for short-lived ones.',
  },
  signMessages: onOff('WORKER_SIGN_MESSAGES', false, 'Sign every message with the token (HMAC-SHA256).'),
  tlsCaPath: path('TLS_CA_PATH', 'PEM file with the authorities that the orchestrator’s certificate may come from.'),
  tlsCertPath: path('TLS_CERT_PATH', 'PEM file with the client certificate. Needs `TLS_KEY_PATH`.'),
  tlsKeyPath: path('TLS_KEY_PATH', 'PEM file with its key.'),
  maxConcurrentTasks: {
    names: ['MAX_CONCURRENT_TASKS'],
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 10,
    description: 'Tasks that run at the same time.',
  },
  costPerSecond: number('WORKER_COST_PER_SECOND', 'What a second of this worker costs.'),
  costPerSkill: json('COST_PER_SKILL', 'What a second of each skill costs: `{"media.cut": 0.01}`.', '{}'),
  cpuCores: number('CPU_CORES', 'Cores that tasks may ask for.', { default: 4 }),
  ramGb: number('RAM_GB', 'Memory that tasks may ask for.'),
  gpuModel: text('GPU_MODEL', 'The graphics card, if there is one.'),
  gpuVramGb: number('GPU_VRAM_GB', 'Its memory.', { default: 0 }),
  gpuId: text('GPU_ID', 'Its id among the devices.'),
  devices: json('WORKER_DEVICES', 'All devices: `[{"type": "gpu", "model", "id", "properties"}]`.'),
  installedSoftware: json(
    'INSTALLED_SOFTWARE',
    'Programs and their versions: `{"ffmpeg": "7.0"}`.',
    'the Node version',
  ),
  installedModels: json('INSTALLED_MODELS', 'Models: `[{"name", "version"}]` or names.', '[]'),
  installedArtifacts: json('INSTALLED_ARTIFACTS', 'Other things: `[{"name", "version", "type", "properties"}]`.'),
  payloadDir: {
    names: ['WORKER_PAYLOAD_DIR', 'TASK_FILES_DIR'],
    type: 'path',
    standard: 'a temporary directory',
    description:
      'Where the files of tasks are copied to. Each task has a directory of its own in it, which is deleted when the task has ended; only files from there are sent to the orchestrator.',
  },
  skillsDir: path(
    'WORKER_SKILLS_DIR',
    'Directory whose modules (`.js`, `.mjs`) `worker.loadSkills()` adds; each exports a function that is given the worker.',
  ),
  heartbeatInterval: seconds('HEARTBEAT_INTERVAL', 15, 'Between two heartbeats.'),
  heartbeatDebounceDelay: seconds(
    'WORKER_HEARTBEAT_DEBOUNCE_DELAY',
    0.1,
    'Wait after a change, so that what changes together is told together.',
  ),
  heartbeatCooldown: seconds('WORKER_HEARTBEAT_COOLDOWN', 2, 'Least time between two heartbeats that changes cause.'),
  registrationRetryInitialDelay: seconds(
    'REGISTRATION_RETRY_INITIAL_DELAY',
    1,
    'First wait after a registration that failed; it doubles, and never ends.',
  ),
  registrationRetryMaxDelay: seconds('REGISTRATION_RETRY_MAX_DELAY', 60, 'The longest such wait.'),
  taskPollTimeout: seconds('TASK_POLL_TIMEOUT', 30, 'How long a poll waits for a task.', 120),
  idlePollDelay: seconds('IDLE_POLL_DELAY', 0.01, 'Pause after a poll that found nothing.'),
  pollBackoffInitial: {
    names: ['POLL_BACKOFF_INITIAL', 'TASK_POLL_ERROR_DELAY'],
    type: 'seconds',
    min: 0,
    max: HOUR_S,
    default: 1,
    description: 'First wait after a poll that failed.',
  },
  pollBackoffMax: seconds('POLL_BACKOFF_MAX', 60, 'The longest such wait.'),
  pollBackoffFactor: {
    names: ['POLL_BACKOFF_FACTOR'],
    type: 'number',
    min: 1,
    max: 100,
    default: 2,
    description: 'How much longer each next wait is.',
  },
  rateLimitBackoffFloor: seconds(
    'RATE_LIMIT_BACKOFF_FLOOR',
    30,
    'Wait after an answer 429 that names no time of its own in `Retry-After`.',
  ),
  resultMaxRetries: {
    names: ['RESULT_MAX_RETRIES'],
    type: 'integer',
    min: 0,
    max: 1_000_000,
    standard: 'without end',
    description: 'How often a result is sent again when the orchestrator cannot be reached, before it is given up.',
  },
  resultRetryInitialDelay: seconds(
    'RESULT_RETRY_INITIAL_DELAY',
    1,
    'First wait between two tries; it doubles up to 30.',
  ),
  shutdownTimeout: seconds(
    'WORKER_SHUTDOWN_TIMEOUT',
    30,
    'How long a stop waits for running tasks before it hands them back.',
    DAY_S,
  ),
  enableWebsockets: onOff('WORKER_ENABLE_WEBSOCKETS', false, 'Keep a WebSocket open, for commands and progress.'),
  strictEventValidation: onOff(
    'STRICT_EVENT_VALIDATION',
    true,
    'Refuse events that the skill’s `events` do not describe; otherwise they are sent with a warning.',
  ),
  enableMetrics: onOff('WORKER_ENABLE_METRICS', false, 'Tell the use of processor and memory in heartbeats.'),
  telemetryDeadband: number('WORKER_TELEMETRY_DEADBAND', 'Changes below this percentage are not reported.', {
    default: 5,
  }),
  telemetryForceInterval: seconds('WORKER_TELEMETRY_FORCE_INTERVAL', 60, 'The use is told at least so often.'),
  port: {
    names: ['WORKER_PORT'],
    type: 'integer',
    min: 0,
    max: 65_535,
    standard: 'none',
    description: 'Port of `GET /health`; 0 takes any that is free. Without it nothing listens.',
  },
  logLevel: {
    names: ['LOG_LEVEL'],
    type: 'choice',
    of: ['debug', 'info', 'warn', 'error'],
    default: 'info',
    description: 'Lowest level that is logged.',
  },
  logFormat: {
    names: ['LOG_FORMAT'],
    type: 'choice',
    of: ['text', 'json'],
    default: 'text',
    description: 'text for people, json for programs. The log is written to the error stream.',
  },
}
