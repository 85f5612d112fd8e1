import { request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Settings } from '../config/config.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { ShortCall } from './short-call.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

interface Got {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** One for all that leave nothing behind. */
let common: TestServer
let app: TestServer
/** Calls that took the short way. */
const begun = vi.spyOn(ShortCall.prototype, 'begin')

async function started(settings: Partial<Settings> = {}): Promise<TestServer> {
  const server = await startTestServer({ settings })
  await server.register('w1')
  return server
}

beforeAll(async () => {
  common = await started()
})
beforeEach(() => {
  app = common
  begun.mockClear()
})
afterAll(() => common.server.stop())

/** A server of its own for this test. */
async function alone(settings: Partial<Settings>): Promise<void> {
  const own = await started(settings)
  onTestFinished(() => own.server.stop())
  app = own
}

function send({ method, path, headers = {}, body }: Asked): Promise<Got> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const all = { 'x-worker-token': WORKER_TOKEN, ...type, ...length, ...headers }
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
    const request = httpRequest(`${app.address}${path}`, { method, headers: given, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** A header that says nothing without another one, and is unusual. */
const LONG_WAY = { tracestate: 'rojo=00f067aa0ba902b7' }

/** The same request by both ways, and whether the first has really taken the short one. */
async function both(asked: Asked): Promise<{ readonly short: Got; readonly long: Got; readonly wasShort: boolean }> {
  const before = begun.mock.calls.length
  const short = await send(asked)
  const wasShort = begun.mock.calls.length > before
  const between = begun.mock.calls.length
  const long = await send({ ...asked, headers: { ...asked.headers, ...LONG_WAY } })
  expect(begun).toHaveBeenCalledTimes(between)
  return { short, long, wasShort }
}

/** Without what differs from request to request. */
function comparable({ status, headers, body }: Got): unknown {
  const { date: _, 'content-length': length, ...rest } = headers
  const isLengthRight = length === undefined || Number(length) === body.length
  return {
    status,
    headers: rest,
    isLengthRight,
    hasLength: length !== undefined,
    body: body.toString().replace(/"seen_at":[\d.]+/, '"seen_at":0'),
  }
}

const PATIENCE = { timeout: 20_000, interval: 5 }
const BEAT = '/_worker/workers/w1'
const NEXT = '/_worker/workers/w1/tasks/next'
const BATCH = '/_worker/workers/w1/tasks/batch'
const batch = (body: object): Asked => ({ method: 'POST', path: BATCH, body: JSON.stringify(body) })
const beat = (body: object): Asked => ({ method: 'PATCH', path: BEAT, body: JSON.stringify(body) })

const GOOD: Readonly<Record<string, Asked>> = {
  'a heartbeat without a body': { method: 'PATCH', path: BEAT },
  'an empty heartbeat': beat({}),
  'a heartbeat of null': { method: 'PATCH', path: BEAT, body: 'null' },
  'a heartbeat of the SDK': {
    ...beat({ worker_id: 'w1', status: 'idle', load: 0, current_tasks: [], available_skills: ['echo'], hot_cache: [] }),
    headers: { 'x-worker-id': 'w1', 'x-rxon-version': '0.1.0' },
  },
  'a heartbeat of the oldest generation': beat({ load: 0, status: 'idle', supported_tasks: ['echo'] }),
  'a heartbeat that is out of step': beat({ worker_id: 'w1', skills_hash: 'other' }),
  'another version': { ...beat({ worker_id: 'w1' }), headers: { 'x-rxon-version': '1.0b4' } },
  'a version that is not spoken': { ...beat({ worker_id: 'w1' }), headers: { 'x-rxon-version': '7.0' } },
  'a bearer token': {
    method: 'PATCH',
    path: BEAT,
    headers: { 'x-worker-token': '', authorization: `Bearer ${WORKER_TOKEN}` },
  },
  'letters beyond ASCII': beat({ worker_id: 'w1', metadata: { place: 'Łódź' } }),
  'a poll': { method: 'GET', path: `${NEXT}?timeout=0` },
  'a poll with a type and no body': {
    method: 'GET',
    path: `${NEXT}?timeout=0&available_skills=echo,other&hot_skills=`,
    headers: { 'content-type': 'application/json' },
  },
  'a parameter twice': { method: 'GET', path: `${NEXT}?timeout=9&timeout=0` },
  'a poll for several': batch({ limit: 3, timeout: 0 }),
  'a poll for several with skills': batch({
    limit: 3,
    timeout: 0,
    available_skills: ['echo'],
    hot_skills: null,
    more: 1,
  }),
  'a poll that wants it packed': {
    ...batch({ limit: 1, timeout: 0 }),
    headers: { 'accept-encoding': 'gzip, identity;q=0' },
  },
  'a heartbeat of nobody': { method: 'PATCH', path: '/_worker/workers/nobody', body: '{"worker_id":"nobody"}' },
  'a poll of nobody': { method: 'GET', path: '/_worker/workers/nobody/tasks/next?timeout=0' },
  'a poll of nobody that reads problems': {
    method: 'POST',
    path: '/_worker/workers/nobody/tasks/batch',
    body: '{"limit":1}',
    headers: { accept: 'application/problem+json' },
  },
}

test.each(Object.entries(GOOD))('[H-01] [C-10] %s is answered the same by the short way', async (_name, asked) => {
  const { short, long, wasShort } = await both(asked)
  expect(comparable(short)).toEqual(comparable(long))
  expect(wasShort).toBe(true)
})

const ODD: Readonly<Record<string, Asked>> = {
  'no token': { method: 'PATCH', path: BEAT, headers: { 'x-worker-token': '' } },
  'a wrong token': { method: 'GET', path: NEXT, headers: { 'x-worker-token': 'wrong-token-0123456789' } },
  'another id in the header': { ...batch({ limit: 1 }), headers: { 'x-worker-id': 'w2' } },
  'another id in the body': beat({ worker_id: 'w2' }),
  'no JSON': { method: 'PATCH', path: BEAT, body: '{"status":' },
  'bytes that are no text': { method: 'PATCH', path: BEAT, body: Buffer.from('{"status":"\u00FF"}', 'latin1') },
  'a number that no double holds': beat({ worker_id: 'w1', load: 12_345_678_901_234_567_890n.toString() }),
  'a long number': { method: 'PATCH', path: BEAT, body: '{"metadata":{"n":12345678901234567890}}' },
  'a name that poisons': { method: 'PATCH', path: BEAT, body: '{"__proto__":{"status":"busy"}}' },
  'the same name in disguise': { method: 'PATCH', path: BEAT, body: String.raw`{"\u005f_proto__":{}}` },
  'too deep': { method: 'PATCH', path: BEAT, body: `{"metadata":${'['.repeat(200)}${']'.repeat(200)}}` },
  'no limit': batch({ timeout: 0 }),
  'a limit of nothing': batch({ limit: 0, timeout: 0 }),
  'a timeout in words': batch({ limit: 1, timeout: 'soon' }),
  'no body for a batch': { method: 'POST', path: BATCH },
  'another type': { method: 'PATCH', path: BEAT, body: 'x', headers: { 'content-type': 'text/plain' } },
  'an empty body of another type': {
    method: 'PATCH',
    path: BEAT,
    body: '',
    headers: { 'content-type': 'application/octet-stream', 'content-length': '0' },
  },
  'an unknown encoding': { ...beat({}), headers: { 'content-encoding': 'br' } },
  'a page of elsewhere': { method: 'GET', path: `${NEXT}?timeout=0`, headers: { origin: 'https://elsewhere.example' } },
  'an encoded id': { method: 'GET', path: '/_worker/workers/%77%31/tasks/next?timeout=0' },
  'an encoded query': { method: 'GET', path: `${NEXT}?timeout=%30` },
  'a slash at the end': { method: 'GET', path: `${NEXT}/?timeout=0` },
  'a method that is not there': { method: 'DELETE', path: BEAT },
  'a path that is not there': { method: 'GET', path: '/_worker/workers/w1/tasks/last' },
  'a registration that is none': { method: 'POST', path: '/_worker/workers/register', body: '{}' },
  'a long body': beat({ worker_id: 'w1', metadata: { text: 'x'.repeat(5_000) } }),
}

test.each(Object.entries(ODD))('[H-01] %s takes the general way, as it came', async (name, asked) => {
  const { short, long, wasShort } = await both(asked)
  expect(comparable(short)).toEqual(comparable(long))
  // An empty body says nothing, whatever type it claims to have.
  expect(wasShort).toBe(name === 'an empty body of another type')
})

test('[E-02] a task is handed over by the short way as by the general one, packed where that is asked for', async () => {
  const text = 'lorem ipsum '.repeat(500)
  const brought: unknown[] = []
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  for (const headers of [{}, LONG_WAY]) {
    for (const path of [NEXT, BATCH]) {
      const job = { blueprint: 'echo', initial_data: { text } }
      await app.client('POST', '/api/v1/jobs', job, { traceparent })
      const method = path === NEXT ? 'GET' : 'POST'
      const body = path === NEXT ? {} : { body: '{"limit":1}' }
      const got = await send({ method, path, ...body, headers: { ...headers, 'accept-encoding': 'gzip' } })
      expect(got.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(got.body).toString()).toContain(text)
      const { date: _, 'content-length': length, ...rest } = got.headers
      expect(Number(length)).toBe(got.body.length)
      brought.push({ ...rest, traceparent: rest['traceparent']?.slice(0, 36) })
    }
  }
  expect(begun).toHaveBeenCalledTimes(2)
  expect(brought.slice(0, 2)).toEqual(brought.slice(2))
})

test('[H-04] both ways count for the same limits, and each request once', async () => {
  await alone({ rateLimitPoll: 4, rateLimitHeartbeat: 4, rateLimitPeriodSeconds: 3_600 })
  for (const asked of [batch({ limit: 1, timeout: 0 }), beat({ worker_id: 'w1' })]) {
    begun.mockClear()
    for (let count = 0; count < 2; count += 1) {
      const { short, long } = await both(asked)
      expect([short.status, long.status]).toEqual([200, 200])
    }
    const { short, long, wasShort } = await both(asked)
    expect([short.status, long.status, wasShort]).toEqual([429, 429, false])
    expect(short.headers['retry-after']).toBeDefined()
    expect(begun).toHaveBeenCalledTimes(2)
  }
})

test('[H-04] a parked poll counts as a request that is under way, until its connection is gone', async () => {
  await alone({ requestsAtOnceMax: 1 })
  const { hostname, port } = new URL(app.address)
  const socket = connect(Number(port), hostname)
  socket.write(`GET ${NEXT}?timeout=60 HTTP/1.1\r\nHost: x\r\nX-Worker-Token: ${WORKER_TOKEN}\r\n\r\n`)
  await vi.waitUntil(() => app.server.waiting === 1, PATIENCE)
  expect((await send({ method: 'GET', path: `${NEXT}?timeout=0` })).status).toBe(429)
  socket.destroy()
  await vi.waitUntil(() => app.server.waiting === 0, PATIENCE)
  expect((await send({ method: 'GET', path: `${NEXT}?timeout=0` })).status).toBe(204)
})

test('[H-01] requests that come together over one connection, or in pieces, are answered in their order', async () => {
  const { hostname, port } = new URL(app.address)
  const head = `Host: x\r\nX-Worker-Token: ${WORKER_TOKEN}\r\n`
  const poll = `GET ${NEXT}?timeout=0 HTTP/1.1\r\n${head}\r\n`
  const sign = (body: string): string =>
    `PATCH ${BEAT} HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk) => {
    text += String(chunk)
  })
  const statuses = (): readonly string[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '')
  socket.write(poll + sign('{"worker_id":"w1"}') + sign('{"metadata":{"n":12345678901234567890}}') + sign('{}') + poll)
  await vi.waitUntil(() => statuses().length === 5, PATIENCE)
  expect(statuses()).toEqual(['204', '200', '200', '200', '204'])
  expect(begun).toHaveBeenCalledTimes(4)
  // The end of a body that comes later is waited for, by the general way.
  const late = sign('{"worker_id":"w1"}')
  socket.write(late.slice(0, -5))
  await new Promise((resolve) => setImmediate(resolve))
  socket.write(late.slice(-5))
  await vi.waitUntil(() => statuses().length === 6, PATIENCE)
  expect(statuses().at(-1)).toBe('200')
  socket.destroy()
})

test('[K-01] the metrics count both ways under the same names', async () => {
  await alone({})
  const { long, wasShort } = await both(beat({ worker_id: 'w1' }))
  expect([long.status, wasShort]).toEqual([200, true])
  const name = 'impresario_http_requests_total{method="PATCH",route="/_worker/workers/:workerId",status="200"} 2'
  const shown = async (): Promise<boolean> => (await app.call('GET', '/_public/metrics')).text.includes(name)
  await vi.waitUntil(shown, PATIENCE)
})
