import { createServer as createReceiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { guardRoutes } from '../http/access.ts'
import type { ClientRole } from '../http/access.ts'
import { collectRoutes } from './api-document.ts'
import { ClientAuth, hashToken } from '../auth/auth.ts'
import { createClock } from '../runtime/clock.ts'
import { settingsOf } from '../config/config.ts'
import { createHttp } from '../http/http.ts'
import { SILENT } from '../runtime/log.ts'
import { createRandom } from '../runtime/random.ts'
import { SecretKey } from '../config/secret-key.ts'
import { registerWebhookRoutes } from './webhook-routes.ts'
import { createWebhooks, webhookPolicy } from '../orchestrator/webhook-service.ts'
import type { WebhookService } from '../orchestrator/webhook-service.ts'

const CLIENTS: readonly (readonly [string, ClientRole])[] = [
  ['acme', 'client'],
  ['acme-viewer', 'viewer'],
  ['other', 'client'],
  ['root', 'admin'],
]

const settings = settingsOf({ webhookAllowHttp: true, webhookAllowPrivate: true, webhookAllowedPorts: '1024-65535' })

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  readonly list: readonly Readonly<Record<string, unknown>>[]
}

/** The routes alone, with a real receiver whose answer the test chooses. */
class Stage {
  readonly app: FastifyInstance
  readonly service: WebhookService
  readonly storage
  status = 200
  readonly #receiver = createReceiver((request, reply) => {
    request.resume().on('end', () => reply.writeHead(this.status).end())
  })

  constructor() {
    const clock = createClock()
    this.storage = testStorage({ now: () => clock.now() })
    const ports = { storage: this.storage, clock, random: createRandom(() => clock.now()), log: SILENT }
    const secretKey = new SecretKey(Buffer.alloc(32, 7))
    this.service = createWebhooks(settings, webhookPolicy(settings), { ...ports, secretKey })
    this.app = createHttp({ bodyLimitBytes: 100_000, log: SILENT })
    guardRoutes(
      this.app,
      new ClientAuth(CLIENTS.map(([id, role]) => ({ tokens: [hashToken(`token-of-${id}`)], client: { id }, role }))),
    )
    collectRoutes(this.app, '0')
    const { webhooks } = this.service
    const engine = { readJob: (id: string) => this.storage.read('job', id) }
    void this.app.register(async (scope) => registerWebhookRoutes(scope, { engine, webhooks, clock }), {
      prefix: '/api/v1',
    })
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#receiver.listen(0, '127.0.0.1', resolve)
    })
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#receiver.address() as AddressInfo).port}/hook`
  }

  async close(): Promise<void> {
    await this.app.close()
    await new Promise((resolve) => {
      this.#receiver.close(resolve)
      this.#receiver.closeAllConnections()
    })
  }

  async call(client: string, method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const answer = await this.app.inject({
      method,
      url: `/api/v1/webhooks${path}`,
      headers: { 'x-client-token': `token-of-${client}` },
      ...(body === undefined ? {} : { payload: body }),
    })
    const parsed: unknown = JSON.parse(answer.payload)
    return {
      status: answer.statusCode,
      headers: answer.headers,
      body: parsed as Answer['body'],
      list: Array.isArray(parsed) ? parsed : [],
    }
  }

  /** A message of `acme`, sent or tried. */
  async send(messageId: string, jobId = 'job-1', clientId = 'acme'): Promise<void> {
    const body = { event: 'job_finished', job_id: jobId }
    const payload = { messageId, url: this.url, clientId, jobId, event: 'job_finished', at: 1_700_000_000_000, body }
    await this.storage.commit({
      enqueue: [{ queue: 'outbox', id: messageId, lane: clientId, priority: 0, delayMs: 0, payload }],
    })
    await this.service.sender.tick()
  }

  async endpointId(): Promise<string> {
    const { list } = await this.call('acme', 'GET', '/endpoints')
    return String(list[0]?.['id'])
  }
}

let stage: Stage
beforeEach(async () => {
  stage = new Stage()
  await stage.open()
})
afterEach(() => stage.close())

test('[H-07] deliveries are listed, read and sent again by the API', async () => {
  stage.status = 410
  await stage.send('msg_1')
  await stage.send('msg_2', 'job-2')
  const { status, list } = await stage.call('acme', 'GET', '/deliveries')
  expect([status, list.map(({ id }) => id)]).toEqual([200, ['msg_2', 'msg_1']])
  expect(list[1]).toMatchObject({ owner: 'acme', job_id: 'job-1', event: 'job_finished', status: 'failed' })
  expect(list[1]).not.toHaveProperty('body')
  const one = await stage.call('acme', 'GET', '/deliveries/msg_1')
  expect(one.body).toMatchObject({
    body: { event: 'job_finished', job_id: 'job-1' },
    created_at: 1_700_000_000,
    attempts: [{ status: 410, error: 'The receiver answered 410.' }],
    next_attempt_at: null,
  })
  stage.status = 200
  const again = await stage.call('acme', 'POST', '/deliveries/msg_1/redeliver')
  expect([again.status, again.body['status']]).toEqual([202, 'pending'])
  await stage.service.sender.tick()
  expect((await stage.call('acme', 'GET', '/deliveries/msg_1')).body['status']).toBe('delivered')
})

test('[H-07] the list is filtered and goes page by page', async () => {
  for (const n of [1, 2, 3, 4, 5]) await stage.send(`msg_${n}`, `job-${n % 2}`)
  const ids = async (query: string): Promise<unknown[]> =>
    (await stage.call('acme', 'GET', `/deliveries?${query}`)).list.map(({ id }) => id)
  expect(await ids('job_id=job-0')).toEqual(['msg_4', 'msg_2'])
  expect(await ids('status=delivered&event=job_finished')).toHaveLength(5)
  expect(await ids('status=failed')).toEqual([])
  expect(await ids('event=job_failed')).toEqual([])
  const first = await stage.call('acme', 'GET', '/deliveries?limit=3')
  const cursor = String(first.headers['x-next-cursor'])
  expect(first.headers['link']).toContain('rel="next"')
  const second = await stage.call('acme', 'GET', `/deliveries?limit=3&cursor=${cursor}`)
  expect([...first.list, ...second.list].map(({ id }) => id)).toEqual(['msg_5', 'msg_4', 'msg_3', 'msg_2', 'msg_1'])
  expect(second.headers).not.toHaveProperty('x-next-cursor')
  for (const bad of ['status=odd', 'limit=0', 'limit=101', 'limit=x', 'cursor=%00', 'job_id=']) {
    expect((await stage.call('acme', 'GET', `/deliveries?${bad}`)).status).toBe(bad === 'job_id=' ? 200 : 400)
  }
})

test('[H-07] an endpoint tells how it fares, and can be enabled', async () => {
  stage.status = 410
  await stage.send('msg_1')
  const id = await stage.endpointId()
  expect((await stage.call('acme-viewer', 'GET', `/endpoints/${id}`)).status).toBe(404)
  const read = await stage.call('acme', 'GET', `/endpoints/${id}`)
  expect(read.body).toMatchObject({
    id,
    owner: 'acme',
    address: stage.url,
    status: 'disabled',
    disabled_reason: 'gone',
    consecutive_failures: 1,
    last_error: 'The receiver answered 410.',
  })
  const enabled = await stage.call('acme', 'POST', `/endpoints/${id}/enable`)
  expect(enabled.body).toMatchObject({ status: 'active', disabled_at: null, consecutive_failures: 0 })
})

test('[H-07] secrets are given, and replaced, to clients but not to viewers', async () => {
  const declared = await stage.call('acme', 'POST', '/endpoints', { url: `${stage.url}?x=1` })
  expect([declared.status, declared.body['address']]).toEqual([200, stage.url])
  const id = String(declared.body['id'])
  const given = await stage.call('acme', 'GET', `/endpoints/${id}/secret`)
  expect(given.headers['cache-control']).toBe('no-store')
  expect(given.body['secret']).toMatch(/^whsec_/)
  expect(given.body).toMatchObject({ endpoint_id: id, old_secret_until: null })
  const rotated = await stage.call('acme', 'POST', `/endpoints/${id}/rotate-secret`)
  expect(rotated.body['secret']).not.toBe(given.body['secret'])
  expect(Number(rotated.body['old_secret_until'])).toBeGreaterThan(Date.now() / 1_000 + 86_000)
  const leaked = await stage.call('acme', 'POST', `/endpoints/${id}/rotate-secret`, { overlap: 0 })
  expect(leaked.body['old_secret_until']).toBeNull()
  for (const body of [{ overlap: -1 }, { overlap: 604_801 }, { overlap: 'x' }, { overlaps: 1 }]) {
    expect((await stage.call('acme', 'POST', `/endpoints/${id}/rotate-secret`, body)).status).toBe(400)
  }
  for (const [method, path] of COMMANDS) {
    expect((await stage.call('acme-viewer', method, path.replace('ID', id), DECLARATION[path])).status).toBe(403)
  }
})

const COMMANDS = [
  ['GET', '/endpoints/ID/secret'],
  ['POST', '/endpoints/ID/rotate-secret'],
  ['POST', '/endpoints/ID/enable'],
  ['POST', '/endpoints'],
  ['POST', '/deliveries/ID/redeliver'],
] as const

const DECLARATION: Readonly<Record<string, object>> = { '/endpoints': { url: 'https://hooks.example/' } }

describe('[H-07] other clients', () => {
  const ROUTES = [
    ['GET', '/deliveries/msg_1'],
    ['POST', '/deliveries/msg_1/redeliver'],
    ['GET', '/endpoints/ID'],
    ['POST', '/endpoints/ID/enable'],
    ['GET', '/endpoints/ID/secret'],
    ['POST', '/endpoints/ID/rotate-secret'],
  ] as const

  test.each(ROUTES)('[H-07] %s %s does not exist for another client', async (method, path) => {
    await stage.send('msg_1')
    const url = path.replace('ID', await stage.endpointId())
    const foreign = await stage.call('other', method, url)
    expect([foreign.status, foreign.body['code']]).toEqual([404, 'NOT_FOUND'])
    const missing = await stage.call('other', method, path.replace('ID', 'ep_0').replace('msg_1', 'msg_0'))
    expect(foreign.body['error']).toEqual(missing.body['error'])
    expect((await stage.call('root', method, url)).status).toBeLessThan(300)
    expect((await stage.call('nobody', method, url)).status).toBe(401)
  })

  test('[H-07] lists hold what is one’s own; an admin sees all, or those of one client', async () => {
    await stage.send('msg_1')
    await stage.send('msg_2', 'job-2', 'other')
    const count = async (client: string, path: string): Promise<number> =>
      (await stage.call(client, 'GET', path)).list.length
    for (const list of ['/deliveries', '/endpoints']) {
      expect(await count('acme', list)).toBe(1)
      expect(await count('acme-viewer', list)).toBe(0)
      expect(await count('root', list)).toBe(2)
      expect(await count('root', `${list}?owner=acme`)).toBe(1)
      expect((await stage.call('acme', 'GET', `${list}?owner=other`)).status).toBe(403)
    }
  })
})

test('[H-07] an endpoint with an address that may not be sent to is refused when it is named', async () => {
  for (const url of ['ftp://example.com/', 'https://169.254.169.254/', 'nonsense', 'https://a:b@example.com/']) {
    const { status, body } = await stage.call('acme', 'POST', '/endpoints', { url })
    expect([status, body['code']]).toEqual([400, 'INVALID_REQUEST'])
  }
  expect((await stage.call('acme', 'POST', '/endpoints', {})).status).toBe(400)
})

test('[H-07] a list of ports that cannot be read stops the start', () => {
  expect(() => settingsOf({ webhookAllowedPorts: 'all' })).toThrow('webhookAllowedPorts is "all"')
  expect(webhookPolicy(settingsOf())).toEqual({
    allowHttp: false,
    allowPrivate: false,
    allowedPorts: [],
    allowLoopback: false,
  })
})
