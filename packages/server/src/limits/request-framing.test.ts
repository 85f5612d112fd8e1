import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { framedRequest } from './request-framing.ts'

const framed = (text: string, start = 0) => framedRequest(Buffer.from(text, 'latin1'), start)
const HOST = 'Host: x\r\n'

test('[I-09] a whole request is known by its head, and ends where its length says', () => {
  const text = `POST /jobs HTTP/1.1\r\n${HOST}Content-Length: 2\r\nConnection: keep-alive\r\n\r\n{}`
  expect(framed(text)).toEqual({ method: 'POST', url: '/jobs', end: text.length })
  expect(framed(`${text}${text}`, text.length)).toMatchObject({ end: 2 * text.length })
  expect(framed(`GET /a?b=c HTTP/1.1\r\n${HOST}\r\nrest`)).toMatchObject({ method: 'GET', url: '/a?b=c' })
})

test.each([
  ['a head that has not ended', `POST /jobs HTTP/1.1\r\n${HOST}`],
  ['a body that has not ended', `POST /jobs HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\n{}`],
  ['pieces', `POST /jobs HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['two lengths', `POST /jobs HTTP/1.1\r\n${HOST}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`],
  ['a length with a sign', `POST /jobs HTTP/1.1\r\n${HOST}Content-Length: +2\r\n\r\n{}`],
  ['a length in words', `POST /jobs HTTP/1.1\r\n${HOST}Content-Length: 2, 2\r\n\r\n{}`],
  ['a space before the colon', `POST /jobs HTTP/1.1\r\n${HOST}Content-Length : 2\r\n\r\n{}`],
  ['a folded line', `POST /jobs HTTP/1.1\r\n${HOST}X: a\r\n Content-Length: 2\r\n\r\n{}`],
  ['a bare line feed', `POST /jobs HTTP/1.1\r\n${HOST}X: a\nContent-Length: 2\r\n\r\n{}`],
  ['a bare carriage return', `POST /jobs HTTP/1.1\r\n${HOST}X: a\rContent-Length: 2\r\n\r\n{}`],
  ['an older version', `POST /jobs HTTP/1.0\r\n${HOST}\r\n`],
  ['a connection that is to end', `POST /jobs HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`],
  ['an upgrade', `GET /jobs HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
  ['an expectation', `POST /jobs HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`],
  ['a page of another origin', `POST /jobs HTTP/1.1\r\n${HOST}Origin: https://a.example\r\n\r\n`],
  ['letters beyond ASCII', `POST /jobs HTTP/1.1\r\n${HOST}X: \u00E9\r\n\r\n`],
  ['an empty line before it', `\r\nPOST /jobs HTTP/1.1\r\n${HOST}\r\n`],
  ['a head that is too long', `POST /jobs HTTP/1.1\r\n${HOST}X: ${'x'.repeat(5_000)}\r\n\r\n`],
])('[C-10] nothing is said of %s', (_name, text) => {
  expect(framed(text)).toBeUndefined()
})

test('[C-10] a head is looked through once, however many lines it has', () => {
  const text = `POST /jobs HTTP/1.1\r\n${'a: b\r\n'.repeat(500)}X: \u00E9\r\n\r\n`
  // Two ways to read a line would be 2⁵⁰⁰ to read all of them. The time only ends what would have no end.
  expect(runInNewContext('read()', { read: () => framed(text) }, { timeout: 30_000 })).toBeUndefined()
})

test('[C-10] what is known as a whole request is exactly one for Node as well', async () => {
  const seen: string[] = []
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    seen.push(`${request.method} ${request.url}`)
    request.resume()
    response.end()
  })
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const SENTINEL = `GET /sentinel HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`
  const line = fc.constantFrom(
    'Content-Length: 4',
    'content-length:4',
    'CONTENT-LENGTH: 0',
    'Content-Length: 04',
    'Content-Length:  4',
    'Content-Length: 4 ',
    'X-Content-Length: 9',
    'Transfer-Encoding: chunked',
    'Transfer_Encoding: chunked',
    'Connection: keep-alive',
    'Keep-Alive: x',
    'X: a b',
    'X:',
    'X: \t',
    ' folded: 1',
    'Host: x',
  )
  const message = fc
    .tuple(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD'), fc.array(line, { maxLength: 4 }), fc.nat(6))
    .map(([method, lines, body]) => [`${method} /it HTTP/1.1`, ...lines, '', 'GET /x'.slice(0, body)].join('\r\n'))
  let known = 0
  await fc.assert(
    fc.asyncProperty(message, async (text) => {
      const request = framed(text)
      if (request === undefined) return
      known += 1
      seen.length = 0
      const socket = connect(port, '127.0.0.1')
      socket.resume()
      socket.write(`${text.slice(0, request.end)}${SENTINEL}`, 'latin1')
      await once(socket, 'close')
      expect(seen).toEqual([`${request.method} ${request.url}`, 'GET /sentinel'])
    }),
    { numRuns: 400, seed: 7 },
  )
  expect(known).toBeGreaterThan(20)
})
