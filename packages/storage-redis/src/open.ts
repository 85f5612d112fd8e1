import { randomUUID } from 'node:crypto'
import type { ConnectionOptions } from 'node:tls'
import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { parsedAddress } from './address.ts'
import { Connection, isRefusedUser } from './connection.ts'
import { DURABILITY_SETTINGS, durabilityOf } from './durability.ts'
import type { Durability } from './durability.ts'
import { RedisStorage } from './redis-storage.ts'

export interface OpenOptions {
  /** `redis://` or `rediss://`; see `parsedAddress` for what may stand in it. */
  readonly url: string
  /**
   * Names this process among the instances, and stays the same when it is started again: what it had in its own hands when
   * it ended is then free at once. Without it: when the leases end.
   */
  readonly instance?: string
  /** Certificates and the like, for `rediss://`. */
  readonly tls?: ConnectionOptions
  readonly sentinelPassword?: string
  /** How long a call waits for a server that cannot be reached, or does not answer. */
  readonly waitMs?: number
  /** Told which promise the server's settings make. */
  readonly log?: Log
  /** The time of a test, instead of the server's own. */
  readonly now?: () => number
}

/** Shorter than a lease, so that whoever holds one still hears in time that it cannot be renewed. */
const WAIT_MS = 5_000
/** The layout of the keys. Another number is another layout, which this program cannot read. */
const FORMAT = '1'
const VERSION_MIN = 7

/** Connects, or refuses: no such server, an older one, a newer layout, or fewer promises than the strict mode asks for. */
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
    const server = await connection.info('server')
    const version = server.get('redis_version') ?? '0'
    if (Number(version.split('.')[0]) < VERSION_MIN) {
      throw refused(`Redis is ${version}. It has to be ${VERSION_MIN}.0 or newer, which has function libraries.`)
    }
    const durability = await judged(connection, address.isCluster || address.sentinel !== undefined)
    report(durability, { log, isStrict: address.isStrict })
    const format = await connection.settled('format', FORMAT)
    if (format !== FORMAT) {
      throw refused(`The data has the layout ${format}, this program knows ${FORMAT}. Use the program that wrote it.`)
    }
    await connection.load()
    const origin = randomUUID()
    const storage = new RedisStorage({
      connection,
      instance: options.instance ?? origin,
      origin,
      durability,
      ...(now === undefined ? {} : { now }),
    })
    await storage.recover()
    return storage
  } catch (error) {
    await connection.close()
    if (!(error instanceof Error) || !isRefusedUser(error.cause)) throw error
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `The user of the storage's address is refused: ${String(error.cause)}`,
      {
        cause: error,
      },
    )
  }
}

async function judged(connection: Connection, mayFailOver: boolean): Promise<Durability> {
  const replication = await connection.info('replication')
  const hasReplicas = mayFailOver || Number(replication.get('connected_slaves') ?? 0) > 0
  return durabilityOf(await connection.settings(DURABILITY_SETTINGS), { hasReplicas })
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
