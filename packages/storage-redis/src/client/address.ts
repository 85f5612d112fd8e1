import { ImpresarioError } from '@impresario/protocol'
import { evenNames } from './slots.ts'

/** Where the server is, and under which names the data is stored there. */
export interface Address {
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly isTls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The prefix of all keys, so that other programs can use the same server. */
  readonly prefix: string
  /** The data of one orchestrator, however many instances it has. */
  readonly namespace: string
  /** The hosts are Sentinels that know the primary by this name. */
  readonly sentinel: string | undefined
  /** The hosts are nodes of a Redis Cluster. */
  readonly isCluster: boolean
  /** Over how many slots the namespace is spread. */
  readonly shards: number
  /** Refuse a server whose settings do not guarantee that no acknowledged write is lost. */
  readonly isStrict: boolean
}

/** With more shards, every list and every scan over all lanes would query too many of them. */
const SHARDS_MAX = 256
const SETTINGS = ['prefix', 'namespace', 'shards', 'sentinel', 'cluster', 'strict']
const FORM =
  'redis://[user:password@]host[:port][,host[:port]…][/database][?prefix=…&namespace=…&shards=…&sentinel=…&cluster=true&strict=true]'

/**
 * Reads `redis://` and `rediss://` (with TLS) addresses. Refusals never repeat the address: a password may be in it.
 */
export function parsedAddress(url: string): Address {
  const match = /^(rediss?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/(\d*))?(?:\?([^#]*))?$/.exec(url)
  if (match === null) throw refused(`is not an address of Redis. Write it as ${FORM}.`)
  const [, scheme, login, hosts = '', database = '', query = ''] = match
  const settings = new URLSearchParams(query)
  for (const name of settings.keys()) {
    if (!SETTINGS.includes(name)) {
      throw refused(`has a setting "${name}" that is unknown. Known are ${SETTINGS.join(', ')}.`)
    }
  }
  const sentinel = settings.get('sentinel') ?? undefined
  const isCluster = flagOf(settings, 'cluster')
  if (sentinel !== undefined && isCluster) throw refused('names a Sentinel and a Cluster. Leave one of them out.')
  if (isCluster && database !== '' && database !== '0') {
    throw refused('has a database, but a Cluster has only the first.')
  }
  const port = sentinel === undefined ? 6379 : 26_379
  const colon = login?.indexOf(':') ?? -1
  const username = login === undefined ? '' : colon < 0 ? login : login.slice(0, colon)
  const password = login === undefined || colon < 0 ? '' : login.slice(colon + 1)
  return {
    hosts: hosts.split(',').map((host) => hostOf(host, port)),
    isTls: scheme === 'rediss',
    username: decoded(username),
    password: decoded(password),
    database: Number(database),
    prefix: named(settings, 'prefix', 'impresario:'),
    namespace: named(settings, 'namespace', 'main'),
    sentinel,
    isCluster,
    shards: countOf(settings),
    isStrict: flagOf(settings, 'strict'),
  }
}

/** How the shards of a namespace are named. Namespaces of the first version have numbered ones, and keep them. */
export type Naming = 'even' | 'numbered'

/**
 * The tags of all keys that hold data: the part in braces, which determines the slot in a Cluster. The key `format` of
 * `{namespace}` holds the number of shards, even where no other key has that tag.
 */
export function tagsOf(
  { namespace, shards }: Pick<Address, 'namespace' | 'shards'>,
  naming: Naming = 'even',
): readonly string[] {
  if (shards === 1) return [`{${namespace}}`]
  if (naming === 'even') return evenNames(namespace, shards).map((name) => `{${name}}`)
  return Array.from({ length: shards }, (_, shard) => `{${namespace}/${shard}}`)
}

function hostOf(text: string, port: number): { readonly host: string; readonly port: number } {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(text)
  const given = match?.[2] === undefined ? port : Number(match[2])
  if (match?.[1] === undefined || given > 65_535) {
    throw refused(`has a host that is not understood. Write it as ${FORM}.`)
  }
  return { host: match[1].replaceAll(/[[\]]/g, ''), port: given }
}

/** A brace would change the tag that keeps all keys of a namespace in one slot. */
function named(settings: URLSearchParams, name: string, standard: string): string {
  const value = settings.get(name) ?? standard
  if (/[{}\s]/.test(value) || (name === 'namespace' && value === '')) {
    throw refused(`has a ${name} that cannot be used: it must not be empty nor contain braces or blanks.`)
  }
  return value
}

function countOf(settings: URLSearchParams): number {
  const text = settings.get('shards') ?? '1'
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > SHARDS_MAX) {
    throw refused(`has a setting "shards" that is no number from 1 to ${SHARDS_MAX}.`)
  }
  return count
}

function flagOf(settings: URLSearchParams, name: string): boolean {
  const value = settings.get(name)
  if (value !== null && value !== 'true' && value !== 'false') {
    throw refused(`has a setting "${name}" that is neither true nor false.`)
  }
  return value === 'true'
}

function decoded(text: string): string | undefined {
  if (text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw refused('has a user or password with a % that stands for nothing. Write it as %25.')
  }
}

function refused(what: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `The storage's address ${what}`)
}
