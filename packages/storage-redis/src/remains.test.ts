import type { Item, Put, Queue } from '@impresario/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

let server: TestServer
beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server.remove())

const QUEUE: Queue = 'tasks'
const SECOND = 1_000

/** Items with every duration and fallback that exists, so that each leaves entries in every set. */
function itemsOf(round: number): readonly Item[] {
  return Array.from({ length: 24 }, (_, index) => ({
    queue: QUEUE,
    id: `i${round}-${index}`,
    lane: `lane${index % 3}`,
    priority: index % 4,
    delayMs: index % 2 === 0 ? 0 : SECOND,
    payload: index,
    ...(index % 3 === 0 ? {} : { fallback: { lane: `lane${(index + 1) % 4}`, afterMs: (index % 5) * SECOND } }),
    ...(index % 4 === 0 ? {} : { unclaimedMs: (1 + (index % 6)) * SECOND }),
    ...(index % 5 === 0 ? {} : { runMs: (1 + (index % 3)) * SECOND }),
    ...(index % 6 === 0 ? { settleMs: 4 * SECOND } : {}),
  }))
}

function putsOf(round: number, version: number): readonly Put[] {
  return Array.from({ length: 12 }, (_, index) => ({
    kind: 'delivery',
    id: `d${round}-${index}`,
    version,
    value: { index },
    facets: {
      owner: `owner${index % 2}`,
      ...(index % 3 === 0 ? {} : { status: version === 1 ? 'open' : 'done', name: `name${index % 2}` }),
      ...((index + version) % 2 === 0 ? { text: `text ${index}` } : {}),
    },
    ...(index % 4 === version ? { expiresMs: 2 * SECOND } : {}),
  }))
}

test.for([1, 3])(
  '[G-02] what is settled, removed, dropped or expired leaves no key behind, in %i shards',
  async (shards) => {
    let now = Date.UTC(2026, 0, 1)
    const url = `${server.url}?namespace=of${shards}&shards=${shards}`
    const storage = await openRedisStorage({ url, now: () => now, waitMs: 30_000 })
    for (let round = 0; round < 6; round++) {
      await storage.commit({ enqueue: itemsOf(round), put: putsOf(round, 1) })
      const { leases } = await storage.claim(QUEUE, { limit: 5, leaseMs: SECOND })
      now += SECOND
      await storage.commit({ put: putsOf(round, 2).slice(0, 3) })
      await storage.renew(leases.slice(0, 2), 0)
      await storage.renew(leases.slice(2, 4), 2 * SECOND)
      await storage.claim(QUEUE, { limit: 4, leaseMs: 2 * SECOND, lanes: ['lane0', 'lane3'], holder: 'worker' })
      now += 2 * SECOND
      const { leases: over } = await storage.claimExpired(QUEUE, { limit: 4, leaseMs: SECOND })
      for (const settle of over.slice(0, 2)) expect(await storage.commit({ settle })).toBe('committed')
      await storage.commit({ enqueue: itemsOf(round).slice(3, 9) })
      await storage.lanes(QUEUE)
    }
    for (let round = 0; round < 6; round++) {
      await storage.commit({
        remove: itemsOf(round),
        drop: putsOf(round, 1).map(({ kind, id }) => ({ kind, id })),
      })
    }
    expect(await storage.claim(QUEUE, { limit: 9, leaseMs: 1 })).toEqual({ leases: [], nextInMs: undefined })
    expect(await storage.counts('delivery', {})).toEqual({})
    const client = new Redis(server.port)
    const keys = (await client.keys(`impresario:{of${shards}*`)).map((key) => key.replace(/^.*}:/, ''))
    client.disconnect()
    const own = Array.from({ length: shards }, () => ['format', `q:${QUEUE}:turn`, 'seq', 'token']).flat()
    expect(keys.toSorted()).toEqual([...own, ...(shards === 1 ? [] : ['format'])].toSorted())
    await storage.close()
  },
)
