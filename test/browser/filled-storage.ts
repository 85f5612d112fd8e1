import { rm } from 'node:fs/promises'
import { blueprint } from '@impresario/core'
import type { Job, Storage } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import { createMemoryStorage, openEmbeddedStorage } from '@impresario/storage-embedded'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { startPostgres } from '../servers/postgres-server.ts'
import { startRedis } from '../servers/redis-server.ts'
import { newDirectory } from '../servers/run-directory.ts'

export const STORAGES = ['memory', 'file', 'redis', 'postgres'] as const
export type StorageKind = (typeof STORAGES)[number]

interface StorageServer {
  /** For `STORAGE_URL`. */
  readonly url: string
  open(): Promise<Storage> | Storage
  /** What the server does by itself in the minutes after so many writes, so that no measurement falls into it. */
  settle?(): Promise<unknown>
  remove(): Promise<void>
}

export interface FilledStorage {
  readonly url: string
  remove(): Promise<void>
}

const BATCH = 200
const WIDTH = 4
/** One job in so many is of a blueprint of its own: `SPREAD`. */
const SPREAD_EVERY = 500
export const SPREAD = 'seldom_before'

/** A storage with so many jobs in it that have ended. */
export async function filledStorage(kind: StorageKind, jobs: number): Promise<FilledStorage> {
  if (kind === 'memory') return { url: 'memory:', remove: () => Promise.resolve() }
  const place = await placeOf(kind)
  if (jobs > 0) {
    const storage = await place.open()
    await fill(storage, jobs)
    await storage.close()
    await place.settle?.()
  }
  return place
}

async function placeOf(kind: Exclude<StorageKind, 'memory'>): Promise<StorageServer> {
  if (kind === 'redis') {
    const server = await startRedis(['--appendfsync', 'everysec'])
    const { url } = server
    return { url, open: () => openRedisStorage({ url }), remove: () => server.remove() }
  }
  if (kind === 'postgres') {
    const server = await startPostgres()
    const { url } = server
    return {
      url,
      open: () => openPostgresStorage({ url }),
      settle: async () => {
        await server.query('VACUUM (ANALYZE)')
        await server.query('CHECKPOINT')
      },
      remove: () => server.stop(),
    }
  }
  const directory = newDirectory('figures')
  return {
    url: `file:${directory}`,
    open: () => openEmbeddedStorage({ directory }),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

const done = blueprint('done_before', { start: 'end' }, (state) => ({ end: state.end() }))

/** A job that has run, as the engine leaves it. */
async function modelJob(): Promise<Job> {
  const storage = createMemoryStorage({ now: () => Date.now() })
  const orchestrator = createOrchestrator({ storage, blueprints: [done], settings: { logLevel: 'error' } })
  await orchestrator.start()
  try {
    const job = await orchestrator.client().start(done, {}, { metadata: { city: 'Valencia', order: 'A-1001' } })
    await job.result()
    const stored = await storage.read('job', job.id)
    if (stored === undefined) throw new Error('The job is not there.')
    return stored.value
  } finally {
    await orchestrator.stop()
  }
}

/** An hour apart from now, and each some milliseconds after the one before. */
function idOf(index: number, beginMs: number): string {
  const time = (beginMs + index).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${index.toString(16).padStart(12, '0')}`
}

async function fill(storage: Storage, count: number): Promise<void> {
  const model = await modelJob()
  const begin = Date.now() - 3_600_000 - count
  let made = 0
  const lane = async (): Promise<void> => {
    while (made < count) {
      const first = made
      const size = Math.min(BATCH, count - made)
      made += size
      const put = Array.from({ length: size }, (_, at) => {
        const id = idOf(first + at, begin)
        const name = (first + at) % SPREAD_EVERY === 0 ? SPREAD : model.blueprint
        const facets = {
          owner: model.client.id,
          status: model.status,
          name,
          text: `${id} ${name} end city valencia order a-1001`,
        }
        return { kind: 'job' as const, id, value: { ...model, id, blueprint: name }, version: 1, facets }
      })
      const outcome = await storage.commit({ put })
      if (outcome !== 'committed') throw new Error(`A batch of ${size} jobs was refused: ${outcome}.`)
      await storage.sync()
    }
  }
  await Promise.all(Array.from({ length: WIDTH }, lane))
}
