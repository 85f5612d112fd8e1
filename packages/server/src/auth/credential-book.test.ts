import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

let directory = ''
let app: TestServer | undefined

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-reload-'))
})
afterEach(async () => {
  await app?.server.stop()
  app = undefined
  await rm(directory, { recursive: true, force: true })
})

const CLIENTS = '[root]\ntoken = "token-of-root"\nrole = "admin"\n'
const ALPHA = '[alpha]\ntokens = ["alpha-old", "alpha-new"]\n'
const WORKERS = '["w-*"]\ntoken = "token-of-w"\n'

const write = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text)

async function start(settings = {}): Promise<TestServer> {
  await write('clients.toml', CLIENTS + ALPHA)
  await write('workers.toml', WORKERS)
  app = await startTestServer({
    settings: {
      clientToken: '',
      workerToken: 'token-of-all',
      clientsConfigPath: join(directory, 'clients.toml'),
      workersConfigPath: join(directory, 'workers.toml'),
      ...settings,
    },
  })
  return app
}

const as = (token: string): { headers: Record<string, string> } => ({ headers: { 'x-client-token': token } })
const statusAs = async (server: TestServer, token: string): Promise<number> =>
  (await server.call('GET', '/api/v1/jobs', as(token))).status
const reload = (server: TestServer): Promise<Answer> =>
  server.call('POST', '/api/v1/admin/reload', { ...as('token-of-root'), body: {} })
const pollAs = (server: TestServer, id: string, token: string, timeout: number): Promise<Answer> =>
  server.call('GET', `/_worker/workers/${id}/tasks/next?timeout=${timeout}`, { headers: { 'x-worker-token': token } })
const registerAs = (server: TestServer, id: string, token: string): Promise<Answer> =>
  server.call('POST', '/_worker/workers/register', {
    headers: { 'x-worker-token': token },
    body: { worker_id: id, supported_skills: ['echo'] },
  })

test('[H-02] a reload lets new tokens in and removed ones out, at once, and without a restart', async () => {
  const server = await start()
  expect(await Promise.all(['alpha-old', 'alpha-new', 'alpha-next'].map((token) => statusAs(server, token)))).toEqual([
    200, 200, 401,
  ])
  await write('clients.toml', `${CLIENTS}[alpha]\ntokens = ["alpha-new", "alpha-next"]\n`)
  expect(await statusAs(server, 'alpha-old')).toBe(200)
  expect(await reload(server)).toMatchObject({ status: 200, body: { clients: 2, workers: 1 } })
  expect(await Promise.all(['alpha-old', 'alpha-new', 'alpha-next'].map((token) => statusAs(server, token)))).toEqual([
    401, 200, 200,
  ])
})

test('[H-02] a broken file changes nothing, and whoever asked gets to know why', async () => {
  const server = await start()
  await write('clients.toml', `${CLIENTS}[alpha]\nrole = "client"\n`)
  const answer = await reload(server)
  expect(answer.status).toBe(400)
  expect(answer.body['error']).toContain(`${join(directory, 'clients.toml')}: [alpha].token is missing`)
  expect(server.server.reloadCredentials()).toMatchObject({ status: 'refused' })
  expect(await statusAs(server, 'alpha-old')).toBe(200)
  // Also when the other file is the broken one: both or none.
  await write('clients.toml', CLIENTS)
  await write('workers.toml', '[w-1')
  expect(server.server.reloadCredentials()).toMatchObject({ status: 'refused' })
  expect(await statusAs(server, 'alpha-old')).toBe(200)
})

test.each([
  ['clients.toml', ''],
  ['clients.toml', '# nobody\n'],
  ['workers.toml', ''],
])('[H-02] %s that was emptied (%j) changes nothing: nobody is let in or out by a slip', async (name, text) => {
  const server = await start()
  await registerAs(server, 'w-1', 'token-of-w')
  await write(name, text)
  const answer = await reload(server)
  expect(answer.status).toBe(400)
  expect(answer.body['error']).toContain(`${name} is empty. Write a table such as [my_name]`)
  expect(await statusAs(server, 'alpha-old')).toBe(200)
  expect((await pollAs(server, 'w-1', 'token-of-w', 0)).status).toBe(204)
  expect((await server.call('GET', '/api/v1/jobs')).status).toBe(401)
  await server.server.stop()
  const again = startTestServer({
    settings: {
      clientsConfigPath: join(directory, 'clients.toml'),
      workersConfigPath: join(directory, 'workers.toml'),
    },
  })
  await expect(again).rejects.toThrow(`${name} is empty`)
})

test('[H-02] waits of removed clients and polls of removed workers end with the reload; those of others go on', async () => {
  const server = await start()
  await registerAs(server, 'w-1', 'token-of-w')
  await registerAs(server, 'free', 'token-of-all')
  const create = (token: string): Promise<Answer> =>
    server.call('POST', '/api/v1/jobs', { ...as(token), body: { blueprint: 'ask' } })
  const mine = (await create('alpha-old')).body.job_id
  const theirs = (await create('token-of-root')).body.job_id
  const wait = (id: string, token: string): Promise<Answer> =>
    server.call('GET', `/api/v1/jobs/${id}?wait=30&until=end`, as(token))
  const removed = Promise.allSettled([wait(mine, 'alpha-old'), pollAs(server, 'w-1', 'token-of-w', 30)])
  const rotated = wait(mine, 'alpha-new')
  const kept = wait(theirs, 'token-of-root')
  const keptPoll = pollAs(server, 'free', 'token-of-all', 30)
  await expect.poll(() => server.server.waiting).toBe(5)
  await write('clients.toml', `${CLIENTS}[alpha]\ntoken = "alpha-new"\n`)
  await write('workers.toml', '["w-*"]\ntoken = "another-token"\n')
  expect((await reload(server)).status).toBe(200)
  expect((await removed).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect((await pollAs(server, 'w-1', 'token-of-w', 0)).status).toBe(401)
  await expect.poll(() => server.server.waiting).toBe(3)
  const decide = (id: string, token: string): Promise<Answer> =>
    server.call('POST', `/_public/webhooks/approval/${id}`, { ...as(token), body: { decision: 'approved' } })
  await decide(mine, 'alpha-new')
  await decide(theirs, 'token-of-root')
  await server.call('POST', '/api/v1/jobs', { ...as('token-of-root'), body: { blueprint: 'echo' } })
  expect((await rotated).body['status']).toBe('finished')
  expect((await kept).body['status']).toBe('finished')
  expect((await keptPoll).status).toBe(200)
})

test('[H-02] a worker that gets a token of its own can no longer use the one it had from the global one', async () => {
  const server = await start()
  const issued = await server.call('POST', '/_worker/auth/token', {
    headers: { 'x-worker-token': 'token-of-all', 'x-worker-id': 'free' },
  })
  const access = String(issued.body['access_token'])
  await registerAs(server, 'free', access)
  expect((await pollAs(server, 'free', access, 0)).status).toBe(204)
  await write('workers.toml', `${WORKERS}[free]\ntoken = "token-of-free"\n`)
  server.server.reloadCredentials()
  expect((await pollAs(server, 'free', access, 0)).status).toBe(401)
  expect((await pollAs(server, 'free', 'token-of-all', 0)).status).toBe(401)
  expect((await pollAs(server, 'free', 'token-of-free', 0)).status).toBe(204)
})

test('[H-02] files that are watched are read anew by themselves', async () => {
  const server = await start({ credentialsWatch: true })
  await write('clients.toml', `${CLIENTS}[beta]\ntoken = "token-of-beta"\n`)
  await expect.poll(() => statusAs(server, 'token-of-beta')).toBe(200)
  expect(await statusAs(server, 'alpha-old')).toBe(401)
})
