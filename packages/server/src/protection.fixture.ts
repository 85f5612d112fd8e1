import { request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '@impresario/core'
import { guardRoutes } from './http/access.ts'
import { createAdmission, pageBounds } from './limits/admission-service.ts'
import { ClientAuth, hashToken } from './auth/auth.ts'
import { settingsOf } from './config/config.ts'
import type { Settings } from './config/config.ts'
import { createHttp } from './http/http.ts'
import { SILENT } from './runtime/log.ts'
import { protectRoutes, trustedProxies } from './protection.ts'
import { MemoryRateLimiter } from './limits/rate-limiter.ts'
import type { RateLimiter } from './limits/rate-limiter.ts'

/** Time that moves when a test says so. */
export class HandClock implements Clock {
  ms = 1_700_000_000_000
  readonly now = (): number => this.ms
  readonly sleep = (): Promise<void> => Promise.resolve()
}

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface ProtectedApp {
  readonly app: FastifyInstance
  readonly clock: HandClock
  /** Over a real socket, and without any help with encodings. */
  readonly call: (
    method: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
    body?: Buffer | string,
  ) => Promise<RawAnswer>
}

export const TOKENS = { alpha: 'token-of-alpha-1', beta: 'token-of-beta-01' }
/** 2 kB of JSON. */
export const LONG = { items: Array.from({ length: 60 }, (_, index) => ({ index, text: `the item number ${index}` })) }

const hide = { hide: true }

const holds = new WeakMap<FastifyInstance, Set<() => void>>()
/** Ends the requests to `/hold` and `/open-hold`. */
export function holdsOf(app: FastifyInstance): ReadonlySet<() => void> {
  return holds.get(app) ?? new Set()
}

/** The real protection around a few routes. */
export async function startProtected(
  given: Partial<Settings> = {},
  limiter: RateLimiter = new MemoryRateLimiter(),
): Promise<ProtectedApp> {
  const settings = settingsOf({ trustProxy: 'loopback', ...given })
  const clock = new HandClock()
  const app = createHttp({ bodyLimitBytes: 65_536, log: SILENT, trustProxy: trustedProxies(settings.trustProxy) })
  const { admission, isBusy } = createAdmission(0, SILENT)
  protectRoutes(app, { settings, limiter, clock, log: SILENT, isOpen: false, admission, pages: pageBounds(), isBusy })
  guardRoutes(
    app,
    new ClientAuth([
      { tokens: [hashToken(TOKENS.alpha)], client: { id: 'alpha' }, role: 'client' },
      { tokens: [hashToken(TOKENS.beta)], client: { id: 'beta' }, role: 'viewer' },
    ]),
  )
  addRoutes(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { app, clock, call: (method, path, headers = {}, body = '') => send(port, method, path, headers, body) }
}

function addRoutes(app: FastifyInstance): void {
  const held = new Set<() => void>()
  holds.set(app, held)
  const hold = async (): Promise<object> => {
    await new Promise<void>((resolve) => held.add(resolve))
    return {}
  }
  app.get('/hold', { config: { access: 'viewer', scope: 'any' }, schema: hide }, hold)
  app.get('/open-hold', { config: { access: 'public' }, schema: hide }, hold)
  const open = { config: { access: 'public' }, schema: hide } as const
  app.get('/long', open, async () => LONG)
  app.get('/short', open, async () => ({ ok: true }))
  app.get('/tagged', open, async (_request, reply) => reply.header('etag', '"abc"').header('x-own', 'kept').send(LONG))
  app.get('/packed', open, async (_request, reply) =>
    reply.header('content-encoding', 'br').type('application/json').send(Buffer.alloc(2_000, 1)),
  )
  app.get('/events', open, async (_request, reply) =>
    reply.type('text/event-stream').send(Readable.from(['data: 1\n\n', 'data: 2\n\n'])),
  )
  app.get('/stream', open, async (_request, reply) =>
    reply.type('text/plain').send(Readable.from(Array.from({ length: 200 }, (_, line) => `line ${line}\n`))),
  )
  app.get('/binary', open, async (_request, reply) => reply.type('application/octet-stream').send(Buffer.alloc(2_000)))
  app.get('/keep', open, async (_request, reply) => reply.header('cache-control', 'no-transform').send(LONG))
  app.get('/large', open, async () => ({ text: 'lorem ipsum '.repeat(30_000) }))
  app.post('/echo', open, async (request) => ({ got: request.body }))
  app.get('/mine', { config: { access: 'viewer', scope: 'any' }, schema: hide }, async (request) => ({
    me: request.caller?.client.id,
  }))
  app.get('/beat', { config: { access: 'viewer', scope: 'any', rate: 'heartbeat' }, schema: hide }, async () => ({}))
  app.get('/poll', { config: { access: 'viewer', scope: 'any', rate: 'poll' }, schema: hide }, async (request) => {
    request.hasBrought = request.url.includes('brings')
    return {}
  })
}

function send(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer | string,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end(body)
  })
}
