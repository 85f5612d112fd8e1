import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Item, Lease, Storage } from '@impresario/core'
import { expect, onTestFinished, test } from 'vitest'
import { FileClaimMarks } from './claim-marks.ts'
import { EmbeddedStorage } from './embedded-storage.ts'
import { createVolatileJournal } from './volatile-journal.ts'

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-marks-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return join(directory, 'claims')
}

const turn = (id: string): Item => ({ queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { visit: 1 } })

/** Storages on one disk. Each is abandoned without closing when the next one is opened, as after a crash. */
function disk(): () => EmbeddedStorage {
  const path = newFile()
  let journal = createVolatileJournal()
  return () => {
    journal = journal.reopened()
    return new EmbeddedStorage({
      now: () => 1_000,
      journal,
      marks: new FileClaimMarks(path),
      schedule: (run) => queueMicrotask(run),
    })
  }
}

async function claimAll(storage: Storage): Promise<readonly Lease[]> {
  const { leases } = await storage.claim('turns', { limit: 10, leaseMs: 60_000 })
  return leases.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

const deliveries = (leases: readonly Lease[]): readonly (readonly [string, number])[] =>
  leases.map(({ id, deliveries: count }) => [id, count])

test('[C-11] a turn that was claimed when the process ended is known, and one that only waited is not', async () => {
  const open = disk()
  const first = open()
  await first.commit({ enqueue: [turn('a')] })
  await first.sync()
  expect(deliveries(await claimAll(first))).toEqual([['a', 1]])
  await first.commit({ enqueue: [turn('b')] })
  await first.sync()
  const second = open()
  expect(deliveries(await claimAll(second))).toEqual([
    ['a', 2],
    ['b', 1],
  ])
  // From here on the journal has the count, and the mark adds nothing.
  expect(deliveries(await claimAll(open()))).toEqual([
    ['a', 3],
    ['b', 2],
  ])
})

test('[C-11] what was settled, handed back or sent out anew is under no suspicion', async () => {
  const open = disk()
  const first = open()
  await first.commit({ enqueue: [turn('a'), turn('b'), turn('c')] })
  await first.sync()
  const [a, b, c] = await claimAll(first)
  if (a === undefined || b === undefined || c === undefined) throw new Error('Three were claimed.')
  await first.commit({ settle: a })
  await first.renew([b], 0)
  await first.commit({ settle: c, enqueue: [turn('c')] })
  await first.sync()
  expect(deliveries(await claimAll(open()))).toEqual([
    ['b', 1],
    ['c', 1],
  ])
})

test('[C-11] a turn that was settled and came back after a crash says by which claim', async () => {
  const path = newFile()
  let isStuck = false
  const first = createVolatileJournal({
    beforeWrite: () => (isStuck ? new Promise<void>(() => undefined) : Promise.resolve()),
  })
  const open = (journal: ReturnType<typeof createVolatileJournal>): EmbeddedStorage =>
    new EmbeddedStorage({
      now: () => 1_000,
      journal,
      marks: new FileClaimMarks(path),
      schedule: (run) => queueMicrotask(run),
    })
  const before = open(first)
  await before.commit({ enqueue: [turn('a'), turn('b')] })
  await before.sync()
  const [a, b] = await claimAll(before)
  if (a === undefined || b === undefined) throw new Error('Two were claimed.')
  isStuck = true
  await before.commit({ settle: a })
  await new Promise((resolve) => setImmediate(resolve))
  isStuck = false
  const second = first.reopened()
  const again = await claimAll(open(second))
  expect(again.map(({ id, deliveries: count, settledBy }) => [id, count, settledBy])).toEqual([
    ['a', 1, a.token],
    ['b', 2, undefined],
  ])
  // The mark is kept until another claim of the same turn is settled.
  const third = await claimAll(open(second.reopened()))
  expect(third.map(({ settledBy }) => settledBy)).toEqual([a.token, undefined])
})

test('[C-11] the file stays small, and a torn line in it does no harm', () => {
  const path = newFile()
  const marks = new FileClaimMarks(path)
  for (let round = 1; round <= 20_000; round += 1) {
    marks.claimed([round])
    if (round > 3) marks.settled(round, 4_503_599_627_370_496 + round)
  }
  expect(readFileSync(path).length).toBeLessThan(100_000)
  appendFileSync(path, '77')
  expect([...new FileClaimMarks(path).left].slice(0, 3)).toEqual([1, 2, 3])
  expect(new FileClaimMarks(path).left.has(77)).toBe(false)
  // The most recently settled turns are kept when the file is rewritten.
  expect(new FileClaimMarks(path).settledBefore.get(19_000)).toBe(4_503_599_627_389_496)
  marks.close()
  expect(readFileSync(path, 'utf8')).toBe('')
})
