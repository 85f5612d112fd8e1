import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer
beforeAll(async () => {
  app = await startTenantServer({ storage: testStorage({ now: () => Date.now() }) })
})
afterAll(() => app.close())

const path = (name: string): string => `/api/v1/views/${encodeURIComponent(name)}`

test('[M-02] views are saved, replaced, listed by name and deleted, each caller its own', async () => {
  const search = { show: 'failed', blueprint: 'über/order' }
  expect((await app.as('alpha', 'PUT', path('My / failures'), { search })).body).toMatchObject({ search })
  await app.as('alpha', 'PUT', path('Another'), { search: {} })
  await app.as('alpha', 'PUT', path('My / failures'), { search: { show: 'open' } })
  const { body } = await app.as('alpha', 'GET', '/api/v1/views')
  expect(body).toMatchObject([{ name: 'Another' }, { name: 'My / failures', search: { show: 'open' } }])
  expect((await app.as('beta', 'GET', '/api/v1/views')).body).toEqual([])
  expect((await app.as('beta', 'DELETE', path('Another'))).status).toBe(404)
  expect((await app.as('alpha', 'DELETE', path('Another'))).status).toBe(204)
  expect((await app.as('alpha', 'DELETE', path('Another'))).status).toBe(404)
})

test('[M-02] the number of views, their filters and their bytes are bounded', async () => {
  const search = { q: 'x'.repeat(LIMITS.viewValueCharsMax) }
  for (let number = 0; number < LIMITS.viewsMax; number += 1) {
    expect((await app.as('beta', 'PUT', path(`View ${number}`), { search: {} })).status).toBe(200)
  }
  const beyond = await app.as('beta', 'PUT', path('One more'), { search })
  expect(beyond.body).toMatchObject({ code: 'LIMIT_EXCEEDED' })
  expect((await app.as('beta', 'PUT', path('View 1'), { search })).status).toBe(200)
  const wide = Object.fromEntries(Array.from({ length: LIMITS.viewFiltersMax }, (_, at) => [`f${at}`, search.q]))
  expect((await app.as('beta', 'PUT', path('View 2'), { search: wide })).status).toBe(200)
  const answers = [3, 4, 5].map((number) => app.as('beta', 'PUT', path(`View ${number}`), { search: wide }))
  const statuses = (await Promise.all(answers)).map(({ body }) => body['code'])
  expect(statuses).toContain('LIMIT_EXCEEDED')
  const more = { search: { ...wide, another: '' } }
  expect((await app.as('beta', 'PUT', path('View 6'), more)).body).toMatchObject({ code: 'LIMIT_EXCEEDED' })
  for (const [name, body] of [
    ['x'.repeat(LIMITS.viewNameCharsMax + 1), { search: {} }],
    ['View 7', { search: { q: `${search.q}x` } }],
    ['View 7', { search: { q: 1 } }],
    ['View 7', {}],
  ] as const) {
    expect((await app.as('beta', 'PUT', path(name), body)).status).toBe(400)
  }
})
