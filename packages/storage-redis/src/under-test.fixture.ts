import type { StorageUnderTest } from '@impresario/conformance'
import { openRedisStorage } from './open.ts'

const START = Date.UTC(2026, 0, 1)

/** What the address names, with a clock that only the case moves. */
export async function openUnderTest(url: string): Promise<StorageUnderTest> {
  let now = START
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
