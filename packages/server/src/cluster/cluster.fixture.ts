import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock, Storage } from '@impresario/core'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { startPostgres } from '../../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../../test/servers/postgres-server.ts'
import { startRedis } from '../../../../test/servers/redis-server.ts'
import type { TestServer as RedisServer } from '../../../../test/servers/redis-server.ts'
import { createClock } from '../runtime/clock.ts'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import type { ServerOptions } from '../server.ts'

export type BackendName = 'redis' | 'postgres'
export const BACKENDS: readonly BackendName[] = ['redis', 'postgres']

/** The real servers that instances share: one of each kind for a file of tests. */
export class Backends {
  #redis: RedisServer | undefined
  #postgres: PostgresServer | undefined

  async start(): Promise<void> {
    // What is tested here is not what survives.
    const [redis, postgres] = await Promise.all([startRedis(['--appendonly', 'no']), startPostgres()])
    this.#redis = redis
    this.#postgres = postgres
  }

  async stop(): Promise<void> {
    await Promise.all([this.#redis?.remove(), this.#postgres?.stop()])
  }

  /** An address that nobody else uses. */
  address(name: BackendName): string {
    const space = `t${randomUUID().replaceAll('-', '')}`
    return name === 'redis'
      ? `${this.#redis?.url ?? ''}?namespace=${space}`
      : `${this.#postgres?.url ?? ''}?schema=${space}&pool_max=4`
  }
}

/** A storage that hears of others by what they tell, and finds nothing by looking around. */
export function openStorage(url: string): Promise<Storage> {
  return url.startsWith('redis') ? openRedisStorage({ url }) : openPostgresStorage({ url, pollMs: HOUR_MS })
}

const HOUR_MS = 3_600_000
const SOON_MS = 1_000

/**
 * Time goes on as ever, but whoever only looks around now and then to be safe sleeps sixty times as long: whatever happens
 * within a test was told, not found.
 */
export function withoutSafetyNet(): Clock {
  const clock = createClock()
  return { ...clock, sleep: (ms, signal) => clock.sleep(ms < SOON_MS ? ms : ms * 60, signal) }
}

export class Cluster {
  readonly url: string
  readonly storages: Storage[] = []
  readonly servers: TestServer[] = []

  constructor(url: string) {
    this.url = url
  }

  /** Starts one more server; gives it when all know of each other. */
  async add(options: ServerOptions = {}): Promise<TestServer> {
    const storage = await openStorage(this.url)
    this.storages.push(storage)
    const server = await startTestServer({
      storage,
      ...options,
      settings: { storageUrl: this.url, instanceId: `i${this.servers.length}`, ...options.settings },
    })
    this.servers.push(server)
    await until(() => this.servers.length === 1 || this.servers.every((one) => one.server.engine.hasPeers))
    return server
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(({ server }) => server.stop()))
    await Promise.all(this.storages.map((storage) => storage.close()))
  }
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(2)
}
