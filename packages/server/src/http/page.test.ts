import type { Job, Listing, ListQuery } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { expect, test } from 'vitest'
import { walkJobs } from './page.ts'

const MANY = 50_000
const idOf = (number: number): string => `job-${String(number).padStart(6, '0')}`

/** Jobs of which few have the name that is asked for; a look ends where its bound says. */
function listOf(fitting: readonly number[]) {
  const named = new Set(fitting.map(idOf))
  const newest = Array.from({ length: MANY }, (_, number) => idOf(number)).toReversed()
  let looks = 0
  const engine = {
    listJobs: async ({ before = '\uFFFF', limit, looksMax = MANY }: ListQuery): Promise<Listing<'job'>> => {
      const first = newest.findIndex((id) => id < before)
      const looked = first === -1 ? [] : newest.slice(first, first + looksMax)
      looks += looked.length
      const ids = looked.filter((id) => named.has(id)).slice(0, limit)
      const page = ids.map((id) => ({ id, version: 1, value: { id } as Job }))
      const end = ids.length === limit ? ids.at(-1) : looked.at(-1)
      return end === undefined || end === newest.at(-1) ? page : Object.assign(page, { next: end })
    },
    counts: async () => ({ finished: named.size - 1, failed: 1 }),
  } as unknown as Engine
  const walk = async (query: ListQuery) => {
    const taken: string[] = []
    const before = looks
    const next = await walkJobs(engine, { query: { name: 'rare', ...query }, take: ({ id }) => taken.push(id) > 0 })
    return { taken, next, looks: looks - before }
  }
  return { walk }
}

test('[M-02] a list of a blueprint with few jobs ends when all of them are found, however many others there are', async () => {
  const { walk } = listOf([MANY - 3, MANY - 2, MANY - 1])
  const page = await walk({ limit: 50 })
  expect(page).toEqual({
    taken: [MANY - 1, MANY - 2, MANY - 3].map(idOf),
    next: undefined,
    looks: 2_000,
  })
})

test('[M-02] while some are missing a page looks on within its bound, and the next one goes on from there', async () => {
  const fitting = [5, 20_000, MANY - 5_000, MANY - 1]
  const { walk } = listOf(fitting)
  const found: string[] = []
  let before: string | undefined
  do {
    const page = await walk({ limit: 50, ...(before === undefined ? {} : { before }) })
    expect(page.looks).toBeLessThanOrEqual(32_000)
    found.push(...page.taken)
    before = page.next
  } while (before !== undefined)
  expect(found).toEqual(fitting.toReversed().map(idOf))
})
