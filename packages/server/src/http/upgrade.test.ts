import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CLIENT_TOKEN, startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

let app: TestServer
beforeAll(async () => {
  app = await startTestServer()
})
afterAll(async () => {
  await app.server.stop()
})

/** The first line of the answer; empty when the connection is cut. */
function firstLine(method: string, path: string, headers: readonly string[], body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(app.address).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (text.includes('\r\n')) socket.destroy()
    })
    socket.on('close', () => resolve(text.split('\r\n', 1)[0] ?? ''))
    socket.on('error', reject)
    socket.write(`${[`${method} ${path} HTTP/1.1`, 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n${body}`)
  })
}

const H2C = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']
const SOCKET = [
  'Connection: Upgrade',
  'Upgrade: WebSocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
const OK = 'HTTP/1.1 200 OK'
const body = '{"blueprint":"echo"}'
const json = [`X-Client-Token: ${CLIENT_TOKEN}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]

describe('requests that offer another protocol', () => {
  test('[H-01] [E-06] an offer of HTTP/2 is passed over: the request is answered, with its body', async () => {
    expect(await firstLine('GET', '/_public/live', H2C)).toBe(OK)
    expect(await firstLine('POST', '/api/v1/jobs', [...H2C, ...json], body)).toBe('HTTP/1.1 202 Accepted')
    const worker = [`X-Worker-Token: ${WORKER_TOKEN}`]
    expect(await firstLine('GET', '/_worker/ws/w1', [...H2C, ...worker])).toBe('HTTP/1.1 400 Bad Request')
  })

  test('[E-04] [H-08] only the path of the sockets becomes one, and only for who may come in', async () => {
    expect(await firstLine('GET', '/_public/live', SOCKET)).toBe(OK)
    expect(await firstLine('GET', '/api/v1/jobs', [...SOCKET, ...json.slice(0, 1)])).toBe(OK)
    expect(await firstLine('POST', '/api/v1/jobs', [...SOCKET, ...json], body)).toBe('HTTP/1.1 202 Accepted')
    expect(await firstLine('GET', '/_worker/wsx', SOCKET)).toBe('HTTP/1.1 404 Not Found')
    expect(await firstLine('GET', '/_worker/ws', SOCKET)).toBe('HTTP/1.1 401 Unauthorized')
    for (const path of ['/_worker/ws', '/_worker/ws?x=1', '/_worker/ws/w1']) {
      expect(await firstLine('GET', path, [...SOCKET, `X-Worker-Token: ${WORKER_TOKEN}`])).toMatch(/^HTTP\/1.1 101 /)
    }
  })

  test('[H-08] this is no proxy', async () => {
    expect(await firstLine('CONNECT', 'example.com:443', [])).toBe('')
  })
})
