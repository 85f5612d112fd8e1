import type { Put } from '@impresario/core'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openRedisStorage } from '../open.ts'
import { startRedis } from '../redis-server.fixture.ts'
import type { TestServer } from '../redis-server.fixture.ts'
import type { RedisStorage } from '../redis-storage.ts'

let server: TestServer
let operator: Redis
let namespaces = 0
const open: { close(): Promise<void> }[] = []
beforeAll(async () => {
  server = await startRedis()
  operator = new Redis(server.port)
}, 300_000)
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(async () => {
  operator.disconnect()
  await server.remove()
})

async function opened(): Promise<RedisStorage> {
  namespaces += 1
  const storage = await openRedisStorage({ url: `${server.url}?namespace=b${namespaces}`, waitMs: 30_000 })
  open.push(storage)
  return storage
}

function delivery(id: string, version: number, value = {}): Put {
  return { kind: 'delivery', id, version, value }
}

async function callsOfFunctions(): Promise<number> {
  const stats = await operator.info('commandstats')
  return Number(/cmdstat_fcall:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

test('[G-02] calls that are made together are sent together, and each has its own answer', async () => {
  const storage = await opened()
  await storage.commit({ put: [delivery('7', 1)] })
  const before = await callsOfFunctions()
  const ids = Array.from({ length: 100 }, (_, index) => String(index))
  const outcomes = await Promise.all(ids.map((id) => storage.commit({ put: [delivery(id, 1, { id })] })))
  expect(outcomes.filter((outcome) => outcome === 'conflict')).toHaveLength(1)
  expect(outcomes[7]).toBe('conflict')
  const found = await Promise.all(ids.map((id) => storage.read('delivery', id)))
  expect(found.map((stored) => stored?.value)).toEqual(ids.map((id) => (id === '7' ? {} : { id })))
  expect((await callsOfFunctions()) - before).toBeLessThanOrEqual(8)
})

test('[G-02] a call that fails does not disturb those that went with it', async () => {
  const storage = await opened()
  // A key of a type that this package does not use there.
  await operator.set(`impresario:{b${namespaces}}:r:quota:record`, 'x')
  const quota: Put = { kind: 'quota', id: 'ann', version: 1, value: { period: '2026-01', used: 1 } }
  const outcomes = await Promise.allSettled([
    storage.commit({ put: [delivery('d1', 1)] }),
    storage.commit({ put: [quota] }),
    storage.commit({ put: [delivery('d2', 1)] }),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect((await storage.list('delivery', { limit: 9 })).map(({ id }) => id)).toEqual(['d2', 'd1'])
})

test('[G-02] what only reads is answered by a full server, also when it was asked for with what writes', async () => {
  const storage = await opened()
  await storage.commit({ put: [delivery('d1', 1)] })
  await operator.config('SET', 'maxmemory', '1mb')
  const calls = [1, 2, 3].flatMap(() => [storage.commit({ put: [delivery('d1', 2)] }), storage.read('delivery', 'd1')])
  const outcomes = await Promise.allSettled<unknown>(calls)
  await operator.config('SET', 'maxmemory', '0')
  expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([false, true, false, true, false, true])
  expect(await storage.commit({ put: [delivery('d1', 2)] })).toBe('committed')
})

test('[G-02] long bodies arrive whole, in bundles of bounded size', async () => {
  const storage = await opened()
  const text = 'x'.repeat(100_000)
  const ids = Array.from({ length: 12 }, (_, index) => `d${index}`)
  await Promise.all(ids.map((id) => storage.commit({ put: [delivery(id, 1, { text })] })))
  const found = await Promise.all(ids.map((id) => storage.read('delivery', id)))
  expect(found.every((stored) => stored?.value['text'] === text)).toBe(true)
})
