import type { StorageUnderTest } from '@impresario/conformance'
import type { Wire } from './client/connection.ts'
import { openRedisStorage } from './open.ts'
import type { RedisStorage } from './redis-storage.ts'
import { bareStorage } from './shards.fixture.ts'

const START = Date.UTC(2026, 0, 1)

/** The storage at this address, with a clock that only the case moves. */
export async function openUnderTest(url: string): Promise<StorageUnderTest> {
  return underTest((now) => openRedisStorage({ url, instance: 'one', now, waitMs: 30_000 }))
}

/** The same, on a connection where no call is sent alone: each is bundled with a call that does nothing. */
export async function openInBundles(url: string): Promise<StorageUnderTest> {
  const wireOf = (wire: Wire): Wire => ({
    async call(name, args, shard) {
      const [reply] = await Promise.all([
        wire.call(name, args, shard),
        wire.call('renew', [args[0], [[], 0, '']], shard),
        wire.call('peek', [args[0], ['turns', []]], shard),
      ])
      return reply
    },
    listen: (...given) => wire.listen(...given),
    close: () => wire.close(),
  })
  return underTest(async (now) => {
    const { storage, connection } = bareStorage(url, { instance: 'one', patienceMs: 1_000, wireOf, now })
    await connection.load()
    await storage.recover()
    return storage
  })
}

async function underTest(open: (now: () => number) => Promise<RedisStorage>): Promise<StorageUnderTest> {
  let at = START
  const now = (): number => at
  let storage = await open(now)
  return {
    storage,
    async advance(ms) {
      at += ms
    },
    async reopen() {
      await storage.close()
      storage = await open(now)
      return storage
    },
    close: () => storage.close(),
  }
}
