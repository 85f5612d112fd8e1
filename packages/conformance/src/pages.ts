import { expect } from 'vitest'
import type { Listing, ListQuery, Put, Storage } from '@impresario/core'
import { idsOf, putJob } from './fixtures.ts'
import type { Check } from './storage-under-test.ts'

const KB = 1_000

/** A job whose record has about this many bytes. */
function bulky(id: string, bytes: number, facets: Parameters<typeof putJob>[2] = {}): Put {
  const put = putJob(id, 1, facets)
  if (put.kind !== 'job') throw new Error('This is no job.')
  return { ...put, value: { ...put.value, initialData: { text: 'x'.repeat(bytes) } } }
}

/** Reads page after page, as long as a page returns a position to continue from. */
async function pages(storage: Storage, query: ListQuery): Promise<readonly Listing<'job'>[]> {
  const found: Listing<'job'>[] = []
  for (let before = query.before; ;) {
    const page = await storage.list('job', { ...query, ...(before === undefined ? {} : { before }) })
    found.push(page)
    if (page.next === undefined) return found
    before = page.next
  }
}

const ids = (found: readonly Listing<'job'>[]): readonly string[] => found.flatMap(idsOf)

const names = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `j${String(index).padStart(2, '0')}`)

export function checkPages(check: Check): void {
  check('[C-10] a page ends with the record that makes it too long, and says where to go on', async ({ storage }) => {
    const all = names(12)
    await storage.commit({ put: all.map((id) => bulky(id, 10 * KB)) })
    const query = { limit: 100, bytesMax: 25 * KB }
    const look = async (): Promise<void> => {
      const found = await pages(storage, query)
      expect(ids(found)).toEqual(all.toReversed())
      for (const page of found) expect(page.length).toBeLessThanOrEqual(3)
      expect(found.length).toBeLessThanOrEqual(all.length / 2)
      const one = await pages(storage, { ...query, bytesMax: 1 })
      expect(ids(one)).toEqual(all.toReversed())
      for (const page of one) expect(page.length).toBeLessThanOrEqual(1)
      // The limit is reached first, and then there is no position to continue from.
      const few = await storage.list('job', { limit: 2, bytesMax: 1_000 * KB })
      expect([few.length, few.next]).toEqual([2, undefined])
      const whole = await storage.list('job', { limit: 100, bytesMax: 1_000 * KB })
      expect([whole.length, whole.next]).toEqual([12, undefined])
    }
    await look()
    await storage.sync()
    await look()
    // Some are rewritten and not yet durable, others are durable.
    await storage.commit({ put: [3, 4, 7].map((index) => ({ ...bulky(all[index] ?? '', 10 * KB), version: 2 })) })
    await look()
  })

  check('[C-10] pages by bytes keep to the filter, and miss nothing between statuses', async ({ storage }) => {
    const all = names(24)
    const facets = (index: number): Parameters<typeof putJob>[2] => ({
      owner: index % 2 === 0 ? 'ann' : 'bob',
      status: (['failed', 'running', 'finished', 'quarantined'] as const)[index % 4] ?? 'running',
      name: index % 3 === 0 ? 'press' : 'print',
      text: index % 5 === 0 ? 'a needle' : 'hay',
    })
    await storage.commit({ put: all.map((id, index) => bulky(id, (1 + (index % 7)) * KB, facets(index))) })
    const wanted = (fits: (index: number) => boolean): readonly string[] =>
      all.filter((_, index) => fits(index)).toReversed()
    for (const bytesMax of [1, 3 * KB, 8 * KB]) {
      const found = async (query: Partial<ListQuery>): Promise<readonly string[]> =>
        ids(await pages(storage, { limit: 50, bytesMax, looksMax: 3, ...query }))
      expect(await found({ owner: 'ann' })).toEqual(wanted((index) => index % 2 === 0))
      expect(await found({ statuses: ['failed', 'quarantined'] })).toEqual(wanted((index) => (index % 4) % 3 === 0))
      expect(await found({ statuses: ['failed', 'finished'] })).toEqual(wanted((index) => index % 2 === 0))
      expect(await found({ owner: 'bob', statuses: ['running'] })).toEqual(wanted((index) => index % 4 === 1))
      expect(await found({ name: 'press', from: 'j05', before: 'j20' })).toEqual(['j18', 'j15', 'j12', 'j09', 'j06'])
      expect(await found({ search: 'needle' })).toEqual(wanted((index) => index % 5 === 0))
      expect(await found({ search: 'NEEDLE', owner: 'ann', name: 'press' })).toEqual(['j00'])
      expect(await found({ search: 'needle', status: 'quarantined' })).toEqual(['j15'])
      expect(await found({ search: 'nothing' })).toEqual([])
    }
    await storage.sync()
    for (const looksMax of [1, 2, 5, 100]) {
      const found = async (query: Partial<ListQuery>): Promise<readonly string[]> =>
        ids(await pages(storage, { limit: 50, looksMax, ...query }))
      expect(await found({ search: 'needle' })).toEqual(wanted((index) => index % 5 === 0))
      expect(await found({ name: 'press', owner: 'ann' })).toEqual(wanted((index) => index % 6 === 0))
      expect(await found({ search: 'needle', statuses: ['failed', 'running'] })).toEqual(['j20', 'j05', 'j00'])
      expect(await found({ statuses: ['finished'] })).toEqual(wanted((index) => index % 4 === 2))
      expect(await found({ statuses: ['finished', 'failed'], name: 'press' })).toEqual(
        wanted((index) => index % 6 === 0),
      )
      expect(await found({ statuses: ['failed'], owner: 'bob' })).toEqual([])
      expect(await found({ status: 'running', owner: 'bob', name: 'press' })).toEqual(['j21', 'j09'])
      expect(await found({ status: 'finished', statuses: ['failed'] })).toEqual([])
      expect(await found({ statuses: [] })).toEqual([])
    }
  })
}
