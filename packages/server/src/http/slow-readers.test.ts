import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { createHttp } from './http.ts'
import { SILENT } from '../runtime/log.ts'
import { SlowReaders, watchReaders } from './slow-readers.ts'
import type { ReaderBounds } from './slow-readers.ts'

/** More than the buffers of the operating system take on both sides. */
const LONG = 'x'.repeat(32_000_000)
const REQUEST = 'GET /long HTTP/1.1\r\nhost: x\r\n\r\n'

let app: FastifyInstance | undefined
const sockets: Socket[] = []
/** Answers without an end that are being made. */
const open = new Set<Readable>()
/** Answers that are not given. */
const answers: ServerResponse[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  answers.length = 0
  await app?.close()
})

async function start(bounds: Partial<ReaderBounds>): Promise<SlowReaders> {
  const readers = new SlowReaders(bounds)
  app = createHttp({ bodyLimitBytes: 1_000, log: SILENT })
  watchReaders(app, readers)
  app.get('/long', async () => LONG)
  app.get('/pieces', async () => {
    const read = (): void => {
      pieces.push(LONG.slice(0, 100_000))
    }
    const pieces = new Readable({ read })
    open.add(pieces)
    pieces.once('close', () => open.delete(pieces))
    return pieces
  })
  app.get('/slow', async (_request, reply) => {
    reply.hijack()
    answers.push(reply.raw)
  })
  app.get('/short', async () => 'short')
  await app.listen({ host: '127.0.0.1', port: 0 })
  return readers
}

/** Asks, and reads nothing. Resolves when the server has the answer ready. */
async function ask(text = REQUEST): Promise<Socket> {
  const address = app?.server.address()
  const socket = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  socket.on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
  socket.pause()
  socket.write(text)
  return socket
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

const openCount = (): Promise<number> =>
  new Promise((resolve) => {
    app?.server.getConnections((_error, count) => resolve(count))
  })

test('[C-10] of answers in pieces that were asked for at once none is left when the connection is gone', async () => {
  await start({})
  const socket = await ask('GET /pieces HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20))
  await until(() => open.size === 20)
  socket.destroy()
  await until(() => open.size === 0)
  expect(open.size).toBe(0)
})

test('[C-10] who reads nothing of an answer in pieces is cut off, also where it has waited for another one', async () => {
  await start({ stallMs: 50 })
  await ask('GET /short HTTP/1.1\r\nhost: x\r\n\r\nGET /pieces HTTP/1.1\r\nhost: x\r\n\r\n')
  await until(() => open.size === 1)
  await until(() => open.size === 0)
  expect(open.size).toBe(0)
})

test('[C-10] pieces that nobody waits for count until their answer is over, and beyond the bound its reader goes', async () => {
  const readers = await start({ bytesMax: 1_000 })
  const socket = await ask('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2))
  await until(() => answers.length === 2)
  const [first, second] = answers
  if (first === undefined || second === undefined) throw new Error('There are no answers.')
  readers.addPiece(first, 300, 0)
  readers.addPiece(second, 400, 0)
  readers.addPiece(first, 300, 500)
  expect(readers.bytes).toBe(1_000)
  readers.addPiece(second, 100, 500)
  // Nobody is slow yet.
  expect([readers.bytes, first.req.socket.destroyed]).toEqual([1_100, false])
  readers.addPiece(second, 100, 1_000)
  expect([readers.bytes, first.req.socket.destroyed]).toEqual([600, true])
  await until(() => readers.bytes === 0)
  socket.destroy()
})

test('[C-10] [K-12] a long answer within the process has no reader that could be slow', async () => {
  const readers = await start({})
  const reply = await app?.inject({ method: 'GET', url: '/long' })
  expect([reply?.statusCode, reply?.payload.length, readers.bytes]).toEqual([200, LONG.length, 0])
})

test('[C-10] who reads nothing of an answer is cut off, and what waited for it is free', async () => {
  const readers = await start({ stallMs: 50 })
  await ask()
  await until(() => readers.bytes > 0)
  await until(() => readers.bytes === 0)
  while ((await openCount()) > 0) await new Promise(setImmediate)
  expect(readers.bytes).toBe(0)
})

test('[C-10] who reads more slowly than the least pace is cut off although he reads', async () => {
  const readers = await start({ stallMs: 0, bytesPerSecondMin: 1e12 })
  const socket = await ask()
  await until(() => readers.bytes > 0)
  const closed = once(socket, 'close')
  socket.resume()
  await closed
  expect(socket.bytesRead).toBeLessThan(LONG.length)
})

test('[C-10] when all answers together take too much, the oldest reader goes; those who read get everything', async () => {
  const readers = new SlowReaders({ bytesMax: 100 })
  app = createHttp({ bodyLimitBytes: 1_000, log: SILENT })
  let now = 0
  const begun: Socket[] = []
  app.addHook('onSend', async (_request, reply, payload) => {
    readers.begin(reply.raw, 60, now)
    begun.push(reply.raw.req.socket)
    return payload
  })
  app.get('/long', async () => LONG)
  await app.listen({ host: '127.0.0.1', port: 0 })
  await ask()
  await until(() => begun.length === 1)
  now += 500
  await ask()
  await until(() => begun.length === 2)
  // Nobody has had the time to read yet.
  expect(begun.map(({ destroyed }) => destroyed)).toEqual([false, false])
  now += 600
  const reader = await ask()
  await until(() => begun.length === 3)
  expect(begun.map(({ destroyed }) => destroyed)).toEqual([true, false, false])
  expect(readers.bytes).toBe(120)
  let read = 0
  reader.on('data', (chunk: Buffer) => {
    read += chunk.length
  })
  reader.resume()
  await until(() => read > LONG.length)
  await until(() => readers.bytes === 60)
})

test('[C-10] of many requests over one connection nothing is held once that connection is gone', async () => {
  const readers = await start({ stallMs: 3_600_000 })
  // All in one piece: while an answer waits to be read, Node reads no further requests.
  const socket = await ask(REQUEST.repeat(5))
  await until(() => readers.bytes > 4 * LONG.length)
  socket.destroy()
  await until(() => readers.bytes === 0)
  expect(readers.bytes).toBe(0)
})

test('[C-10] a connection that was read to its end is kept, and takes the next request', async () => {
  await start({ stallMs: 3_600_000 })
  const address = app?.server.address()
  const base = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  for (let time = 0; time < 3; time += 1) {
    expect(await (await fetch(`${base}/long`)).text()).toHaveLength(LONG.length)
    expect(await (await fetch(`${base}/short`)).text()).toBe('short')
  }
})
