import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CLIENT_TOKEN, startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

let app: TestServer

beforeAll(async () => {
  app = await startTestServer()
  await app.register('w1')
})
afterAll(() => app.server.stop())

const AS_WORKER = { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w1' }
const AS_CLIENT = { 'x-client-token': CLIENT_TOKEN }

interface Raw {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** `fetch` decides itself what it says about a body that is empty. */
function send(method: string, path: string, { headers, body = '' }: Raw): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(`${app.address}${path}`, { method, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    call.on('error', reject)
    call.end(body)
  })
}

const EMPTY = { 'content-length': '0' }
const CHUNKED = { 'transfer-encoding': 'chunked' }

describe('[E-01] an empty body is no body', () => {
  const types = ['application/octet-stream', 'application/json', 'text/plain', 'garbage']
  const calls: readonly [string, string, Readonly<Record<string, string>>, number][] = [
    ['POST', '/_worker/auth/token', AS_WORKER, 200],
    ['POST', '/_worker/auth/token/refresh', {}, 400],
    ['PATCH', '/_worker/workers/w1', AS_WORKER, 200],
    ['DELETE', '/_worker/auth/token', AS_WORKER, 200],
    ['POST', '/api/v1/jobs/00000000-0000-7000-8000-000000000000/cancel', AS_CLIENT, 404],
    ['POST', '/api/v1/jobs/00000000-0000-7000-8000-000000000000/retry', AS_CLIENT, 404],
    ['POST', '/api/v1/jobs/00000000-0000-7000-8000-000000000000/discard', AS_CLIENT, 404],
    ['POST', '/api/v1/echo', AS_CLIENT, 202],
  ]
  test.each(calls)('%s %s', async (method, path, who, status) => {
    for (const type of types) {
      const whole = await send(method, path, { headers: { ...who, ...EMPTY, 'content-type': type } })
      expect.soft(whole, type).toMatchObject({ status })
    }
    const chunked = await send(method, path, {
      headers: { ...who, ...CHUNKED, 'content-type': 'application/octet-stream' },
    })
    expect(chunked).toMatchObject({ status })
  })

  test('what is not empty still needs its type', async () => {
    const path = '/_worker/auth/token'
    const type = { 'content-type': 'application/octet-stream' }
    for (const framing of [{ 'content-length': '2' }, CHUNKED]) {
      const answer = await send('POST', path, { headers: { ...AS_WORKER, ...type, ...framing }, body: '{}' })
      expect(answer.status).toBe(415)
    }
    const untyped = await send('POST', path, { headers: { ...AS_WORKER, 'content-length': '2' }, body: '{}' })
    expect(untyped.status).toBe(415)
    const nowhere = await send('POST', '/nowhere', { headers: { ...type, 'content-length': '2' }, body: '{}' })
    expect(nowhere.status).toBe(404)
  })
})
