import { hostname } from 'node:os'
import { LIMITS } from '@impresario/protocol'
import type { SettingType } from '@impresario/protocol'
import { BACKGROUND_KEYS } from './background-keys.ts'
import type { BackgroundSettings } from './background-keys.ts'
import { FILE_KEYS } from './file-keys.ts'
import type { FileSettings } from './file-keys.ts'
import { HISTORY_KEYS } from './history-keys.ts'
import type { HistorySettings } from './history-keys.ts'
import { LOG_LEVELS } from '../runtime/log.ts'
import type { LogLevel } from '../runtime/log.ts'
import { SECURITY_KEYS } from './security-keys.ts'
import type { SecuritySettings } from './security-keys.ts'
import { REDIS_KEYS, storageUrlProblem } from './storage-choice.ts'
import type { RedisField } from './storage-choice.ts'
import { hostProblem, instanceProblem, publicUrlProblem, secretKeyProblem } from '../runtime/text-checks.ts'
import type { TextCheck } from '../runtime/text-checks.ts'
import { MCP_KEYS } from './mcp-keys.ts'
import type { McpSettings } from './mcp-keys.ts'
import { OAUTH_KEYS } from './oauth-keys.ts'
import type { OauthSettings } from './oauth-keys.ts'
import { OLD_API_KEYS } from './old-api-keys.ts'
import type { OldApiSettings } from './old-api-keys.ts'
import { TELEMETRY_KEYS } from './telemetry-keys.ts'
import type { TelemetrySettings } from './telemetry-keys.ts'
import { WEBHOOK_KEYS } from './webhook-keys.ts'
import type { WebhookSettings } from './webhook-keys.ts'

/** Everything that can be set, with the types that the program uses. */
export interface Settings
  extends
    BackgroundSettings,
    FileSettings,
    HistorySettings,
    McpSettings,
    OauthSettings,
    OldApiSettings,
    SecuritySettings,
    TelemetrySettings,
    WebhookSettings {
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
  readonly storageWaitSeconds: number
  readonly secretKey: string
  readonly publicUrl: string
  readonly workerPollTimeoutSeconds: number
  readonly workerHealthCheckIntervalSeconds: number
  readonly workerTimeoutSeconds: number
  readonly workerLeaseSeconds: number
  readonly workerPickupSeconds: number
  readonly jobMaxRetries: number
  readonly executorMaxConcurrentJobs: number
  readonly maxTransitionsPerJob: number
  readonly shutdownDrainSeconds: number
  readonly shutdownTimeoutSeconds: number
  readonly bodyLimitBytes: number
  readonly tlsEnabled: boolean
  readonly tlsCertPath: string
  readonly tlsKeyPath: string
  readonly tlsCaPath: string
  readonly tlsRequireClientCert: boolean
  readonly workerAuthMode: 'mixed' | 'token-only' | 'mtls-only'
  readonly accessTokenSeconds: number
  readonly refreshTokenSeconds: number
}

interface Text {
  readonly type: 'text' | 'secret' | 'path' | 'prefix' | 'time zone'
  /** What is wrong with a value, as the rest of a sentence that begins with the setting's name. */
  readonly check?: TextCheck
}

export type ConfigKey = (Text | SettingType) & {
  /** The names in the environment, the preferred one first. In a file: the same in lower case. */
  readonly names: readonly [string, ...string[]]
  readonly default: string | number | boolean
  readonly description: string
}

/** What can be set. What names a Redis ends in `storageUrl`. */
export type SettingName = keyof Settings | RedisField

const DAY_S = 86_400

/** The one table of all keys: it is read by the parser and printed as the reference. */
export const CONFIG_KEYS: Readonly<Record<SettingName, ConfigKey>> = {
  apiHost: {
    names: ['API_HOST'],
    type: 'text',
    check: hostProblem,
    default: '0.0.0.0',
    description: 'Address to listen on.',
  },
  apiPort: {
    names: ['API_PORT'],
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8_080,
    description: 'Port to listen on; 0 picks a free one.',
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
    description:
      'Directory with blueprints (.js, .mjs, and .ts where Node reads it: 22.18 and newer). Empty: only blueprints registered in code.',
  },
  clientsConfigPath: {
    names: ['CLIENTS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description:
      'TOML file with one table per client: token, role, plan, monthly_attempts, files_max, files_bytes_max, params.',
  },
  workersConfigPath: {
    names: ['WORKERS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description: 'TOML file with one table per worker id or pattern: token, description, signed.',
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
    description: 'Token shared by all workers without their own token.',
  },
  instanceId: {
    names: ['INSTANCE_ID'],
    type: 'text',
    check: instanceProblem,
    default: hostname(),
    description: 'Name of this instance in the log. Default: the host name.',
  },
  timeZone: {
    names: ['TZ'],
    type: 'time zone',
    default: 'UTC',
    description: 'Time zone of the log, of quotas, and of schedules without their own.',
  },
  logLevel: {
    names: ['LOG_LEVEL'],
    type: 'choice',
    of: LOG_LEVELS,
    default: 'info',
    description: 'Minimum level of log lines.',
  },
  logFormat: {
    names: ['LOG_FORMAT'],
    type: 'choice',
    of: ['json', 'text'],
    default: 'json',
    description: 'json: one JSON object per line. text: easier to read in a terminal.',
  },
  storageUrl: {
    names: ['STORAGE_URL'],
    type: 'secret',
    check: storageUrlProblem,
    default: 'file:./impresario-data',
    description:
      'memory: (nothing survives a restart), file:<directory>, redis://<host> or postgres://<user>@<host>/<database>.',
  },
  storageWaitSeconds: {
    names: ['STORAGE_WAIT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 3_600,
    default: 60,
    description:
      'How long a starting server waits for a Redis or PostgreSQL that is not ready (still starting, full, or a replica). The log reports the wait. After this time the server exits with code 69.',
  },
  secretKey: {
    names: ['SECRET_KEY'],
    type: 'secret',
    check: secretKeyProblem,
    default: '',
    description:
      'Key that signs links and capabilities, at least 16 characters. Empty: the key in the file secret.key beside the storage. You can also set the content of that file here.',
  },
  publicUrl: {
    names: ['PUBLIC_URL'],
    type: 'text',
    check: publicUrlProblem,
    default: '',
    description: 'Public URL of this server, used in links. Empty: the address of the request.',
  },
  workerPollTimeoutSeconds: {
    names: ['WORKER_POLL_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: LIMITS.longPollMsMax / 1_000,
    default: 30,
    description: 'How long a poll is held if the worker sets no timeout.',
  },
  workerHealthCheckIntervalSeconds: {
    names: ['WORKER_HEALTH_CHECK_INTERVAL_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: DAY_S,
    default: 60,
    description: 'A worker without contact for twice this time gets no more tasks.',
  },
  workerTimeoutSeconds: {
    names: ['WORKER_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: 30 * DAY_S,
    default: 300,
    description: 'Default time limit of a task from its pickup, if the task, the job and the blueprint set none.',
  },
  workerLeaseSeconds: {
    names: ['WORKER_LEASE_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: DAY_S,
    default: 30,
    description: 'How long a worker keeps its tasks without a heartbeat.',
  },
  workerPickupSeconds: {
    names: ['WORKER_PICKUP_SECONDS'],
    type: 'seconds',
    min: 0.01,
    max: DAY_S,
    default: 5,
    description: 'After this time, a task that its chosen worker has not picked up is offered to other workers.',
  },
  jobMaxRetries: {
    names: ['JOB_MAX_RETRIES'],
    type: 'integer',
    min: 0,
    max: 99,
    default: 3,
    description: 'Default number of retries of a failed task or handler, if the blueprint sets none.',
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
    description: 'Default limit of transitions per job, if the blueprint sets none. It stops endless loops.',
  },
  shutdownDrainSeconds: {
    names: ['SHUTDOWN_DRAIN_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 600,
    default: 0,
    description:
      'How long a server continues to serve requests after a stop signal. During this time `/_public/ready` returns 503, so that a load balancer sends no more requests. With several instances, set it a little longer than the interval of the readiness check.',
  },
  shutdownTimeoutSeconds: {
    names: ['SHUTDOWN_TIMEOUT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 3_600,
    default: 25,
    description: 'How long a shutdown waits for running work.',
  },
  bodyLimitBytes: {
    names: ['BODY_LIMIT_BYTES'],
    type: 'integer',
    min: 1_024,
    max: 64 * LIMITS.bodyBytesMax,
    default: LIMITS.bodyBytesMax,
    description: 'Maximum size of a request body.',
  },
  tlsEnabled: {
    names: ['TLS_ENABLED'],
    type: 'switch',
    default: false,
    description: 'Use HTTPS with TLS 1.2 or newer.',
  },
  tlsCertPath: {
    names: ['TLS_CERT_PATH'],
    type: 'path',
    default: '',
    description: 'PEM file with the certificate of this server and its intermediate certificates.',
  },
  tlsKeyPath: {
    names: ['TLS_KEY_PATH'],
    type: 'path',
    default: '',
    description: 'PEM file with the private key of this server.',
  },
  tlsCaPath: {
    names: ['TLS_CA_PATH'],
    type: 'path',
    default: '',
    description:
      'PEM file with the certificate authorities that issue the certificates of workers. Empty: workers are not asked for a certificate.',
  },
  tlsRequireClientCert: {
    names: ['TLS_REQUIRE_CLIENT_CERT'],
    type: 'switch',
    default: false,
    description: 'Refuse every connection without a valid certificate, including those of clients.',
  },
  workerAuthMode: {
    names: ['WORKER_AUTH_MODE'],
    type: 'choice',
    of: ['mixed', 'token-only', 'mtls-only'],
    default: 'mixed',
    description:
      'How workers authenticate: by certificate or token, by token only, or by certificate (and the short-lived tokens issued for it).',
  },
  accessTokenSeconds: {
    names: ['ACCESS_TOKEN_SECONDS'],
    type: 'seconds',
    min: 1,
    max: DAY_S,
    default: 3_600,
    description: 'Lifetime of a short-lived token of a worker.',
  },
  refreshTokenSeconds: {
    names: ['REFRESH_TOKEN_SECONDS'],
    type: 'seconds',
    min: 1,
    max: 30 * DAY_S,
    default: DAY_S,
    description: 'How long a short-lived token can be renewed.',
  },
  ...BACKGROUND_KEYS,
  ...FILE_KEYS,
  ...HISTORY_KEYS,
  ...REDIS_KEYS,
  ...SECURITY_KEYS,
  ...WEBHOOK_KEYS,
  ...MCP_KEYS,
  ...OAUTH_KEYS,
  ...OLD_API_KEYS,
  ...TELEMETRY_KEYS,
}
