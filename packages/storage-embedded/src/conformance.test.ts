import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { createMemoryStorage, EmbeddedStorage } from './embedded-storage.ts'
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

/** A restart here is a crash: the old storage is left as it stands. */
async function openVolatile(): Promise<StorageUnderTest> {
  let now = START
  let journal = createVolatileJournal()
  const schedule = (run: () => void): void => queueMicrotask(run)
  const storage = new EmbeddedStorage({ now: () => now, journal, schedule, cacheMax: 3 })
  let current = storage
  return {
    storage,
    async advance(ms) {
      now += ms
    },
    async reopen() {
      journal = journal.reopened()
      current = new EmbeddedStorage({ now: () => now, journal, schedule, cacheMax: 3 })
      return current
    },
    close: () => current.close(),
  }
}

describeStorage('memory', openMemory, { isVolatile: true })
describeStorage('file', openFile)
describeStorage('simulated disk', openVolatile)
