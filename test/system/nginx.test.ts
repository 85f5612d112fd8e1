/**
 * The configuration of `deploy/nginx` in a real nginx, in front of two real servers on one real Redis. What nginx
 * itself decides (what it forwards to the instances, what it retries) is tested with instances that only record
 * requests.
 */
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { LIMITS } from '@impresario/protocol'
import { createWorker } from '@impresario/worker'
import type { Log } from '@impresario/worker'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../servers/free-port.ts'
import { missingNginx, startNginx } from '../servers/nginx-server.ts'
import type { NginxServer } from '../servers/nginx-server.ts'
import { startRedis } from '../servers/redis-server.ts'
import type { TestServer } from '../servers/redis-server.ts'
import { fetchTrusting } from './https-fetch.fixture.ts'
import { Victim } from './victim.fixture.ts'

const CLIENT_TOKEN = 'nginx-test-client-token'
const WORKER_TOKEN = 'nginx-test-worker-token'
const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/blueprints', import.meta.url))

interface Instance {
  readonly address: string
  readonly process: Victim
}

let redis: TestServer
let instances: readonly [Instance, Instance]
let nginx: NginxServer
let get: ReturnType<typeof fetchTrusting>
let client: Client
let patience: ReturnType<typeof patientPoll>

async function startInstance(id: string): Promise<Instance> {
  const port = await freePort()
  const process = new Victim([CLI, 'start'], {
    API_HOST: '127.0.0.1',
    API_PORT: String(port),
    STORAGE_URL: redis.url,
    INSTANCE_ID: id,
    BLUEPRINTS_DIR: BLUEPRINTS,
    CLIENT_TOKEN,
    WORKER_TOKEN,
    SECRET_KEY: 'a-key-that-all-instances-share',
    TRUST_PROXY: '127.0.0.1',
    RATE_LIMIT_FAILED_AUTH_LIMIT: '3',
    LOG_LEVEL: 'error',
  })
  process.start()
  return { address: `127.0.0.1:${port}`, process }
}

async function untilReady({ address, process }: Instance): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://${address}/_public/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    if (!process.isRunning) throw new Error(`The server does not start: ${process.output}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** On all addresses of this machine, for a caller that is not the machine itself. */
const NETWORK = Object.values(networkInterfaces())
  .flat()
  .find((found) => found !== undefined && !found.internal && found.family === 'IPv4')?.address

beforeAll(async () => {
  if (missingNginx !== undefined) return
  redis = await startRedis()
  instances = [await startInstance('one'), await startInstance('two')]
  await Promise.all(instances.map(untilReady))
  nginx = await startNginx({ instances: instances.map(({ address }) => address), host: '0.0.0.0' })
  get = fetchTrusting(nginx.ca)
  client = createClient({ url: nginx.url, token: CLIENT_TOKEN, fetch: get })
  // Runs while other things are tested.
  patience = patientPoll()
})

afterAll(async () => {
  await nginx?.stop()
  await Promise.all((instances ?? []).map(({ process }) => process.kill()))
  await redis?.remove()
})

/** An event that a test waits for. */
class Moment {
  come: () => void = () => undefined
  readonly passed = new Promise<void>((resolve) => (this.come = resolve))
}

const clientHeaders = { 'x-client-token': CLIENT_TOKEN, 'content-type': 'application/json' }
const workerHeaders = { 'x-worker-token': WORKER_TOKEN, 'content-type': 'application/json' }

/** A worker of the SDK that connects through nginx. */
function newWorker(id: string, concurrency: number, webSockets: boolean) {
  const tls = { caPath: nginx.caPath }
  const socketOpen = new Moment()
  const log: Log = {
    debug: () => undefined,
    info: (message) => (message.includes('socket is open') ? socketOpen.come() : undefined),
    warn: console.warn,
    error: console.error,
  }
  const calm = { tls, webSockets, heartbeatMs: 60_000, concurrency, log }
  const worker = createWorker({ url: nginx.url, token: WORKER_TOKEN, id, ...calm })
  onTestFinished(() => worker.stop())
  return { worker, socketOpen: socketOpen.passed }
}

test.skipIf(missingNginx !== undefined)(
  '[M-02] [I-02] a stream of changes through nginx tells at once what changes at either instance',
  async () => {
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const wanted = new Set<string>()
    for await (const change of client.changes({ signal: stop.signal })) {
      if (change.type === 'ready') {
        for (const { address } of instances) {
          const job = await createClient({ url: `http://${address}`, token: CLIENT_TOKEN }).start('ask')
          wanted.add(job.id)
        }
      }
      if (change.type === 'change') for (const { jobId } of change.jobs) wanted.delete(jobId)
      if (change.type === 'change' && wanted.size === 0) break
    }
    expect(wanted.size).toBe(0)
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-02] HTTP/2 over TLS 1.2 or newer; whoever comes without TLS is sent there with method and path',
  async () => {
    const session = connectHttp2(nginx.url, { ca: nginx.ca })
    onTestFinished(() => session.destroy())
    await once(session, 'connect')
    expect(session.alpnProtocol).toBe('h2')
    const stream = session.request({ ':path': '/_public/status' })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(200)
    // Reported by the instance, which trusts nginx that this is TLS: so TRUST_PROXY works.
    expect(headers['strict-transport-security']).toBe('max-age=31536000')

    const versions = await Promise.all(
      (['TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const).map(async (version) => {
        const limits = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' } as const
        const socket = connectTls({
          port: nginx.port,
          host: '127.0.0.1',
          servername: 'localhost',
          ca: nginx.ca,
          ...limits,
        })
        const spoken = await Promise.race([
          once(socket, 'secureConnect').then(() => socket.getProtocol()),
          new Promise<string>((resolve) => socket.once('error', () => resolve('refused'))),
        ])
        socket.destroy()
        return spoken
      }),
    )
    expect(versions).toEqual(['refused', 'TLSv1.2', 'TLSv1.3'])

    const plain = `http://localhost:${nginx.plainPort}/api/v1/jobs?limit=5`
    const redirect = await fetch(plain, { method: 'POST', redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, 'https://localhost/api/v1/jobs?limit=5'])
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-01] [I-02] jobs go from start to end over both instances, by long polls',
  async () => {
    const { worker } = newWorker('by-poll', 100, false)
    worker.task('double', ({ value }) => ({ value: Number(value) * 2 }))
    worker.task('part', ({ value, part }) => ({ value: Number(value) * Number(part) }))
    await worker.start()
    const jobs = await Promise.all(
      Array.from({ length: 20 }, (_, value) =>
        client.start('four_states', { value }, { idempotencyKey: `job-${value}` }),
      ),
    )
    const results = await Promise.all(jobs.map((job) => job.result()))
    expect(results).toMatchObject(Array.from({ length: 20 }, (_, value) => ({ sum: value * 12, parts: 3 })))
    for (const path of ['/api/v1/jobs', '/_worker/']) {
      const askedFor = () =>
        new Set(
          nginx.served().flatMap((line) => (line.path.startsWith(path) && line.status < 300 ? [line.instance] : [])),
        )
      await expect.poll(askedFor).toEqual(new Set(instances.map(({ address }) => address)))
    }
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-02] a WebSocket is opened through nginx: progress and a cancellation come over it',
  async () => {
    // Its only slot is in use, so it does not poll, and its next heartbeat is a minute away: only the socket can notify
    // it, whichever instance received the cancellation.
    const { worker, socketOpen } = newWorker('by-socket', 1, true)
    const aborted = new Moment()
    worker.task('double', async (_params, task) => {
      task.progress(0.5)
      await once(task.signal, 'abort')
      aborted.come()
      throw task.signal.reason
    })
    await worker.start()
    await socketOpen
    const job = await client.start('four_states', { value: 1 })
    await expect.poll(async () => (await job.status()).progress).toBe(0.5)
    await job.cancel()
    await aborted.passed
    expect((await job.wait()).status).toBe('cancelled')
    await worker.stop()
    const seen = (prefix: string) => nginx.served().filter(({ path }) => path.startsWith(prefix))
    await expect.poll(() => seen('/_worker/ws')).toMatchObject([{ status: 101 }])
    expect(seen('/_worker/events')).toEqual([])
  },
)

/** A poll of a worker that gets no tasks: its status, and how long it took. */
async function patientPoll(): Promise<{ readonly status: number; readonly ms: number }> {
  const body = JSON.stringify({ worker_id: 'patient', worker_type: 'test', supported_skills: ['nothing'] })
  await get(`${nginx.url}/_worker/workers/register`, { method: 'POST', headers: workerHeaders, body })
  const began = performance.now()
  const { status } = await get(`${nginx.url}/_worker/workers/patient/tasks/next?timeout=5`, { headers: workerHeaders })
  return { status, ms: performance.now() - began }
}

test.skipIf(missingNginx !== undefined)(
  '[I-02] a body over the limit is refused in our own words, by the instance or by nginx',
  async () => {
    const post = (bytes: number) => {
      const body = JSON.stringify({ blueprint: 'four_states', initial_data: { text: 'x'.repeat(bytes) } })
      return get(`${nginx.url}/api/v1/jobs`, { method: 'POST', headers: clientHeaders, body })
    }
    // The second exceeds nginx's limit.
    for (const bytes of [LIMITS.bodyBytesMax + 1, 3 * LIMITS.bodyBytesMax]) {
      const answer = await post(bytes)
      expect(answer.status).toBe(413)
      expect(answer.headers.get('content-type')).toContain('application/json')
      expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000')
      expect(await answer.json()).toEqual({
        error: 'The body is too large.',
        code: 'BODY_TOO_LARGE',
        type: 'urn:impresario:error:BODY_TOO_LARGE',
        title: 'Body too large',
        status: 413,
        detail: 'The body is too large.',
      })
    }
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-02] headers of security come once, answers are compressed once, and nginx does not tell its version',
  async () => {
    const answer = await get(`${nginx.url}/_public/openapi.json`, { headers: { 'accept-encoding': 'gzip' } })
    expect(answer.status).toBe(200)
    // Duplicate headers would be joined with a comma.
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('x-frame-options')).toBe('DENY')
    expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000')
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(answer.headers.get('server')).toBe('nginx')
  },
)

/** The status of a call with a wrong token, to an address of this machine, with a forged caller address. */
async function guess(host: string, attempt: number): Promise<number> {
  const headers = { 'x-client-token': `guess-${attempt}`, 'x-forwarded-for': `198.51.100.${attempt}` }
  const sent = httpsRequest({
    host,
    port: nginx.port,
    path: '/api/v1/jobs',
    ca: nginx.ca,
    servername: 'localhost',
    headers,
  })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode ?? 0
}

test.skipIf(missingNginx !== undefined)(
  '[I-02] the address of the caller arrives: guessing tokens ends, whatever the caller claims to be',
  async () => {
    // A proxy that reports the local machine is not trusted: its callers are counted too. Two guesses are within the
    // limit.
    for (let attempt = 1; attempt <= 2; attempt += 1) expect(await guess('127.0.0.1', attempt)).toBe(401)
    // A machine without a network address cannot be reached by others.
    if (NETWORK === undefined) return
    const statuses: number[] = []
    // After three at each instance at the latest.
    for (let attempt = 1; attempt <= 8; attempt += 1) statuses.push(await guess(NETWORK, attempt))
    expect(statuses.slice(0, 3)).toEqual([401, 401, 401])
    expect(statuses.slice(6)).toEqual([429, 429])
  },
)

test.skipIf(missingNginx !== undefined)('[I-02] a long poll is held for as long as the worker asked for', async () => {
  const { status, ms } = await patience
  expect(status).toBe(204)
  expect(ms).toBeGreaterThan(4_900)
})

/** An instance that only records its requests, and responds as configured. */
async function startWitness(
  listener: RequestListener,
): Promise<{ readonly address: string; readonly asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    asked.push(request)
    request.resume()
    request.on('end', () => listener(request, response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

test.skipIf(missingNginx !== undefined)(
  '[I-02] instances are told who calls and how; what a caller writes into these headers goes no further',
  async () => {
    const witness = await startWitness((_request, response) => response.end('{}'))
    const own = await startNginx({ instances: [witness.address] })
    onTestFinished(() => own.stop())
    const forged = {
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'evil.example',
      'x-real-ip': '203.0.113.9',
      forwarded: 'for=203.0.113.9',
      upgrade: 'h2c',
      connection: 'upgrade',
    }
    const answer = await fetchTrusting(own.ca)(`${own.url}/api/v1/jobs?limit=1`, { headers: forged })
    expect(answer.status).toBe(200)
    const [asked] = witness.asked
    expect(asked?.url).toBe('/api/v1/jobs?limit=1')
    expect(asked?.headers).toMatchObject({
      host: `localhost:${own.port}`,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': `localhost:${own.port}`,
    })
    for (const name of ['x-real-ip', 'forwarded', 'upgrade']) expect(asked?.headers).not.toHaveProperty(name)
    expect(asked?.headers.connection ?? 'keep-alive').toBe('keep-alive')
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-02] only what cannot happen twice is sent to the next instance when an answer got lost',
  async () => {
    const broken = await startWitness((request) => request.socket.destroy())
    const busy = await startWitness((_request, response) => response.writeHead(503).end('{"code":"SHUTTING_DOWN"}'))
    const calls = [
      ['GET', '/api/v1/jobs', true],
      ['POST', '/api/v1/jobs', false],
      ['POST', '/_worker/tasks/result', true],
      ['PATCH', '/_worker/workers/w', true],
      ['POST', '/_worker/workers/w/tasks/batch', true],
      ['POST', '/_worker/auth/token/refresh', false],
    ] as const
    for (const bad of [broken, busy]) {
      for (const [method, path, isRepeated] of calls) {
        const good = await startWitness((_request, response) => response.end('{}'))
        // A new one each time, so that the first request goes to the first instance.
        const own = await startNginx({ instances: [bad.address, good.address] })
        const body = method === 'GET' ? {} : { body: '{}' }
        const { status } = await fetchTrusting(own.ca)(`${own.url}${path}`, { method, ...body })
        const lost = bad === broken ? 502 : 503
        expect({ method, path, status, asked: good.asked.length }).toEqual({
          method,
          path,
          status: isRepeated ? 200 : lost,
          asked: isRepeated ? 1 : 0,
        })
        await own.stop()
      }
    }
  },
)

test.skipIf(missingNginx !== undefined)(
  '[I-01] [I-02] requests of every kind go on when an instance is killed, and when it is back',
  async () => {
    const [one, two] = instances
    await two.process.kill()
    const start = (index: number) => client.start('four_states', { value: index }, { idempotencyKey: `after-${index}` })
    // None of these was sent to the dead instance, so none of them fails.
    const raw = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const body = JSON.stringify({ blueprint: 'four_states', initial_data: { value: index } })
        return (await get(`${nginx.url}/api/v1/jobs`, { method: 'POST', headers: clientHeaders, body })).status
      }),
    )
    expect(new Set(raw)).toEqual(new Set([202]))
    two.process.start()
    await untilReady(two)
    await one.process.kill()
    // nginx may have tried the other one just before it was back, and then waits a second.
    await expect.poll(async () => (await get(`${nginx.url}/_public/ready`, {})).status).toBe(200)
    const jobs = await Promise.all(Array.from({ length: 5 }, (_, index) => start(index)))
    expect(jobs).toHaveLength(5)
  },
)
