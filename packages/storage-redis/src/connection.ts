import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis } from 'ioredis'
import { ImpresarioError } from '@impresario/protocol'
import type { Address } from './address.ts'
import { functionName, LIBRARY } from './library.ts'
import type { FunctionName } from './library.ts'

export interface ConnectionSettings {
  readonly address: Address
  /** Certificates and the like, for an address with TLS. */
  readonly tls?: ConnectionOptions
  readonly sentinelPassword?: string
  /** How long a call waits for a server that cannot be reached, and for its answer. */
  readonly waitMs: number
}

const RECONNECT_MS_MIN = 20
const RECONNECT_MS_MAX = 1_000

/**
 * The one place that knows the driver.
 *
 * Nothing is sent twice: a call that was on its way when the connection broke has an unknown outcome, and to repeat it could
 * answer "conflict" for what was committed. A call that finds no connection waits for one, and is sent once or never.
 */
export class Connection {
  /** What all keys begin with. The braces make one slot of a Cluster of them. */
  readonly base: string
  readonly #client: Redis | Cluster
  readonly #waitMs: number
  #listener: Redis | Cluster | undefined = undefined
  #ready: Promise<void> | undefined = undefined
  #loading: Promise<void> | undefined = undefined

  constructor(settings: ConnectionSettings) {
    const { prefix, namespace } = settings.address
    this.base = `${prefix}{${namespace}}`
    this.#waitMs = settings.waitMs
    this.#client = clientOf(settings)
    // Calls say what is wrong, each to whoever made it.
    this.#client.on('error', () => undefined)
  }

  async call(name: FunctionName, args: readonly (string | Buffer)[]): Promise<unknown> {
    if (this.#client.status !== 'ready') await this.#whenReady()
    try {
      return await fcall(this.#client, [functionName(name), 1, this.base, ...args])
    } catch (error) {
      if (!isMissing(error)) throw translated(error)
    }
    // A server that was flushed, or one that took over without the functions: nothing has been done yet.
    await this.load()
    try {
      return await fcall(this.#client, [functionName(name), 1, this.base, ...args])
    } catch (error) {
      throw translated(error)
    }
  }

  /** Brings the functions to the server, to all primaries of a Cluster. */
  load(): Promise<void> {
    this.#loading ??= this.#loadAll().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  /** The section of `INFO` as name and value. */
  async info(section: string): Promise<ReadonlyMap<string, string>> {
    await this.#whenReady()
    const text = await this.#asked(() => this.#client.info(section))
    return new Map(text.split(/\r?\n/).flatMap((line) => (line.includes(':') ? [pairOf(line)] : [])))
  }

  /** Settings of the server; nothing if this user may not read them. */
  async settings(names: readonly string[]): Promise<ReadonlyMap<string, string> | undefined> {
    await this.#whenReady()
    try {
      const flat = textsOf(await this.#client.config('GET', ...names))
      return new Map(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : [])))
    } catch (error) {
      if (/^(NOPERM|ERR unknown command)/.test(messageOf(error))) return undefined
      throw translated(error)
    }
  }

  /** Sets the key if it is not there; gives back what is there then. */
  async settled(key: string, value: string): Promise<string> {
    await this.#whenReady()
    await this.#asked(() => this.#client.setnx(`${this.base}:${key}`, value))
    return (await this.#asked(() => this.#client.get(`${this.base}:${key}`))) ?? value
  }

  /** Hears hints of all instances, on a connection of its own. Only the first call counts. */
  listen(hear: (message: Buffer) => void): void {
    if (this.#listener !== undefined) return
    const channel = `${this.base}:hints`
    // Hints may be missing, so this one waits for the server as long as it takes and asks for everything again.
    const listener = duplicateOf(this.#client)
    this.#listener = listener
    listener.on('error', () => undefined)
    listener.on('messageBuffer', (_channel: Buffer, message: Buffer) => hear(message))
    listener.subscribe(channel).catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#listener?.disconnect()
    this.#client.disconnect()
  }

  async #loadAll(): Promise<void> {
    await this.#whenReady()
    const nodes = this.#client instanceof Cluster ? this.#client.nodes('master') : [this.#client]
    await this.#asked(() => Promise.all(nodes.map((node) => node.function('LOAD', 'REPLACE', LIBRARY))))
  }

  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw translated(error)
    }
  }

  #whenReady(): Promise<void> {
    if (this.#client.status === 'ready') return Promise.resolve()
    this.#ready ??= becomesReady(this.#client, this.#waitMs).finally(() => {
      this.#ready = undefined
    })
    return this.#ready
  }
}

function clientOf({ address, tls, sentinelPassword, waitMs }: ConnectionSettings): Redis | Cluster {
  const { hosts, isTls, username, password, database, sentinel, isCluster } = address
  const shared = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(isTls ? { tls: tls ?? {} } : {}),
    connectTimeout: waitMs,
    commandTimeout: waitMs,
    socketTimeout: 2 * waitMs,
    keepAlive: 10_000,
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    retryStrategy: reconnectMs,
    // After a failover the old primary still answers, and refuses every write.
    reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
  }
  if (isCluster) {
    return new Cluster([...hosts], {
      redisOptions: shared,
      enableAutoPipelining: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: reconnectMs,
      // Zero: a call whose connection broke is not sent again.
      retryDelayOnFailover: 0,
      slotsRefreshTimeout: waitMs,
    })
  }
  const single = { ...shared, db: database, enableAutoPipelining: true }
  if (sentinel !== undefined) {
    return new Redis({
      ...single,
      sentinels: [...hosts],
      name: sentinel,
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
      ...(isTls ? { sentinelTLS: tls ?? {}, enableTLSForSentinelMode: true } : {}),
      sentinelRetryStrategy: reconnectMs,
    })
  }
  if (hosts.length !== 1) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      "The storage's address has several hosts. Say what they are with sentinel=<name of the primary> or cluster=true.",
    )
  }
  return new Redis({ ...single, ...hosts[0] })
}

/** The boundary where the driver's types lack a method that it makes for every command of the server. */
function fcall(client: Redis | Cluster, args: readonly (string | number | Buffer)[]): Promise<unknown> {
  const withBytes = client as unknown as { fcallBuffer(...given: readonly unknown[]): Promise<unknown> }
  return withBytes.fcallBuffer(...args)
}

function duplicateOf(client: Redis | Cluster): Redis | Cluster {
  if (client instanceof Cluster) return client.duplicate([], { enableOfflineQueue: true, enableAutoPipelining: false })
  return client.duplicate({
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    socketTimeout: undefined,
  })
}

function reconnectMs(times: number): number {
  return Math.min(RECONNECT_MS_MIN * 2 ** Math.min(times, 10), RECONNECT_MS_MAX)
}

function becomesReady(client: Redis | Cluster, waitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let last: unknown
    const onReady = (): void => finish(resolve)
    const onError = (error: unknown): void => {
      last = error
      // A wrong password does not become right by waiting.
      if (isRefusedUser(error)) finish(() => reject(translated(error)))
    }
    const onEnd = (): void => finish(() => reject(unavailable('The storage is closed.', last)))
    const timer = setTimeout(
      () => finish(() => reject(unavailable(`Redis cannot be reached${reasonOf(last)}.`, last))),
      waitMs,
    )
    const finish = (settle: () => void): void => {
      clearTimeout(timer)
      client.off('ready', onReady)
      client.off('error', onError)
      client.off('end', onEnd)
      settle()
    }
    client.on('ready', onReady)
    client.on('error', onError)
    client.on('end', onEnd)
    if (client.status === 'end') onEnd()
  })
}

/** Whether the server does not let this user in, or not far enough. */
export function isRefusedUser(error: unknown): boolean {
  return /^(WRONGPASS|NOAUTH|NOPERM)/.test(messageOf(error))
}

function isMissing(error: unknown): boolean {
  return messageOf(error).startsWith('ERR Function not found')
}

/** Replies that mean a fault of this package: everything else is a matter between the server and its operator. */
const FAULTS = /user_function|WRONGTYPE|ERR wrong number/

function translated(error: unknown): Error {
  if (error instanceof ImpresarioError) return error
  const message = messageOf(error)
  if (error instanceof Error && FAULTS.test(message)) return error
  return unavailable(`Redis did not do it, or it is not known whether it did${reasonOf(error)}.`, error)
}

function unavailable(message: string, cause: unknown): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', message, { cause })
}

function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return message === '' ? '' : ` (${message})`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}

function pairOf(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1)]
}

function textsOf(reply: unknown): readonly string[] {
  if (Array.isArray(reply)) return reply.map(String)
  if (typeof reply === 'object' && reply !== null) return Object.entries(reply).flatMap(([k, v]) => [k, String(v)])
  return []
}
