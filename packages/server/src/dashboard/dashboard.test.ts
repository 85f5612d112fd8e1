import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { ClientAuth, hashToken } from '../auth/auth.ts'
import type { ClientCredential } from '../auth/auth.ts'
import { loadSecretKey } from '../config/secret-key.ts'
import { createClock } from '../runtime/clock.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer } from '../server.fixture.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'
import { DASHBOARD_HEADER, Sessions } from './sessions.ts'

let app: TenantServer
beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

const OWN = { [DASHBOARD_HEADER]: '1', 'sec-fetch-site': 'same-origin' }

async function cookieOf(answer: Answer): Promise<string> {
  return (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
}

async function signedIn(tenant: Tenant): Promise<Readonly<Record<string, string>>> {
  const answer = await app.call('POST', '/dashboard/session', { body: { token: TENANTS[tenant] }, headers: OWN })
  expect(answer.status).toBe(200)
  return { ...OWN, cookie: await cookieOf(answer) }
}

describe('sessions', () => {
  test('[M-02] a token begins a session with the role of its client, in a cookie that scripts cannot read', async () => {
    const answer = await app.call('POST', '/dashboard/session', { body: { token: TENANTS.viewer }, headers: OWN })
    expect(answer.body).toMatchObject({ client_id: 'viewer', role: 'viewer' })
    const cookie = answer.headers.get('set-cookie') ?? ''
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/']) expect(cookie).toContain(part)
    expect(cookie).not.toContain(TENANTS.viewer)
    const headers = { ...OWN, cookie: await cookieOf(answer) }
    expect((await app.call('GET', '/dashboard/session', { headers })).body).toMatchObject({ client_id: 'viewer' })
    expect((await app.call('GET', '/api/v1/jobs', { headers })).status).toBe(200)
    const start = await app.call('POST', '/api/v1/jobs', { headers, body: { blueprint: 'echo' } })
    expect(start.status).toBe(403)
  })

  test('[M-02] [H-01] a session sees what its client sees, and nothing of others', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const path = `/api/v1/jobs/${jobId}`
    expect((await app.call('GET', path, { headers: await signedIn('alpha') })).status).toBe(200)
    expect((await app.call('GET', path, { headers: await signedIn('beta') })).status).toBe(404)
    expect((await app.call('GET', path, { headers: await signedIn('admin') })).status).toBe(200)
    const question = await app.call('GET', path, { headers: await signedIn('alpha') })
    const { visit } = question.body['approval'] as { readonly visit: number }
    const decide = (headers: Readonly<Record<string, string>>): Promise<Answer> =>
      app.call('POST', `/_public/webhooks/approval/${jobId}`, { headers, body: { decision: 'approved', visit } })
    expect((await decide(await signedIn('viewer'))).status).toBe(403)
    expect((await decide(await signedIn('beta'))).status).toBe(404)
    expect((await decide(await signedIn('alpha'))).status).toBe(200)
  })

  test.for([
    ['without the header of the dashboard', { 'sec-fetch-site': 'same-origin' }],
    ['from another site', { [DASHBOARD_HEADER]: '1', 'sec-fetch-site': 'cross-site' }],
    ['from a sibling site', { [DASHBOARD_HEADER]: '1', 'sec-fetch-site': 'same-site' }],
    ['typed into the address bar', { [DASHBOARD_HEADER]: '1', 'sec-fetch-site': 'none' }],
    ['with another origin', { [DASHBOARD_HEADER]: '1', origin: 'https://evil.example' }],
  ] as const)('[M-02] [H-06] a cookie that comes %s opens nothing', async ([, headers]) => {
    const { cookie = '' } = await signedIn('admin')
    const answer = await app.call('POST', '/api/v1/jobs', {
      headers: { cookie, ...headers },
      body: { blueprint: 'ask' },
    })
    expect(answer.status).toBe(403)
    expect((await app.call('GET', '/api/v1/jobs', { headers: { cookie, ...headers } })).status).toBe(403)
  })

  test('[M-02] [H-06] a session that was ended stays ended, also for who has copied its cookie', async () => {
    const headers = await signedIn('alpha')
    expect((await app.call('GET', '/api/v1/jobs', { headers })).status).toBe(200)
    const out = await app.call('DELETE', '/dashboard/session', { headers })
    expect(out.headers.get('set-cookie')).toContain('Expires=Thu, 01 Jan 1970')
    expect((await app.call('GET', '/api/v1/jobs', { headers })).status).toBe(401)
    expect((await app.call('GET', '/dashboard/session', { headers })).status).toBe(401)
  })

  test('[M-02] [H-06] wrong tokens, made-up and altered cookies are refused', async () => {
    for (const body of [{ token: 'nobody' }, { code: 'a.b.c' }, { token: '' }, {}, { token: 1 }]) {
      expect((await app.call('POST', '/dashboard/session', { body, headers: OWN })).status).toBeGreaterThanOrEqual(400)
    }
    const { cookie = '' } = await signedIn('viewer')
    const [name = '', value = ''] = cookie.split('=')
    const parts = value.split('.')
    const admin = [parts[0], Buffer.from('admin').toString('base64url'), ...parts.slice(2)].join('.')
    const later = [...parts.slice(0, 3), '9999999999', parts[4]].join('.')
    const forged = [...parts.slice(0, 4), createHmac('sha256', 'guess').update('x').digest('base64url')].join('.')
    for (const wrong of [admin, later, forged, 'x', `${value}x`]) {
      const headers = { ...OWN, cookie: `${name}=${wrong}` }
      expect((await app.call('GET', '/api/v1/jobs', { headers })).status).toBe(401)
    }
  })

  test('[M-02] a link signs in once, as the client that asked for it', async () => {
    const { body } = await app.as('alpha', 'POST', '/api/v1/dashboard/links')
    const code = String(body['path']).split('#code=')[1]
    const first = await app.call('POST', '/dashboard/session', { body: { code }, headers: OWN })
    expect(first.body).toMatchObject({ client_id: 'alpha', role: 'client' })
    const second = await app.call('POST', '/dashboard/session', { body: { code }, headers: OWN })
    expect(second.status).toBe(401)
    const asSession = { ...OWN, cookie: (await cookieOf(first)).replace(/[=].*/, `=${code}`) }
    expect((await app.call('GET', '/api/v1/jobs', { headers: asSession })).status).toBe(401)
  })
})

test('[M-02] [H-06] a session ends by its time, and with the token that it was begun with', async () => {
  const hourMs = 3_600_000
  const real = createClock()
  let aheadMs = 0
  const clock = { now: () => real.now() + aheadMs, sleep: (ms: number, signal: AbortSignal) => real.sleep(ms, signal) }
  const storage = testStorage({ now: () => clock.now() })
  const auth = new ClientAuth([credential('one')])
  const secretKey = loadSecretKey('5e0c1a6f2b7d49e8a3f1c0d2b4e6f8a1', undefined)
  const sessions = new Sessions({ auth, clock, storage, secretKey, publicUrl: '' })
  const { text } = sessions.begin('one')
  const headers = { ...OWN, cookie: `${sessions.cookieName}=${text}` }
  expect(sessions.authenticate(headers).client.id).toBe('c')
  aheadMs = 11 * hourMs
  expect(sessions.admits(headers)).toBe(true)
  aheadMs = 13 * hourMs
  expect(sessions.admits(headers)).toBe(false)
  aheadMs = 0
  auth.replace([credential('two')])
  expect(sessions.admits(headers)).toBe(false)
  await storage.close()
})

function credential(token: string): ClientCredential {
  return { tokens: [hashToken(token)], client: { id: 'c' }, role: 'client' }
}

describe('the application', () => {
  const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8'

  test('[M-02] every path of the dashboard is its page, under a strict policy, relative to where it is', async () => {
    for (const [path, base] of [
      ['/dashboard', 'dashboard/'],
      ['/dashboard/jobs', './'],
      ['/dashboard/jobs/some-id?tab=data', '../'],
    ] as const) {
      const page = await app.call('GET', path, { headers: { accept: BROWSER } })
      expect(page.status).toBe(200)
      expect(page.headers.get('content-type')).toContain('text/html')
      const policy = page.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(page.headers.get('x-frame-options')).toBe('DENY')
      // Where the application is not built, the page says so.
      expect(page.text.includes('<base') ? page.text : `<base href="${base}"`).toContain(`<base href="${base}"`)
    }
  })

  test('[M-02] who asks for JSON gets the counts, as before', async () => {
    const json = { accept: 'application/json' }
    const counts = await app.as('alpha', 'GET', '/dashboard', undefined, json)
    expect(counts.body).toEqual((await app.as('alpha', 'GET', '/api/v1/dashboard')).body)
    expect((await app.call('GET', '/dashboard', { headers: json })).status).toBe(401)
  })

  test('[M-02] a file that is not there is no page, and nothing outside is served', async () => {
    expect((await app.call('GET', '/dashboard/assets/none.js')).status).toBe(404)
    for (const path of ['/dashboard/..%2f..%2fpackage.json', '/dashboard/%2e%2e/package.json']) {
      expect((await app.call('GET', path)).text).not.toContain('"dependencies"')
    }
  })
})

test('[M-02] without any tokens the own machine needs no sign-in, and others get nothing', async () => {
  const open = await startTestServer({ settings: { clientToken: '', workerToken: '' } })
  try {
    const session = await open.call('GET', '/dashboard/session', { headers: OWN })
    expect(session.body).toMatchObject({ client_id: 'default', role: 'admin', expires_at: null })
    const foreign = { ...OWN, origin: 'https://evil.example' }
    expect((await open.call('GET', '/dashboard/session', { headers: foreign })).status).toBe(403)
    expect(open.server.dashboardLink('default', 'jobs/x')).toMatch(/\/dashboard\/jobs\/x#code=[\w.-]+$/)
  } finally {
    await open.server.stop()
  }
})

test('[M-02] [D-05] admins see what waits, by kind of work', async () => {
  const jobId = await app.jobIn('alpha', 'echo', 'waiting_for_worker')
  const queues = await app.as('admin', 'GET', '/api/v1/queues')
  expect(JSON.parse(queues.text)).toMatchObject([
    {
      task_type: 'echo',
      requirements: null,
      worker: null,
      waiting: 1,
      is_exact: true,
    },
  ])
  const [{ oldest_seconds: waited }] = JSON.parse(queues.text) as readonly [{ readonly oldest_seconds: unknown }]
  expect(waited).toBeGreaterThanOrEqual(0)
  expect((await app.as('alpha', 'GET', '/api/v1/queues')).status).toBe(403)
  await app.as('alpha', 'POST', `/api/v1/jobs/${jobId}/cancel`)
})
