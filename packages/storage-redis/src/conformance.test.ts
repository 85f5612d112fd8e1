import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { afterAll, beforeAll } from 'vitest'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'
import { openUnderTest } from './under-test.fixture.ts'

let server: TestServer | undefined
let namespaces = 0

beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server?.remove())

/** Each case has a namespace of its own. */
function openRedis(shards: number): Promise<StorageUnderTest> {
  namespaces += 1
  return openUnderTest(`${server?.url ?? ''}?namespace=n${namespaces}&shards=${shards}`)
}

describeStorage('redis', () => openRedis(1))
describeStorage('redis in four shards', () => openRedis(4))
