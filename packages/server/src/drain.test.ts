import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createClock } from './runtime/clock.ts'
import { CLIENT_TOKEN, startTestServer, WORKER_TOKEN } from './server.fixture.ts'
import type { TestServer } from './server.fixture.ts'

let app: TestServer | undefined
afterEach(() => app?.server.stop())

interface Drainable {
  readonly app: TestServer
  readonly drained: () => void
  readonly left: () => void
}

/** A server that drains until it is told that the time is up, and then waits for the last ones until it is told again. */
async function drainable(): Promise<Drainable> {
  const clock = createClock()
  const gate = (): { readonly opened: Promise<void>; readonly open: () => void } => {
    let open = (): void => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    return { opened, open }
  }
  const [time, last] = [gate(), gate()]
  const sleep: typeof clock.sleep = (ms, signal) => {
    if (ms === 77_000) return time.opened
    return ms === 20 ? last.opened : clock.sleep(ms, signal)
  }
  app = await startTestServer({ clock: { ...clock, sleep }, settings: { shutdownDrainSeconds: 77 } })
  return { app, drained: time.open, left: last.open }
}

test('[I-07] a server that is told to stop is not ready at once, and serves everybody until it has drained', async () => {
  const { app: server, drained, left } = await drainable()
  await server.register('w')
  const headers = { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w' }
  const socket = new WebSocket(`${server.address.replace('http', 'ws')}/_worker/ws`, { headers })
  await once(socket, 'open')
  const closed = once(socket, 'close')
  const polling = server.poll('w', 60)
  const waiting = server.ended(await server.createJob('ask'))
  await expect.poll(() => server.server.waiting).toBe(2)
  const stopping = server.server.stop()
  // Who waits is let go, and finds another way.
  const poll = await polling
  expect([poll.status, poll.headers.get('connection')]).toEqual([204, 'close'])
  expect(await waiting).toMatchObject({ status: 200, body: { status: 'waiting_for_human' } })
  expect((await closed)[0]).toBe(1_001)
  const ready = await server.call('GET', '/_public/ready')
  expect([ready.status, ready.headers.get('connection')]).toEqual([503, 'close'])
  // Everything else goes on: a job is created, handed out and finished.
  const jobId = await server.createJob('echo')
  const task = await server.poll('w', 60)
  expect(task).toMatchObject({ status: 200, body: { job_id: jobId } })
  const result = { task_id: task.body.task_id, job_id: jobId, status: 'success' }
  await server.worker('POST', '/_worker/tasks/result', result, { 'x-worker-id': 'w' })
  expect((await server.ended(jobId)).body).toMatchObject({ status: 'finished' })
  // Who asks for more than there is does not wait for long.
  expect((await server.poll('w', 60)).status).toBe(204)
  drained()
  left()
  await stopping
  await expect(server.call('GET', '/_public/live')).rejects.toThrow('fetch failed')
})

test('[I-07] when the door is shut, those who are in are served and nobody new is let in', async () => {
  const { app: server, drained, left } = await drainable()
  const socket = connect(Number(new URL(server.address).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`GET /api/v1/jobs HTTP/1.1\r\nhost: here\r\n`)
  const stopping = server.server.stop()
  drained()
  const isRefused = (): Promise<boolean> =>
    server.call('GET', '/_public/live').then(
      () => false,
      () => true,
    )
  await expect.poll(isRefused).toBe(true)
  socket.write(`x-client-token: ${CLIENT_TOKEN}\r\n\r\n`)
  expect(await text(socket)).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  left()
  await stopping
})

test('[I-07] a server that never listened has nobody to drain', async () => {
  app = await startTestServer()
  const port = Number(new URL(app.address).port)
  await expect(startTestServer({ settings: { apiPort: port, shutdownDrainSeconds: 600 } })).rejects.toMatchObject({
    code: 'INVALID_CONFIGURATION',
  })
})
