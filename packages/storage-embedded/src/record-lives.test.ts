import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import type { Put } from '@impresario/core'
import { temporaryDirectory } from './directory.fixture.ts'
import { EmbeddedStorage } from './embedded-storage.ts'
import type { Changes } from './journal.ts'
import { openEmbeddedStorage } from './open.ts'
import { RecordCache } from './record-cache.ts'
import { RecordExpiry } from './record-expiry.ts'
import { item, putJob } from './records.fixture.ts'
import { SWEEP_MAX } from './record-store.ts'
import { createVolatileJournal } from './volatile-journal.ts'

const DAY_MS = 86_400_000

function mortal(id: string, expiresMs: number, version = 1): Put {
  return { ...putJob(id, version), expiresMs }
}

function clockAt(start: number) {
  let now = start
  return {
    now: () => now,
    advance: (ms: number): void => {
      now += ms
    },
  }
}

/** What the file holds, seen through a connection of its own. */
function rowsIn(directory: string, sql: string): readonly unknown[] {
  const db = new DatabaseSync(join(directory, 'impresario.db'), { readOnly: true })
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => Object.values(row as object)[0] as unknown)
  } finally {
    db.close()
  }
}

test('[G-01] expired and dropped records leave the file', async () => {
  const directory = temporaryDirectory()
  const { now, advance } = clockAt(1_000)
  const storage = openEmbeddedStorage({ directory, now })
  await storage.commit({ put: [mortal('j1', 2_000), mortal('j2', 2_000), putJob('j3', 1), putJob('j4', 1)] })
  await storage.sync()
  await storage.commit({ drop: [{ kind: 'job', id: 'j4' }] })
  advance(2_000)
  await storage.commit({ put: [putJob('j2', 1)] })
  await storage.sync()
  expect(rowsIn(directory, 'SELECT id FROM records ORDER BY id')).toEqual(['j2', 'j3'])
  expect(rowsIn(directory, 'SELECT count FROM counts')).toEqual([2])
  expect(storage.integrityCheck()).toEqual([])
  await storage.close()
})

test('[G-01] a look at an expired record is enough for it to leave the file', async () => {
  const directory = temporaryDirectory()
  const { now, advance } = clockAt(1_000)
  const storage = openEmbeddedStorage({ directory, now })
  await storage.commit({ put: [mortal('j1', 30 * DAY_MS)] })
  await storage.sync()
  advance(30 * DAY_MS)
  expect(await storage.read('job', 'j1')).toBeUndefined()
  await storage.sync()
  expect(rowsIn(directory, 'SELECT id FROM records')).toEqual([])
  expect(rowsIn(directory, 'SELECT key FROM counts')).toEqual([])
  await storage.close()
})

test('[G-01] of many that expire at once each write deletes some, until none is left', async () => {
  const directory = temporaryDirectory()
  const { now, advance } = clockAt(1_000)
  const first = openEmbeddedStorage({ directory, now })
  const count = 2 * SWEEP_MAX + 50
  await first.commit({ put: Array.from({ length: count }, (_, index) => mortal(`j${index}`, 1_000)) })
  await first.sync()
  advance(1_000)
  expect(await first.counts('job', {})).toEqual({})
  await first.sync()
  expect(rowsIn(directory, 'SELECT count(*) FROM records')).toEqual([count - SWEEP_MAX])
  // Rows that are left do not count, not even for a storage that opens the file now.
  expect(first.integrityCheck()).toEqual([])
  await first.sync()
  await first.sync()
  expect(rowsIn(directory, 'SELECT count(*) FROM records')).toEqual([0])
  await first.close()
})

test('[G-01] rows that a crash left undeleted are not counted twice, and go with the next writes', async () => {
  const { now, advance } = clockAt(1_000)
  const writes: Changes[] = []
  const beforeWrite = async (changes: Changes): Promise<void> => {
    writes.push(changes)
  }
  const journal = createVolatileJournal({ beforeWrite })
  const first = new EmbeddedStorage({ now, journal })
  const count = SWEEP_MAX + 10
  const put = Array.from({ length: count }, (_, index) => mortal(`j${index}`, 1_000))
  await first.commit({ put: [...put, putJob('kept', 1)] })
  await first.sync()
  advance(1_000)
  await first.counts('job', {})
  await first.sync()
  const disk = journal.reopened()
  const left = (): number =>
    Array.from({ length: count }, (_, index) => disk.read('job', `j${index}`)).filter(Boolean).length
  expect(left()).toBe(10)
  const second = new EmbeddedStorage({ now, journal: disk })
  expect(await second.counts('job', {})).toEqual({ running: 1 })
  expect(await second.list('job', { limit: 9 })).toHaveLength(1)
  await second.commit({ put: [putJob('kept', 2)] })
  await second.sync()
  expect(left()).toBe(0)
  expect(await second.counts('job', {})).toEqual({ running: 1 })
})

test('[G-01] a record that is not in memory and has expired on disk is not found', async () => {
  const { now, advance } = clockAt(1_000)
  const storage = new EmbeddedStorage({ now, journal: createVolatileJournal(), cacheMax: 1, schedule: queueMicrotask })
  await storage.commit({ put: [mortal('j1', DAY_MS), mortal('j2', 2 * DAY_MS)] })
  await storage.sync()
  expect((await storage.read('job', 'j1'))?.version).toBe(1)
  expect((await storage.read('job', 'j2'))?.version).toBe(1)
  advance(DAY_MS)
  expect(await storage.read('job', 'j1')).toBeUndefined()
  expect(await storage.commit({ put: [putJob('j1', 2)] })).toBe('conflict')
  expect(await storage.commit({ put: [putJob('j1', 1)] })).toBe('committed')
})

test('[G-01] what is not yet written is known to expire, however far ahead that was', async () => {
  const { now, advance } = clockAt(1_000)
  const runs: (() => void)[] = []
  const journal = createVolatileJournal()
  const storage = new EmbeddedStorage({ now, journal, schedule: (run) => runs.push(run) })
  await storage.commit({ put: [mortal('j1', 2 * DAY_MS), mortal('j2', DAY_MS), mortal('j4', DAY_MS)] })
  for (const run of runs.splice(0)) run()
  await storage.sync()
  // The journal now has the first one with an expiry that differs from the one that waits to be written.
  await storage.commit({ put: [mortal('j1', DAY_MS, 2), mortal('j2', 3 * DAY_MS, 2), mortal('j3', DAY_MS)] })
  await storage.commit({ drop: [{ kind: 'job', id: 'j4' }] })
  advance(DAY_MS)
  expect(await storage.counts('job', {})).toEqual({ running: 1 })
  const syncing = storage.sync()
  for (const run of runs.splice(0)) run()
  await syncing
  expect(journal.read('job', 'j1')).toBeUndefined()
  expect(journal.read('job', 'j2')?.version).toBe(2)
  expect(await storage.counts('job', {})).toEqual({ running: 1 })
  advance(2 * DAY_MS)
  expect(await storage.counts('job', {})).toEqual({})
})

test('[G-01] a record whose life was prolonged in time survives the write that follows its old end', async () => {
  const { now, advance } = clockAt(1_000)
  const directory = temporaryDirectory()
  const runs: (() => void)[] = []
  const storage = openEmbeddedStorage({ directory, now, schedule: (run) => runs.push(run) })
  const flush = async (): Promise<void> => {
    const syncing = storage.sync()
    for (const run of runs.splice(0)) run()
    await syncing
  }
  await storage.commit({ put: [mortal('j1', 1_000)] })
  await flush()
  advance(999)
  await storage.commit({ put: [mortal('j1', DAY_MS, 2)] })
  advance(1)
  await flush()
  expect(rowsIn(directory, 'SELECT version FROM records')).toEqual([2])
  expect(storage.integrityCheck()).toEqual([])
  const closing = storage.close()
  for (const run of runs.splice(0)) run()
  await closing
})

test('[C-05] what an earlier process left is handed out once that is on disk, everything else at once', async () => {
  const { now } = clockAt(1_000)
  const gates: (() => void)[] = []
  let isOpen = true
  const beforeWrite = (): Promise<void> => (isOpen ? Promise.resolve() : new Promise((resolve) => gates.push(resolve)))
  const journal = createVolatileJournal({ beforeWrite })
  const first = new EmbeddedStorage({ now, journal, schedule: queueMicrotask })
  await first.commit({ enqueue: [item('i1')] })
  await first.sync()

  isOpen = false
  const disk = journal.reopened()
  const second = new EmbeddedStorage({ now, journal: disk, schedule: queueMicrotask })
  const order: string[] = []
  const claiming = second.claim('turns', { limit: 1, leaseMs: 1_000 }).then(({ leases }) => {
    order.push('left behind')
    return leases
  })
  await second.commit({ enqueue: [item('new', { lane: 'b' })] })
  const { leases } = await second.claim('turns', { lanes: ['b'], limit: 1, leaseMs: 1_000 })
  order.push('new')
  expect(leases).toMatchObject([{ id: 'new' }])
  await new Promise(setImmediate)
  expect(order).toEqual(['new'])
  isOpen = true
  for (const open of gates) open()
  expect(await claiming).toMatchObject([{ id: 'i1', deliveries: 1 }])
  const third = new EmbeddedStorage({ now, journal: disk.reopened() })
  expect(await third.peek('turns', ['i1'])).toMatchObject([{ deliveries: 1 }])
})

test('[G-01] without a journal an expired record leaves the memory', () => {
  const cache = new RecordCache('job', undefined, { recordsMax: 1, bytesMax: 1 })
  const expiry = new RecordExpiry(Infinity)
  for (let index = 0; index < 100; index++) {
    const put = mortal(`j${index}`, 1_000)
    cache.write(put, index, 0)
    expiry.set({ kind: 'job', id: put.id, facets: put.facets }, index)
  }
  for (let gone = expiry.next(89); gone !== undefined; gone = expiry.next(89)) cache.forget(gone.id)
  expect(cache.cleanCount).toBe(10)
  expect(expiry.size).toBe(10)
})
