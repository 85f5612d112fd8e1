import type { Storage } from '@impresario/core'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../servers/free-port.ts'
import { startNginx } from '../servers/nginx-server.ts'
import type { NginxServer } from '../servers/nginx-server.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { startRedis } from '../servers/redis-server.ts'
import { Victim } from '../system/victim.fixture.ts'

export type StorageName = 'redis' | 'postgres'

interface StorageServer {
  readonly url: string
  readonly open: () => Promise<Storage>
  readonly remove: () => Promise<void>
}

/** Every acknowledged write on disk, on both. */
async function startStorage(name: StorageName): Promise<StorageServer> {
  if (name === 'redis') {
    const server = await startRedis()
    return { url: server.url, open: () => openRedisStorage({ url: server.url }), remove: () => server.remove() }
  }
  const server = await startPostgres([])
  return { url: server.url, open: () => openPostgresStorage({ url: server.url }), remove: () => server.stop() }
}

export const CLIENT_TOKEN = 'cluster-client-token-0123456789'
export const WORKER_TOKEN = 'cluster-worker-token-0123456789'
const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('../system/programs/blueprints', import.meta.url))

export interface Instance {
  readonly name: string
  readonly address: string
  readonly process: Victim
}

/** A storage, instances on it, and nginx in front of them. */
export class Stage {
  readonly storage: StorageServer
  readonly instances: readonly Instance[]
  readonly nginx: NginxServer

  private constructor(storage: StorageServer, instances: readonly Instance[], nginx: NginxServer) {
    this.storage = storage
    this.instances = instances
    this.nginx = nginx
  }

  static async start(name: StorageName, size: number): Promise<Stage> {
    const storage = await startStorage(name)
    const instances: Instance[] = []
    while (instances.length < size) instances.push(await newInstance(`instance-${instances.length + 1}`, storage.url))
    for (const { process } of instances) process.start()
    await Promise.all(instances.map(untilReady))
    const nginx = await startNginx({ instances: instances.map(({ address }) => address) })
    return new Stage(storage, instances, nginx)
  }

  /** Stops everything except the storage, as an operator does. */
  async close(): Promise<void> {
    await Promise.all(this.instances.map(({ process }) => process.stop()))
    await this.nginx.stop()
  }
}

async function newInstance(name: string, storageUrl: string): Promise<Instance> {
  const port = await freePort()
  const process = new Victim([CLI, 'start'], {
    API_HOST: '127.0.0.1',
    API_PORT: String(port),
    STORAGE_URL: storageUrl,
    INSTANCE_ID: name,
    BLUEPRINTS_DIR: BLUEPRINTS,
    CLIENT_TOKEN,
    RATE_LIMIT_LIMIT: '1000000000',
    WORKER_TOKEN,
    SECRET_KEY: 'a-key-that-all-instances-share',
    TRUST_PROXY: '127.0.0.1',
    // As the deployment guide recommends for instances behind nginx.
    SHUTDOWN_DRAIN_SECONDS: '5',
    LOG_LEVEL: 'warn',
  })
  return { name, address: `127.0.0.1:${port}`, process }
}

export async function untilReady({ name, address, process }: Instance): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://${address}/_public/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    if (!process.isRunning) throw new Error(`${name} does not start: ${process.output}`)
    await pause(50)
  }
}
