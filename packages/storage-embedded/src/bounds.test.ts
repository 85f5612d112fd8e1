import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from './directory.fixture.ts'
import { EmbeddedStorage } from './embedded-storage.ts'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'
import type { Changes, Journal } from './journal.ts'
import { memoryBounds } from './memory-bounds.ts'
import { openEmbeddedStorage } from './open.ts'
import { item, putJob } from './records.fixture.ts'
import { SqliteJournal } from './sqlite-journal.ts'
import { pack } from './sqlite-write.ts'
import { createVolatileJournal } from './volatile-journal.ts'

const MB = 1_048_576

function open(journal: Journal, options: Partial<EmbeddedStorageOptions> = {}): EmbeddedStorage {
  return new EmbeddedStorage({ now: () => 1_000, journal, ...options })
}

function large(id: string, version: number, chars: number): ReturnType<typeof putJob> {
  return putJob(id, version, { initialData: { text: id.padEnd(chars, '-') } })
}

/** What one flush of these jobs passes to the journal. */
async function changesOf(puts: readonly ReturnType<typeof putJob>[]): Promise<Changes> {
  const writes: Changes[] = []
  const beforeWrite = async (changes: Changes): Promise<void> => {
    writes.push(changes)
  }
  const storage = open(createVolatileJournal({ beforeWrite }))
  await storage.commit({ put: puts, enqueue: puts.map(({ id }) => item(id)) })
  await storage.close()
  const [changes] = writes
  if (changes === undefined) throw new Error('Nothing was written.')
  return changes
}

test('[C-10] a write of any size travels in parts that are bounded, and whose texts are made one after the other', async () => {
  const puts = Array.from({ length: 40 }, (_, index) => large(`j${index}`, 1, 10_000))
  const changes = await changesOf(puts)
  const parts = [...pack(changes, 50_000)]
  expect(parts.length).toBeGreaterThan(5)
  expect(Math.max(...parts.map(({ text }) => text.length))).toBeLessThan(62_000)
  expect(parts.map(({ isFirst }) => isFirst)).toEqual(parts.map((_, index) => index === 0))
  expect(parts.map(({ isLast }) => isLast)).toEqual(parts.map((_, index) => index === parts.length - 1))
  const [whole] = [...pack(changes, Infinity)]
  expect(parts.map(({ text }) => text).join('')).toBe(whole?.text)
  const runs = parts.map((part) => part.parts[3]?.[1] ?? 0)
  expect(runs.reduce((sum, count) => sum + count, 0)).toBe(40)
})

test('[C-10] many large records at once are written in one transaction and read back as they were', async () => {
  const directory = temporaryDirectory()
  const ids = Array.from({ length: 40 }, (_, index) => `j${index}`)
  const first = openEmbeddedStorage({ directory })
  await Promise.all(ids.map(async (id) => first.commit({ put: [large(id, 1, MB)], enqueue: [item(id)] })))
  await first.close()
  const again = openEmbeddedStorage({ directory })
  expect(again.integrityCheck()).toEqual([])
  for (const id of ids) {
    expect((await again.read('job', id))?.value.initialData['text']).toBe(id.padEnd(MB, '-'))
  }
  expect((await again.claim('turns', { limit: 100, leaseMs: 1_000 })).leases).toHaveLength(40)
  await again.close()
})

test('[C-10] what stays in memory is bounded in bytes, however many records that are', async () => {
  const journal = createVolatileJournal()
  const reads: string[] = []
  const counted: Journal = {
    ...journal,
    read(kind, id) {
      reads.push(id)
      return journal.read(kind, id)
    },
    readFrom(kind, id, limit, charsMax) {
      const rows = journal.readFrom(kind, id, limit, charsMax)
      reads.push(...rows.map((row) => row.id))
      return rows
    },
  }
  const storage = open(counted, { cacheBytesMax: 5 * MB })
  const ids = Array.from({ length: 20 }, (_, index) => `j${String(index).padStart(2, '0')}`)
  // A list of empty objects, whose text is a twentieth of their size in memory.
  const initialData = { many: Array.from({ length: 15_000 }, () => ({})) }
  await storage.commit({ put: ids.map((id) => putJob(id, 1, { initialData })) })
  await storage.sync()
  for (const id of ids.toReversed()) expect((await storage.read('job', id))?.value.id).toBe(id)
  // Five of a megabyte each were there.
  expect(reads).toEqual(expect.arrayContaining(ids.slice(0, 15)))
  expect(reads).not.toEqual(expect.arrayContaining(ids.slice(16)))
})

test('[C-10] what is read ahead is bounded in characters', async () => {
  const directory = temporaryDirectory()
  const journal = createVolatileJournal()
  const ids = ['j1', 'j2', 'j3', 'j4', 'j5']
  const first = open(journal)
  const put = ids.map((id) => large(id, 1, 1_000))
  await first.commit({ put })
  await first.close()
  const file = openEmbeddedStorage({ directory })
  await file.commit({ put })
  await file.close()
  const onDisk = new SqliteJournal(join(directory, 'impresario.db'))
  for (const one of [journal, onDisk]) {
    expect(one.readFrom('job', 'j2', 3, 1e6).map(({ id }) => id)).toEqual(['j2', 'j3', 'j4'])
    expect(one.readFrom('job', 'j2', 3, 2_000).map(({ id }) => id)).toEqual(['j2', 'j3'])
    expect(one.readFrom('job', 'j2', 3, 1).map(({ id }) => id)).toEqual(['j2'])
  }
  await onDisk.close()
})

test('[C-10] whoever brings more than can be written waits until it is, and everybody sees it meanwhile', async () => {
  const gates: (() => void)[] = []
  const journal = createVolatileJournal({ beforeWrite: () => new Promise((resolve) => gates.push(resolve)) })
  const runs: (() => void)[] = []
  const storage = open(journal, { pendingBytesMax: MB, schedule: (run) => runs.push(run) })
  await storage.commit({ put: [large('j1', 1, 1_000)] })
  let isDone = false
  const second = Promise.resolve(storage.commit({ put: [large('j2', 1, MB)] })).then(() => (isDone = true))
  expect((await storage.read('job', 'j2'))?.version).toBe(1)
  for (const run of runs.splice(0)) run()
  await storage.read('job', 'j1')
  expect(isDone).toBe(false)
  gates[0]?.()
  await second
  await storage.commit({ put: [large('j3', 1, 1_000)] })
})

test('[C-10] long payloads of waiting items are on disk only, before and after a restart', async () => {
  const directory = temporaryDirectory()
  const message = { text: 'x'.repeat(20_000) }
  const first = openEmbeddedStorage({ directory })
  const enqueue = ['i1', 'i2'].map((id) => item(id, { queue: 'outbox', payload: message }))
  await first.commit({ enqueue: [...enqueue, item('i3', { queue: 'outbox' })] })
  await first.sync()
  expect((await first.peek('outbox', ['i1', 'i3'])).map((view) => view?.payload)).toEqual([message, { id: 'i3' }])
  const [held] = (await first.claim('outbox', { limit: 1, leaseMs: 1_000 })).leases
  expect(held?.payload).toEqual(message)
  await first.close()
  const again = openEmbeddedStorage({ directory })
  const { leases } = await again.claim('outbox', { limit: 9, leaseMs: 1_000 })
  expect(leases.map(({ payload }) => payload)).toEqual([message, message, { id: 'i3' }])
  await again.close()
})

test('[C-10] a small heap keeps little, and a large one not everything', () => {
  const bytes = [64, 256, 1_024, 16_384].map((mb) => memoryBounds(mb * MB).cacheBytesMax / MB)
  expect(bytes).toEqual([8, 32, 128, 256])
})
