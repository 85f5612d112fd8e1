import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { EVENT_UNSIGNED, HEADERS, isImpresarioError, signMessage, withSignature } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { Signatures } from './signatures.ts'

const TOKEN = 'the-own-token-of-the-signing-worker-0123'
const OTHER = 'the-token-of-another-signing-worker-0123'

let app: TestServer
let directory: string

/** Every message is another one, unless a test repeats it on purpose. */
let nonce = 0

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-'))
  const workersConfigPath = join(directory, 'workers.toml')
  await writeFile(
    workersConfigPath,
    `[signer]\ntoken = "${TOKEN}"\nsigned = true\n\n[other]\ntoken = "${OTHER}"\nsigned = true\n`,
  )
  app = await startTestServer({ settings: { workersConfigPath, rateLimitingEnabled: false } })
})
beforeEach(async () => {
  await call('POST', '/workers/register', await signed({ worker_id: 'signer', supported_skills: ['echo'] }))
})
afterAll(async () => {
  await app.server.stop()
  await rm(directory, { recursive: true })
})

function call(method: string, path: string, body?: unknown): Promise<Answer> {
  return app.call(method, `/_worker${path}`, { headers: { [HEADERS.workerToken[0]]: TOKEN }, body })
}

const beat = (body: unknown): Promise<Answer> => call('PATCH', '/workers/signer', body)

function seconds(off = 0): number {
  return Math.floor(Date.now() / 1_000) + off
}

function signed(payload: JsonObject, ignore: readonly string[] = [], timestamp = seconds()): Promise<JsonObject> {
  nonce += 1
  const message: JsonObject = { ...payload, timestamp, metadata: { nonce } }
  return withSignature(message, { id: 'signer', secret: TOKEN }, ignore)
}

describe('a worker that must sign', () => {
  test('[H-03] does everything with signed messages; polls and empty heartbeats need none', async () => {
    expect((await beat(await signed({ status: 'idle', 10: 'ten', 9: 'nine', load: 1 }))).body).toEqual({ status: 'ok' })
    expect((await beat(undefined)).body).toEqual({ status: 'ttl_refreshed' })
    const jobId = await app.createJob('echo')
    const task = await call('GET', '/workers/signer/tasks/next?timeout=10')
    const { task_id } = task.body
    const event = { worker_id: 'signer', event_type: 'progress', target_task_id: task_id, payload: { progress: 0.5 } }
    const told = await signed({ ...event, bubbling_chain: ['elsewhere'] }, EVENT_UNSIGNED)
    const moved = { ...told, bubbling_chain: ['elsewhere', 'and-further'] }
    expect((await call('POST', '/events', moved)).body).toMatchObject({ status: 'event_accepted' })
    const result = await signed({
      job_id: jobId,
      task_id,
      worker_id: 'signer',
      status: 'success',
      data: { n: 1.5, x: null },
    })
    expect((await call('POST', '/tasks/result', result)).body).toMatchObject({ status: 'accepted' })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  })

  test('[H-03] may sign numbers and nulls as the older releases do', async () => {
    const time = seconds()
    const nonceText = `"metadata":{"nonce":"older-${time}"}`
    const written = (usage: string): string =>
      `{${nonceText},"status":"idle","timestamp":${time},"usage":${usage},"worker_id":"signer"}`
    // Sorted and without spaces already: the text that they sign, beside the text that they send.
    const pairs = [
      ['{"cpu":8.0,"ram":0.0}', '{"cpu":8.0,"ram":0.0}'],
      ['{"cpu":8.5,"list":[1.0]}', '{"cpu":8.5,"list":[null,1.0,null]}'],
      ['{"id":9007199254740993}', '{"id":9007199254740993}'],
    ] as const
    for (const [signedUsage, sentUsage] of pairs) {
      const signature = createHmac('sha256', TOKEN).update(written(signedUsage)).digest('hex')
      const security = `,"security":{"signature":"${signature}","signer_id":"signer"}}`
      const sent = written(sentUsage).replace(/}$/, security)
      expect((await beat(sent)).body).toEqual({ status: 'ok' })
      expect((await beat(sent.replace('"idle"', '"busy"'))).status).toBe(401)
    }
  })

  test('[H-03] sends many results under one signature', async () => {
    const jobId = await app.createJob('echo')
    const task = await call('GET', '/workers/signer/tasks/next?timeout=10')
    const { task_id } = task.body
    const batch = { worker_id: 'signer', results: [{ job_id: jobId, task_id }] }
    expect((await call('POST', '/tasks/results', batch)).status).toBe(401)
    const answer = await call('POST', '/tasks/results', await signed(batch))
    expect(answer.body).toEqual({ results: [{ status: 'accepted', transition: 'success_transition' }] })
  })

  test('[H-03] is refused without a signature, with a wrong one, or with its parts missing: 401', async () => {
    const good = await signed({ status: 'idle' })
    const { timestamp: _, ...timeless } = good
    const cases: readonly JsonObject[] = [
      { status: 'idle' },
      { status: 'idle', timestamp: seconds(), security: null },
      { ...good, status: 'busy' },
      { ...good, timestamp: seconds(1) },
      { ...good, more: 1 },
      timeless,
      { ...good, security: { signer_id: 'signer' } },
      { ...good, security: { signature: 'nonsense', signer_id: 'signer' } },
      { ...good, security: { signature: await signMessage(good, WORKER_TOKEN), signer_id: 'signer' } },
    ]
    for (const body of cases) expect((await beat(body)).status).toBe(401)
    // None of them has spoiled the good one.
    expect((await beat(good)).status).toBe(200)
  })

  test('[H-03] [E-01] may register twice in one second; the second time changes nothing', async () => {
    const message = await signed({ worker_id: 'signer', supported_skills: ['echo'], worker_type: 'twice' })
    const first = await call('POST', '/workers/register', message)
    expect(first).toMatchObject({ status: 200, body: { status: 'registered' } })
    await beat(await signed({ status: 'busy' }))
    expect(await call('POST', '/workers/register', message)).toMatchObject({ status: 200, body: first.body })
    expect(app.server.engine.dispatcher.worker('signer')).toMatchObject({ status: 'busy', type: 'twice' })
  })

  test('[H-03] is refused in the name of another: 403', async () => {
    const message: JsonObject = { status: 'idle', timestamp: seconds() }
    const foreign = await withSignature(message, { id: 'other', secret: TOKEN })
    expect((await beat(foreign)).status).toBe(403)
  })

  test.each([
    [-60, 'fresh'],
    [-61, 'FORBIDDEN'],
    [60, 'fresh'],
    [61, 'FORBIDDEN'],
  ])('[H-03] has a minute: a message of %i seconds from now is %s', async (off, outcome) => {
    const now = 1_800_000_000_000
    const clock = { now: () => now, sleep: () => Promise.resolve() }
    const storage = testStorage({ now: () => now })
    const signatures = new Signatures({ storage, clock, secretsOf: () => ['before', TOKEN] })
    const message = await signed({ status: 'idle' }, [], now / 1_000 + off)
    const verdict = await signatures
      .check('signer', message, JSON.stringify(message))
      .catch((error: unknown) => (isImpresarioError(error) ? error.code : error))
    expect(verdict).toBe(outcome)
  })

  test('[H-03] is remembered for as long as its message could be good', async () => {
    let now = 1_800_000_000_000
    const clock = { now: () => now, sleep: () => Promise.resolve() }
    const storage = testStorage({ now: () => now })
    const signatures = new Signatures({ storage, clock, secretsOf: () => [TOKEN] })
    const message = await signed({ status: 'idle' }, [], now / 1_000 + 60)
    expect(await signatures.check('signer', message, JSON.stringify(message))).toBe('fresh')
    now += 120_000
    expect(await signatures.check('signer', message, JSON.stringify(message))).toBe('repeated')
    now += 5_000
    expect(await storage.list('nonce', { limit: 10 })).toEqual([])
  })
})

describe('a signed message that comes again', () => {
  test('[H-03] a heartbeat is answered like the first, and changes nothing', async () => {
    const busy = await signed({ status: 'busy' })
    expect((await beat(busy)).body).toEqual({ status: 'ok' })
    expect((await beat(await signed({ status: 'idle' }))).body).toEqual({ status: 'ok' })
    expect((await beat(busy)).body).toEqual({ status: 'ok' })
    expect(app.server.engine.dispatcher.worker('signer')?.status).toBe('idle')
    // A thief can change what is not signed, and it helps him nothing.
    const security = { ...(busy['security'] as JsonObject), metadata: { nonce: 'a new one' } }
    await beat({ ...busy, security })
    expect(app.server.engine.dispatcher.worker('signer')?.status).toBe('idle')
  })

  test('[H-03] an event is refused', async () => {
    const event = await signed({ worker_id: 'signer', event_type: 'odd' }, EVENT_UNSIGNED)
    expect((await call('POST', '/events', event)).status).toBe(200)
    expect((await call('POST', '/events', event)).status).toBe(403)
  })

  test('[H-03] a result counts once, however often it comes', async () => {
    const jobId = await app.createJob('echo')
    const { task_id } = (await call('GET', '/workers/signer/tasks/next?timeout=10')).body
    const result = await signed({ job_id: jobId, task_id, worker_id: 'signer' })
    expect((await call('POST', '/tasks/result', result)).body).toMatchObject({ status: 'accepted' })
    expect((await call('POST', '/tasks/result', result)).body).toMatchObject({ status: 'ignored' })
  })
})

test('[H-03] [E-04] over its socket it must sign too', async () => {
  const socket = new WebSocket(`${app.address.replace('http', 'ws')}/_worker/ws/signer`, {
    headers: { [HEADERS.workerToken[0]]: TOKEN },
  })
  await once(socket, 'open')
  const answered = once(socket, 'message')
  socket.send(JSON.stringify({ event_type: 'odd', worker_id: 'signer' }))
  const [frame] = (await answered) as [Buffer]
  expect(JSON.parse(frame.toString())).toMatchObject({ type: 'error', code: 'UNAUTHENTICATED' })
  socket.terminate()
})

test('[H-03] a worker that need not sign is not asked to, whatever it sends', async () => {
  await app.register('plain')
  const odd = { status: 'idle', security: { signature: 'x', signer_id: 'somebody' }, timestamp: 1 }
  expect((await app.worker('PATCH', '/_worker/workers/plain', odd)).status).toBe(200)
})
