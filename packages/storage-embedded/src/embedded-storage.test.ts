import { expect, test } from 'vitest'
import { isImpresarioError } from '@impresario/protocol'
import { EmbeddedStorage } from './embedded-storage.ts'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'
import type { Changes, Journal } from './journal.ts'
import { item, job, putJob } from './records.fixture.ts'
import { createVolatileJournal } from './volatile-journal.ts'

/** A disk that writes when it is told to, and remembers what it was given. */
function slowDisk() {
  const writes: Changes[] = []
  const gates: { open(): void; fail(error: Error): void }[] = []
  const journal = createVolatileJournal({
    beforeWrite(changes) {
      writes.push(changes)
      return new Promise((resolve, reject) => gates.push({ open: resolve, fail: reject }))
    },
  })
  return { journal, writes, gates }
}

/** A disk that is always there, and remembers what it was given. */
function recordingDisk() {
  const writes: Changes[] = []
  const beforeWrite = async (changes: Changes): Promise<void> => {
    writes.push(changes)
  }
  return { journal: createVolatileJournal({ beforeWrite }), writes }
}

/** Notes which records are looked for on the disk. */
function countReads(journal: Journal) {
  const reads: string[] = []
  const counted: Journal = {
    ...journal,
    read(kind, id) {
      reads.push(id)
      return journal.read(kind, id)
    },
  }
  return { counted, reads }
}

/** Flushes that start when the test says so. */
function manualSchedule() {
  const runs: (() => void)[] = []
  return {
    schedule: (run: () => void): void => {
      runs.push(run)
    },
    runAll: (): void => {
      for (const run of runs.splice(0)) run()
    },
  }
}

function open(journal: Journal, options: Partial<EmbeddedStorageOptions> = {}): EmbeddedStorage {
  return new EmbeddedStorage({ now: () => 1_000, journal, ...options })
}

test('[G-01] commits of one turn travel in one write', async () => {
  const { journal, writes } = recordingDisk()
  const storage = open(journal)
  const ids = Array.from({ length: 200 }, (_, index) => `j${index}`)
  await Promise.all(ids.map(async (id) => storage.commit({ put: [putJob(id, 1)], enqueue: [item(id)] })))
  await Promise.all(ids.map(async () => storage.sync()))
  expect(writes).toHaveLength(1)
  expect(writes[0]?.records).toHaveLength(200)
  await storage.close()
})

test('[G-01] commits during a write travel together in the next one', async () => {
  const { journal, writes, gates } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const storage = open(journal, { schedule })
  await storage.commit({ put: [putJob('j1', 1)] })
  runAll()
  const first = storage.sync()
  for (let version = 2; version <= 9; version++) await storage.commit({ put: [putJob('j1', version)] })
  const second = storage.sync()
  expect(writes).toHaveLength(1)
  gates[0]?.open()
  await first
  runAll()
  gates[1]?.open()
  await second
  expect(writes).toHaveLength(2)
  expect(writes[1]?.updates.map(({ version }) => version)).toEqual([9])
})

/** Everything that waits for nothing outside is done when this resolves; the event loop has not gone round yet. */
async function microtasks(): Promise<void> {
  for (let steps = 0; steps < 20; steps += 1) await Promise.resolve()
}

test('[G-01] where there is little load, a task that is born in the hands of its worker is written at once', async () => {
  const { journal, writes } = recordingDisk()
  const storage = open(journal)
  await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('i1')] })
  await microtasks()
  expect(writes).toHaveLength(0)
  await storage.sync()
  await storage.commit({ put: [putJob('j2', 1)], enqueue: [item('i2', { claimed: { token: 7, leaseMs: 1_000 } })] })
  await microtasks()
  expect(writes).toHaveLength(2)
  expect(writes[1]).toMatchObject({ records: [{ id: 'j2' }], items: [{ id: 'i2' }] })
  await storage.close()
})

test('[G-01] under load such tasks wait for company, and go in one write', async () => {
  const { journal, writes } = recordingDisk()
  const storage = open(journal)
  await storage.commit({ enqueue: Array.from({ length: 20 }, (_, index) => item(`busy${index}`)) })
  await storage.sync()
  await storage.commit({ enqueue: [item('i1', { claimed: { token: 7, leaseMs: 1_000 } })] })
  await microtasks()
  await storage.commit({ enqueue: [item('i2', { claimed: { token: 8, leaseMs: 1_000 } })] })
  await storage.sync()
  expect(writes.map(({ items }) => items.length)).toEqual([20, 2])
  await storage.close()
})

test('[G-01] an item that came and went between two writes never reaches the disk', async () => {
  const { journal, writes } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const storage = open(journal, { schedule })
  await storage.commit({ enqueue: [item('i1')] })
  const { leases } = await storage.claim('turns', { limit: 1, leaseMs: 1_000 })
  await storage.commit({ settle: leases[0] ?? { queue: 'turns', id: '', token: 0 } })
  runAll()
  await storage.sync()
  expect(writes).toEqual([])
})

test('[G-01] a claim without a holder writes nothing, one with a holder only its lease', async () => {
  const { journal, writes } = recordingDisk()
  const storage = open(journal)
  await storage.commit({ enqueue: [item('i1'), item('i2', { lane: 'b' })] })
  await storage.sync()
  await storage.claim('turns', { lanes: ['a'], limit: 1, leaseMs: 1_000 })
  await storage.sync()
  expect(writes).toHaveLength(1)
  await storage.claim('turns', { lanes: ['b'], limit: 1, leaseMs: 1_000, holder: 'worker' })
  await storage.sync()
  expect(writes).toHaveLength(2)
  expect(writes[1]).toMatchObject({ items: [], records: [], leases: [{ id: 'i2', holder: 'worker' }] })
})

test('[G-01] sync waits for what was committed before it, and for nothing later', async () => {
  const { journal, gates } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const storage = open(journal, { schedule })
  await storage.commit({ put: [putJob('j1', 1)] })
  runAll()
  const first = Promise.resolve(storage.sync())
  await storage.commit({ put: [putJob('j2', 1)] })
  const order: string[] = []
  const second = Promise.resolve(storage.sync()).then(() => order.push('second'))
  const noted = first.then(() => order.push('first'))
  gates[0]?.open()
  await noted
  expect(order).toEqual(['first'])
  runAll()
  gates[1]?.open()
  await second
  expect(order).toEqual(['first', 'second'])
})

test('[G-01] after a failed write everything is refused, for good', async () => {
  const { journal, gates } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const failures: Error[] = []
  const storage = open(journal, { schedule, onFailure: (error) => failures.push(error) })
  await storage.commit({ put: [putJob('j1', 1)] })
  const early = storage.sync()
  runAll()
  await storage.commit({ put: [putJob('j2', 1)] })
  const late = storage.sync()
  gates[0]?.fail(new Error('no space left'))
  await expect(early).rejects.toThrow('no space left')
  await expect(late).rejects.toThrow('no space left')
  const calls = [
    storage.read('job', 'j1'),
    storage.list('job', { limit: 1 }),
    storage.peek('turns', []),
    storage.lanes('turns'),
    storage.claim('turns', { limit: 1, leaseMs: 1 }),
    storage.claimExpired('turns', { limit: 1, leaseMs: 1 }),
    storage.renew([], 1),
    Promise.resolve(storage.commit({})),
    Promise.resolve(storage.sync()),
  ]
  for (const outcome of await Promise.allSettled(calls)) {
    expect(outcome.status === 'rejected' && isImpresarioError(outcome.reason, 'STORAGE_UNAVAILABLE')).toBe(true)
  }
  expect(failures).toHaveLength(1)
  await expect(storage.close()).rejects.toThrow('no space left')
})

test('[G-01] what was not written is lost in a crash, newest first, and never a part of a batch', async () => {
  const { journal, gates } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const storage = open(journal, { schedule })
  await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('i1')] })
  runAll()
  gates[0]?.open()
  await storage.sync()
  await storage.commit({ put: [putJob('j1', 2)], remove: [{ queue: 'turns', id: 'i1' }] })
  runAll()
  const again = open(journal.reopened())
  expect((await again.read('job', 'j1'))?.version).toBe(1)
  expect(await again.peek('turns', ['i1'])).toMatchObject([{ id: 'i1' }])
  // The write of the old process arrives too late.
  gates[1]?.open()
  await expect(storage.sync()).rejects.toThrow('gone')
  expect((await again.read('job', 'j1'))?.version).toBe(1)
})

test('[G-01] the cache drops the least recently used, never what is not yet durable', async () => {
  const { journal, gates } = slowDisk()
  const { schedule, runAll } = manualSchedule()
  const { counted, reads } = countReads(journal)
  const storage = open(counted, { schedule, cacheMax: 2 })
  const readAll = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) expect((await storage.read('job', id))?.value.id).toBe(id)
  }
  await storage.commit({ put: ['j1', 'j2', 'j3', 'j4'].map((id) => putJob(id, 1)) })
  await readAll(['j1', 'j2', 'j3', 'j4'])
  runAll()
  await readAll(['j1', 'j2', 'j3', 'j4'])
  expect(reads).toEqual([])
  gates[0]?.open()
  await storage.sync()
  await readAll(['j3', 'j4', 'j3'])
  expect(reads).toEqual([])
  await readAll(['j1', 'j3', 'j4'])
  expect(reads).toEqual(['j1', 'j4'])
})

test('[G-01] records are read ahead while they are asked for in their order, and not otherwise', async () => {
  const journal = createVolatileJournal()
  const ids = Array.from({ length: 400 }, (_, index) => `j${String(index).padStart(3, '0')}`)
  const first = open(journal)
  await first.commit({ put: ids.map((id) => putJob(id, 1)) })
  await first.close()
  const looks: number[] = []
  const counted: Journal = {
    ...journal.reopened(),
    read(kind, id) {
      looks.push(1)
      return journal.read(kind, id)
    },
    readFrom(kind, id, limit, charsMax) {
      looks.push(limit)
      return journal.readFrom(kind, id, limit, charsMax)
    },
  }
  const storage = open(counted, { cacheMax: 256 })
  for (const id of ids) {
    const version = id === 'j100' ? 2 : 1
    if (version === 2) await storage.commit({ put: [putJob(id, 2)] })
    expect(await storage.read('job', id)).toMatchObject({ version, value: { id } })
  }
  expect(looks.slice(0, 14)).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 32, 32])
  looks.length = 0
  const scattered = ids.map((_, index) => ids[(index * 151) % ids.length] ?? '')
  for (const id of scattered) expect((await storage.read('job', id))?.value.id).toBe(id)
  const read = looks.reduce((sum, limit) => sum + limit, 0)
  expect(read).toBeLessThan(1.3 * looks.length + 64)
})

test('[G-01] a job that has ended leaves the cache once it is durable', async () => {
  const journal = createVolatileJournal()
  const { counted, reads } = countReads(journal)
  const storage = open(counted)
  await storage.commit({ put: [putJob('j1', 1), putJob('j2', 1, { status: 'finished', endedAt: 2 })] })
  await storage.sync()
  await storage.read('job', 'j1')
  expect((await storage.read('job', 'j2'))?.value).toEqual(job('j2', { status: 'finished', endedAt: 2 }))
  expect(reads).toEqual(['j2'])
  await storage.close()
})

test('[G-01] to create a record with a new greatest id costs no read', async () => {
  const journal = createVolatileJournal()
  const { counted, reads } = countReads(journal)
  const storage = open(counted)
  for (const id of ['j1', 'j2', 'j10']) await storage.commit({ put: [putJob(id, 1)] })
  expect(reads).toEqual(['j10'])
  await storage.close()
})

test('[G-01] time does not go back over a restart, whatever the clock says', async () => {
  const journal = createVolatileJournal()
  let now = 50_000
  const storage = open(journal, { now: () => now })
  await storage.commit({ enqueue: [item('i1', { delayMs: 1_000 })] })
  await storage.close()
  now = 10_000
  const again = open(journal.reopened(), { now: () => now })
  expect(await again.peek('turns', ['i1'])).toMatchObject([{ dueInMs: 1_000 }])
  now += 1_000
  expect((await again.claim('turns', { limit: 1, leaseMs: 1 })).leases).toHaveLength(1)
})

test('[G-01] closing writes what is left, twice is once, and afterwards everything is refused', async () => {
  const journal = createVolatileJournal()
  const storage = open(journal)
  await storage.commit({ put: [putJob('j1', 1)] })
  await Promise.all([storage.close(), storage.close()])
  await expect(storage.read('job', 'j1')).rejects.toThrow('closed')
  expect(journal.read('job', 'j1')?.version).toBe(1)
})
