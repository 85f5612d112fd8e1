import type { Item } from '@impresario/core'
import { expect, test } from 'vitest'
import { EmbeddedStorage } from './embedded-storage.ts'
import { entryOf, itemRowOf } from './entry.ts'
import { QueueIndex } from './queue-index.ts'
import { FarItems } from './far-items.ts'
import { createVolatileJournal } from './volatile-journal.ts'

const HOUR_MS = 3_600_000

function firing(id: string, delayMs: number): Item {
  return { queue: 'firings', id, lane: 'anna', priority: 0, delayMs, payload: { kind: 'fire' } }
}

function opened(journal = createVolatileJournal()) {
  let now = 1_000_000
  const schedule = (run: () => void): void => queueMicrotask(run)
  const storage = new EmbeddedStorage({ now: () => now, journal, schedule })
  const claimed = async (): Promise<readonly string[]> => {
    const { leases } = await storage.claim('firings', { limit: 10, leaseMs: 1_000 })
    return leases.map(({ id }) => id)
  }
  return {
    storage,
    claimed,
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('[K-08] an item that is due far ahead leaves memory once it is written, and one that is due soon does not', () => {
  const index = new QueueIndex()
  const entries = [entryOf(firing('far', HOUR_MS), 1, 0), entryOf(firing('near', 1_000), 2, 0)]
  const rows = entries.map((entry) => ({ ...itemRowOf(entry), payload: '{}' }))
  const journal = {
    ...createVolatileJournal(),
    item: (_: string, id: string) => rows.find((row) => row.id === id),
    itemsDue: (_: string, after: number, until: number) => rows.filter(({ dueAt }) => dueAt > after && dueAt <= until),
  }
  const base = { queue: 'firings', index, journal, payloads: () => '{}', isChanging: () => false } as const
  const farItems = new FarItems({ ...base, aheadMs: 600_000, now: 0 })
  for (const entry of entries) {
    index.add(entry, 0)
    farItems.offer(entry)
  }
  expect([index.loaded, farItems.size, farItems.nextAt]).toEqual([1, 1, 600_000])
  expect(index.get('far')).toBeUndefined()
  farItems.advance(HOUR_MS - 500_000)
  expect([index.loaded, farItems.size, farItems.nextAt]).toEqual([2, 0, Infinity])
})

test('[K-08] what is on the disk alone is seen, moved, removed and claimed like everything else, after a restart too', async () => {
  const journal = createVolatileJournal()
  const { storage } = opened(journal)
  await storage.commit({ enqueue: ['a', 'b', 'c', 'd'].map((id) => firing(id, HOUR_MS)) })
  await storage.sync()
  expect(await storage.peek('firings', ['a', 'nobody'])).toMatchObject([{ id: 'a', dueInMs: HOUR_MS }, undefined])
  await storage.commit({ remove: [{ queue: 'firings', id: 'b' }], enqueue: [firing('c', 2 * HOUR_MS)] })
  await storage.sync()

  const later = opened(journal.reopened())
  expect(await later.claimed()).toEqual([])
  later.pass(HOUR_MS)
  expect(await later.claimed()).toEqual(['a', 'd'])
  later.pass(HOUR_MS)
  expect(await later.claimed()).toEqual(['a', 'd', 'c'])
})

test('[K-08] an item that is being deleted does not come back from the disk', async () => {
  let write = (): void => undefined
  let isHeld = false
  const beforeWrite = async (): Promise<void> => {
    if (!isHeld) return
    await new Promise<void>((resolve) => {
      write = resolve
    })
  }
  const { storage, claimed, pass } = opened(createVolatileJournal({ beforeWrite }))
  await storage.commit({ enqueue: [firing('a', HOUR_MS), firing('other', HOUR_MS)] })
  await storage.sync()
  isHeld = true
  await storage.commit({ remove: [{ queue: 'firings', id: 'a' }] })
  expect(await storage.peek('firings', ['a'])).toEqual([undefined])
  const written = storage.sync()
  await new Promise((resolve) => setImmediate(resolve))
  // The journal still has its row, and the write that deletes it is under way.
  expect(await storage.peek('firings', ['a'])).toEqual([undefined])
  pass(HOUR_MS)
  expect(await claimed()).toEqual(['other'])
  isHeld = false
  write()
  await written
  expect(await storage.peek('firings', ['a'])).toEqual([undefined])
})
