import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { createMemoryStorage, EmbeddedStorage } from './embedded-storage.ts'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'
import { openEmbeddedStorage } from './open.ts'
import { createVolatileJournal } from './volatile-journal.ts'

const START = Date.UTC(2026, 0, 1)

async function openMemory(): Promise<StorageUnderTest> {
  let now = START
  const storage = createMemoryStorage({ now: () => now })
  return {
    storage,
    async advance(ms) {
      now += ms
    },
    close: () => storage.close(),
  }
}

async function openFile(): Promise<StorageUnderTest> {
  let now = START
  const directory = mkdtempSync(join(tmpdir(), 'impresario-'))
  let storage = openEmbeddedStorage({ directory, now: () => now, cacheMax: 3 })
  return {
    storage,
    async advance(ms) {
      now += ms
    },
    async reopen() {
      await storage.close()
      storage = openEmbeddedStorage({ directory, now: () => now, cacheMax: 3 })
      return storage
    },
    async close() {
      await storage.close()
      rmSync(directory, { recursive: true })
    },
  }
}

/** Nearly everything that waits is on the disk alone. Turns stay in memory: what is known of them after a crash does too. */
const FAR = { queues: ['tasks', 'timers', 'mail', 'outbox', 'firings', 'events'], aheadMs: 2 } as const

/** A restart here is a crash: the old storage is left as it stands. */
async function openVolatile(
  kept: Pick<EmbeddedStorageOptions, 'restingMin' | 'farItems'> = {},
): Promise<StorageUnderTest> {
  let now = START
  const bounds = { cacheMax: 3, ...kept }
  let journal = createVolatileJournal()
  const schedule = (run: () => void): void => queueMicrotask(run)
  const storage = new EmbeddedStorage({ now: () => now, journal, schedule, ...bounds })
  let current = storage
  return {
    storage,
    async advance(ms) {
      now += ms
    },
    async reopen() {
      journal = journal.reopened()
      current = new EmbeddedStorage({ now: () => now, journal, schedule, ...bounds })
      return current
    },
    close: () => current.close(),
  }
}

describeStorage('memory', openMemory, { isVolatile: true })
describeStorage('file', openFile)
describeStorage('simulated disk', () => openVolatile())
describeStorage('simulated disk whose items rest', () => openVolatile({ restingMin: 0 }))
describeStorage('simulated disk, with far items on it alone', () => openVolatile({ restingMin: 0, farItems: FAR }))
