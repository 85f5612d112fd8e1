import { once } from 'node:events'
import { createServer as createReceiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClock } from './clock.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const HOUR_MS = 3_600_000
const OPEN = { webhookAllowHttp: true, webhookAllowPrivate: true, webhookAllowedPorts: '1024-65535' }

/** How far the machine's clock was set while the server runs. */
let shiftMs = 0
let app: TestServer
const wall = (): number => Date.now() + shiftMs

beforeEach(async () => {
  shiftMs = 0
  app = await startTestServer({ settings: OPEN, clock: createClock({ wall, passed: () => performance.now() }) })
})
afterEach(() => app.server.stop())

/** Gives the header of the one message that comes. */
async function timestampOf(send: (url: string) => Promise<unknown>): Promise<number> {
  const receiver = createReceiver((_request, reply) => reply.writeHead(204).end())
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const taken = once(receiver, 'request')
  await send(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`)
  const [request] = (await taken) as [{ readonly headers: Readonly<Record<string, string>> }]
  receiver.close()
  receiver.closeAllConnections()
  return Number(request.headers['webhook-timestamp']) * 1_000
}

test.each([8 * HOUR_MS, -8 * HOUR_MS])(
  '[H-07] a webhook is signed with the time of day, also after the clock was set by %d ms',
  async (ms) => {
    shiftMs = ms
    const at = await timestampOf(async (url) => {
      const jobId = await app.createJob('ask', { webhook_url: url })
      await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)
    })
    expect(Math.abs(at - wall())).toBeLessThan(60_000)
  },
)

test('[H-08] links to decide end by the time of day', async () => {
  const jobId = await app.createJob('ask')
  await expect
    .poll(async () => (await app.client('GET', `/api/v1/jobs/${jobId}`)).body['status'])
    .toBe('waiting_for_human')
  const question = await app.client('GET', `/api/v1/jobs/${jobId}/approval`)
  const expiresAt = Number(question.body['urls_expire_at']) * 1_000
  const link = new URL(String(question.body['url']))
  expect((await app.call('GET', link.pathname + link.search)).status).toBe(200)
  shiftMs = expiresAt - Date.now() + 60_000
  expect((await app.call('GET', link.pathname + link.search)).status).toBe(401)
  const later = await app.client('GET', `/api/v1/jobs/${jobId}/approval`)
  expect(Number(later.body['urls_expire_at']) * 1_000).toBeGreaterThan(wall())
})

test('[H-03] tokens of workers end by the time of day', async () => {
  const headers = { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w1' }
  const { body } = await app.call('POST', '/_worker/auth/token', { headers })
  await app.register('w1')
  const beat = (): Promise<{ status: number }> =>
    app.call('PATCH', '/_worker/workers/w1', { headers: { 'x-worker-token': String(body['access_token']) } })
  expect((await beat()).status).toBe(200)
  shiftMs = 2 * HOUR_MS
  expect((await beat()).status).toBe(401)
})

test('[C-08] ids and times of jobs follow a clock that was set, or a machine that slept', async () => {
  shiftMs = 72 * HOUR_MS
  const time = Math.floor(wall()).toString(16).padStart(12, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7abc-8abc-0123456789ab`
  expect(await app.createJob('ask', { job_id: id })).toBe(id)
  const { body } = await app.client('GET', `/api/v1/jobs/${await app.createJob('ask')}`)
  expect(Math.abs(Number(body['created_at']) * 1_000 - wall())).toBeLessThan(60_000)
})
