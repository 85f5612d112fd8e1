import type { Job, Lease, Storage } from '@impresario/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

/*
 * What the life of a one-task job costs inside of Redis: calls from outside, and commands that they run. The figures do not
 * depend on the machine. Whoever makes a job dearer has to change a number here, and say why.
 */

let server: TestServer
let redis: Redis
let storage: Storage

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
  storage = await openRedisStorage({ url: `${server.url}?namespace=cost`, waitMs: 30_000 })
}, 300_000)
afterAll(async () => {
  await storage.close()
  redis.disconnect()
  await server.remove()
})

/** Boundary: the storage does not look into what it keeps. */
const JOB = { state: 'work', data: {} } as unknown as Job

const facets = (status: string) => ({ owner: 'client', status, name: 'noop', text: 'noop' })

async function create(id: string): Promise<void> {
  await storage.commit({
    put: [{ kind: 'job', id, value: JOB, version: 1, facets: facets('waiting') }],
    enqueue: [{ queue: 'tasks', id: `${id}.1.0`, lane: 'worker:w', priority: 0, delayMs: 0, payload: { jobId: id } }],
  })
}

async function end(id: string, lease: Lease): Promise<void> {
  await storage.commit({
    put: [{ kind: 'job', id, value: JOB, version: 2, facets: facets('finished') }],
    settle: lease,
  })
}

async function lives(ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map(create))
  const { leases } = await storage.claim('tasks', { lanes: ['worker:w'], limit: ids.length, leaseMs: 60_000 })
  expect(leases).toHaveLength(ids.length)
  await Promise.all(leases.map((lease) => end(lease.id.slice(0, -'.1.0'.length), lease)))
}

interface Counts {
  readonly calls: number
  readonly commands: number
  readonly bytes: number
}

/** Calls of functions, commands inside of them, and bytes sent to the server, of what `run` does. */
async function countOf(run: () => Promise<void>): Promise<Counts> {
  await redis.config('RESETSTAT')
  await run()
  const bytes = Number(/total_net_input_bytes:(\d+)/.exec(await redis.info('stats'))?.[1] ?? 0)
  const stats = await redis.info('commandstats')
  let [calls, commands] = [0, 0]
  for (const [, name = '', count = ''] of stats.matchAll(/^cmdstat_([a-z|]+):calls=(\d+)/gm)) {
    if (name === 'fcall') calls += Number(count)
    else if (!['config|resetstat', 'info', 'ping', 'client', 'select'].includes(name)) commands += Number(count)
  }
  return { calls, commands, bytes }
}

test('[G-02] a job of one task takes three calls of Redis, and no more commands inside of them than it did', async () => {
  await lives(['warm'])
  const one = await countOf(() => lives(['alone']))
  expect(one.calls).toBe(3)
  expect(one.commands).toBeLessThanOrEqual(47)
})

test('[G-02] a hundred jobs at the same time share their calls', async () => {
  const hundred = await countOf(() => lives(Array.from({ length: 100 }, (_, index) => `job${index}`)))
  expect(hundred.calls).toBeLessThanOrEqual(9)
  expect(hundred.commands / 100).toBeLessThanOrEqual(9.5)
  expect(hundred.bytes / 100).toBeLessThanOrEqual(260)
})
