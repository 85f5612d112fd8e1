import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { connectClient } from '../mcp/mcp-client.fixture.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { AUDIENCE, startIssuer } from './issuer.fixture.ts'
import type { TestIssuer } from './issuer.fixture.ts'

let issuer: TestIssuer
let server: TestServer

beforeEach(async () => {
  issuer = await startIssuer()
  server = await startTestServer({
    settings: { oauthIssuers: issuer.url, oauthAudience: AUDIENCE, oauthScopePrefix: 'imp/' },
  })
})

afterEach(async () => {
  await server.server.stop()
  await issuer.close()
})

const WORK = 'openid imp/jobs:* imp/approvals:decide unknown jobs:admin admin'

function as(token: string, method: string, path: string, body?: unknown): Promise<Answer> {
  return server.call(method, path, { headers: { authorization: `Bearer ${token}` }, body })
}

describe('tokens of other issuers', () => {
  test('[K-01] [K-12] a token of a configured issuer opens /mcp and the API, for its subject, with its scopes only', async () => {
    const ada = await issuer.token({ sub: 'ada', scope: WORK })
    const bob = await issuer.token({ sub: 'bob', scp: ['imp/jobs:read'] })
    const client = await connectClient(server, '2026-07-28', { token: ada })
    const made = await client.callTool({ name: 'start_job', arguments: { blueprint: 'ask' } })
    const id = String((made.structuredContent as { job_id?: string }).job_id)
    await client.close()
    expect((await as(ada, 'GET', `/api/v1/jobs/${id}`)).status).toBe(200)
    // Another subject is another caller, and a scope that it lacks is refused by name.
    expect((await as(bob, 'GET', `/api/v1/jobs/${id}`)).status).toBe(404)
    const refused = await as(bob, 'POST', '/api/v1/jobs', { blueprint: 'ask' })
    expect(refused.body).toMatchObject({ code: 'FORBIDDEN' })
    expect(refused.text).toContain('jobs:write')
    // Scopes without the prefix give nothing, whatever they are called.
    expect((await as(ada, 'GET', '/api/v1/agents')).status).toBe(403)
    // The keys are fetched once.
    expect(issuer.asked.filter((path) => path === '/keys')).toHaveLength(1)
  })

  test('[K-01] a token that is expired, forged, for another service, unsigned or of nobody is refused', async () => {
    const claims = { sub: 'ada', scope: WORK }
    const unsigned = (header: object, secret: string): string => {
      const payload = { ...claims, iss: issuer.url, aud: AUDIENCE, exp: Math.floor(Date.now() / 1_000) + 300 }
      const text = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
      return `${text}.${secret === '' ? '' : createHmac('sha256', secret).update(text).digest('base64url')}`
    }
    const tokens = {
      good: await issuer.token(claims),
      expired: await issuer.token(claims, { expires: Math.floor(Date.now() / 1_000) - 60 }),
      forever: await issuer.token(claims, { expires: null }),
      forged: await issuer.token(claims, { isForged: true }),
      elsewhere: await issuer.token({ ...claims, aud: 'https://other.example.com' }),
      nobody: await issuer.token({ scope: WORK }),
      stranger: await issuer.token(claims, { issuer: 'https://login.example.com' }),
      none: unsigned({ alg: 'none' }, ''),
      shared: unsigned({ alg: 'HS256', kid: 'one' }, 'secret'),
      rubbish: 'a.b.c',
    }
    const statuses: Record<string, number> = {}
    for (const [name, token] of Object.entries(tokens)) {
      statuses[name] = (await as(token, 'GET', '/api/v1/jobs')).status
    }
    const { good, ...bad } = statuses
    expect(good).toBe(200)
    expect(bad).toEqual(Object.fromEntries(Object.keys(bad).map((name) => [name, 401])))
    const told = await as(tokens.expired, 'POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' })
    expect(told.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token", resource_metadata="http/)
    expect(issuer.asked.length).toBeLessThan(5)
  })

  test('[K-12] the metadata of the resource names the issuer and the scopes (RFC 9728)', async () => {
    const { body } = await server.call('GET', '/.well-known/oauth-protected-resource/mcp')
    expect(body).toMatchObject({
      resource: `${server.address}/mcp`,
      authorization_servers: [issuer.url],
    })
    expect(body['scopes_supported']).toContain('imp/automations:write')
  })

  test('[K-12] an issuer that is down, or answers with too much, is no fault of the token: 503, and others are let in', async () => {
    issuer.breakWith(
      JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, x: 'x'.repeat(300_000) }),
      200,
    )
    const token = await issuer.token({ sub: 'ada', scope: WORK })
    for (const _ of [1, 2, 3]) {
      const reply = await as(token, 'GET', '/api/v1/jobs')
      expect(reply.status).toBe(503)
      expect(reply.headers.get('retry-after')).toBe('30')
    }
    // Asked once for each of the two addresses: it is left alone for a while.
    expect(issuer.asked).toHaveLength(2)
    expect((await server.client('GET', '/api/v1/jobs')).status).toBe(200)
  })

  test('[K-01] what runs later without a token has the scopes that its owner had: no more, and what it lost is lost', async () => {
    const definition = {
      title: 'Start it',
      overlap: 'parallel',
      pipeline: [{ id: 'go', uses: 'blueprint.ask', with: {} }],
    }
    const first = await issuer.token({ sub: 'ada', scope: 'imp/automations:* imp/runs:read imp/jobs:*' })
    const made = await as(first, 'POST', '/api/v1/automations', definition)
    expect(made.status).toBe(201)
    const path = `/api/v1/automations/${String(made.body['id'])}`
    const started = await as(first, 'POST', `${path}/run`, {})
    const run = String(started.body['run_id'])
    await expect.poll(async () => (await as(first, 'GET', `/api/v1/jobs/${run}`)).body['status']).toMatch(/waiting/)
    const less = await issuer.token({ sub: 'ada', scope: 'imp/automations:* imp/runs:read' })
    const again = String((await as(less, 'POST', `${path}/run`, {})).body['run_id'])
    await expect.poll(async () => (await as(less, 'GET', `/api/v1/runs/${again}`)).body['status']).toBe('failed')
    expect((await as(less, 'GET', `/api/v1/runs/${again}`)).text).toContain('jobs:write')
  })
})
