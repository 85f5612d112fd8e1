import type { ConfigKey } from './config-keys.ts'
import { headerTokenProblem, originsProblem, proxiesProblem } from '../runtime/text-checks.ts'

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
  readonly requestsAtOnceMax: number
  readonly connectionsPerAddressMax: number
  readonly metricsToken: string
  readonly compressionEnabled: boolean
  readonly compressionMinBytes: number
}

const DAY_S = 86_400
const REQUESTS_MAX = 1_000_000_000

/**
 * The limits keep one runaway caller from taking the server away from the others. One process serves some 10,000 requests
 * a second; one caller gets a tenth of that for as long as it likes, and sixty times as much at once. The old system's 100
 * a minute would stop a client that starts 5,000 jobs a second after 20 ms.
 */
export const SECURITY_KEYS: Readonly<Record<keyof SecuritySettings, ConfigKey>> = {
  credentialsWatch: {
    names: ['CREDENTIALS_WATCH'],
    type: 'switch',
    default: false,
    description: 'Reload the files of clients and workers when they change. SIGHUP reloads them once.',
  },
  trustProxy: {
    names: ['TRUST_PROXY'],
    type: 'text',
    check: proxiesProblem,
    default: '',
    description:
      'Proxies whose X-Forwarded-For is trusted: addresses, networks such as 10.0.0.0/8, or loopback, linklocal, ' +
      'uniquelocal, separated by commas; true for all three. Empty: none.',
  },
  corsOrigins: {
    names: ['CORS_ORIGINS'],
    type: 'text',
    check: originsProblem,
    default: '',
    description:
      'Origins whose web pages can call the API, such as https://app.example, separated by commas; * for all.',
  },
  rateLimitingEnabled: {
    names: ['RATE_LIMITING_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Enable rate limits. The limit on wrong tokens is always on.',
  },
  rateLimitPeriodSeconds: {
    names: ['RATE_LIMIT_PERIOD'],
    type: 'seconds',
    min: 1,
    max: DAY_S,
    default: 60,
    description: 'Period of the rate limits.',
  },
  rateLimitGeneral: {
    names: ['RATE_LIMIT_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 60_000,
    description:
      'Maximum requests of one client or worker, without heartbeats and polls. A batch of jobs or results is one request.',
  },
  rateLimitHeartbeat: {
    names: ['RATE_LIMIT_HEARTBEAT_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 1_200,
    description:
      'Maximum heartbeats of one worker. A worker sends at most ten per second, if its tasks change constantly.',
  },
  rateLimitPoll: {
    names: ['RATE_LIMIT_POLL_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 600,
    description: 'Maximum polls of one worker that return no task. Polls that return a task are not counted.',
  },
  rateLimitPublic: {
    names: ['RATE_LIMIT_PUBLIC_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 6_000,
    description: 'Maximum requests without a token from one address. Requests from this machine are not counted.',
  },
  rateLimitFailedAuth: {
    names: ['RATE_LIMIT_FAILED_AUTH_LIMIT'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 10,
    description:
      'Maximum wrong tokens from one address before it must wait. Requests from this machine are not counted.',
  },
  requestsAtOnceMax: {
    names: ['REQUESTS_AT_ONCE_MAX'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 1_000,
    description:
      'Maximum concurrent requests of one client, of one worker, or without a token from one address. Waits and polls count ' +
      'for as long as they are open.',
  },
  connectionsPerAddressMax: {
    names: ['CONNECTIONS_PER_ADDRESS_MAX'],
    type: 'integer',
    min: 1,
    max: REQUESTS_MAX,
    default: 2_000,
    description:
      'Maximum open connections from one address (for IPv6: from one /64 network). Connections from this machine and from ' +
      'TRUST_PROXY are not counted.',
  },
  metricsToken: {
    names: ['METRICS_TOKEN'],
    type: 'secret',
    check: headerTokenProblem,
    default: '',
    description: 'Bearer token for `/metrics` and `/_public/metrics`. Empty: no token is needed.',
  },
  compressionEnabled: {
    names: ['COMPRESSION_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Compress responses (zstd, gzip) if the caller accepts it.',
  },
  compressionMinBytes: {
    names: ['COMPRESSION_MIN_BYTES'],
    type: 'integer',
    min: 1,
    max: 1_073_741_824,
    default: 500,
    description: 'Shorter responses are not compressed.',
  },
}
