import type { Batch } from '@impresario/core'
import { expect, test } from 'vitest'
import { GroupCommit } from './group-commit.ts'

const remove = (...ids: readonly string[]): Batch => ({ remove: ids.map((id) => ({ queue: 'turns', id }) as const) })
const guarded = (id: string, ...ids: readonly string[]): Batch => ({
  ...remove(...ids),
  guard: { queue: 'leaders', id, token: 1 },
})

/** A committer whose writes end when the test says so. */
function bench(groupsMax: number) {
  const groups: { readonly batches: readonly Batch[]; readonly end: (conflicts?: readonly number[]) => void }[] = []
  const commits = new GroupCommit({
    groupsMax,
    write: (batches) =>
      new Promise((resolve) => groups.push({ batches, end: (conflicts = []) => resolve(new Set(conflicts)) })),
  })
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return { groups, commits, turn }
}

test('[G-03] commits of one moment go together, each with its own outcome', async () => {
  const { groups, commits, turn } = bench(2)
  const outcomes = Promise.all([commits.commit(remove('a')), commits.commit(remove('b')), commits.commit(remove('c'))])
  await turn()
  expect(groups).toHaveLength(1)
  groups[0]?.end([1])
  expect(await outcomes).toEqual(['committed', 'conflict', 'committed'])
})

test('[G-03] commits to one thing go one after the other, in the order of their calls', async () => {
  const { groups, commits, turn } = bench(4)
  const batches = [remove('a'), remove('a', 'b'), remove('b'), remove('c')]
  const all = Promise.all(batches.map((batch) => commits.commit(batch)))
  await turn()
  const written = (): unknown => groups.map(({ batches: group }) => group.map((batch) => batches.indexOf(batch)))
  expect(written()).toEqual([[0, 3]])
  groups[0]?.end()
  await turn()
  expect(written()).toEqual([[0, 3], [1]])
  groups[1]?.end()
  await turn()
  expect(written()).toEqual([[0, 3], [1], [2]])
  groups[2]?.end()
  expect(await all).toHaveLength(4)
})

test('[G-03] commits under one claim go together, but not with the one that ends it', async () => {
  const { groups, commits, turn } = bench(4)
  const ends: Batch = { settle: { queue: 'leaders', id: 'x', token: 1 } }
  const batches = [guarded('x', 'a'), guarded('x', 'b'), ends, guarded('x', 'c')]
  for (const batch of batches) void commits.commit(batch)
  await turn()
  expect(groups.map(({ batches: group }) => group.length)).toEqual([2])
  for (const size of [1, 1]) {
    groups.at(-1)?.end()
    await turn()
    expect(groups.at(-1)?.batches).toHaveLength(size)
  }
  groups.at(-1)?.end()
  await commits.drain()
})

test('[G-03] groups are bounded, and as many are under way as there may be', async () => {
  const { groups, commits, turn } = bench(2)
  for (let index = 0; index < 300; index++) void commits.commit(remove(`i${index}`))
  await turn()
  expect(groups.map(({ batches }) => batches.length)).toEqual([128, 128])
  groups[0]?.end()
  await turn()
  expect(groups.map(({ batches }) => batches.length)).toEqual([128, 128, 44])
  for (const { end } of groups) end()
  await commits.drain()
})

test('[G-03] a group that could not be written rejects all of it and holds nobody up', async () => {
  const failing = new GroupCommit({ groupsMax: 1, write: () => Promise.reject(new Error('away')) })
  const outcomes = await Promise.allSettled([failing.commit(remove('a')), failing.commit(remove('a'))])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
