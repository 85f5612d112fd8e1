import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { liftDeadline, setDeadlines } from './request-deadline.ts'

let server: Server
beforeEach(async () => {
  server = createServer((request, response) => {
    if (request.url === '/file') liftDeadline(request)
    request.resume()
    request.once('end', () => response.end('all of it'))
  })
  server.requestTimeout = 0
  setDeadlines(server, 100)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => server.closeAllConnections())

/** Sends a body in two halves, the second when told. */
async function slowly(path: string): Promise<{ readonly answer: Promise<string>; finish(): void }> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let text = ''
  const answer = new Promise<string>((resolve) => {
    socket.on('data', (bytes) => (text += bytes.toString()))
    socket.on('close', () => resolve(text))
    socket.on('error', () => resolve(text))
  })
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10\r\n\r\n12345`)
  return { answer, finish: () => socket.write('67890') }
}

test('[H-08] a body that does not come in time is answered with 408, and the connection is closed', async () => {
  const { answer } = await slowly('/')
  expect(await answer).toMatch(/^HTTP\/1\.1 408 .*"code":"REQUEST_TIMEOUT"/s)
})

test('[J-02] [H-08] a file may take longer', async () => {
  const late = await slowly('/')
  const file = await slowly('/file')
  // The other one has had its time by then.
  await late.answer
  file.finish()
  expect(await file.answer).toMatch(/^HTTP\/1\.1 200 .*all of it$/s)
})
