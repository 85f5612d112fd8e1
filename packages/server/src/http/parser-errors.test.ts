import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Log, LogFields } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CLIENT_TOKEN, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

let app: TestServer
const logged: [string, LogFields | undefined][] = []
const note = (message: string, fields?: LogFields): void => {
  logged.push([message, fields])
}
const log: Log = { debug: () => {}, info: () => {}, warn: note, error: note }

beforeAll(async () => {
  app = await startTestServer({ log, settings: { trustProxy: 'loopback' } })
})
afterAll(() => app.server.stop())

function open(): Socket {
  const { hostname, port } = new URL(app.address)
  return connect(Number(port), hostname).on('error', () => {})
}

/** All that comes back until the server closes. */
async function exchange(text: string): Promise<{ readonly head: string; readonly body: string }> {
  const socket = open()
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(text)
  await once(socket, 'close')
  const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n', 2)
  return { head, body }
}

describe('[H-01] what never becomes a request is refused in the one shape', () => {
  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400, 'INVALID_REQUEST'],
    ['an unknown method', 'FOO / HTTP/1.1\r\nhost: x\r\n\r\n', 400, 'INVALID_REQUEST'],
    ['another version', 'GET / HTTP/7.7\r\nhost: x\r\n\r\n', 400, 'INVALID_REQUEST'],
    ['a broken header', 'GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n', 400, 'INVALID_REQUEST'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
      'INVALID_REQUEST',
    ],
    [
      'a broken chunk',
      'POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      400,
      'INVALID_REQUEST',
    ],
    ['long headers', `GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['a long path', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['no host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'INVALID_REQUEST'],
    [
      'an odd expectation',
      'POST / HTTP/1.1\r\nhost: x\r\nexpect: tea\r\ncontent-length: 0\r\n\r\n',
      400,
      'INVALID_REQUEST',
    ],
  ])('%s', async (_title, text, status, code) => {
    const { head, body } = await exchange(text)
    expect(head).toContain(`HTTP/1.1 ${status} `)
    expect(head.toLowerCase()).toContain('content-type: application/json')
    expect(head.toLowerCase()).toContain('x-content-type-options: nosniff')
    expect(JSON.parse(body)).toMatchObject({ status, code, type: `urn:impresario:error:${code}` })
  })
})

test('[H-08] [H-01] who hangs up at once, or in the middle of a body, is neither a failure nor a line of the log', async () => {
  logged.length = 0
  const head = `POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nx-client-token: ${CLIENT_TOKEN}\r\ncontent-type: application/json\r\n`
  const texts = [
    'GET /_public/status HTTP/1.1\r\nhost: x\r\n\r\n',
    'GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\nx-client-token: wrong\r\n\r\n',
    `GET /_worker/workers/w/tasks/next HTTP/1.1\r\nhost: x\r\nx-worker-token: wrong\r\n\r\n`,
    `${head}content-length: 1000\r\n\r\n{"blue`,
    `${head}transfer-encoding: chunked\r\n\r\n5\r\n{"blu\r\n`,
    `${head}content-encoding: gzip\r\ncontent-length: 1000\r\n\r\n\u001F`,
    'GET / HTT',
  ]
  for (const text of texts) {
    for (let time = 0; time < 20; time += 1) {
      const socket = open()
      await once(socket, 'connect')
      const sent = new Promise((resolve) => socket.write(text, resolve))
      await sent
      if (time % 2 === 0) socket.resetAndDestroy()
      else socket.destroy()
      await once(socket, 'close')
    }
  }
  expect((await app.call('GET', '/_public/status')).status).toBe(200)
  // The wrong token of a worker is a line by itself, whether it waits for the answer or not.
  expect(logged.filter(([message]) => message !== 'a worker was refused')).toEqual([])
})
