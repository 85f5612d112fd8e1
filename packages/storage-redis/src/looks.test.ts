import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Job, ListQuery, Storage } from '@impresario/core'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

let server: TestServer

beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server.remove())

const COUNT = 3_000
const LOOKS = 100
const idOf = (index: number): string => `j${String(index).padStart(5, '0')}`

/** Boundary: the storage does not look into what it keeps. */
const JOB = { state: 'work', data: {} } as unknown as Job

async function filled(shards: number): Promise<Storage> {
  const storage = await openRedisStorage({
    url: `${server.url}?namespace=looks${shards}&shards=${shards}`,
    waitMs: 30_000,
  })
  const put = Array.from({ length: COUNT }, (_, index) => ({
    kind: 'job' as const,
    id: idOf(index),
    value: JOB,
    version: 1,
    facets: { owner: 'ann', status: 'finished', name: 'press', text: index % 1_400 === 5 ? 'a needle' : 'hay' },
  }))
  for (let at = 0; at < COUNT; at += 500) {
    await Promise.all(put.slice(at, at + 500).map((one) => storage.commit({ put: [one] })))
  }
  return storage
}

test.for([1, 5])('[M-02] a search with %i shards ends after its looks, and says how far it came', async (shards) => {
  const storage = await filled(shards)
  const query: ListQuery = { limit: 20, looksMax: LOOKS }
  const none = await storage.list('job', { ...query, search: 'nothing' })
  expect(none).toHaveLength(0)
  // No shard looks through more than its share, and the page ends where the first of them stops.
  const looked = COUNT - Number(none.next?.slice(1))
  expect(looked).toBeGreaterThan(0)
  expect(looked).toBeLessThanOrEqual(LOOKS)
  const other = await storage.list('job', { ...query, owner: 'ann', status: 'failed' })
  expect([other.length, other.next]).toEqual([0, undefined])
  const found: string[] = []
  let before: string | undefined
  let pages = 0
  do {
    const page = await storage.list('job', { ...query, search: 'needle', ...(before === undefined ? {} : { before }) })
    found.push(...page.map(({ id }) => id))
    before = page.next
    pages += 1
  } while (before !== undefined)
  expect(found).toEqual([idOf(2_805), idOf(1_405), idOf(5)])
  expect(pages).toBeGreaterThanOrEqual(COUNT / LOOKS)
  // Records that fit are no looks in vain.
  expect(await storage.list('job', { limit: 400, looksMax: LOOKS, owner: 'ann' })).toHaveLength(400)
  await storage.close()
})
