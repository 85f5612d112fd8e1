import { afterAll, beforeAll, expect, test } from 'vitest'
import { ODD_VALUES } from '../fuzz/hostile.fixture.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { oldClient, TASK } from './old-client.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer({ settings: { rateLimitingEnabled: false } })
})
afterAll(() => app.close())

const AGENT = { name: 'odd', scopes: ['tasks:read'], webhook_url: 'https://example.com/' }
const SESSION = { agent_id: 'x', agent_secret: 'y', refresh_token: 'a.b.c' }
const EXTRA = { dedupe_key: 'k', dedupe_window_seconds: 1, max_retries: 1, backoff_strategy: 'fixed', created_by: 'me' }

/** A few of the odd values, others for each place: all of them in every place would take a minute. */
function some(at: number): readonly unknown[] {
  return ODD_VALUES.filter((_, index) => index % 5 === at % 5)
}

test('[K-17] [H-01] whatever is sent to a route of the old interface, the answer is one that its clients can read', async () => {
  const admin = oldClient(app, 'admin')
  const id = await admin.create()
  const bodies: Readonly<Record<string, object>> = {
    'POST /tasks': { ...TASK, ...EXTRA, concurrency_key: 'c', priority: 1 },
    [`PUT /tasks/${id}`]: { ...TASK, concurrency_key: 'c', max_retries: 1, backoff_strategy: 'fixed' },
    [`POST /tasks/${id}/snooze`]: { delay_seconds: 1, reason: 'x' },
    'POST /events': { topic: 'a.b', payload: {}, source_agent_id: 'x' },
    'POST /agents': AGENT,
    [`PUT /agents/${id}`]: AGENT,
    [`POST /agents/${id}/credentials`]: { password: 'x' },
    'POST /agents/auth/token': SESSION,
    'POST /agents/auth/refresh': SESSION,
    'POST /agents/auth/revoke': SESSION,
  }
  const calls = Object.entries(bodies).flatMap(([route, body]) => {
    const [method = '', path = ''] = route.split(' ')
    const changed = Object.keys(body).flatMap((name, at) => some(at).map((value) => ({ ...body, [name]: value })))
    return [...some(path.length), ...changed].map((sent) => [method, path, JSON.stringify(sent)] as const)
  })
  const steps = ODD_VALUES.flatMap((value) => [[value], { id: 'a', uses: 'log', with: value, max_retries: value }])
  for (const step of steps) {
    calls.push(['POST', '/tasks', JSON.stringify({ ...TASK, payload: { pipeline: step, params: step } })])
  }
  const filters = {
    '/tasks': ['status', 'created_by', 'schedule_kind', 'limit', 'offset'],
    '/runs': ['task_id', 'success', 'include_errors', 'start_time', 'end_time', 'limit', 'offset'],
    '/runs/stats/summary': ['days'],
    '/events/stream/recent': ['count'],
    '/agents': ['name_filter', 'scope_filter', 'limit'],
  }
  const texts = ODD_VALUES.filter(
    (value): value is string => typeof value === 'string' && value.length < 1_000 && value !== '\uD800',
  )
  for (const [path, names] of Object.entries(filters)) {
    for (const name of names) {
      for (const text of ['-1', '1e9', '%', texts[name.length % texts.length] ?? '']) {
        calls.push(['GET', `${path}?${name}=${encodeURIComponent(text)}`, ''])
      }
    }
  }
  for (const text of texts) calls.push(['GET', `/tasks/${encodeURIComponent(text)}x`, ''])
  for (const [method, path, text] of calls) {
    const { status, body } = await admin.call(method, path, method === 'GET' ? undefined : text)
    const isReadable = status < 400 || Array.isArray(body['detail']) || typeof body['request_id'] === 'string'
    expect({ method, path, text: text.slice(0, 500), status, isReadable }).toMatchObject({ isReadable: true })
    expect({ method, path, text: text.slice(0, 500), isFine: status < 500 }).toMatchObject({ isFine: true })
  }
  expect(calls.length).toBeGreaterThan(400)
}, 120_000)
