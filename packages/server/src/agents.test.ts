import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { SCOPES } from '@impresario/protocol'
import type { Scope } from '@impresario/protocol'
import type { DeclaredRoute } from './http/access.ts'
import { testStorage } from '../../../test/servers/test-storage.ts'
import { SAMPLE_AUTOMATION, sampleBody } from './route-samples.fixture.ts'
import { startTestServer } from './server.fixture.ts'
import type { Answer, TestServer } from './server.fixture.ts'

/*
 * The table of all routes against agents: each with one scope, and each against what belongs to another. A route is asserted
 * the moment it exists.
 */

const BEYOND_ADMIN = SCOPES.filter((scope) => scope !== 'admin')
let directory = ''
let app: TestServer
let routes: readonly DeclaredRoute[] = []
const tokens = new Map<Scope, string>()
/** Of the agent `owner`: what other agents must not find. */
const samples = new Map<string, string>()
let owner = ''
let other = ''

const as = (token: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${token}` })

async function agentWith(name: string, scopes: readonly string[], more: object = {}): Promise<string> {
  const made = await app.client('POST', '/api/v1/agents', { name, scopes, ...more })
  expect({ status: made.status, text: made.text }).toMatchObject({ status: 201 })
  return newToken(String(made.body['id']), 'first')
}

async function newToken(agentId: string, name: string, more: object = {}): Promise<string> {
  const made = await app.client('POST', `/api/v1/agents/${agentId}/tokens`, { name, ...more })
  expect(made.status).toBe(201)
  return String(made.body['token'])
}

/** The agent that a token belongs to. */
const idOf = async (token: string): Promise<string> =>
  String((await app.call('GET', '/api/v1/account', { headers: as(token) })).body['client_id'])

beforeAll(async () => {
  // Shared storages have no directory of their own.
  directory = await mkdtemp(join(tmpdir(), 'impresario-agents-'))
  app = await startTestServer({ settings: { filesDir: directory } })
  routes = await app.server.routes()
  for (const scope of SCOPES) tokens.set(scope, await agentWith(`only ${scope}`, [scope]))
  owner = await agentWith('owner', BEYOND_ADMIN)
  other = await agentWith('other', BEYOND_ADMIN)
  const made = async (path: string, body: object): Promise<Answer['body']> =>
    (await app.call('POST', `/api/v1${path}`, { headers: as(owner), body })).body
  const hook = 'https://hooks.example.com/ended'
  const ended = await made('/jobs', { blueprint: 'ask', webhook_url: hook })
  await made(`/jobs/${ended.job_id}/cancel`, {})
  samples.set('job_id', (await made('/jobs', { blueprint: 'ask' })).job_id)
  samples.set('automation_id', String((await made('/automations', SAMPLE_AUTOMATION))['id']))
  samples.set('task_id', samples.get('automation_id') ?? '')
  samples.set('run_id', String((await made(`/automations/${samples.get('automation_id')}/run`, {}))['run_id']))
  samples.set('event_id', String((await made('/automations/events', { topic: 'a.b' }))['id']))
  for (const [name, path] of [
    ['delivery_id', '/api/v1/webhooks/deliveries'],
    ['endpoint_id', '/api/v1/webhooks/endpoints'],
  ] as const) {
    const found = await vi.waitFor(async () => {
      const { text } = await app.call('GET', path, { headers: as(owner) })
      const [id] = /(?<="id":")[^"]+/.exec(text) ?? []
      if (id === undefined) throw new Error(`${path} lists nothing`)
      return id
    }, 60_000)
    samples.set(name, found)
  }
})

afterAll(async () => {
  await app.server.stop()
  await rm(directory, { recursive: true, force: true })
})

function pathOf(url: string): string {
  const path = url.replaceAll(
    /:(\w+)|\*/g,
    (_all, name: string | undefined) => samples.get(name ?? '*') ?? 'no-such-thing',
  )
  if (path.endsWith('/changes')) return `${path}?wait=0`
  return /\/files\/(?:upload|link)$/.test(path) ? `${path}?filename=a.txt` : path
}

/** What is deleted is never there: the samples are needed to the end. */
function samplePath({ method, url }: DeclaredRoute): string {
  return method === 'DELETE' && url.includes(':') ? `${pathOf(url)}x` : pathOf(url)
}

function call({ method, url }: DeclaredRoute, token: string, path: string): Promise<Answer> {
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return app.call(method, path, { headers: as(token), ...(hasBody ? { body: sampleBody(method, url) } : {}) })
}

const nameOf = ({ method, url }: DeclaredRoute): string => `${method} ${url}`
const isScoped = ({ access }: DeclaredRoute): boolean => access !== 'public' && access !== 'worker'
/** These come with a link, never with a token. */
const isByLink = ({ access, method }: DeclaredRoute): boolean => access === 'capability' && method !== 'POST'

describe('every route against agents', () => {
  test('[K-01] every route that clients may call names a scope, and those for admins the scope admin', () => {
    const scoped = routes.filter(isScoped)
    expect(scoped.length).toBeGreaterThan(60)
    for (const route of scoped) {
      expect({ route: nameOf(route), scope: route.scope }).toEqual({
        route: nameOf(route),
        scope: expect.stringMatching(route.access === 'admin' ? /^admin$/ : /./) as unknown,
      })
    }
    for (const route of routes.filter((one) => !isScoped(one))) expect(route.scope).toBeUndefined()
  })

  test('[K-01] an agent with one scope reaches the routes of that scope, and no others', async () => {
    for (const route of routes.filter((one) => isScoped(one) && !isByLink(one) && !one.isAlias)) {
      const allowed: Scope[] = []
      for (const [scope, token] of tokens) {
        const { status } = await call(route, token, samplePath(route))
        expect(status).not.toBe(401)
        expect(status).toBeLessThan(500)
        if (status !== 403) allowed.push(scope)
      }
      const expected = SCOPES.filter((scope) => scope === 'admin' || scope === route.scope || route.scope === 'any')
      expect({ route: nameOf(route), allowed }).toEqual({ route: nameOf(route), allowed: expected })
    }
  }, 120_000)

  test('[K-01] [H-05] what another agent owns is answered like what does not exist', async () => {
    let asked = 0
    for (const route of routes.filter((one) => isScoped(one) && !isByLink(one))) {
      const ids = [...route.url.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '')
      if (!ids.some((name) => samples.has(name)) || route.access === 'admin') continue
      asked += 1
      const foreign = await call(route, other, pathOf(route.url))
      expect({ route: nameOf(route), status: foreign.status }).toEqual({ route: nameOf(route), status: 404 })
      for (const id of samples.values()) expect(foreign.text).not.toContain(id)
    }
    expect(asked).toBeGreaterThan(20)
  })

  test('[K-01] the samples are real: their owner finds them, an agent with the scope admin too; lists of others are empty', async () => {
    for (const path of [
      '/jobs/:job_id',
      '/automations/:automation_id',
      '/runs/:run_id',
      '/automations/events/:event_id',
    ]) {
      const found = pathOf(`/api/v1${path}`)
      for (const token of [owner, tokens.get('admin') ?? '']) {
        expect((await app.call('GET', found, { headers: as(token) })).status).toBe(200)
      }
      const list = await app.call('GET', found.slice(0, found.lastIndexOf('/')), { headers: as(other) })
      expect(list.status).toBe(200)
      for (const id of samples.values()) expect(list.text).not.toContain(id)
    }
  })
})

describe('agents and their tokens', () => {
  test('[K-01] knowing an id is worth nothing: only the secret of a token that is valid lets an agent in', async () => {
    const token = await agentWith('careful', ['runs:read'])
    const id = await idOf(token)
    const bare = id.replaceAll('-', '')
    const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
    for (const guess of [id, bare, `agt_${bare}`, `agt_${bare}_${'A'.repeat(43)}`, wrong, `${token}x`, 'system']) {
      expect((await app.call('GET', '/api/v1/runs', { headers: as(guess) })).status).toBe(401)
    }
    expect((await app.call('GET', '/api/v1/runs', { headers: { 'x-client-token': token } })).status).toBe(200)
    const shown = await app.client('GET', `/api/v1/agents/${id}`)
    expect(shown.text).not.toContain(token)
    expect(shown.text).not.toContain('hash')
  })

  test('[K-01] several tokens at a time; one that is revoked or has expired is refused, and the others stay', async () => {
    const first = await agentWith('rotating', ['runs:read'])
    const id = await idOf(first)
    const second = await newToken(id, 'second')
    const short = await newToken(id, 'short', { expires_in_seconds: 1 })
    const status = async (token: string): Promise<number> =>
      (await app.call('GET', '/api/v1/runs', { headers: as(token) })).status
    expect(await status(second)).toBe(200)
    const again = await app.client('POST', `/api/v1/agents/${id}/tokens`, { name: 'second' })
    expect(again.status).toBe(409)
    const listed = JSON.parse((await app.client('GET', `/api/v1/agents/${id}/tokens`)).text) as {
      id: string
      name: string
    }[]
    expect(listed.map(({ name }) => name)).toEqual(['first', 'second', 'short'])
    const gone = listed.find(({ name }) => name === 'first')?.id ?? ''
    expect((await app.client('DELETE', `/api/v1/agents/${id}/tokens/${gone}`)).status).toBe(204)
    expect((await app.client('DELETE', `/api/v1/agents/${id}/tokens/${gone}`)).status).toBe(404)
    expect([await status(first), await status(second)]).toEqual([401, 200])
    await vi.waitFor(async () => expect(await status(short)).toBe(401), 10_000)
  })

  test('[K-01] [I-01] what one instance changes, the others know', async () => {
    const storage = testStorage({ now: () => Date.now() })
    const settings = { clientToken: 'token-of-admins', workerToken: 'token-of-workers' }
    const one = await startTestServer({ storage, settings })
    const two = await startTestServer({ storage, settings })
    const admin = { 'x-client-token': settings.clientToken }
    const made = await one.call('POST', '/api/v1/agents', {
      headers: admin,
      body: { name: 'a', scopes: ['runs:read'] },
    })
    const path = `/api/v1/agents/${String(made.body['id'])}`
    const token = await one.call('POST', `${path}/tokens`, { headers: admin, body: { name: 't' } })
    const seen = async (): Promise<number> =>
      (await two.call('GET', '/api/v1/runs', { headers: as(String(token.body['token'])) })).status
    expect(await seen()).toBe(200)
    await one.call('DELETE', `${path}/tokens/${String(token.body['id'])}`, { headers: admin })
    await vi.waitFor(async () => expect(await seen()).toBe(401), 4_000)
    await Promise.all([one.server.stop(), two.server.stop()])
  })

  test('[K-01] other scopes count from the next request on', async () => {
    const token = await agentWith('changing', ['runs:read'])
    const id = await idOf(token)
    const status = async (path: string): Promise<number> => (await app.call('GET', path, { headers: as(token) })).status
    expect([await status('/api/v1/runs'), await status('/api/v1/jobs')]).toEqual([200, 403])
    const changed = await app.client('PATCH', `/api/v1/agents/${id}`, { scopes: ['jobs:*'] })
    expect(changed.body['scopes']).toEqual(['jobs:read', 'jobs:write'])
    expect([await status('/api/v1/runs'), await status('/api/v1/jobs')]).toEqual([403, 200])
  })

  test('[K-01] a name is taken once, and free again after a change or the end of its agent', async () => {
    const make = (name: string, scopes: readonly string[] = []): Promise<Answer> =>
      app.client('POST', '/api/v1/agents', { name, scopes })
    const id = String((await make('unique')).body['id'])
    expect((await make('unique')).status).toBe(409)
    expect((await app.client('PATCH', `/api/v1/agents/${id}`, { name: 'renamed' })).status).toBe(200)
    const second = await make('unique')
    expect(second.status).toBe(201)
    const path = `/api/v1/agents/${String(second.body['id'])}`
    expect((await app.client('PATCH', path, { name: 'renamed' })).status).toBe(409)
    expect((await app.client('DELETE', `/api/v1/agents/${id}`)).status).toBe(204)
    expect((await app.client('PATCH', path, { name: 'renamed' })).status).toBe(200)
    expect((await app.client('GET', '/api/v1/agents/name%2Frenamed')).status).toBe(404)
    const unknown = await make('wrong', ['runs:write'])
    expect(unknown).toMatchObject({ status: 422 })
    expect(unknown.text).toContain(String.raw`There is no scope \"runs:write\". There are automations:read`)
  })

  test('[K-01] [K-13] who acted, and for whom, is in the audit log; with an agent its automations end', async () => {
    const token = await agentWith('assistant', ['automations:*'], { on_behalf_of: 'ada' })
    const id = await idOf(token)
    const forBob = await newToken(id, 'for bob', { on_behalf_of: 'bob' })
    const made = await app.call('POST', '/api/v1/automations', { headers: as(token), body: SAMPLE_AUTOMATION })
    const automation = `/api/v1/automations/${String(made.body['id'])}`
    await app.call('POST', `${automation}/pause`, { headers: as(forBob) })
    expect((await app.client('DELETE', `/api/v1/agents/${id}`)).status).toBe(204)
    expect((await app.call('GET', automation, { headers: as(token) })).status).toBe(401)
    expect((await app.client('GET', automation)).body['status']).toBe('canceled')
    const { text } = await app.client('GET', `/api/v1/audit?owner=${id}`)
    const entries = JSON.parse(text) as { action: string; actor: string; on_behalf_of: string | null }[]
    expect(
      entries.map(({ action, actor, on_behalf_of: person }) => [action, actor === id ? 'agent' : actor, person]),
    ).toEqual([
      ['automation.canceled', 'default', null],
      ['agent.deleted', 'default', null],
      ['automation.paused', 'agent', 'bob'],
      ['automation.created', 'agent', 'ada'],
      ['agent.token_created', 'default', null],
      ['agent.token_created', 'default', null],
      ['agent.created', 'default', null],
    ])
  })

  test('[K-01] an agent can act for nobody again, and the audit log says so', async () => {
    const id = await idOf(await agentWith('assistant', ['automations:*'], { on_behalf_of: 'ada' }))
    const path = `/api/v1/agents/${id}`
    expect((await app.client('PATCH', path, { description: 'same person' })).body['on_behalf_of']).toBe('ada')
    expect((await app.client('PATCH', path, { on_behalf_of: null })).body['on_behalf_of']).toBeNull()
    expect((await app.client('GET', path)).body['on_behalf_of']).toBeNull()
    expect((await app.client('PATCH', path, { on_behalf_of: '' })).status).toBe(400)
    const { text } = await app.client('GET', `/api/v1/audit?owner=${id}`)
    const [latest] = JSON.parse(text) as readonly { readonly details: unknown }[]
    expect(latest?.details).toMatchObject({ on_behalf_of: null, old_on_behalf_of: 'ada' })
  })

  test('[K-01] [K-10] an agent that has lost a scope, or is gone, runs its tools no more', async () => {
    const scopes = ['automations:*', 'events:publish', 'jobs:write', 'runs:read']
    const token = await agentWith('shrinking', scopes)
    const id = await idOf(token)
    const pipelines = [
      [{ id: 'say', uses: 'event.publish', with: { topic: 'a.b' } }],
      [{ id: 'job', uses: 'blueprint.echo' }],
    ]
    const made = await Promise.all(
      pipelines.map((pipeline) =>
        app.call('POST', '/api/v1/automations', { headers: as(token), body: { title: 'x', pipeline } }),
      ),
    )
    const runOf = async (at: number): Promise<Answer['body']> => {
      const path = `/api/v1/automations/${String(made[at]?.body['id'])}/run`
      const { body } = await app.client('POST', path, {})
      return vi.waitFor(async () => {
        const run = (await app.client('GET', `/api/v1/runs/${String(body['run_id'])}`)).body
        expect(run['ended_at']).not.toBeNull()
        return run
      }, 60_000)
    }
    expect(await runOf(0)).toMatchObject({ status: 'succeeded' })
    await app.client('PATCH', `/api/v1/agents/${id}`, { scopes: ['automations:*', 'runs:read'] })
    expect(await runOf(0)).toMatchObject({ status: 'failed', error: { code: 'SCOPE_MISSING' } })
    const failed = await runOf(1)
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'SCOPE_MISSING' } })
    expect(JSON.stringify(failed['error'])).toContain('needs the scope jobs:write')
    const body = { title: 'x', pipeline: [{ id: 'wait', approval: { message: 'Go?' } }, ...(pipelines[0] ?? [])] }
    await app.client('PATCH', `/api/v1/agents/${id}`, { scopes })
    const late = await app.call('POST', '/api/v1/automations', { headers: as(token), body })
    const { body: run } = await app.client('POST', `/api/v1/automations/${String(late.body['id'])}/run`, {})
    await vi.waitFor(async () => {
      const path = `/api/v1/jobs/${String(run['run_id'])}`
      expect((await app.client('GET', path)).body['status']).toBe('waiting_for_human')
    }, 60_000)
    await app.client('DELETE', `/api/v1/agents/${id}`)
    await app.client('POST', `/_public/webhooks/approval/${String(run['run_id'])}`, { decision: 'approved' })
    await vi.waitFor(async () => {
      const { body: ended } = await app.client('GET', `/api/v1/runs/${String(run['run_id'])}`)
      expect(ended).toMatchObject({ status: 'failed', error: { code: 'SCOPE_MISSING' } })
    }, 60_000)
  })

  test('[K-01] [K-10] an agent builds pipelines only of tools that its scopes allow', async () => {
    const token = await agentWith('modest', ['automations:write'])
    const body = { title: 'Job', pipeline: [{ id: 'job', uses: 'blueprint.echo' }] }
    const refused = await app.call('POST', '/api/v1/automations', { headers: as(token), body })
    expect(refused).toMatchObject({ status: 422 })
    const bold = await agentWith('bold', ['automations:write', 'jobs:write'])
    expect((await app.call('POST', '/api/v1/automations', { headers: as(bold), body })).status).toBe(201)
  })
})
