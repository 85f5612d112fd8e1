import { randomUUID } from 'node:crypto'
import { describeStorage } from '@impresario/conformance'
import type { Batch, Item, Job } from '@impresario/core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openRedisStorage } from './open.ts'
import { placementOf } from './shards/placement.ts'
import { startCluster } from './redis-cluster.fixture.ts'
import type { TestCluster } from './redis-cluster.fixture.ts'
import { openUnderTest } from './under-test.fixture.ts'

const SHARDS = 4

let cluster: TestCluster | undefined
let namespaces = 0
beforeAll(async () => {
  cluster = await startCluster(3)
}, 300_000)
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(() => cluster?.remove())

function newUrl(shards = SHARDS): string {
  namespaces += 1
  return `${cluster?.url ?? ''}&namespace=c${namespaces}&shards=${shards}`
}

describeStorage('redis in four shards of a cluster', () => openUnderTest(newUrl()), {
  without: {
    reason: 'takes minutes with so many round trips; it runs in four shards of one server',
    titles: ['[G-01] sequences of 40 commands agree with the reference model'],
  },
})

/** Realistic jobs: a record and a turn, named by a UUID. */
function jobBatch(id: string): Batch {
  const value = { id } as unknown as Job
  return {
    put: [{ kind: 'job', id, version: 1, value, facets: { owner: 'ann', status: 'running' } }],
    enqueue: [{ queue: 'turns', id, lane: 'ann', priority: 0, delayMs: 0, payload: { visit: 1 } }],
  }
}

test('[G-02] a namespace of twelve shards is spread over all primaries of a Cluster', async () => {
  const url = newUrl(12)
  const storage = await openRedisStorage({ url, waitMs: 30_000 })
  open.push(storage)
  const ids = Array.from({ length: 120 }, () => randomUUID())
  for (const id of ids) expect(await storage.commit(jobBatch(id))).toBe('committed')
  expect(await storage.counts('job', { owner: 'ann' })).toEqual({ running: 120 })
  expect((await storage.list('job', { limit: 200 })).map(({ id }) => id)).toEqual(ids.toSorted().toReversed())
  expect(await storage.lanes('turns')).toEqual([{ lane: 'ann', ready: 120 }])

  const tag = `{c${namespaces}/`
  const records: number[] = []
  for (const operator of cluster?.operators ?? []) {
    const keys = await operator.keys(`impresario:${tag}*:r:job:record`)
    const lengths = await Promise.all(keys.map((key) => operator.hlen(key)))
    records.push(lengths.reduce((sum, length) => sum + length, 0))
  }
  expect(records).toHaveLength(3)
  // Two fields per record. The minimum required of each primary is far below its share.
  expect(records.reduce((sum, count) => sum + count, 0)).toBe(240)
  expect(Math.min(...records)).toBeGreaterThan(10)

  const { leases } = await storage.claim('turns', { limit: 200, leaseMs: 60_000 })
  expect(leases.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  expect(new Set(leases.map(({ token }) => token)).size).toBe(120)
  expect(await storage.renew(leases, 60_000)).toEqual(leases.map(() => true))
})

test('[G-02] hints of all shards reach every instance, and what it had called empty is asked again', async () => {
  const url = newUrl(12)
  const [one, two] = [await openRedisStorage({ url, waitMs: 30_000 }), await openRedisStorage({ url, waitMs: 30_000 })]
  open.push(one, two)
  const heard = new Set<string>()
  let tell: () => void = () => undefined
  two.watch('turns', (lane) => {
    heard.add(lane)
    tell()
  })
  const placement = placementOf(12)
  const told = new Set<number>()
  for (let number = 0; told.size < 12; number += 1) {
    const id = `i${number}`
    const shard = placement.ofItem('turns', id)
    if (told.has(shard)) continue
    told.add(shard)
    // As far as this instance knows, nothing is there, even right after a query.
    expect((await two.claim('turns', { lanes: [id], limit: 1, leaseMs: 1_000 })).leases).toEqual([])
    const arrived = new Promise<void>((resolve) => {
      tell = resolve
    })
    const item: Item = { queue: 'turns', id, lane: id, priority: 0, delayMs: 0, payload: null }
    // The subscription uses another connection: until it is established, hints are missed.
    const nothing = Symbol('nothing yet')
    for (;;) {
      await one.commit({ enqueue: [item] })
      if (told.size > 1 || (await Promise.race([arrived, Promise.resolve(nothing)])) !== nothing) break
    }
    await arrived
    expect(heard.has(id)).toBe(true)
    expect((await two.claim('turns', { lanes: [id], limit: 1, leaseMs: 60_000 })).leases).toMatchObject([{ id }])
  }
})

test('[G-02] one primary that promises less is found among all, and the strict mode refuses the Cluster', async () => {
  const [, second] = cluster?.operators ?? []
  const url = newUrl()
  const strict = await openRedisStorage({ url: `${url}&strict=true`, waitMs: 30_000 })
  open.push(strict)
  expect(strict.durability).toEqual({ promise: 'always', doubts: [] })
  await second?.config('SET', 'appendfsync', 'everysec')
  try {
    const refused = openRedisStorage({ url: `${url}&strict=true`, waitMs: 30_000 })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
    const storage = await openRedisStorage({ url, waitMs: 30_000 })
    open.push(storage)
    expect(storage.durability.promise).toBe('everysec')
  } finally {
    await second?.config('SET', 'appendfsync', 'always')
  }
})
