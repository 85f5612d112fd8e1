import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createReceiver } from 'node:http'
import type { IncomingHttpHeaders, Server as Receiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

interface Taken {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const OPEN = { webhookAllowHttp: true, webhookAllowPrivate: true, webhookAllowedPorts: '1024-65535' }

async function serve(settings: object = {}): Promise<TestServer> {
  const server = await startTestServer({ settings })
  closing.push(() => server.server.stop())
  return server
}

/** A receiver that gives the messages in the order in which they come. */
async function receive(): Promise<{ readonly url: string; next(): Promise<Taken> }> {
  const taken: Taken[] = []
  const receiver: Receiver = createReceiver((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      taken.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
      reply.writeHead(204).end()
      receiver.emit('taken')
    })
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  closing.push(() => {
    receiver.closeAllConnections()
    return new Promise((resolve) => receiver.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
    next: async () => {
      for (;;) {
        const first = taken.shift()
        if (first !== undefined) return first
        await once(receiver, 'taken')
      }
    },
  }
}

test('[H-07] the end of a job is told to its webhook, signed with the secret that the API gives', async () => {
  const receiver = await receive()
  const server = await serve(OPEN)
  const { body: endpoint } = await server.client('POST', '/api/v1/webhooks/endpoints', { url: receiver.url })
  const { body: given } = await server.client('GET', `/api/v1/webhooks/endpoints/${String(endpoint['id'])}/secret`)
  await server.register('w')
  const jobId = await server.createJob('echo', { webhook_url: `${receiver.url}?order=17`, metadata: { order: 17 } })
  const { body: task } = await server.poll('w')
  await server.worker('POST', '/_worker/tasks/result', {
    job_id: jobId,
    task_id: task.task_id,
    worker_id: 'w',
    result: { status: 'success', data: { said: 'hello' } },
  })
  const { headers, body } = await receiver.next()
  expect(JSON.parse(body)).toMatchObject({ event: 'job_finished', job_id: jobId, status: 'finished', error: null })
  const id = String(headers['webhook-id'])
  const key = Buffer.from(String(given['secret']).slice('whsec_'.length), 'base64')
  const content = `${id}.${String(headers['webhook-timestamp'])}.${body}`
  expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  // It is written down after the receiver has answered.
  for (;;) {
    const { status, body: delivery } = await server.client('GET', `/api/v1/webhooks/deliveries/${id}`)
    expect(status).toBe(200)
    if (delivery['status'] === 'pending') continue
    expect(delivery).toMatchObject({ status: 'delivered', job_id: jobId, attempts: [{ status: 204, error: null }] })
    break
  }
})

test('[H-07] a cancelled job is told too', async () => {
  const receiver = await receive()
  const server = await serve(OPEN)
  const jobId = await server.createJob('ask', { webhook_url: receiver.url })
  await server.client('POST', `/api/v1/jobs/${jobId}/cancel`)
  const events: unknown[] = []
  while (!events.includes('job_cancelled')) {
    const { body } = await receiver.next()
    const { event } = JSON.parse(body) as { event: unknown }
    events.push(event)
  }
  expect(events.every((event) => event === 'approval_requested' || event === 'job_cancelled')).toBe(true)
})

const WRONG = [
  ['http://example.com/', 'must begin with https://'],
  ['https://127.0.0.1/', 'points to this machine'],
  ['https://[::ffff:10.0.0.1]/', 'nothing may be sent to'],
  ['https://2852039166/', 'nothing may be sent to'],
  ['https://localhost/', 'points to this machine'],
  ['https://example.com:6379/', 'port 6379'],
  ['https://a:b@example.com/', 'user name or a password'],
  ['hook', 'is not an absolute URL'],
] as const

test('[H-07] a job whose webhook can never work is refused when it is created, with the reason', async () => {
  const server = await serve()
  for (const [url, reason] of WRONG) {
    const wrong = { blueprint: 'echo', webhook_url: url }
    const answers = [
      await server.client('POST', '/api/v1/jobs', wrong),
      await server.client('POST', '/api/v1/echo', { webhook_url: url }),
    ]
    for (const { status, body } of answers) {
      expect([status, body['code']]).toEqual([400, 'INVALID_REQUEST'])
      expect(body['error']).toContain(reason)
    }
    const batch = await server.client('POST', '/api/v1/jobs/batch', { jobs: [wrong, { blueprint: 'echo' }] })
    expect(batch.body['results']).toMatchObject([{ code: 'INVALID_REQUEST' }, { status: 'accepted' }])
  }
})
