import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { afterAll, beforeAll } from 'vitest'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

const START = Date.UTC(2026, 0, 1)

let server: TestServer | undefined
let namespaces = 0

beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server?.remove())

/** Each case has a namespace of its own, and a clock that only the case moves. */
async function openRedis(shards: number): Promise<StorageUnderTest> {
  let now = START
  const url = `${server?.url ?? ''}?namespace=n${++namespaces}&shards=${shards}`
  const open = () => openRedisStorage({ url, instance: 'one', now: () => now, waitMs: 30_000 })
  let storage = await open()
  return {
    storage,
    async advance(ms) {
      now += ms
    },
    async reopen() {
      await storage.close()
      storage = await open()
      return storage
    },
    close: () => storage.close(),
  }
}

describeStorage('redis', () => openRedis(1))
describeStorage('redis in four shards', () => openRedis(4))
