import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { oldClient, TASK } from './old-client.fixture.ts'
import { oldPage } from './old-route.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer({ settings: { rateLimitingEnabled: false } })
})
afterAll(() => app.close())

test('[K-17] a page of the old interface is bounded in bytes, and its offset and limit lead to the rest', async () => {
  const alpha = oldClient(app, 'alpha')
  const payload = { ...TASK.payload, params: { name: 'x'.repeat(60_000) } }
  const ids: string[] = []
  for (let count = 0; count < 75; count += 1) ids.unshift(await alpha.create({ payload }))
  const seen: string[] = []
  const pages: unknown[] = []
  let more = true
  for (let offset = 0; more;) {
    const { body, text } = await alpha.call('GET', `/tasks?limit=200&offset=${offset}`)
    expect(text.length).toBeLessThan(LIMITS.pageBytesMax + 200)
    expect(body).toMatchObject({ total: 75, offset })
    const items = body['items'] as readonly { readonly id: string }[]
    seen.push(...items.map(({ id }) => id))
    more = body['has_more'] === true
    pages.push([items.length, body['limit'], more])
    offset += Number(body['limit'])
  }
  expect(seen).toEqual(ids)
  expect(pages).toEqual([
    [69, 69, true],
    [6, 200, false],
  ])
})

test('[K-17] a page has one item in any case, and nothing behind one that does not fit', async () => {
  const sizes = [LIMITS.pageBytesMax + 1, LIMITS.pageBytesMax, 10]
  const read = () => Promise.resolve({ items: sizes, next: undefined })
  const write = (size: number) => ({ text: 'x'.repeat(size) })
  const found = await Promise.all([0, 1, 2].map((offset) => oldPage({ read, write }, { limit: 50, offset })))
  const lengths = found.map(({ items, total, limit, has_more: more }) => [items.length, total, limit, more])
  expect(lengths).toEqual([
    [1, 3, 1, true],
    [1, 3, 1, true],
    [1, 3, 50, false],
  ])
})
