import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

let app: TestServer

beforeEach(async () => {
  app = await startTestServer()
})
afterEach(async () => {
  await app.server.stop()
})

const PATH = '/_worker/auth/token'

function signIn(workerId = 'w1', token = WORKER_TOKEN): Promise<Answer> {
  return app.call('POST', PATH, { headers: { 'x-worker-token': token, 'x-worker-id': workerId } })
}

function refresh(token: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return app.call('POST', `${PATH}/refresh`, { body: { refresh_token: token }, headers })
}

function beat(token: unknown, workerId = 'w1'): Promise<Answer> {
  return app.call('PATCH', `/_worker/workers/${workerId}`, { headers: { 'x-worker-token': String(token) } })
}

describe('short-lived tokens', () => {
  test('[H-03] a worker signs in and works with what it gets', async () => {
    const { status, body } = await signIn()
    expect(status).toBe(200)
    expect(body).toMatchObject({ expires_in: 3_600, worker_id: 'w1' })
    // 32 random bytes in base64url.
    for (const key of ['access_token', 'refresh_token']) expect(body[key]).toMatch(/^[\w-]{43}$/)
    const headers = { authorization: `Bearer ${String(body['access_token'])}` }
    const registered = await app.call('POST', '/_worker/workers/register', { headers, body: { worker_id: 'w1' } })
    expect(registered.status).toBe(200)
    expect((await beat(body['access_token'])).status).toBe(200)
  })

  test('[H-03] they are the worker’s alone, and neither is the other', async () => {
    const { body } = await signIn()
    const foreign = await beat(body['access_token'], 'w2')
    expect(foreign).toMatchObject({ status: 403, body: { error: 'The access token belongs to another worker.' } })
    expect((await beat(body['refresh_token'])).status).toBe(401)
    expect((await refresh(body['access_token'])).status).toBe(403)
    // An hour must not become for ever.
    const again = await app.call('POST', PATH, { headers: { 'x-worker-token': String(body['access_token']) } })
    expect(again.status).toBe(403)
  })

  test('[H-03] only their hashes are stored', async () => {
    await app.server.stop()
    const storage = testStorage({ now: () => Date.now() })
    app = await startTestServer({ storage })
    const { body } = await signIn()
    const stored = await storage.list('token', { limit: 10 })
    const hashes = [body['access_token'], body['refresh_token']].map((token) =>
      createHash('sha256').update(String(token)).digest('hex'),
    )
    expect(stored.map(({ id }) => id).toSorted()).toEqual(hashes.toSorted())
    expect(JSON.stringify(stored)).not.toContain(String(body['access_token']))
    expect(JSON.stringify(stored)).not.toContain(WORKER_TOKEN)
  })

  test('[H-03] without an id, and without a credential, there is none', async () => {
    expect((await app.call('POST', PATH)).status).toBe(401)
    expect((await app.call('POST', PATH, { headers: { 'x-worker-token': 'wrong' } })).status).toBe(401)
    expect((await app.call('POST', PATH, { headers: { 'x-worker-token': WORKER_TOKEN } })).status).toBe(400)
  })

  test('[H-03] they end by themselves', async () => {
    await app.server.stop()
    let now = Date.now()
    const clock = { now: () => now, sleep: (ms: number, signal: AbortSignal) => pause(ms, signal) }
    app = await startTestServer({ clock, settings: { accessTokenSeconds: 60, refreshTokenSeconds: 120 } })
    await app.register('w1')
    const { body } = await signIn()
    now += 59_000
    expect((await beat(body['access_token'])).status).toBe(200)
    now += 2_000
    expect((await beat(body['access_token'])).status).toBe(401)
    const renewed = await refresh(body['refresh_token'])
    expect((await beat(renewed.body['access_token'])).status).toBe(200)
    now += 121_000
    expect((await refresh(renewed.body['refresh_token'])).status).toBe(403)
  })

  test('[H-03] on the own machine, without any tokens, they work too', async () => {
    await app.server.stop()
    app = await startTestServer({ settings: { workerToken: '', clientToken: '' } })
    const { status, body } = await app.call('POST', PATH, { headers: { 'x-worker-id': 'w1' } })
    expect(status).toBe(200)
    await app.register('w1')
    expect((await beat(body['access_token'])).status).toBe(200)
    expect((await beat(body['access_token'], 'w2')).status).toBe(403)
    expect((await refresh(body['refresh_token'])).status).toBe(200)
  })
})

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
  try {
    await work(directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(ms, 20))
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** As the workers of rxon b3 to b12 do it: no worker id, and the next token is asked for with the present one. */
describe('workers that know no refresh tokens', () => {
  const ask = (token: unknown, version = '1.0b7', path = PATH): Promise<Answer> =>
    app.call('POST', path, { headers: { 'x-worker-token': String(token), 'x-rxon-version': version } })

  test.each(['1.0b3', '1.0b7', '1.0b9', '1.0b12'])('[H-03] %s signs in with a shared token', async (version) => {
    const { status, body } = await ask(WORKER_TOKEN, version)
    expect(status).toBe(200)
    expect(body).toMatchObject({ expires_in: 3_600, worker_id: null })
    expect(body).not.toHaveProperty('refresh_token')
    for (const workerId of ['w1', 'w2']) {
      await app.register(workerId)
      expect((await beat(body['access_token'], workerId)).status).toBe(200)
    }
  })

  test('[H-03] the present token gives the next one, for as long as it lasts', async () => {
    await app.server.stop()
    let now = Date.now()
    const clock = { now: () => now, sleep: (ms: number, signal: AbortSignal) => pause(ms, signal) }
    app = await startTestServer({ clock, settings: { accessTokenSeconds: 60 } })
    await app.register('w1')
    let token: unknown = (await ask(WORKER_TOKEN)).body['access_token']
    for (const path of [PATH, `${PATH}/refresh`, PATH]) {
      now += 50_000
      const next = await ask(token, '1.0b9', path)
      expect(next.status).toBe(200)
      token = next.body['access_token']
      expect((await beat(token)).status).toBe(200)
    }
    now += 61_000
    expect((await ask(token)).status).toBe(401)
    expect((await ask(token, '1.0b9', `${PATH}/refresh`)).status).toBe(401)
  })

  test('[H-03] all that came from a sign-in ends with one call', async () => {
    await app.register('w1')
    const first = (await ask(WORKER_TOKEN)).body['access_token']
    const second = (await ask(first)).body['access_token']
    await app.call('DELETE', PATH, { headers: { 'x-worker-token': String(second) } })
    for (const token of [first, second]) expect((await ask(token)).status).toBe(401)
  })

  test('[H-03] a token of another release does not renew itself, whatever is said with it', async () => {
    const { body } = await signIn()
    expect((await ask(body['access_token'], '1.0b7')).status).toBe(403)
    expect((await ask(body['access_token'], '1.0b7', `${PATH}/refresh`)).status).toBe(400)
    expect((await ask(WORKER_TOKEN, '1.0b13')).status).toBe(400)
  })

  test('[H-03] a shared token opens no door that its credential does not open', async () => {
    await app.server.stop()
    await inDirectory(async (directory) => {
      const file = join(directory, 'workers.toml')
      await writeFile(file, '["gpu-*"]\ntoken = "the-token-of-all-gpus"\n["own"]\ntoken = "the-token-of-own-alone"\n')
      app = await startTestServer({ settings: { workersConfigPath: file } })
      const { status, body } = await ask('the-token-of-all-gpus')
      expect(status).toBe(200)
      const token = String(body['access_token'])
      const register = (workerId: string): Promise<Answer> =>
        app.call('POST', '/_worker/workers/register', {
          headers: { 'x-worker-token': token },
          body: { worker_id: workerId },
        })
      expect((await register('gpu-1')).status).toBe(200)
      for (const other of ['own', 'cpu-1']) expect((await register(other)).status).toBe(401)
      const own = await ask('the-token-of-own-alone')
      expect(own.body).toMatchObject({ worker_id: 'own' })
      await writeFile(file, '["own"]\ntoken = "the-token-of-own-alone"\n')
      app.server.reloadCredentials()
      expect((await register('gpu-1')).status).toBe(401)
      expect((await ask(token)).status).toBe(401)
    })
  })
})

describe('refreshing', () => {
  test('[H-03] [H-04] guesses are counted like other wrong tokens, and then right ones are refused too', async () => {
    await app.server.stop()
    app = await startTestServer({
      settings: { trustProxy: '127.0.0.1', rateLimitFailedAuth: 3, rateLimitingEnabled: false },
    })
    const guesser = { 'x-forwarded-for': '203.0.113.7' }
    const { body } = await signIn()
    const guess = (call: () => Promise<Answer>): Promise<number> => call().then(({ status }) => status)
    const inBody = (): Promise<Answer> => refresh('a-guess', guesser)
    const inHeader = (): Promise<Answer> =>
      app.call('POST', `${PATH}/refresh`, { headers: { ...guesser, 'x-worker-token': 'a-guess' } })
    expect([await guess(inBody), await guess(inHeader), await guess(inBody)]).toEqual([403, 401, 403])
    expect([await guess(inBody), await guess(inHeader)]).toEqual([429, 429])
    expect((await refresh(body['refresh_token'], guesser)).status).toBe(429)
    // Others are not touched by it.
    expect((await refresh(body['refresh_token'], { 'x-forwarded-for': '203.0.113.8' })).status).toBe(200)
  })

  test('[J-22] a refresh token is good once; its second use ends all that came from it', async () => {
    await app.register('w1')
    const first = (await signIn()).body
    const second = (await refresh(first['refresh_token'], { 'x-worker-id': 'w1' })).body
    expect(second['refresh_token']).not.toBe(first['refresh_token'])
    expect((await beat(second['access_token'])).status).toBe(200)
    const stolen = await refresh(first['refresh_token'])
    expect(stolen.status).toBe(403)
    expect(stolen.body['error']).toMatch(/already used/)
    for (const { access_token: token } of [first, second]) expect((await beat(token)).status).toBe(401)
    expect((await refresh(second['refresh_token'])).status).toBe(403)
    // Other sign-ins of the same worker are not meant.
    const other = (await signIn()).body
    expect((await beat(other['access_token'])).status).toBe(200)
  })

  test('[J-22] of many uses at the same time one is the first, and then all end', async () => {
    await app.register('w1')
    const { body } = await signIn()
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(body['refresh_token'])))
    const good = answers.filter(({ status }) => status === 200)
    expect(good.length).toBeLessThanOrEqual(1)
    for (const { body: pair } of good) expect((await beat(pair['access_token'])).status).toBe(401)
  })

  test('[H-03] what is missing, unknown or another’s is refused as documented', async () => {
    expect((await app.call('POST', `${PATH}/refresh`, { body: {} })).status).toBe(400)
    expect((await app.call('POST', `${PATH}/refresh`)).status).toBe(400)
    expect((await refresh(5)).status).toBe(400)
    const unknown = await refresh('nonsense')
    expect(unknown).toMatchObject({ status: 403, body: { error: 'Invalid refresh token (not found)' } })
    const { body } = await signIn()
    const foreign = await refresh(body['refresh_token'], { 'x-worker-id': 'w2' })
    expect(foreign).toMatchObject({ status: 403, body: { error: 'Invalid refresh token (owner mismatch)' } })
    expect((await refresh(body['refresh_token'])).status).toBe(200)
  })
})

describe('revoking', () => {
  test('[H-03] a worker gives up one sign-in with its token, all of them with its own credential', async () => {
    await app.register('w1')
    const [one, other] = [(await signIn()).body, (await signIn()).body]
    const mine = { headers: { 'x-worker-token': String(one['access_token']) } }
    expect((await app.call('DELETE', PATH, mine)).body).toEqual({ status: 'revoked', revoked: 2 })
    expect((await beat(one['access_token'])).status).toBe(401)
    expect((await beat(other['access_token'])).status).toBe(200)
    const all = { headers: { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w1' } }
    expect((await app.call('DELETE', PATH, all)).body).toEqual({ status: 'revoked', revoked: 2 })
    expect((await beat(other['access_token'])).status).toBe(401)
    expect((await refresh(other['refresh_token'])).status).toBe(403)
  })

  test('[H-02] when the worker’s own credential is removed, what it gave is worth nothing', async () => {
    await app.server.stop()
    const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
    try {
      const workersConfigPath = join(directory, 'workers.toml')
      const own = 'the-own-token-of-worker-one-0123456789'
      await writeFile(workersConfigPath, `[w1]\ntoken = "${own}"\n`)
      app = await startTestServer({ settings: { workersConfigPath } })
      const { body } = await signIn('w1', own)
      const headers = { 'x-worker-token': own }
      await app.call('POST', '/_worker/workers/register', { headers, body: { worker_id: 'w1' } })
      expect((await beat(body['access_token'])).status).toBe(200)
      await writeFile(workersConfigPath, `[w1]\ntoken = "another-token-of-worker-one-0123456789"\n`)
      expect((await app.client('POST', '/api/v1/admin/reload-workers')).status).toBe(200)
      expect((await beat(body['access_token'])).status).toBe(401)
      expect((await refresh(body['refresh_token'])).status).toBe(403)
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
