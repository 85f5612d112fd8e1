import { expect, test } from 'vitest'
import { createMemoryStorage } from './embedded-storage.ts'

test('[G-01] without a journal the storage keeps items and gives each to one claimer', async () => {
  let now = 1_000
  const storage = createMemoryStorage({ now: () => now })
  await storage.commit({
    enqueue: [
      { queue: 'turns', id: 'a', lane: 'x', priority: 0, delayMs: 0, payload: null },
      { queue: 'turns', id: 'b', lane: 'x', priority: 5, delayMs: 0, payload: null },
      { queue: 'turns', id: 'c', lane: 'y', priority: 0, delayMs: 100, payload: null },
    ],
  })

  const first = await storage.claim('turns', { limit: 10, leaseMs: 50 })
  expect(first.leases.map(({ id }) => id)).toEqual(['b', 'a'])
  expect(first.nextInMs).toBe(50)
  now += 100
  const second = await storage.claim('turns', { limit: 10, leaseMs: 50 })
  expect(second.leases.map(({ id, deliveries }) => [id, deliveries])).toEqual([
    ['b', 2],
    ['c', 1],
    ['a', 2],
  ])
  await storage.close()
})
