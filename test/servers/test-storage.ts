import type { Storage } from '@impresario/core'
import { createMemoryStorage, openEmbeddedStorage } from '@impresario/storage-embedded'
import { onTestFinished } from 'vitest'
import { askerOf, stopClock } from './postgres-clock.ts'
import { newDirectory } from './run-directory.ts'
import { newNamespace, storageGround } from './storage-ground.ts'
import { passedThrough, storageTraffic } from './storage-traffic.ts'

interface TestStorageOptions {
  /** The test's own clock, which the storage uses. */
  readonly now: () => number
}

/** Storages opened outside of every test. `close-storages.ts` closes them at the end of the file. */
const leftOpen = new Set<Storage>()

export async function closeTestStorages(): Promise<void> {
  const all = [...leftOpen]
  leftOpen.clear()
  await Promise.all(all.map((storage) => storage.close()))
}

/** A new and empty storage, of this project's kind. It is closed automatically. */
export function testStorage({ now }: TestStorageOptions): Storage {
  const { backend, url = '' } = storageGround()
  if (backend === 'memory') return createMemoryStorage({ now })
  const opening = opened(backend, url, now)
  const inner = opening.then(({ storage }) => storage)
  const storage = passedThrough(inner, (work) =>
    storageTraffic.pass(async () => {
      const { setTime } = await opening
      await setTime()
      return work(await inner)
    }),
  )
  closeAtEnd(storage)
  return storage
}

function closeAtEnd(storage: Storage): void {
  try {
    onTestFinished(() => storage.close())
  } catch {
    leftOpen.add(storage)
  }
}

interface Opened {
  readonly storage: Storage
  /** Before each call: a server that does not use our clock is told the time. */
  readonly setTime: () => Promise<void>
}

const asksUs = async (): Promise<void> => {}

async function opened(backend: 'embedded' | 'redis' | 'postgres', url: string, now: () => number): Promise<Opened> {
  if (backend === 'embedded') {
    return { storage: openEmbeddedStorage({ directory: newDirectory('embedded'), now }), setTime: asksUs }
  }
  const namespace = newNamespace()
  if (backend === 'redis') {
    const { openRedisStorage } = await import('@impresario/storage-redis')
    return { storage: await openRedisStorage({ url: `${url}?namespace=${namespace}`, now }), setTime: asksUs }
  }
  const { openPostgresStorage } = await import('@impresario/storage-postgres')
  const storage = await openPostgresStorage({ url, namespace, poolMax: 4, listen: false, pollMs: 3_600_000 })
  const setClock = await stopClock(askerOf(url), namespace)
  return { storage, setTime: teller(now, setClock) }
}

/** Sends each new time to the server once, and holds calls until the server has it. */
function teller(now: () => number, setClock: (at: number) => Promise<void>): () => Promise<void> {
  let told: number | undefined
  let telling = Promise.resolve()
  return () => {
    const at = now()
    if (at !== told) {
      told = at
      telling = telling.then(() => setClock(at))
    }
    return telling
  }
}
