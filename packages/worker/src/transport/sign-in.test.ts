import { verifyMessage, type JsonObject } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HttpLine } from './http-line.ts'
import { createWorker } from '../index.ts'
import { silentLog, taskOf, TestOrchestrator, type SeenRequest } from '../orchestrator.fixture.ts'
import { SignIn } from './sign-in.ts'

let orchestrator: TestOrchestrator
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  orchestrator = await new TestOrchestrator().listen()
  cleanUp.push(() => orchestrator.close())
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

const tokenOf = (request: SeenRequest) => request.headers['x-worker-token']
const isAuth = ({ path }: SeenRequest): boolean => path.startsWith('/_worker/auth/')

/** Gives out a1, a2, … with r1, r2, …; only the newest is good for anything else. */
function giveTokens(expiresIn: number, withRefresh = true) {
  let given = 0
  orchestrator.intercept = (request) => {
    if (isAuth(request)) {
      given += 1
      const refresh = withRefresh ? { refresh_token: `r${given}` } : {}
      return { status: 200, body: { access_token: `a${given}`, expires_in: expiresIn, worker_id: 'w1', ...refresh } }
    }
    return tokenOf(request) === `a${given}` ? undefined : { status: 401, body: { error: 'Unauthorized' } }
  }
  return { revoke: () => (given += 1) }
}

function signIn(sts: 'yes' | 'if offered', clock: { now: number }) {
  const line = new HttpLine(orchestrator.url, 'w1', {})
  cleanUp.push(async () => line.close())
  return new SignIn({ line, token: 'own', sts, log: silentLog, now: () => clock.now })
}

test('[E-05] with short-lived tokens the own one is used to sign in and for nothing else', async () => {
  giveTokens(3_600)
  const worker = createWorker({
    url: orchestrator.url,
    id: 'w1',
    token: 'own',
    sts: true,
    log: silentLog,
    shutdownMs: 0,
  })
  cleanUp.push(() => worker.stop())
  worker.task('t', () => undefined)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.results.length === 1)
  const [auth, ...others] = orchestrator.requests
  expect([auth?.path, auth && tokenOf(auth)]).toEqual(['/_worker/auth/token', 'own'])
  expect(new Set(others.map(tokenOf))).toEqual(new Set(['a1']))
})

test('[E-05] a token that is refused before its time is replaced, and the call made again, once', async () => {
  const { revoke } = giveTokens(3_600)
  const log = silentLog
  const worker = createWorker({ url: orchestrator.url, id: 'w1', token: 'own', sts: true, log, shutdownMs: 0 })
  cleanUp.push(() => worker.stop())
  worker.task('t', () => ({ n: 1 }))
  await worker.start()
  await orchestrator.until(() => orchestrator.polls.length === 1)
  revoke()
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.results.length === 1)
  const tries = orchestrator.requests.filter(({ path }) => path === '/_worker/tasks/results').map(tokenOf)
  expect(tries).toEqual(['a1', 'a3'])
})

test('[E-05] a token is renewed at four fifths of its life, with the refresh token, each of which is used once', async () => {
  giveTokens(1_000)
  const clock = { now: 0 }
  const tokens = signIn('yes', clock)
  expect(await tokens.token()).toBe('a1')
  clock.now = 799_000
  expect(await tokens.token()).toBe('a1')
  clock.now = 800_000
  expect(await Promise.all([tokens.token(), tokens.token()])).toEqual(['a2', 'a2'])
  clock.now = 1_600_000
  expect(await tokens.token()).toBe('a3')
  const asked = orchestrator.requests.map(({ path, body }) => [path, body['refresh_token']])
  expect(asked).toEqual([
    ['/_worker/auth/token', undefined],
    ['/_worker/auth/token/refresh', 'r1'],
    ['/_worker/auth/token/refresh', 'r2'],
  ])
})

test('[E-05] a short life is not renewed more than once a minute', async () => {
  giveTokens(10)
  const clock = { now: 0 }
  const tokens = signIn('yes', clock)
  await tokens.token()
  clock.now = 59_000
  expect(await tokens.token()).toBe('a1')
  clock.now = 60_000
  expect(await tokens.token()).toBe('a2')
})

test('[E-05] while a new token cannot be had, the old one serves until its end, and not longer', async () => {
  giveTokens(1_000, false)
  const clock = { now: 0 }
  const tokens = signIn('yes', clock)
  await tokens.token()
  orchestrator.intercept = () => ({ status: 503 })
  clock.now = 900_000
  expect(await tokens.token()).toBe('a1')
  clock.now = 1_000_001
  await expect(tokens.token()).rejects.toThrow('503')
})

test('[E-05] a refresh token that is not good any more leads to a new sign-in', async () => {
  giveTokens(1_000)
  const clock = { now: 0 }
  const tokens = signIn('yes', clock)
  await tokens.token()
  const give = orchestrator.intercept
  orchestrator.intercept = (request) => (request.path.endsWith('/refresh') ? { status: 403 } : give?.(request))
  clock.now = 800_000
  expect(await tokens.token()).toBe('a2')
})

test('[E-05] where short-lived tokens are not offered, they are done without only if nobody asked for them', async () => {
  orchestrator.intercept = () => ({ status: 403, body: { error: 'Unauthorized: mTLS certificate required' } })
  expect(await signIn('if offered', { now: 0 }).token()).toBe('own')
  await expect(signIn('yes', { now: 0 }).token()).rejects.toThrow('403')
})

test('[E-05] signed, every message but the polls carries its time, something that never repeats, and a signature', async () => {
  orchestrator.acknowledges = false
  const worker = createWorker({
    url: orchestrator.url,
    id: 'w1',
    token: 'own',
    signing: true,
    webSockets: true,
    log: silentLog,
    shutdownMs: 0,
    heartbeatMs: 20,
  })
  cleanUp.push(() => worker.stop())
  worker.task('t', async (_params, task) => {
    task.progress(0.5)
    await orchestrator.until(() => orchestrator.frames.length === 1)
    await task.sendEvent('found', { text: 'ü', n: 1, none: 1.5 })
    return { n: 1 }
  })
  await worker.start()
  await orchestrator.until(() => orchestrator.sockets.length === 1)
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.results.length === 1 && orchestrator.heartbeats.length > 1)
  const sent = orchestrator.requests.filter(({ path }) => !path.endsWith('/tasks/batch') && !path.includes('/ws/'))
  const messages = [...sent.map(({ body }) => body), ...orchestrator.frames] as readonly JsonObject[]
  expect(new Set(sent.map(({ method, path }) => `${method} ${path}`))).toEqual(
    new Set([
      'POST /_worker/workers/register',
      'PATCH /_worker/workers/w1',
      'POST /_worker/events',
      'POST /_worker/tasks/results',
    ]),
  )
  for (const message of messages) {
    const { signature, signer_id: signer } = message['security'] as { signature: string; signer_id: string }
    expect(signer).toBe('w1')
    expect(Number.isInteger(message['timestamp'])).toBe(true)
    expect(await verifyMessage(JSON.stringify(message), 'own', signature)).toBe(true)
  }
  const nonces = messages.map((message) => (message['metadata'] as { nonce: string }).nonce)
  expect(new Set(nonces).size).toBe(nonces.length)
})

test('[E-05] signing without a token is refused at once', () => {
  expect(() => createWorker({ url: orchestrator.url, signing: true, log: silentLog })).toThrow('signed')
})
