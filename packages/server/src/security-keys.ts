import type { ConfigKey } from './config-keys.ts'

/** Settings of what stands between the network and the routes. */
export interface SecuritySettings {
  readonly credentialsWatch: boolean
  readonly trustProxy: string
  readonly corsOrigins: string
  readonly rateLimitingEnabled: boolean
  readonly rateLimitPeriodSeconds: number
  readonly rateLimitGeneral: number
  readonly rateLimitHeartbeat: number
  readonly rateLimitPoll: number
  readonly rateLimitPublic: number
  readonly rateLimitFailedAuth: number
  readonly compressionEnabled: boolean
  readonly compressionMinBytes: number
}

const DAY_S = 86_400
const REQUESTS_MAX = 1_000_000_000

/**
 * The limits keep one runaway caller from taking the server away from the others, and are far above what honest ones
 * need: one process serves some 10,000 requests a second, and a client that starts 5,000 jobs a second one by one is in
 * its right. The old system's 100 a minute would stop such a client after 20 ms.
 */
export const SECURITY_KEYS: Readonly<Record<keyof SecuritySettings, ConfigKey>> = {
  credentialsWatch: {
    names: ['CREDENTIALS_WATCH'],
    type: 'switch',
    default: false,
    description: 'Read the files of clients and workers anew when they change. SIGHUP does so once.',
  },
  trustProxy: {
    names: ['TRUST_PROXY'],
    type: 'text',
    default: '',
    description:
      'Proxies whose X-Forwarded-For is believed: addresses, networks such as 10.0.0.0/8, or loopback, linklocal, ' +
      'uniquelocal, with commas between; true for all three. Empty: nobody.',
  },
  corsOrigins: {
    names: ['CORS_ORIGINS'],
    type: 'text',
    default: '',
    description: 'Origins of web pages that may call, such as https://app.example, with commas between; * for all.',
  },
  rateLimitingEnabled: {
    names: ['RATE_LIMITING_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Limit requests. That of failed sign-ins stays on in any case.',
  },
  rateLimitPeriodSeconds: {
    names: ['RATE_LIMIT_PERIOD'],
    type: 'seconds',
    min: 1,
    max: DAY_S,
    default: 60,
    description: 'The time that the limits count for.',
  },
  rateLimitGeneral: {
    names: ['RATE_LIMIT_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 300_000,
    description: 'Requests of one client or worker, without heartbeats and polls.',
  },
  rateLimitHeartbeat: {
    names: ['RATE_LIMIT_HEARTBEAT_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 1_200,
    description: 'Heartbeats of one worker. It sends ten a second at most, when its tasks change all the time.',
  },
  rateLimitPoll: {
    names: ['RATE_LIMIT_POLL_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 300_000,
    description: 'Polls of one worker. One that takes tasks one by one polls once for each.',
  },
  rateLimitPublic: {
    names: ['RATE_LIMIT_PUBLIC_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 6_000,
    description: 'Requests without a token from one address. Those from the own machine are not counted.',
  },
  rateLimitFailedAuth: {
    names: ['RATE_LIMIT_FAILED_AUTH_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 10,
    description: 'Wrong tokens from one address; then it has to wait. Those from the own machine are not counted.',
  },
  compressionEnabled: {
    names: ['COMPRESSION_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Compress answers (zstd, gzip) for those who ask for it.',
  },
  compressionMinBytes: {
    names: ['COMPRESSION_MIN_BYTES'],
    type: 'integer',
    min: 1,
    max: 1_073_741_824,
    default: 500,
    description: 'Shorter answers are sent as they are.',
  },
}
