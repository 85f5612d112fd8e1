import type { Job, Listing, ListQuery } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { expect, test } from 'vitest'
import { idAt } from './job-query.ts'
import { walkOldest } from './oldest-jobs.ts'

/** An engine with nothing but ids, newest first as every storage lists them. `cutAt`: a page has at most so many. */
function listOf(ids: readonly string[], cutAt = Number.POSITIVE_INFINITY) {
  let looks = 0
  const newest = ids.toSorted().toReversed()
  const record = (id: string) => ({ id, version: 1, value: { id } as Job })
  const engine = {
    listJobs: async ({ before = '\uFFFF', from = '', limit }: ListQuery): Promise<Listing<'job'>> => {
      looks += 1
      const all = newest.filter((id) => id < before && id >= from)
      const page = all.slice(0, Math.min(limit, cutAt)).map(record)
      return page.length < Math.min(limit, all.length) ? Object.assign(page, { next: page.at(-1)?.id ?? '' }) : page
    },
    readJob: async (id: string) => record(id),
    counts: async () => ({ finished: ids.length }),
  } as unknown as Engine
  const walk = async (query: ListQuery, after?: string) => {
    const taken: string[] = []
    const next = await walkOldest(engine, { query, after, take: (job) => taken.push(job.id) > 0 })
    return { taken, next }
  }
  const all = async (query: ListQuery): Promise<readonly string[]> => {
    const found: string[] = []
    let after: string | undefined
    do {
      const page = await walk(query, after)
      expect(page.taken.length).toBeLessThanOrEqual(query.limit)
      found.push(...page.taken)
      after = page.next
    } while (after !== undefined)
    return found
  }
  const page = async (query: ListQuery): Promise<readonly string[]> => (await walk(query)).taken
  return { all, page, looks: () => looks }
}

const DAY_MS = 86_400_000
const NOW = 1_790_000_000_000
const id = (ms: number, number = 0): string => `${idAt(ms)}-7000-8000-${String(number).padStart(12, '0')}`

test('[H-01] the oldest first: far apart, many in one millisecond, and ids of other programs', async () => {
  const ids = [
    id(NOW - 900 * DAY_MS),
    ...Array.from({ length: 40 }, (_, day) => id(NOW - day * DAY_MS)),
    ...Array.from({ length: 500 }, (_, number) => id(NOW - 3 * DAY_MS, number + 1)),
    'order-17',
  ]
  const sorted = ids.toSorted()
  for (const [limit, cutAt] of [
    [1, undefined],
    [7, undefined],
    [50, 20],
    [1_000, undefined],
  ] as const) {
    expect(await listOf(ids, cutAt).all({ limit })).toEqual(sorted)
  }
  const [from, before] = [id(NOW - 20 * DAY_MS), id(NOW - 10 * DAY_MS)]
  expect(await listOf(ids).all({ limit: 4, from, before })).toEqual(sorted.filter((one) => one >= from && one < before))
  expect(await listOf([]).all({ limit: 4 })).toEqual([])
  expect(await listOf(['b', 'a']).all({ limit: 1 })).toEqual(['a', 'b'])
})

test('[H-01] [M-02] a page of many jobs needs few looks', async () => {
  const ids = Array.from({ length: 20_000 }, (_, number) => id(NOW - number * 130_000))
  const list = listOf(ids)
  expect(await list.page({ limit: 50 })).toEqual(ids.toReversed().slice(0, 50))
  expect(list.looks()).toBeLessThan(40)
})

test('[M-02] the oldest first, of a filter that leaves out nearly all: a page ends after a bounded number of looks', async () => {
  const ids = Array.from({ length: 60_000 }, (_, number) => id(NOW + number * 7, number)).toReversed()
  const rare = new Set([ids[59_990], ids[31_000], ids[30_999], ids[3]])
  let looks = 0
  const engineOf = (fitting: ReadonlySet<string | undefined>) => {
    const listJobs = async ({ before = '\uFFFF', from = '', limit, looksMax = Infinity }: ListQuery) => {
      looks += 1
      const first = ids.findIndex((one) => one < before)
      const seen =
        first === -1 ? [] : ids.slice(first, first + Math.min(looksMax, ids.length)).filter((one) => one >= from)
      const page = seen.filter((one) => fitting.has(one)).slice(0, limit)
      const records = page.map((one) => ({ id: one, version: 1, value: { id: one } as Job }))
      return seen.length === looksMax && page.length < limit ? Object.assign(records, { next: seen.at(-1) }) : records
    }
    return { listJobs, counts: async () => ({ failed: fitting.size }) } as unknown as Engine
  }
  const query: ListQuery = { limit: 50, name: 'rare' }
  const found: string[] = []
  let after: string | undefined
  do {
    looks = 0
    after = await walkOldest(engineOf(rare), { query, after, take: (job) => found.push(job.id) > 0 })
    expect(looks).toBeLessThan(45)
  } while (after !== undefined)
  expect(found).toEqual([...rare])
  looks = 0
  expect(await walkOldest(engineOf(new Set()), { query, after, take: () => true })).toBeUndefined()
  expect(looks).toBe(1)
})
