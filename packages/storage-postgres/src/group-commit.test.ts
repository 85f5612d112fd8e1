import type { Batch } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { touchesOf } from './batch-message.ts'
import { GroupCommit } from './group-commit.ts'

const remove = (...ids: readonly string[]): Batch => ({ remove: ids.map((id) => ({ queue: 'turns', id }) as const) })
const guarded = (id: string, ...ids: readonly string[]): Batch => ({
  ...remove(...ids),
  guard: { queue: 'leaders', id, token: 1 },
})

type Outcome = 'committed' | 'conflict'

/** A group commit whose groups complete when the test says so. */
function bench(groupsMax: number) {
  const groups: { readonly batches: readonly Batch[]; readonly end: (conflicts?: readonly number[]) => void }[] = []
  const commits = new GroupCommit<Batch, Outcome>({
    groupsMax,
    sizeMax: 128,
    touches: touchesOf,
    send: (batches) =>
      new Promise((resolve) => {
        const end = (conflicts: readonly number[] = []): void =>
          resolve(batches.map((_, index) => (conflicts.includes(index) ? 'conflict' : 'committed')))
        groups.push({ batches, end })
      }),
  })
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return { groups, commits, tick }
}

test('[C-10] a group is bounded by what its commits hold, and a heavy one goes alone', async () => {
  const groups: (readonly number[])[] = []
  const group = new GroupCommit<number, number>({
    groupsMax: 1,
    sizeMax: 128,
    weigh: (request) => request,
    weightMax: 100,
    send: async (requests) => {
      groups.push(requests)
      return requests
    },
  })
  const asked = [60, 50, 40, 500, 10, 90, 100]
  expect(await Promise.all(asked.map((request) => group.ask(request)))).toEqual(asked)
  expect(groups).toEqual([[60, 40], [50, 10], [500], [90], [100]])
})

test('[G-03] commits of one moment go together, each with its own outcome', async () => {
  const { groups, commits, tick } = bench(2)
  const outcomes = Promise.all([commits.ask(remove('a')), commits.ask(remove('b')), commits.ask(remove('c'))])
  await tick()
  expect(groups).toHaveLength(1)
  groups[0]?.end([1])
  expect(await outcomes).toEqual(['committed', 'conflict', 'committed'])
})

test('[G-03] commits to one thing go one after the other, in the order of their calls', async () => {
  const { groups, commits, tick } = bench(4)
  const batches = [remove('a'), remove('a', 'b'), remove('b'), remove('c')]
  const all = Promise.all(batches.map((batch) => commits.ask(batch)))
  await tick()
  const written = (): unknown => groups.map(({ batches: group }) => group.map((batch) => batches.indexOf(batch)))
  expect(written()).toEqual([[0, 3]])
  groups[0]?.end()
  await tick()
  expect(written()).toEqual([[0, 3], [1]])
  groups[1]?.end()
  await tick()
  expect(written()).toEqual([[0, 3], [1], [2]])
  groups[2]?.end()
  expect(await all).toHaveLength(4)
})

test('[G-03] commits under one claim go together, but not with the one that ends it', async () => {
  const { groups, commits, tick } = bench(4)
  const ends: Batch = { settle: { queue: 'leaders', id: 'x', token: 1 } }
  const batches = [guarded('x', 'a'), guarded('x', 'b'), ends, guarded('x', 'c')]
  for (const batch of batches) void commits.ask(batch)
  await tick()
  expect(groups.map(({ batches: group }) => group.length)).toEqual([2])
  for (const size of [1, 1]) {
    groups.at(-1)?.end()
    await tick()
    expect(groups.at(-1)?.batches).toHaveLength(size)
  }
  groups.at(-1)?.end()
  await commits.drain()
})

test('[G-03] groups are bounded, and as many are under way as there may be', async () => {
  const { groups, commits, tick } = bench(2)
  for (let index = 0; index < 300; index++) void commits.ask(remove(`i${index}`))
  await tick()
  expect(groups.map(({ batches }) => batches.length)).toEqual([128, 128])
  groups[0]?.end()
  await tick()
  expect(groups.map(({ batches }) => batches.length)).toEqual([128, 128, 44])
  for (const { end } of groups) end()
  await commits.drain()
})

test('[G-03] what comes while a group is under way goes together in the next, unless it is a crowd', async () => {
  const { groups, commits, tick } = bench(4)
  const sizes = (): readonly number[] => groups.map(({ batches }) => batches.length)
  void commits.ask(remove('first'))
  await tick()
  for (let index = 0; index < 31; index++) void commits.ask(remove(`i${index}`))
  await tick()
  expect(sizes()).toEqual([1])
  void commits.ask(remove('one more'))
  await tick()
  expect(sizes()).toEqual([1, 32])
  void commits.ask(remove('late'))
  await tick()
  expect(sizes()).toEqual([1, 32])
  groups[0]?.end()
  groups[1]?.end()
  await tick()
  expect(sizes()).toEqual([1, 32, 1])
  groups[2]?.end()
  await commits.drain()
})

test('[G-03] nobody waits for long behind a group that does not arrive', async () => {
  const { groups, commits, tick } = bench(4)
  const stuck = commits.ask(remove('a'))
  await tick()
  const other = commits.ask(remove('b'))
  while (groups.length < 2) await tick()
  groups[1]?.end()
  expect(await other).toBe('committed')
  groups[0]?.end()
  expect(await stuck).toBe('committed')
})

test('[G-03] a group whose outcome is unknown rejects all of it and holds nobody up', async () => {
  const away = new ImpresarioError('STORAGE_UNAVAILABLE', 'away')
  const failing = new GroupCommit<Batch, Outcome>({ groupsMax: 1, sizeMax: 9, send: () => Promise.reject(away) })
  const outcomes = await Promise.allSettled([failing.ask(remove('a')), failing.ask(remove('b'))])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('[G-03] a request that the server refuses is refused alone', async () => {
  const sent: number[] = []
  const group = new GroupCommit<string, string>({
    groupsMax: 1,
    sizeMax: 9,
    send: async (requests) => {
      sent.push(requests.length)
      if (requests.includes('bad')) throw new Error('refused')
      return requests.map((request) => `${request} done`)
    },
  })
  const outcomes = await Promise.allSettled(['a', 'bad', 'b'].map((request) => group.ask(request)))
  expect(outcomes).toMatchObject([{ value: 'a done' }, { status: 'rejected' }, { value: 'b done' }])
  expect(sent).toEqual([3, 1, 1, 1])
})
