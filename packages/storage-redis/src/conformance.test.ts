import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { afterAll, beforeAll } from 'vitest'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'
import { openInBundles, openUnderTest } from './under-test.fixture.ts'

let server: TestServer | undefined
let namespaces = 0

beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server?.remove())

/** Each case has a namespace of its own. */
function newUrl(shards = 1): string {
  namespaces += 1
  return `${server?.url ?? ''}?namespace=n${namespaces}&shards=${shards}`
}

describeStorage('redis', (): Promise<StorageUnderTest> => openUnderTest(newUrl()))
describeStorage('redis in four shards', () => openUnderTest(newUrl(4)))
describeStorage('redis, each call in a bundle', () => openInBundles(newUrl()))
