import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

const ODD: readonly [string, string][] = [
  ['U+0000', String.raw`order-1\u0000a`],
  ['half a character', String.raw`order-1\ud800`],
  ['the other half', String.raw`\udc00order-1`],
]

function create(client: 'alpha' | 'beta', fields: string): ReturnType<TenantServer['as']> {
  return app.as(client, 'POST', '/api/v1/jobs', `{"blueprint":"ask",${fields}}`)
}

describe('[C-08] a key that a storage would change is refused', () => {
  test.each(ODD)('%s', async (_title, key) => {
    const refused = await create('alpha', `"idempotency_key":"${key}"`)
    expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(String(refused.body['error'])).toMatch(/^"idempotency_key" holds /)
    const batch = await app.as(
      'alpha',
      'POST',
      '/api/v1/jobs/batch',
      `{"jobs":[{"blueprint":"ask","idempotency_key":"${key}"},{"blueprint":"ask"}]}`,
    )
    expect(batch.body['results']).toMatchObject([{ code: 'INVALID_REQUEST' }, { status: 'accepted' }])
  })

  test('keys that only look alike give different jobs', async () => {
    const keys = [
      'order-1',
      'order-1\u0001a',
      'order-1\uFFFD',
      'order-1 ',
      'ORDER-1',
      'order-1😀',
      'order-1/alpha',
      'order%2F1',
    ]
    const found = new Set<string>()
    for (const client of ['alpha', 'beta'] as const) {
      for (const key of keys) {
        const { status, body } = await create(client, `"idempotency_key":${JSON.stringify(key)}`)
        expect(status).toBe(202)
        found.add(body.job_id)
      }
    }
    expect(found.size).toBe(keys.length * 2)
  })
})

describe('[C-08] the same key with another request is refused', () => {
  const FIRST = {
    initial_data: { a: 1, b: [1, { c: null }] },
    priority: 2,
    metadata: { note: 'x' },
    webhook_url: 'https://example.com/hook',
    dispatch_timeout: 60,
    result_timeout: 90,
    execution_timeout: 3_600,
  }
  const OTHERS: readonly [string, object][] = [
    ['data', { initial_data: { a: 1, b: [1, {}] } }],
    ['priority', { priority: 3 }],
    ['metadata', { metadata: { note: 'y' } }],
    ['webhook', { webhook_url: 'https://example.com/hook2' }],
    ['no webhook', { webhook_url: null }],
    ['dispatch timeout', { dispatch_timeout: 61 }],
    ['result timeout', { result_timeout: null }],
    ['execution timeout', { execution_timeout: 3_601 }],
    ['no execution timeout', { execution_timeout: null }],
  ]

  test('an id beside the key is a part of the request', async () => {
    const send = (more: object): ReturnType<TenantServer['as']> =>
      app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'ask', idempotency_key: 'k2', ...more })
    expect((await send({})).status).toBe(202)
    expect((await send({ job_id: `${uuidTime()}-7000-8000-000000000002` })).status).toBe(422)
  })

  test.each(['key', 'id'])('by its %s', async (by) => {
    const job_id = `${uuidTime()}-7000-8000-000000000001`
    const name = by === 'key' ? { idempotency_key: 'k1' } : { job_id }
    const send = (more: object = {}): ReturnType<TenantServer['as']> =>
      app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'ask', ...name, ...FIRST, ...more })
    const first = await send()
    expect(first.status).toBe(202)
    expect((await send()).body.job_id).toBe(first.body.job_id)
    const reordered = { initial_data: { b: [1, { c: null }], a: 1 } }
    expect((await send(reordered)).body.job_id).toBe(first.body.job_id)
    for (const [title, other] of OTHERS) {
      expect.soft(await send(other), title).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } })
    }
  })

  function uuidTime(): string {
    const hex = Date.now().toString(16).padStart(12, '0')
    return `${hex.slice(0, 8)}-${hex.slice(8)}`
  }
})

describe('[H-01] names in paths and queries', () => {
  test.each([
    '/api/v1/jobs/a%00b',
    '/api/v1/jobs?q=a%00b',
    '/api/v1/jobs?blueprint=a%00b',
    '/api/v1/jobs?owner=alpha%00',
    '/api/v1/workers/w%00',
    '/api/v1/blueprints/ask%00',
    '/api/v1/quarantine?error_code=%00',
    '/api/v1/history?job=%00',
    '/api/v1/webhooks/%00',
  ])('%s is refused', async (path) => {
    const answer = await app.as('alpha', 'GET', path)
    expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(String(answer.body['error'])).toContain('U+0000')
  })

  test('metadata may hold anything, and is searched as it is', async () => {
    for (const [, text] of ODD) expect((await create('alpha', `"metadata":{"note":"find-${text}"}`)).status).toBe(202)
    const { body } = await app.as('alpha', 'GET', '/api/v1/jobs?q=find-')
    expect(body).toHaveLength(ODD.length)
  })
})
