import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterEach, expect, test } from 'vitest'
import { SILENT } from '../runtime/log.ts'
import { OpenWaits } from './connection.ts'
import type { OpenWait } from './connection.ts'
import { createHttp } from './http.ts'

let app: FastifyInstance | undefined
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await app?.close()
})

async function start(waits: OpenWaits): Promise<string> {
  app = createHttp({ bodyLimitBytes: 1_000, log: SILENT })
  app.get('/wait', async (_request, reply) => {
    const wait = waits.begin(reply)
    if (!wait.signal.aborted) await new Promise((resolve) => wait.signal.addEventListener('abort', resolve))
    wait.end()
    return 'over'
  })
  return app.listen({ host: '127.0.0.1', port: 0 })
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

test('[C-10] requests that wait have a bound in bytes with their heads, and who is refused is told when to come again', async () => {
  const waits = new OpenWaits(100_000)
  const address = await start(waits)
  const socket = connect(Number(new URL(address).port), '127.0.0.1')
  socket.on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
  // Over one connection, and each with a long head.
  socket.write(`GET /wait HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(8_000)}\r\n\r\n`.repeat(20))
  await until(() => waits.isFull)
  expect(waits.size).toBe(5)
  const refused = await fetch(`${address}/wait`)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
  expect(await refused.json()).toMatchObject({ code: 'OVERLOADED' })
  socket.destroy()
  await until(() => waits.size === 0)
  expect(waits.isFull).toBe(false)
})

test('[C-10] a poll counts for what it takes, once', () => {
  const waits = new OpenWaits(10_000)
  const poll: OpenWait = { caller: undefined, workerId: 'w', headers: {}, stop: () => {}, cut: () => {} }
  waits.add(poll)
  expect(waits.isFull).toBe(false)
  waits.add({ ...poll })
  expect(waits.isFull).toBe(true)
  waits.remove(poll)
  waits.remove(poll)
  expect([waits.isFull, waits.size]).toEqual([false, 1])
})
