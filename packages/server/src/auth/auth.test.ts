import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createServer } from '../server.ts'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

let directory = ''
let app: TestServer | undefined

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-auth-'))
})
afterEach(async () => {
  await app?.server.stop()
  app = undefined
  await rm(directory, { recursive: true, force: true })
})

async function file(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

const CLIENTS = `
[alpha]
token = "token-of-alpha"
plan = "premium"
monthly_attempts = 100
languages = ["en", "de"]

[beta]
token = "token-of-beta"
[beta.params]
region = "eu"
`
const WORKERS = `
[own]
token = "token-of-own"
description = "has its own"

[other]
token = "token-of-other"
`

describe('clients', () => {
  test('[H-03] every name of the header is taken; without a good token the answer is 401', async () => {
    const started = await startTestServer({ settings: { clientToken: 'good' } })
    app = started
    const call = started.call.bind(started)
    const names = ['x-client-token', 'x-avtomatika-token', 'x-orchestrator-token', 'X-Client-Token']
    for (const name of names) {
      expect((await call('GET', '/api/v1/jobs', { headers: { [name]: 'good' } })).status).toBe(200)
      expect((await call('GET', '/api/v1/jobs', { headers: { [name]: 'bad' } })).body).toMatchObject({
        error: 'Unauthorized: Invalid token',
        code: 'UNAUTHENTICATED',
      })
    }
    expect((await call('GET', '/api/v1/jobs', { headers: { authorization: 'Bearer good' } })).status).toBe(200)
    expect((await call('GET', '/api/v1/jobs', { headers: { authorization: 'Bearer bad' } })).status).toBe(401)
    const missing = await call('GET', '/api/v1/jobs')
    expect(missing).toMatchObject({ status: 401, body: { error: 'Missing X-Client-Token header' } })
    expect((await call('POST', '/api/v1/unknown', { body: {} })).status).toBe(401)
  })

  test('[H-05] a client sees its own jobs only; those of others do not exist', async () => {
    const clientsConfigPath = await file('clients.toml', CLIENTS)
    app = await startTestServer({ settings: { clientToken: '', clientsConfigPath } })
    const call = app.call.bind(app)
    const alpha = { 'x-client-token': 'token-of-alpha' }
    const beta = { 'x-client-token': 'token-of-beta' }
    const created = await call('POST', '/api/v1/jobs', {
      headers: alpha,
      body: { blueprint: 'ask', idempotency_key: 'k' },
    })
    const id = created.body.job_id
    expect((await call('GET', `/api/v1/jobs/${id}`, { headers: alpha })).status).toBe(200)
    const forbidden: readonly [string, string, unknown][] = [
      ['GET', `/api/v1/jobs/${id}`, undefined],
      ['GET', `/api/v1/jobs/${id}?wait=5`, undefined],
      ['GET', `/api/v1/jobs/${id}/explain`, undefined],
      ['POST', `/api/v1/jobs/${id}/cancel`, {}],
      ['POST', `/api/v1/jobs/${id}/retry`, {}],
      ['POST', `/api/v1/jobs/${id}/discard`, {}],
      ['POST', `/_public/webhooks/approval/${id}`, { decision: 'approved' }],
    ]
    for (const [method, path, body] of forbidden) {
      const { status } = await call(method, path, { headers: beta, body })
      expect({ path, status }).toEqual({ path, status: 404 })
    }
    expect(JSON.parse((await call('GET', '/api/v1/jobs', { headers: beta })).text)).toEqual([])
    const ownKey = await call('POST', '/api/v1/jobs', {
      headers: beta,
      body: { blueprint: 'ask', idempotency_key: 'k' },
    })
    expect(ownKey.body.job_id).not.toBe(id)
    const { text } = await call('GET', `/api/v1/jobs/${id}`, { headers: alpha })
    expect(text).not.toContain('token-of')
    const stored = await app.server.engine.readJob(id)
    expect(stored?.value.client).toEqual({ id: 'alpha', plan: 'premium', params: { languages: ['en', 'de'] } })
  })
})

describe('workers', () => {
  const register = (id: string, header: Readonly<Record<string, string>>) => {
    const body = { worker_id: id, supported_skills: ['echo'] }
    return app?.call('POST', '/_worker/workers/register', { headers: header, body })
  }

  test('[H-03] an own token is final, the global one is for the others', async () => {
    const workersConfigPath = await file('workers.toml', WORKERS)
    app = await startTestServer({ settings: { workersConfigPath, workerToken: 'global' } })
    const matrix: readonly [string, string, number][] = [
      ['own', 'token-of-own', 200],
      ['own', 'global', 401],
      ['own', 'token-of-other', 401],
      ['own', 'nonsense', 401],
      ['free', 'global', 200],
      ['free', 'token-of-own', 401],
      ['free', 'nonsense', 401],
    ]
    for (const [id, token, status] of matrix) {
      const answer = await register(id, { 'x-worker-token': token })
      expect({ id, token, status: answer?.status }).toEqual({ id, token, status })
      expect((await register(id, { 'x-orchestrator-worker-token': token }))?.status).toBe(status)
    }
    expect((await register('free', {}))?.status).toBe(401)
    const poll = (id: string, token: string) =>
      app?.call('GET', `/_worker/workers/${id}/tasks/next?timeout=0`, { headers: { 'x-worker-token': token } })
    expect((await poll('own', 'token-of-own'))?.status).toBe(204)
    expect((await poll('own', 'global'))?.status).toBe(401)
    expect((await poll('free', 'token-of-own'))?.status).toBe(401)
  })

  test('[H-03] ids that contradict one another are refused with 403', async () => {
    app = await startTestServer()
    await app.register('w1')
    const heartbeat = await app.worker('PATCH', '/_worker/workers/w1', { worker_id: 'w2' })
    expect(heartbeat).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
    const result = { job_id: 'j', task_id: 't', worker_id: 'w1' }
    const answer = await app.worker('POST', '/_worker/tasks/result', result, { 'x-worker-id': 'w2' })
    expect(answer.status).toBe(403)
  })

  test('[H-03] an id that is not plain is refused', async () => {
    app = await startTestServer()
    for (const id of ['a b', 'a/b', '', 'ü', 'x'.repeat(201)]) {
      const { status } = await app.register(id)
      expect({ id, status }).toEqual({ id, status: 400 })
    }
    expect((await app.register('x'.repeat(200))).status).toBe(200)
  })
})

test('[H-03] without tokens only requests to the own machine are answered', async () => {
  app = await startTestServer({ settings: { clientToken: '', workerToken: '' } })
  expect((await app.call('GET', '/api/v1/jobs')).status).toBe(200)
  expect((await app.call('PATCH', '/_worker/workers/none')).status).toBe(404)
  const { port, hostname } = new URL(app.address)
  const elsewhere = { host: 'elsewhere.example' }
  const statusFor = (path: string, method: string, headers: Record<string, string> = elsewhere) =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
      request.end()
    })
  expect(await statusFor('/api/v1/jobs', 'GET')).toBe(403)
  expect(await statusFor('/_worker/workers/none', 'PATCH')).toBe(403)
  expect(await statusFor('/_public/live', 'GET')).toBe(200)

  // A page of another site that a browser on this machine shows; and whoever comes through a proxy that runs here.
  const strangers = [
    { origin: 'https://elsewhere.example' },
    { origin: 'null' },
    { origin: 'http://localhost.elsewhere.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'x-forwarded-for': '198.51.100.7' },
    { forwarded: 'for=198.51.100.7' },
    { via: '1.1 proxy' },
  ]
  for (const headers of strangers) {
    expect(await statusFor('/api/v1/echo', 'POST', headers)).toBe(403)
    expect(await statusFor('/_worker/workers/none/tasks/next', 'GET', headers)).toBe(403)
    expect(await statusFor('/_worker/ws/none', 'GET', headers)).toBe(403)
  }
  for (const headers of [
    { origin: app.address, 'sec-fetch-site': 'same-origin' },
    { origin: 'http://localhost:5173' },
  ]) {
    expect(await statusFor('/api/v1/jobs', 'GET', headers)).toBe(200)
  }
})

describe('what stops the start', () => {
  const refuse = (settings: object): void => {
    createServer({ settings: { storageUrl: 'memory:', apiHost: '127.0.0.1', ...settings } })
  }

  test('[H-03] an open or guessable server on the network is refused', () => {
    expect(() => refuse({ apiHost: '0.0.0.0' })).toThrow(/API_HOST is 0\.0\.0\.0 and no client has a token/)
    expect(() => refuse({ apiHost: '0.0.0.0', clientToken: 'changeme' })).toThrow(
      /CLIENT_TOKEN is a well-known default/,
    )
    expect(() =>
      refuse({ apiHost: '::', clientToken: 'z7Qm-41xkV0pWs9-Lr3', workerToken: 'secure-worker-token' }),
    ).toThrow(/WORKER_TOKEN/)
    expect(() => refuse({ apiHost: '127.0.0.1' })).not.toThrow()
  })

  test.each([
    ['token missing', '[a]\nplan = "x"', '[a].token is missing'],
    ['token empty', '[a]\ntoken = ""', '[a].token must be a text'],
    ['plan not a text', '[a]\ntoken = "t"\nplan = 5', '[a].plan must be a text'],
    ['attempts negative', '[a]\ntoken = "t"\nmonthly_attempts = -1', '[a].monthly_attempts must be a whole number'],
    ['params not a table', '[a]\ntoken = "t"\nparams = 1', '[a].params must be a table'],
    ['same token twice', '[a]\ntoken = "t"\n[b]\ntoken = "t"', '[b].token is the same as'],
    ['key outside a table', 'token = "t"', 'is outside of a table'],
    ['not TOML', '[a', 'cannot be read'],
  ])('[H-03] a bad file of clients names file, table, key and reason: %s', async (_title, text, reason) => {
    const path = await file('clients.toml', text)
    let message = ''
    try {
      refuse({ clientsConfigPath: path })
    } catch (error) {
      message = String(error)
    }
    expect(message).toContain(path)
    expect(message).toContain(reason)
    expect(message).not.toContain('"t"')
  })

  test('[H-03] a bad file of workers is refused, and a missing one', async () => {
    const path = await file('workers.toml', '[w]\ntoken = "t"\ntokn = "x"')
    expect(() => refuse({ workersConfigPath: path })).toThrow(`${path}: [w].tokn is not known`)
    expect(() => refuse({ workersConfigPath: join(directory, 'none.toml') })).toThrow(/none\.toml cannot be read/)
  })
})
