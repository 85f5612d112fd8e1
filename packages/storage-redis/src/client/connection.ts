import type { ConnectionOptions } from 'node:tls'
import { Cluster, Command, Redis } from 'ioredis'
import { ImpresarioError } from '@impresario/protocol'
import { tagsOf } from './address.ts'
import type { Address, Naming } from './address.ts'
import { Bundles } from './bundles.ts'
import type { Arguments } from './codec.ts'
import { functionName, LIBRARY } from '../functions/library.ts'
import type { FunctionName, RegisteredName } from '../functions/library.ts'

export interface ConnectionSettings {
  readonly address: Address
  /** TLS options such as certificates, for an address with TLS. */
  readonly tls?: ConnectionOptions
  readonly sentinelPassword?: string
  /** How long a call waits for a server that cannot be reached, and for its reply. */
  readonly waitMs: number
}

/** What a storage requires of a connection. */
export interface Wire {
  call(name: FunctionName, args: Arguments, shard: number): Promise<unknown>
  /**
   * Subscribes to the hints of all instances. `onHearing`: whether, as far as is known, no hint is missed from now on.
   */
  listen(hear: (message: Buffer, shard: number) => void, onHearing: (isHearing: boolean) => void): void
  close(): Promise<void>
}

const RECONNECT_MS_MIN = 20
const RECONNECT_MS_MAX = 1_000

/**
 * The only module that knows the driver.
 *
 * Nothing is sent twice: a call that was in flight when the connection broke has an unknown outcome, and a retry could
 * return "conflict" for a batch that was committed. A call that finds no connection waits for one, and is sent once or
 * never.
 */
export class Connection implements Wire {
  /** The key prefix of each shard. The braces put its keys into one slot of a Cluster. */
  #bases: readonly string[] = []
  #bundles: readonly Bundles[] = []
  readonly #address: Address
  /** The key prefix of the namespace itself. */
  readonly #root: string
  readonly #client: Redis | Cluster
  readonly #waitMs: number
  #listener: Redis | Cluster | undefined = undefined
  #ready: Promise<void> | undefined = undefined
  #loading: Promise<void> | undefined = undefined

  constructor(settings: ConnectionSettings) {
    const { prefix, namespace } = settings.address
    this.#address = settings.address
    this.name('even')
    this.#root = `${prefix}{${namespace}}`
    this.#waitMs = settings.waitMs
    this.#client = clientOf(settings)
    // Errors are reported to the callers of the individual calls.
    this.#client.on('error', () => undefined)
  }

  /** Names the shards, before the first call. */
  name(naming: Naming): void {
    const bases = tagsOf(this.#address, naming).map((tag) => `${this.#address.prefix}${tag}`)
    this.#bases = bases
    this.#bundles = bases.map((base) => {
      // The keys that a call names: the common prefix, and the locks where there are several shards.
      const keys = bases.length === 1 ? [1, base] : [2, base, `${base}:lock`]
      return new Bundles(keys, {
        send: (name, args) => this.#send(name, (whole) => fcall(this.#client, [whole, ...keys, ...args])),
        sendWritten: (name, bytes) =>
          this.#send(name, (whole) => sendWritten(this.#client, new WrittenCommand([whole, ...keys], bytes))),
        translated,
      })
    })
  }

  /** Without a promise of its own while the server is there: a job's steps make a thousand calls in a tenth of a second. */
  call(name: FunctionName, args: Arguments, shard: number): Promise<unknown> {
    if (this.#client.status !== 'ready') return this.#whenReady().then(() => this.#bundlesOf(shard).call(name, args))
    return this.#bundlesOf(shard).call(name, args)
  }

  /** Loads the functions into the server, or into all primaries of a Cluster. */
  load(): Promise<void> {
    this.#loading ??= this.#loadAll().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  /** A section of `INFO` as names and values, for each primary. */
  async infos(section: string): Promise<readonly ReadonlyMap<string, string>[]> {
    await this.#whenReady()
    const texts = await this.#asked(() => Promise.all(this.#primaries().map((node) => node.info(section))))
    return texts.map(
      (text) => new Map(text.split(/\r?\n/).flatMap((line) => (line.includes(':') ? [pairOf(line)] : []))),
    )
  }

  /** The settings of each primary; `undefined` if this user may not read them. */
  async settings(names: readonly string[]): Promise<readonly ReadonlyMap<string, string>[] | undefined> {
    await this.#whenReady()
    try {
      const replies = await Promise.all(this.#primaries().map((node) => node.config('GET', ...names)))
      return replies.map((reply) => settingsOf(textsOf(reply)))
    } catch (error) {
      if (/^(NOPERM|ERR unknown command)/.test(messageOf(error))) return undefined
      throw translated(error)
    }
  }

  /** Whether each primary of a Cluster has a replica that can take over. */
  get hasReplicas(): boolean {
    return this.#client instanceof Cluster && this.#client.nodes('slave').length > 0
  }

  /** Sets a key of the namespace, or of one of its shards, if it does not exist. Returns the resulting value. */
  async settled(key: string, value: string, shard?: number): Promise<string> {
    await this.#whenReady()
    const name = `${shard === undefined ? this.#root : (this.#bases[shard] ?? '')}:${key}`
    await this.#asked(() => this.#client.setnx(name, value))
    return (await this.#asked(() => this.#client.get(name))) ?? value
  }

  /** The value of a key of the namespace itself, if it exists. */
  async found(key: string): Promise<string | undefined> {
    await this.#whenReady()
    return (await this.#asked(() => this.#client.get(`${this.#root}:${key}`))) ?? undefined
  }

  /** Sets a key of the namespace itself, or deletes it. */
  async keep(key: string, value: string | undefined): Promise<void> {
    await this.#whenReady()
    const name = `${this.#root}:${key}`
    await this.#asked<unknown>(() => (value === undefined ? this.#client.del(name) : this.#client.set(name, value)))
  }

  /** The number of subscribers to the hints of this namespace, on any node; zero if this user may not query it. */
  async listeners(): Promise<number> {
    await this.#whenReady()
    const nodes = this.#client instanceof Cluster ? this.#client.nodes('all') : [this.#client]
    try {
      const replies = await Promise.all(nodes.map((node) => node.pubsub('NUMSUB', `${this.#bases[0] ?? ''}:hints`)))
      return replies.reduce<number>((sum, reply) => sum + Number(textsOf(reply)[1] ?? 0), 0)
    } catch (error) {
      if (messageOf(error).startsWith('NOPERM')) return 0
      throw translated(error)
    }
  }

  /** Subscribes to the hints of all instances on a separate connection. Only the first call has an effect. */
  listen(hear: (message: Buffer, shard: number) => void, onHearing: (isHearing: boolean) => void): void {
    if (this.#listener !== undefined) return
    const shards = new Map(this.#bases.map((base, shard) => [`${base}:hints`, shard]))
    // Hints may have been missed, so this connection waits for the server indefinitely and then triggers a full rescan.
    const listener = duplicateOf(this.#client)
    this.#listener = listener
    const subscribe = (): void => {
      listener.subscribe(...shards.keys()).then(
        () => onHearing(true),
        () => onHearing(false),
      )
    }
    listener.on('error', () => undefined)
    listener.on('close', () => onHearing(false))
    listener.on('ready', subscribe)
    listener.on('messageBuffer', (channel: Buffer, message: Buffer) => {
      hear(message, shards.get(channel.toString()) ?? 0)
    })
    if (listener.status === 'ready') subscribe()
  }

  async close(): Promise<void> {
    this.#listener?.disconnect()
    this.#client.disconnect()
  }

  #bundlesOf(shard: number): Bundles {
    const bundles = this.#bundles[shard]
    if (bundles === undefined) throw new RangeError(`There is no shard ${shard}`)
    return bundles
  }

  async #send(name: RegisteredName, send: (whole: string) => Promise<unknown>): Promise<unknown> {
    try {
      return await send(functionName(name))
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    // The server was flushed, or the new primary lacks the functions: nothing has been executed yet.
    await this.load()
    return send(functionName(name))
  }

  async #loadAll(): Promise<void> {
    await this.#whenReady()
    await this.#asked(() => Promise.all(this.#primaries().map((node) => node.function('LOAD', 'REPLACE', LIBRARY))))
  }

  #primaries(): readonly Redis[] {
    return this.#client instanceof Cluster ? this.#client.nodes('master') : [this.#client]
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
    // After a failover the old primary still replies, and refuses every write.
    reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
  }
  if (isCluster) {
    return new Cluster([...hosts], {
      redisOptions: shared,
      enableOfflineQueue: false,
      clusterRetryStrategy: reconnectMs,
      // Zero: a call whose connection broke is not sent again.
      retryDelayOnFailover: 0,
      slotsRefreshTimeout: waitMs,
    })
  }
  const single = { ...shared, db: database }
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

/** Type boundary: the driver's types lack a method that it creates for every command of the server. */
function fcall(client: Redis | Cluster, args: readonly (string | number | Buffer)[]): Promise<unknown> {
  const withBytes = client as unknown as { fcallBuffer(...given: readonly unknown[]): Promise<unknown> }
  return withBytes.fcallBuffer(...args)
}

/** A call of a function whose bytes are there already. The driver looks for its keys in what it is given, and finds its slot. */
class WrittenCommand extends Command {
  readonly #bytes: Buffer

  constructor(args: (string | number)[], bytes: Buffer) {
    super('fcall', args)
    this.#bytes = bytes
  }

  override toWritable(): Buffer {
    return this.#bytes
  }
}

async function sendWritten(client: Redis | Cluster, command: WrittenCommand): Promise<unknown> {
  return client.sendCommand(command)
}

function duplicateOf(client: Redis | Cluster): Redis | Cluster {
  if (client instanceof Cluster) return client.duplicate([], { enableOfflineQueue: true })
  return client.duplicate({
    enableOfflineQueue: true,
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
      // Retrying does not fix a wrong password.
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

/** Whether the server denies this user access, or some of the required permissions. */
export function isRefusedUser(error: unknown): boolean {
  return /^(WRONGPASS|NOAUTH|NOPERM)/.test(messageOf(error))
}

function isMissing(error: unknown): boolean {
  return messageOf(error).startsWith('ERR Function not found')
}

/** Replies that indicate a bug in this package. All other replies are for the operator of the server to resolve. */
const FAULTS = /user_function|WRONGTYPE|ERR wrong number/

/**
 * Errors returned before any part of a call ran: out of memory, unable to save, a replica, too few replicas, loading,
 * or busy.
 */
const REFUSALS = /^(?:OOM|MISCONF|READONLY|NOREPLICAS|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY) /

function translated(error: unknown): Error {
  if (error instanceof ImpresarioError) return error
  const message = messageOf(error)
  if (error instanceof Error && FAULTS.test(message)) return error
  if (REFUSALS.test(message)) {
    const refusal = `Redis refused it, and nothing was written${reasonOf(error)}.`
    return new ImpresarioError('STORAGE_REFUSED', refusal, { cause: error })
  }
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

function settingsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  return new Map(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : [])))
}

function textsOf(reply: unknown): readonly string[] {
  if (Array.isArray(reply)) return reply.map(String)
  if (typeof reply === 'object' && reply !== null) return Object.entries(reply).flatMap(([k, v]) => [k, String(v)])
  return []
}
