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
  readonly timeZone: string
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
  orchestratorUrl: text('ORCHESTRATOR_URL', 'URL of the orchestrator, if there is only one.', {
    default: 'http://localhost:8080',
  }),
  orchestratorsConfig: json(
    'ORCHESTRATORS_CONFIG',
    'Several orchestrators: `[{"url", "priority": 10, "weight": 1, "token"}]`. The lowest priority number comes first; equal numbers keep the order of the list.',
  ),
  multiOrchestratorMode: {
    names: ['MULTI_ORCHESTRATOR_MODE'],
    type: 'choice',
    of: ['FAILOVER', 'ROUND_ROBIN', 'WATERFALL'],
    default: 'FAILOVER',
    description:
      'FAILOVER: use the first orchestrator that responds. ROUND_ROBIN: use all in rotation, by weight. WATERFALL: use the next one while the first has no tasks.',
  },
  workerId: text('WORKER_ID', 'Name of this worker: letters, digits, `_` and `-`.', {
    standard: '`worker-` and a random id',
  }),
  workerType: text('WORKER_TYPE', 'Free text that describes this worker.', { default: 'generic-cpu-worker' }),
  individualToken: secret(
    'WORKER_INDIVIDUAL_TOKEN',
    'Token of this worker only. Takes precedence over `WORKER_TOKEN`.',
  ),
  token: secret('WORKER_TOKEN', 'Token shared by all workers.'),
  useSts: {
    names: ['WORKER_USE_STS'],
    type: 'switch',
    standard: 'true with a client certificate, else false',
    description: 'Exchange the token or the client certificate for short-lived tokens.',
  },
  signMessages: onOff('WORKER_SIGN_MESSAGES', false, 'Sign every message with the token (HMAC-SHA256).'),
  tlsCaPath: path(
    'TLS_CA_PATH',
    'PEM file with the certificate authorities that the worker trusts for the orchestrator.',
  ),
  tlsCertPath: path('TLS_CERT_PATH', 'PEM file with the client certificate. Needs `TLS_KEY_PATH`.'),
  tlsKeyPath: path('TLS_KEY_PATH', 'PEM file with the key of the client certificate.'),
  maxConcurrentTasks: {
    names: ['MAX_CONCURRENT_TASKS'],
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 10,
    description: 'Maximum number of tasks that run at the same time.',
  },
  costPerSecond: number('WORKER_COST_PER_SECOND', 'Cost of one second of this worker.'),
  costPerSkill: json('COST_PER_SKILL', 'Cost of one second of each skill: `{"media.cut": 0.01}`.', '{}'),
  cpuCores: number('CPU_CORES', 'Number of CPU cores that tasks can require.', { default: 4 }),
  ramGb: number('RAM_GB', 'Memory that tasks can require.'),
  gpuModel: text('GPU_MODEL', 'Model of the GPU, if there is one.'),
  gpuVramGb: number('GPU_VRAM_GB', 'Memory of the GPU.', { default: 0 }),
  gpuId: text('GPU_ID', 'Id of the GPU among the devices.'),
  devices: json('WORKER_DEVICES', 'All devices: `[{"type": "gpu", "model", "id", "properties"}]`.'),
  installedSoftware: json(
    'INSTALLED_SOFTWARE',
    'Programs and their versions: `{"ffmpeg": "7.0"}`.',
    'the Node version',
  ),
  installedModels: json('INSTALLED_MODELS', 'Models: `[{"name", "version"}]` or names.', '[]'),
  installedArtifacts: json('INSTALLED_ARTIFACTS', 'Other artifacts: `[{"name", "version", "type", "properties"}]`.'),
  payloadDir: {
    names: ['WORKER_PAYLOAD_DIR', 'TASK_FILES_DIR'],
    type: 'path',
    standard: 'a temporary directory',
    description:
      'Directory for the files of tasks. Each task has its own subdirectory, which is deleted when the task ends. Only files from there are sent to the orchestrator.',
  },
  skillsDir: path(
    'WORKER_SKILLS_DIR',
    'Directory with modules (`.js`, `.mjs`) that `worker.loadSkills()` loads. Each exports a function that receives the worker.',
  ),
  heartbeatInterval: seconds('HEARTBEAT_INTERVAL', 15, 'Time between two heartbeats.'),
  heartbeatDebounceDelay: seconds(
    'WORKER_HEARTBEAT_DEBOUNCE_DELAY',
    0.1,
    'Delay after a change, so that one heartbeat reports several changes.',
  ),
  heartbeatCooldown: seconds(
    'WORKER_HEARTBEAT_COOLDOWN',
    2,
    'Minimum time between two heartbeats that are caused by changes.',
  ),
  registrationRetryInitialDelay: seconds(
    'REGISTRATION_RETRY_INITIAL_DELAY',
    1,
    'First delay after a failed registration. It doubles each time, and retries never end.',
  ),
  registrationRetryMaxDelay: seconds('REGISTRATION_RETRY_MAX_DELAY', 60, 'Maximum delay after a failed registration.'),
  taskPollTimeout: seconds('TASK_POLL_TIMEOUT', 30, 'How long a poll waits for a task.', 120),
  idlePollDelay: seconds('IDLE_POLL_DELAY', 0.01, 'Delay after a poll that returned no task.'),
  pollBackoffInitial: {
    names: ['POLL_BACKOFF_INITIAL', 'TASK_POLL_ERROR_DELAY'],
    type: 'seconds',
    min: 0,
    max: HOUR_S,
    default: 1,
    description: 'First delay after a failed poll.',
  },
  pollBackoffMax: seconds('POLL_BACKOFF_MAX', 60, 'Maximum delay after a failed poll.'),
  pollBackoffFactor: {
    names: ['POLL_BACKOFF_FACTOR'],
    type: 'number',
    min: 1,
    max: 100,
    default: 2,
    description: 'Factor by which each further delay grows.',
  },
  rateLimitBackoffFloor: seconds('RATE_LIMIT_BACKOFF_FLOOR', 30, 'Delay after a 429 response without `Retry-After`.'),
  resultMaxRetries: {
    names: ['RESULT_MAX_RETRIES'],
    type: 'integer',
    min: 0,
    max: 1_000_000,
    standard: 'without end',
    description: 'How often a result is sent again if the orchestrator cannot be reached, before the worker gives up.',
  },
  resultRetryInitialDelay: seconds(
    'RESULT_RETRY_INITIAL_DELAY',
    1,
    'First delay between two attempts. It doubles up to 30 seconds.',
  ),
  shutdownTimeout: seconds(
    'WORKER_SHUTDOWN_TIMEOUT',
    30,
    'How long a shutdown waits for running tasks before it returns them to the orchestrator.',
    DAY_S,
  ),
  enableWebsockets: onOff('WORKER_ENABLE_WEBSOCKETS', false, 'Keep a WebSocket open for commands and progress.'),
  strictEventValidation: onOff(
    'STRICT_EVENT_VALIDATION',
    true,
    'Refuse events that the `events` of the skill do not describe. false: they are sent, with a warning.',
  ),
  enableMetrics: onOff('WORKER_ENABLE_METRICS', false, 'Report CPU and memory usage in heartbeats.'),
  telemetryDeadband: number('WORKER_TELEMETRY_DEADBAND', 'Changes below this percentage are not reported.', {
    default: 5,
  }),
  telemetryForceInterval: seconds(
    'WORKER_TELEMETRY_FORCE_INTERVAL',
    60,
    'Maximum time between two reports of CPU and memory usage.',
  ),
  port: {
    names: ['WORKER_PORT'],
    type: 'integer',
    min: 0,
    max: 65_535,
    standard: 'none',
    description: 'Port of `GET /health`; 0 picks a free one. If not set, the worker listens on no port.',
  },
  logLevel: {
    names: ['LOG_LEVEL'],
    type: 'choice',
    of: ['debug', 'info', 'warn', 'error'],
    default: 'info',
    description: 'Minimum level of log lines.',
  },
  logFormat: {
    names: ['LOG_FORMAT'],
    type: 'choice',
    of: ['text', 'json'],
    default: 'text',
    description:
      'text: easier to read in a terminal. json: one JSON object per line. The log is written to standard error.',
  },
  timeZone: {
    names: ['TZ'],
    type: 'text',
    default: 'UTC',
    description:
      'Time zone of the log, such as `Europe/Berlin`. A zone that is not known by such a name counts as UTC.',
  },
}
