import { expect, test } from 'vitest'
import type { Item } from '@impresario/core'
import { temporaryDirectory } from './directory.fixture.ts'
import { EmbeddedStorage } from './embedded-storage.ts'
import { openEmbeddedStorage } from './open.ts'
import { RESTING_PAGE_ROWS } from './resting-items.ts'
import { createVolatileJournal } from './volatile-journal.ts'

const START = Date.UTC(2026, 0, 1)

function item(id: string, more: Partial<Item> = {}): Item {
  return { queue: 'tasks', id, lane: 'a', priority: 0, delayMs: 0, payload: { id }, ...more }
}

/** A file that is closed and opened again, with a clock in hand. */
function fileAt(path: string): { readonly open: () => ReturnType<typeof openEmbeddedStorage>; now: number } {
  const file = {
    now: START,
    open: () => openEmbeddedStorage({ directory: path, now: () => file.now, restingMin: 0 }),
  }
  return file
}

async function claimed(storage: EmbeddedStorage, lanes: readonly string[], limit = 100): Promise<readonly string[]> {
  const { leases } = await storage.claim('tasks', { lanes, limit, leaseMs: 1_000, holder: 'w' })
  for (const { id, payload } of leases) expect(payload).toEqual({ id })
  return leases.map(({ id }) => id)
}

async function reopenedWith(
  path: string,
  items: readonly Item[],
): Promise<{ readonly file: ReturnType<typeof fileAt>; readonly storage: EmbeddedStorage }> {
  const file = fileAt(path)
  const first = file.open()
  await first.commit({ enqueue: items })
  await first.close()
  return { file, storage: file.open() }
}

test('[G-01] what rests in the file is claimed in the same order as what is in memory, and both together', async () => {
  const { file, storage } = await reopenedWith(temporaryDirectory(), [
    item('5-late', { priority: -1 }),
    item('4'),
    item('3-urgent', { priority: 5 }),
    item('ü-语-😀', { lane: 'lane ü, "😀"' }),
    item('2'),
  ])
  await storage.commit({ enqueue: [item('1-new'), item('0-new-urgent', { priority: 6 })] })
  expect(await storage.lanes('tasks')).toEqual(
    expect.arrayContaining([
      { lane: 'a', ready: 6 },
      { lane: 'lane ü, "😀"', ready: 1 },
    ]),
  )
  expect(await claimed(storage, ['lane ü, "😀"'])).toEqual(['ü-语-😀'])
  expect(await claimed(storage, ['a'], 2)).toEqual(['0-new-urgent', '3-urgent'])
  expect(await storage.lanes('tasks')).toEqual([{ lane: 'a', ready: 4 }])
  expect(await claimed(storage, ['a'])).toEqual(['4', '2', '1-new', '5-late'])
  expect(await storage.lanes('tasks')).toEqual([])
  await storage.close()
  expect(file.open().integrityCheck()).toEqual([])
})

test('[G-01] what rests is seen, replaced and removed by its id, and stays so after the next start', async () => {
  const { file, storage } = await reopenedWith(
    temporaryDirectory(),
    ['1', '2', '3', '4'].map((id) => item(id)),
  )
  expect((await storage.peek('tasks', ['2', '2x', '9']))[0]).toMatchObject({ id: '2', deliveries: 0 })
  expect(await storage.peek('tasks', ['2x', '9', '0'])).toEqual([undefined, undefined, undefined])
  await storage.commit({ remove: [{ queue: 'tasks', id: '1' }], enqueue: [item('3', { priority: 1 })] })
  expect(await storage.peek('tasks', ['1'])).toEqual([undefined])
  await storage.close()
  const again = file.open()
  expect(await again.lanes('tasks')).toEqual([{ lane: 'a', ready: 3 }])
  expect(await claimed(again, ['a'])).toEqual(['3', '2', '4'])
  expect(await claimed(again, ['a'])).toEqual([])
  await again.close()
})

test('[G-01] what rests becomes due, opens to its other lane and expires in its time', async () => {
  const { file, storage } = await reopenedWith(temporaryDirectory(), [
    item('delayed', { delayMs: 5_000 }),
    item('falls', { lane: 'mine', fallback: { lane: 'a', afterMs: 7_000 } }),
    item('ends', { lane: 'b', unclaimedMs: 9_000 }),
  ])
  const claim = (): ReturnType<EmbeddedStorage['claim']> =>
    storage.claim('tasks', { lanes: ['a'], limit: 9, leaseMs: 1_000, holder: 'w' })
  expect(await claim()).toEqual({ leases: [], nextInMs: 5_000 })
  file.now += 5_000
  expect((await claim()).leases.map(({ id }) => id)).toEqual(['delayed'])
  file.now += 2_000
  expect((await claim()).leases.map(({ id }) => id)).toContain('falls')
  expect((await storage.claimExpired('tasks', { limit: 9, leaseMs: 1_000 })).leases).toEqual([])
  file.now += 2_000
  const { leases } = await storage.claimExpired('tasks', { limit: 9, leaseMs: 1_000 })
  expect(leases.map(({ id }) => id)).toEqual(['ends'])
  await storage.close()
})

test('[G-01] more than a page rests without being read, and every item is claimed once', async () => {
  const journal = createVolatileJournal()
  const now = (): number => START
  const count = RESTING_PAGE_ROWS + 500
  const ids = Array.from({ length: count }, (_, index) => `job-${String(index).padStart(6, '0')}`)
  const first = new EmbeddedStorage({ now, journal })
  await first.commit({ enqueue: ids.map((id) => item(id)) })
  await first.sync()
  let read = 0
  const disk = journal.reopened()
  const counted = {
    ...disk,
    itemsFrom: (_queue: string, id: string, limit: number) => {
      // The simulated disk looks through all of its items; only so many are asked for here.
      read += limit
      return ids.slice(ids.indexOf(id), ids.indexOf(id) + limit).map((one) => rows.get(one)!)
    },
  }
  const opened = journal.reopened().open()
  const rows = new Map(
    [...opened.items(START, Infinity)].flatMap((row) => ('id' in row ? [[row.id, row] as const] : [])),
  )
  const storage = new EmbeddedStorage({ now, journal: counted })
  expect(await storage.lanes('tasks')).toEqual([{ lane: 'a', ready: count }])
  expect(read).toBe(0)
  const { leases } = await storage.claim('tasks', { lanes: ['a'], limit: count + 1, leaseMs: 1_000 })
  expect(leases.map(({ id }) => id)).toEqual(ids)
  expect(read).toBe(count)
})
