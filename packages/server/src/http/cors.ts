import type { FastifyInstance, FastifyReply } from 'fastify'
import { HEADERS } from '@impresario/protocol'
import { originsIn } from '../runtime/text-checks.ts'

const METHODS = 'GET, POST, PUT, PATCH, DELETE'
const ALLOWED_HEADERS = [
  'content-type',
  'authorization',
  ...HEADERS.clientToken,
  HEADERS.idempotencyKey,
  HEADERS.traceparent,
  HEADERS.tracestate,
].join(', ')
const EXPOSED_HEADERS = [HEADERS.nextCursor, HEADERS.lookedBackTo, 'retry-after', 'etag', 'location'].join(', ')
/** Browsers ask again after ten minutes. */
const PREFLIGHT_S = '600'

/**
 * Lets web pages of the given origins call. Without any, nothing is said about origins and browsers refuse, which is what
 * an API for programs wants. Cookies are never used, so credentials are never allowed.
 */
export function allowOrigins(app: FastifyInstance, setting: string): void {
  const origins = new Set(originsIn(setting))
  if (origins.size === 0) return
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    if (!origins.has('*')) addVary(reply, 'Origin')
    const isAllowed = origin !== undefined && (origins.has('*') || origins.has(origin))
    if (!isAllowed) {
      done()
      return
    }
    void reply.headers({
      'access-control-allow-origin': origins.has('*') ? '*' : origin,
      'access-control-expose-headers': EXPOSED_HEADERS,
      'cross-origin-resource-policy': 'cross-origin',
    })
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      done()
      return
    }
    void reply
      .headers({
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': ALLOWED_HEADERS,
        'access-control-max-age': PREFLIGHT_S,
      })
      .code(204)
      .send()
  })
}

/** Whether answers say that they may differ by origin. */
export function variesByOrigin(setting: string): boolean {
  const origins = originsIn(setting)
  return origins.length > 0 && !origins.includes('*')
}

/** Adds to what is there: several parts of the server may make an answer depend on a header. */
export function addVary(reply: FastifyReply, name: string): void {
  const known = reply.getHeader('vary')
  if (typeof known !== 'string' || known === '') void reply.header('vary', name)
  else if (
    known !== '*' &&
    !known
      .toLowerCase()
      .split(/\s*,\s*/)
      .includes(name.toLowerCase())
  ) {
    void reply.header('vary', `${known}, ${name}`)
  }
}
