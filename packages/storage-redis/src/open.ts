import { randomUUID } from 'node:crypto'
import type { ConnectionOptions } from 'node:tls'
import { markOf, mustNotBeTransferred } from '@impresario/core'
import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { parsedAddress, tagsOf } from './client/address.ts'
import type { Address } from './client/address.ts'
import { Connection, isRefusedUser } from './client/connection.ts'
import { DURABILITY_SETTINGS, weakestOf } from './client/durability.ts'
import type { Durability } from './client/durability.ts'
import { RedisStorage } from './redis-storage.ts'

export interface OpenOptions {
  /** `redis://` or `rediss://`; see `parsedAddress` for the options that it may contain. */
  readonly url: string
  /**
   * Names this process among the instances, and stays the same when it is restarted: the leases that it held itself
   * when it ended are then released at once. Without it, they are released when they end.
   */
  readonly instance?: string
  /** TLS options such as certificates, for `rediss://`. */
  readonly tls?: ConnectionOptions
  readonly sentinelPassword?: string
  /** How long a call waits for a server that cannot be reached or does not reply. */
  readonly waitMs?: number
  /** Reports which durability the server's settings guarantee. */
  readonly log?: Log
  /** The clock of a test, instead of the server's clock. */
  readonly now?: () => number
}

/** Shorter than a lease, so that a lease holder still learns in time that its lease cannot be renewed. */
export const WAIT_MS = 5_000
/** The layout of the keys. This program cannot read a layout with another number. */
const FORMAT = '1'
const VERSION_MIN = 7
/** The key that an unfinished transfer leaves behind. */
export const MARK = 'move'

/**
 * Connects. Refuses if there is no such server, its version is too old, the layout is newer, or its durability is
 * weaker than strict mode requires.
 */
export async function openRedisStorage(options: OpenOptions): Promise<RedisStorage> {
  const { url, tls, sentinelPassword, waitMs = WAIT_MS, log, now } = options
  const address = parsedAddress(url)
  const connection = new Connection({
    address,
    waitMs,
    ...(tls === undefined ? {} : { tls }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
  })
  try {
    const durability = await prepare(connection, address, log)
    mustNotBeTransferred(markOf(await connection.found(MARK)))
    const origin = randomUUID()
    const storage = new RedisStorage({
      wire: connection,
      shards: address.shards,
      instance: options.instance ?? origin,
      origin,
      durability,
      ...(now === undefined ? {} : { now }),
    })
    await storage.recover()
    return storage
  } catch (error) {
    await connection.close()
    throw explained(error)
  }
}

/** Checks the server and the existing data, and loads the functions. */
export async function prepare(connection: Connection, address: Address, log: Log | undefined): Promise<Durability> {
  for (const server of await connection.infos('server')) {
    const version = server.get('redis_version') ?? '0'
    if (Number(version.split('.')[0]) < VERSION_MIN) {
      throw refused(`Redis is ${version}. It must be ${VERSION_MIN}.0 or newer, which has function libraries.`)
    }
  }
  const durability = await judged(connection, address.sentinel !== undefined)
  report(durability, { log, isStrict: address.isStrict })
  await mustFit(connection, address)
  await connection.load()
  return durability
}

/** The error with its reason, if the reason is the user in the address. */
export function explained(error: unknown): unknown {
  if (!(error instanceof Error) || !isRefusedUser(error.cause)) return error
  return new ImpresarioError(
    'INVALID_CONFIGURATION',
    `The user of the storage's address is refused: ${String(error.cause)}`,
    { cause: error },
  )
}

/** Refuses data of another layout, and data that is spread over another number of shards. Names the shards as the data has them. */
async function mustFit(connection: Connection, { namespace, shards }: Address): Promise<void> {
  const numbered = `${FORMAT} shards=${shards}`
  const layout = shards === 1 ? FORMAT : `${numbered} even`
  const found = await connection.settled('format', layout)
  const { format, spread = 1 } = /^(?<format>\S+)(?: shards=(?<spread>\d+))?/.exec(found)?.groups ?? {}
  if (format !== FORMAT) {
    throw refused(`The data has the layout ${found}, this program knows ${FORMAT}. Use the program that wrote it.`)
  }
  if (found !== layout && (shards === 1 || found !== numbered)) {
    throw refused(
      `The namespace "${namespace}" is spread over ${spread} shards, and the address says ${shards}. Set shards=${spread} in it; to change the number, move the data into another namespace with \`impresario migrate\`.`,
    )
  }
  if (shards === 1) return
  connection.name(found === numbered ? 'numbered' : 'even')
  const isOwn = async (shard: number): Promise<boolean> => {
    const own = `${found} shard=${shard}`
    return (await connection.settled('format', own, shard)) === own
  }
  const owned = await Promise.all(Array.from({ length: shards }, (_, shard) => isOwn(shard)))
  if (owned.includes(false)) {
    const taken = tagsOf({ namespace, shards }, found === numbered ? 'numbered' : 'even')[owned.indexOf(false)] ?? ''
    throw refused(`A shard of "${namespace}" would be where the namespace "${taken.slice(1, -1)}" is.`)
  }
}

/** The value that holds on every primary. */
async function judged(connection: Connection, mayFailOver: boolean): Promise<Durability> {
  const replication = await connection.infos('replication')
  const isFollowed = replication.some((info) => Number(info.get('connected_slaves') ?? 0) > 0)
  const hasReplicas = mayFailOver || connection.hasReplicas || isFollowed
  return weakestOf(await connection.settings(DURABILITY_SETTINGS), { hasReplicas })
}

function report(
  { promise, doubts }: Durability,
  { log, isStrict }: { readonly log: Log | undefined; readonly isStrict: boolean },
): void {
  if (doubts.length === 0) {
    log?.info('acknowledged writes are safe on disk', { storage: 'redis', promise })
    return
  }
  if (isStrict) {
    throw refused(
      `Redis can lose writes that it has acknowledged: ${doubts.join('; ')}. Set appendonly yes and appendfsync always, or leave out strict=true.`,
    )
  }
  log?.warn('acknowledged writes can be lost', { storage: 'redis', promise, doubts })
}

function refused(message: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', message)
}
