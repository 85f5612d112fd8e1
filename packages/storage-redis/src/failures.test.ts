import type { Item, Put, Storage } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import { Redis } from 'ioredis'
import { afterEach, expect, test } from 'vitest'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

const HOUR = 3_600_000
const UNAVAILABLE = { code: 'STORAGE_UNAVAILABLE' }

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function server(extra: readonly string[] = []): Promise<TestServer> {
  const started = await startRedis(extra)
  open.push({ close: () => started.remove() })
  return started
}

async function storageOf(url: string, waitMs = 30_000): Promise<Storage> {
  const storage = await openRedisStorage({ url, instance: 'one', waitMs })
  open.unshift(storage)
  return storage
}

function item(id: string): Item {
  return { queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { id } }
}

function quota(id: string, version: number): Put {
  const value = { period: '2026-01', used: version }
  return { kind: 'quota', id, version, value, facets: { owner: 'ann', status: 'open' } }
}

test.for([1, 3])(
  '[G-02] a server that is killed has everything that it acknowledged, each batch whole, in %i shards',
  { timeout: 120_000 },
  async (shards) => {
    const redis = await server()
    const url = `${redis.url}?shards=${shards}`
    const storage = await storageOf(url, 3_000)
    const acknowledged = new Map<string, number>()
    let attempted = 0
    let isOver = false
    /** Each writer increments its own record, with one item per step, until the server is gone. */
    const write = async (id: string): Promise<void> => {
      for (let version = 1; ; version++) {
        attempted++
        try {
          expect(await storage.commit({ put: [quota(id, version)], enqueue: [item(`${id}:${version}`)] })).toBe(
            'committed',
          )
        } catch (error) {
          if (!isImpresarioError(error, 'STORAGE_UNAVAILABLE')) throw error
          return
        }
        acknowledged.set(id, version)
        if (version === 20 && !isOver) {
          isOver = true
          await redis.kill()
        }
      }
    }
    const writers = Array.from({ length: 16 }, (_, index) => `w${index}`)
    await Promise.all(writers.map((id) => write(id)))
    expect(isOver).toBe(true)
    await redis.start()

    const after = await storageOf(url)
    let total = 0
    for (const id of writers) {
      const stored = (await after.read('quota', id))?.version ?? 0
      // A call in flight may have succeeded: one step at most.
      expect(stored - (acknowledged.get(id) ?? 0)).toBeGreaterThanOrEqual(0)
      expect(stored - (acknowledged.get(id) ?? 0)).toBeLessThanOrEqual(1)
      total += stored
    }
    expect(total).toBeLessThanOrEqual(attempted)
    expect(await after.lanes('turns')).toEqual([{ lane: 'a', ready: total }])
    expect(await after.counts('quota', { owner: 'ann' })).toEqual({ open: writers.length })
    expect(await after.list('quota', { owner: 'ann', limit: 100 })).toHaveLength(writers.length)
  },
)

test(
  '[G-02] tokens of before a crash are not given again, and leases of workers go on',
  { timeout: 120_000 },
  async () => {
    const redis = await server()
    const storage = await storageOf(redis.url)
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    const before = (await storage.claim('turns', { limit: 1, leaseMs: HOUR, holder: 'worker' })).leases
    await redis.kill()
    await redis.start()
    const after = (await storage.claim('turns', { limit: 9, leaseMs: HOUR })).leases
    expect(after.map(({ id }) => id)).toEqual(['i2'])
    expect(after[0]?.token).toBeGreaterThan(before[0]?.token ?? Infinity)
    expect(await storage.renew(before, HOUR)).toEqual([true])
  },
)

test(
  '[G-02] while there is no server calls wait a little and are refused; then it goes on',
  { timeout: 60_000 },
  async () => {
    const redis = await server()
    const storage = await storageOf(redis.url, 2_000)
    await storage.commit({ enqueue: [item('i1')] })
    await redis.kill()
    await expect(storage.commit({ enqueue: [item('i2')] })).rejects.toMatchObject(UNAVAILABLE)
    await expect(storage.read('job', 'j1')).rejects.toMatchObject(UNAVAILABLE)
    await redis.start()
    const claimed = async (): Promise<readonly string[]> => {
      for (;;) {
        try {
          return (await storage.claim('turns', { limit: 9, leaseMs: HOUR })).leases.map(({ id }) => id)
        } catch (error) {
          if (!isImpresarioError(error, 'STORAGE_UNAVAILABLE')) throw error
        }
      }
    }
    // The second one was refused before it was sent, and is not sent later.
    expect(await claimed()).toEqual(['i1'])
  },
)

test('[G-02] a server that does not answer is refused after a while', { timeout: 60_000 }, async () => {
  const redis = await server()
  const storage = await storageOf(redis.url, 2_000)
  redis.pause()
  await expect(storage.read('job', 'j1')).rejects.toMatchObject(UNAVAILABLE)
  await expect(storage.commit({ put: [quota('q1', 1)] })).rejects.toMatchObject(UNAVAILABLE)
  redis.resume()
})

test('[G-02] a call that finds the server without our functions brings them', async () => {
  const redis = await server()
  const storage = await storageOf(redis.url)
  await storage.commit({ enqueue: [item('i1')] })
  const operator = new Redis(redis.port)
  await operator.function('FLUSH')
  await operator.script('FLUSH')
  const both = await Promise.all([
    storage.commit({ enqueue: [item('i2')] }),
    storage.commit({ put: [quota('q1', 1)] }),
    storage.claim('turns', { limit: 1, leaseMs: HOUR }),
  ])
  expect(both).toMatchObject(['committed', 'committed', { leases: [{ id: 'i1' }] }])
  operator.disconnect()
})

test('[G-02] a full server refuses whole batches and still answers questions', async () => {
  const redis = await server(['--maxmemory', '20mb', '--maxmemory-policy', 'noeviction'])
  const storage = await storageOf(redis.url)
  await storage.commit({ put: [quota('q1', 1)] })
  const operator = new Redis(redis.port)
  await operator.config('SET', 'maxmemory', '1mb')
  const batch = { put: [quota('q1', 2)], enqueue: [item('i1')] }
  await expect(storage.commit(batch)).rejects.toMatchObject({ code: 'STORAGE_REFUSED' })
  expect((await storage.read('quota', 'q1'))?.version).toBe(1)
  await operator.config('SET', 'maxmemory', '0')
  expect(await storage.commit(batch)).toBe('committed')
  operator.disconnect()
})
