import { isImpresarioError } from '@impresario/protocol'
import { parsedAddress as postgresAddress } from '@impresario/storage-postgres/address'
import { parsedAddress as redisAddress } from '@impresario/storage-redis/address'
import type { ConfigKey } from './config-keys.ts'
import { hostProblem } from '../runtime/text-checks.ts'

/** Another way to name a Redis, beside `STORAGE_URL`. */
export interface RedisSettings {
  readonly redisHost: string
  readonly redisPort: number
  readonly redisDb: number
}

export type RedisField = keyof RedisSettings
const REDIS_FIELDS: readonly RedisField[] = ['redisHost', 'redisPort', 'redisDb']
const REDIS_HOST_DEFAULT = 'localhost'
const REDIS_DATABASES = 16_384

export const REDIS_KEYS: Readonly<Record<RedisField, ConfigKey>> = {
  redisHost: {
    names: ['REDIS_HOST'],
    type: 'text',
    check: (text) => (text === '' ? undefined : hostProblem(text)),
    default: '',
    description:
      'Host of the Redis storage. REDIS_HOST, REDIS_PORT and REDIS_DB are an alternative to STORAGE_URL=redis://host:port/db, which has more options. If both are set, they must agree.',
  },
  redisPort: {
    names: ['REDIS_PORT'],
    type: 'integer',
    min: 1,
    max: 65_535,
    default: 6_379,
    description:
      'Port of the Redis storage. The value tcp://… that Kubernetes sets automatically for a service named redis is ignored.',
  },
  redisDb: {
    names: ['REDIS_DB'],
    type: 'integer',
    min: 0,
    max: REDIS_DATABASES - 1,
    default: 0,
    description: 'Database number of the Redis storage.',
  },
}

/** Kubernetes sets `REDIS_PORT=tcp://10.0.0.1:6379` in every pod beside a service named redis. It is not a choice. */
export function isInjectedPort(field: string, value: unknown): boolean {
  return field === 'redisPort' && typeof value === 'string' && value.startsWith('tcp://')
}

type Choice = { readonly storageUrl: string } | { readonly problem: string }

/** Where the storage is. `placeOf` tells where a setting was set, if it was. */
export function storageChoice(
  settings: RedisSettings & { readonly storageUrl: string },
  placeOf: (field: RedisField | 'storageUrl') => string | undefined,
): Choice {
  const given = REDIS_FIELDS.filter((field) => placeOf(field) !== undefined)
  const [first] = given
  if (first === undefined) return { storageUrl: settings.storageUrl }
  const place = placeOf('storageUrl')
  if (place === undefined) return { storageUrl: redisUrl(settings) }
  const other = given.find((field) => settings[field] !== redisPartOf(settings.storageUrl, field))
  if (other === undefined) return { storageUrl: settings.storageUrl }
  return {
    problem: `${place} and ${placeOf(other) ?? ''} name different storages. Keep one of them.`,
  }
}

function redisUrl({ redisHost, redisPort, redisDb }: RedisSettings): string {
  const host = redisHost === '' ? REDIS_HOST_DEFAULT : redisHost
  return `redis://${host.includes(':') ? `[${host}]` : host}:${redisPort}/${redisDb}`
}

/** What `STORAGE_URL` says about it; nothing for another storage, or where it names several hosts. */
function redisPartOf(storageUrl: string, field: RedisField): string | number | undefined {
  if (!/^rediss?:/i.test(storageUrl)) return undefined
  const { hosts, database, sentinel } = redisAddress(storageUrl)
  const [only, ...more] = hosts
  if (only === undefined || more.length > 0 || sentinel !== undefined) return undefined
  return { redisHost: only.host, redisPort: only.port, redisDb: database }[field]
}

/** Whether the address names a storage, without connecting. Errors never repeat it: it may contain a password. */
export function storageUrlProblem(url: string): string | undefined {
  if (url === 'memory:' || url === 'memory') return undefined
  if (url.startsWith('file:')) {
    return directoryOf(url) === '' ? 'names no directory. Write it as file:./impresario-data.' : undefined
  }
  if (/^rediss?:/i.test(url)) return problemOf(() => redisAddress(url))
  if (/^postgres(?:ql)?:\/\//i.test(url)) return problemOf(() => postgresAddress(url))
  return `is not understood. ${FORMS}`
}

const FORMS = 'Use memory:, file:<directory>, redis://host or postgres://user@host/database.'

/** What the storage's own reader says about an address. */
function problemOf(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    if (!isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
    return error.message.replace(/^(?:The storage's address|STORAGE_URL:?) /, '')
  }
}

/** Where the embedded storage lies; nowhere for others. */
export function directoryOf(url: string): string | undefined {
  return url.startsWith('file:') ? url.slice('file:'.length).replace(/^\/\//, '') : undefined
}
