import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LIMITS } from '@impresario/protocol'
import { createWorker } from '@impresario/worker'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { AccessTokens } from '../auth/access-tokens.ts'
import { SILENT } from '../runtime/log.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { Signatures } from '../auth/signatures.ts'
import { Sockets } from './sockets.ts'
import { WorkerAuth } from '../auth/worker-auth.ts'
import { WorkerGateway } from '../worker-protocol/worker-gateway.ts'
import { WorkerCredentials } from '../auth/worker-credentials.ts'

let app: TestServer
let open: WebSocket[] = []

beforeEach(async () => {
  app = await startTestServer()
})
afterEach(async () => {
  for (const socket of open) socket.terminate()
  open = []
  await app.server.stop()
})

type Headers = Readonly<Record<string, string>>

/** A socket, and what has come over it. */
class Ear {
  readonly socket: WebSocket
  readonly #frames: object[] = []
  readonly #waiting: ((frame: object) => void)[] = []
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>

  constructor(path: string, headers: Headers = {}, options: object = {}) {
    const url = `${app.address.replace('http', 'ws')}${path}`
    this.socket = new WebSocket(url, { headers: { 'x-worker-token': WORKER_TOKEN, ...headers }, ...options })
    open.push(this.socket)
    this.closed = new Promise((resolve) => {
      this.socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
    this.socket.on('error', () => {})
    this.socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as object
      const waiting = this.#waiting.shift()
      if (waiting === undefined) this.#frames.push(frame)
      else waiting(frame)
    })
  }

  async ready(): Promise<this> {
    await once(this.socket, 'open')
    return this
  }

  next(): Promise<object> {
    const frame = this.#frames.shift()
    return frame === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(frame)
  }

  get unread(): number {
    return this.#frames.length
  }

  say(frame: object | string): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }
}

function connect(path: string, headers: Headers = {}, options: object = {}): Promise<Ear> {
  return new Ear(path, headers, options).ready()
}

async function take(workerId: string, blueprint = 'echo'): Promise<Answer['body']> {
  await app.register(workerId)
  await app.createJob(blueprint)
  return (await app.poll(workerId)).body
}

async function refused(path: string, headers: Headers): Promise<number> {
  const socket = new WebSocket(`${app.address.replace('http', 'ws')}${path}`, { headers })
  socket.on('error', () => {})
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
  socket.terminate()
  return response.statusCode
}

describe('coming in', () => {
  test('[E-04] [H-03] who may not come in is refused before the upgrade', async () => {
    expect(await refused('/_worker/ws/w1', {})).toBe(401)
    expect(await refused('/_worker/ws', { 'x-worker-token': 'wrong' })).toBe(401)
    expect(await refused('/_worker/ws/w1', { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w2' })).toBe(403)
    expect(await refused('/_worker/nothing', { 'x-worker-token': WORKER_TOKEN })).toBe(404)
    const plain = await app.worker('GET', '/_worker/ws')
    expect(plain).toMatchObject({ status: 400, body: { error: 'This is a WebSocket: ask for an upgrade.' } })
  })

  test('[E-04] a worker has one connection: the newer one closes the older', async () => {
    const older = await connect('/_worker/ws/w1')
    const newer = await connect('/_worker/ws', { 'x-worker-id': 'w1' })
    expect(await older.closed).toEqual({ code: 1_008, reason: 'New connection established' })
    const task = await take('w1')
    await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
    expect(await newer.next()).toMatchObject({ type: 'cancel_task', task_id: task.task_id })
  })

  test('[E-04] a server that stops says so', async () => {
    const ear = await connect('/_worker/ws/w1')
    await app.server.stop()
    expect(await ear.closed).toEqual({ code: 1_001, reason: 'Server shutdown' })
  })
})

describe('cancelling', () => {
  const byPath = (): Promise<Ear> => connect('/_worker/ws/w1')
  const byHeader = (): Promise<Ear> => connect('/_worker/ws', { 'x-worker-id': 'w1' })
  test.each([
    ['its path', byPath],
    ['X-Worker-ID', byHeader],
  ])(
    '[E-04] [C-05] [J-15] a worker that is known by %s hears at once that its job was cancelled',
    async (_how, come) => {
      const ear = await come()
      const task = await take('w1')
      await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
      const { job_id, task_id } = task
      expect(await ear.next()).toEqual({ type: 'cancel_task', command: 'cancel_task', job_id, task_id })
    },
  )

  test('[J-15] a worker with neither is known by the task of its first message', async () => {
    const task = await take('w1')
    const ear = await connect('/_worker/ws')
    const { job_id, task_id } = task
    ear.say({ type: 'progress_update', job_id, task_id, progress: 0.25, message: 'a quarter' })
    const job = await progressed(job_id)
    expect(job).toMatchObject({ progress: 0.25, progress_message: 'a quarter' })
    await app.client('POST', `/api/v1/jobs/${job_id}/cancel`)
    expect(await ear.next()).toMatchObject({ command: 'cancel_task', task_id })
  })

  test('[J-15] a worker with neither hears of it before its first message, on every socket that could be its own', async () => {
    const silent = [await connect('/_worker/ws'), await connect('/_worker/ws')]
    const other = await connect('/_worker/ws/w2')
    const { job_id, task_id } = await take('w1')
    await app.client('POST', `/api/v1/jobs/${job_id}/cancel`)
    const command = { type: 'cancel_task', command: 'cancel_task', job_id, task_id }
    for (const ear of silent) expect(await ear.next()).toEqual(command)
    // Once a worker has a socket of its own, the others are left alone.
    const own = await connect('/_worker/ws/w1')
    const next = await take('w1')
    await app.client('POST', `/api/v1/jobs/${next.job_id}/cancel`)
    expect(await own.next()).toMatchObject({ task_id: next.task_id })
    const theirs = await take('w2')
    await app.client('POST', `/api/v1/jobs/${theirs.job_id}/cancel`)
    expect(await other.next()).toMatchObject({ task_id: theirs.task_id })
    for (const ear of silent) expect(ear.unread).toBe(0)
  })

  test('[J-15] [H-03] a worker with a token of its own is known by it', async () => {
    await app.server.stop()
    const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
    try {
      const token = 'the-own-token-of-worker-one-0123456789'
      const workersConfigPath = join(directory, 'workers.toml')
      await writeFile(workersConfigPath, `[w1]\ntoken = "${token}"\n`)
      app = await startTestServer({ settings: { workersConfigPath } })
      const own = { 'x-worker-token': token }
      const ear = await connect('/_worker/ws', own)
      const body = { worker_id: 'w1', supported_skills: ['echo'] }
      await app.call('POST', '/_worker/workers/register', { headers: own, body })
      await app.createJob('echo')
      const task = await app.call('GET', '/_worker/workers/w1/tasks/next', { headers: own })
      await app.client('POST', `/api/v1/jobs/${task.body.job_id}/cancel`)
      expect(await ear.next()).toMatchObject({ command: 'cancel_task', task_id: task.body.task_id })

      // Nobody else can take its place by naming its task, or its id.
      expect(await refused('/_worker/ws/w1', { 'x-worker-token': WORKER_TOKEN })).toBe(401)
      const thief = await connect('/_worker/ws')
      thief.say({ event_type: 'progress', worker_id: 'w1', payload: { progress: 1 } })
      expect(await thief.next()).toMatchObject({ type: 'error', code: 'UNAUTHENTICATED' })

      await writeFile(workersConfigPath, `[w1]\ntoken = "another-token-of-worker-one-0123456789"\n`)
      await app.client('POST', '/api/v1/admin/reload-workers')
      expect(await ear.closed).toEqual({ code: 1_008, reason: 'The credential was removed' })
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('[C-05] a branch that another one made needless, and a task that ran out of time, are told too', async () => {
    const ear = await connect('/_worker/ws/w1')
    await app.register('w1')
    const jobId = await app.createJob('echo', { execution_timeout: 0.05 })
    const task = await app.poll('w1')
    expect(task.body.job_id).toBe(jobId)
    expect(await ear.next()).toMatchObject({ command: 'cancel_task', task_id: task.body.task_id })
  })

  test('[C-05] [E-01] a batched poll is answered at once with what to stop', async () => {
    const task = await take('w1')
    const parked = app.worker('POST', '/_worker/workers/w1/tasks/batch', { limit: 5, timeout: 100 })
    while (!app.server.engine.desk.isParked('w1')) await new Promise(setImmediate)
    await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
    expect((await parked).body).toEqual({ tasks: [], cancel_task_ids: [task.task_id] })
  })

  test('[C-05] [E-05] a handler of the SDK is told at once, by its parked poll', async () => {
    const worker = createWorker({ id: 'sdk', url: app.address, token: WORKER_TOKEN, log: SILENT, concurrency: 2 })
    const stopped = new Promise<string>((resolve) => {
      worker.task('echo', (_params, { signal }) => {
        begun()
        return once(signal, 'abort').then(() => resolve('aborted'))
      })
    })
    let begun = (): void => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    await worker.start()
    const jobId = await app.createJob('echo')
    await running
    await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)
    expect(await stopped).toBe('aborted')
    await worker.stop()
  })
})

/** The job once its progress has been told. */
async function progressed(jobId: string): Promise<Answer['body']> {
  for (let version = 1; ; version += 1) {
    const { body } = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=${version}`)
    if (typeof body['progress'] === 'number') return body
  }
}

describe('telling', () => {
  test.each<[string, (task: Answer['body']) => object]>([
    [
      'of the oldest',
      ({ job_id, task_id }) => ({ type: 'progress_update', job_id, task_id, progress: 0.5, message: 'm' }),
    ],
    [
      'with an event',
      ({ job_id, task_id }) => ({ event: 'progress_update', job_id, task_id, progress: 0.5, message: 'm' }),
    ],
    [
      'of the newest',
      ({ task_id }) => ({
        event_id: 'e1',
        event_type: 'progress',
        worker_id: 'w1',
        target_task_id: task_id,
        payload: { progress: 0.5, message: 'm' },
      }),
    ],
  ])('[E-04] progress in the form %s moves the job', async (_form, frameOf) => {
    const ear = await connect('/_worker/ws/w1')
    const task = await take('w1')
    ear.say(frameOf(task))
    expect(await progressed(task.job_id)).toMatchObject({ progress: 0.5, progress_message: 'm' })
  })

  test('[E-04] a worker does not speak for another', async () => {
    const ear = await connect('/_worker/ws/w2')
    const task = await take('w1')
    const { job_id, task_id } = task
    ear.say({ event_type: 'progress', worker_id: 'w1', target_task_id: task_id, payload: { progress: 1 } })
    expect(await ear.next()).toMatchObject({ type: 'error', code: 'FORBIDDEN' })
    ear.say({ event_type: 'odd', worker_id: 'w2', target_task_id: task_id })
    expect(await ear.next()).toMatchObject({ type: 'error' })
    expect((await app.client('GET', `/api/v1/jobs/${job_id}`)).body['progress'] ?? null).toBeNull()
  })
})

describe('who was shown out', () => {
  /** Does not answer when it is told to go, and goes on talking. */
  async function stubborn(headers: Headers): Promise<Ear> {
    const ear = await connect('/_worker/ws/w1', headers)
    const receiver: unknown = Reflect.get(ear.socket, '_receiver')
    if (receiver instanceof EventEmitter) receiver.removeAllListeners('conclude')
    return ear
  }
  const say = (ear: Ear, { task_id: id }: Answer['body'], type: string): Promise<void> =>
    new Promise((resolve) => {
      ear.socket.send(JSON.stringify({ event_type: type, target_task_id: id }), () => resolve())
    })
  const heard = async ({ job_id: id }: Answer['body']): Promise<readonly string[]> => {
    const { text } = await app.client('GET', `/api/v1/jobs/${id}/history`)
    return [...text.matchAll(/worker_event:([a-z-]+)/g)].map(([, type]) => type ?? '')
  }

  test('[E-04] [H-03] is no longer listened to, though it stays: neither after a newer socket, nor after its token is given up', async () => {
    const task = await take('w1')
    const older = await stubborn({})
    await say(older, task, 'first')
    await expect.poll(() => heard(task)).toEqual(['first'])
    const newer = await connect('/_worker/ws/w1')
    await say(older, task, 'from-the-older')
    await say(newer, task, 'second')
    await expect.poll(() => heard(task)).toEqual(['first', 'second'])

    const named = { 'x-worker-id': 'w1' }
    const { body: pair } = await app.worker('POST', '/_worker/auth/token', undefined, named)
    const short = await stubborn({ 'x-worker-token': String(pair['access_token']) })
    await say(short, task, 'third')
    await expect.poll(() => heard(task)).toEqual(['first', 'second', 'third'])
    expect(await app.worker('DELETE', '/_worker/auth/token', undefined, named)).toMatchObject({ body: { revoked: 2 } })
    const last = await connect('/_worker/ws/w1')
    await say(short, task, 'without-a-token')
    await say(last, task, 'fourth')
    await expect.poll(() => heard(task)).toEqual(['first', 'second', 'third', 'fourth'])
  })
})

describe('bounds', () => {
  test('[E-04] nonsense is answered, and after some of it the socket is closed', async () => {
    const ear = await connect('/_worker/ws/w1')
    const nonsense = ['{', '[]', '{}', '5', '['.repeat(100)]
    expect(nonsense).toHaveLength(LIMITS.socketMistakesMax)
    for (const frame of nonsense) ear.say(frame)
    const answers = await Promise.all(nonsense.map(() => ear.next()))
    for (const answer of answers) expect(answer).toMatchObject({ type: 'error' })
    expect(await ear.closed).toEqual({ code: 1_008, reason: 'Too many malformed messages' })
  })

  test('[E-04] [H-01] names that would poison a prototype are refused, as they are in bodies', async () => {
    const ear = await connect('/_worker/ws/w1')
    for (const payload of [
      '{"__proto__":{"a":1}}',
      '{"a":[{"constructor":{"prototype":{}}}]}',
      String.raw`{"\u005f_proto__":1}`,
    ]) {
      ear.say(`{"event_type":"x","payload":${payload}}`)
      expect(await ear.next()).toMatchObject({ type: 'error', code: 'INVALID_JSON' })
    }
  })

  test('[E-04] a binary frame is nonsense, a frame that is too large ends it at once', async () => {
    const ear = await connect('/_worker/ws/w1')
    ear.socket.send(Buffer.from([1, 2, 3]))
    expect(await ear.next()).toMatchObject({ type: 'error', code: 'INVALID_REQUEST' })
    ear.say('x'.repeat(LIMITS.socketFrameBytesMax + 1))
    expect((await ear.closed).code).toBe(1_009)
  })

  test('[E-04] a flood is thinned out, and then ended', async () => {
    await app.server.stop()
    app = await startTestServer({ socketBounds: { framesPerSecond: 2 }, clock: STANDING })
    const ear = await connect('/_worker/ws/w1')
    const frame = { event_type: 'odd', worker_id: 'w1' }
    for (let count = 0; count < 100; count += 1) ear.say(frame)
    expect(await ear.next()).toMatchObject({ type: 'error', code: 'TOO_MANY_REQUESTS' })
    expect(await ear.closed).toEqual({ code: 1_008, reason: 'Too many messages' })
  })

  test('[E-04] [C-10] pings and pongs count as messages: each is answered up to the limit, and a flood is closed', async () => {
    await app.server.stop()
    app = await startTestServer({ socketBounds: { framesPerSecond: 2 }, clock: STANDING })
    const ear = await connect('/_worker/ws/w1')
    let pongs = 0
    ear.socket.on('pong', () => {
      pongs += 1
    })
    for (let count = 0; count < 60; count += 1) {
      if (count % 2 === 0) ear.socket.ping('x')
      else ear.socket.pong('x')
    }
    expect(await ear.closed).toEqual({ code: 1_008, reason: 'Too many messages' })
    expect(pongs).toBe(1)
  })

  test('[C-10] a socket counts among the requests that are under way, and no longer when it is closed', async () => {
    await app.server.stop()
    app = await startTestServer({ settings: { requestsAtOnceMax: 2 } })
    await app.register('w1')
    const headers = { 'x-worker-id': 'w1' }
    for (let time = 0; time < 4; time += 1) {
      const ear = await connect('/_worker/ws/w1')
      ear.socket.close()
      await ear.closed
    }
    let status = 429
    while (status === 429) ({ status } = await app.worker('PATCH', '/_worker/workers/w1', {}, headers))
    expect(status).toBe(200)
  })

  test('[E-04] [C-10] frames that never become a message count by their bytes', async () => {
    await app.server.stop()
    app = await startTestServer({ socketBounds: { pingMs: 500, bytesPerSecond: 1_000 } })
    const ear = await connect('/_worker/ws/w1')
    // More than the pace allows, and less than a message may have.
    for (let frame = 0; frame < 20; frame += 1) ear.socket.send('x'.repeat(1_000), { fin: false })
    expect(await ear.closed).toEqual({ code: 1_008, reason: 'Too much data' })
  })

  test('[E-04] who does not answer a ping is cut off', async () => {
    await app.server.stop()
    app = await startTestServer({ socketBounds: { pingMs: 250 } })
    const ear = await connect('/_worker/ws/w1', {}, { autoPong: false })
    expect((await ear.closed).code).toBe(1_006)
    const patient = await connect('/_worker/ws/w1')
    for (let pings = 0; pings < 3; pings += 1) await once(patient.socket, 'ping')
    expect(patient.socket.readyState).toBe(WebSocket.OPEN)
  })

  test('[E-04] who does not read is closed, once more than the limit waits for it', async () => {
    const { engine } = app.server
    const clock = { now: () => Date.now(), sleep: async () => {} }
    const tokens = new AccessTokens({
      storage: testStorage({ now: () => 1 }),
      clock,
      accessMs: 1,
      refreshMs: 1,
    })
    const auth = new WorkerAuth(new WorkerCredentials([], undefined), { tokens, mode: 'mixed', allowOpen: true })
    const signatures = new Signatures({
      storage: testStorage({ now: () => 1 }),
      clock,
      secretsOf: () => undefined,
    })
    const gateway = new WorkerGateway({ engine, clock, instanceId: 'i' })
    const sockets = new Sockets({ gateway, desk: engine.desk, auth, signatures, clock, log: SILENT })
    const listener = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    try {
      await once(listener, 'listening')
      listener.on('connection', (socket) => sockets.open(socket, { by: 'localhost' }, 'slow'))
      const { port } = listener.address() as AddressInfo
      const slow = new WebSocket(`ws://127.0.0.1:${port}`)
      open.push(slow)
      await once(slow, 'open')
      while (!sockets.isConnected('slow')) await new Promise(setImmediate)
      slow.pause()
      const long = 'x'.repeat(10_000)
      let sent = 0
      while (sockets.cancel({ workerId: 'slow', taskId: long, jobId: 'j' })) {
        sent += 1
        if (sent % 50 === 0) await new Promise(setImmediate)
      }
      expect(sent * long.length).toBeGreaterThan(LIMITS.socketBufferBytesMax)
      expect(sockets.isConnected('slow')).toBe(false)
      slow.resume()
      const [code, reason] = (await once(slow, 'close')) as [number, Buffer]
      expect([code, reason.toString()]).toEqual([1_013, 'Slow consumer'])
    } finally {
      sockets.stop()
      listener.close()
    }
  })

  test('[E-04] sockets that do not say whose they are are few', async () => {
    await app.server.stop()
    app = await startTestServer({ socketBounds: { unboundMax: 2 } })
    await connect('/_worker/ws')
    const second = await connect('/_worker/ws')
    const third = await connect('/_worker/ws')
    expect((await third.closed).code).toBe(1_013)
    await connect('/_worker/ws/w1')
    second.say({ event_type: 'odd' })
    expect(await second.next()).toMatchObject({ type: 'error', code: 'INVALID_REQUEST' })
  })
})

/** Time that stands still, so that all frames come in one second. */
const STANDING = {
  now: () => 1_800_000_000_000,
  sleep: (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve()
      })
    }),
}
