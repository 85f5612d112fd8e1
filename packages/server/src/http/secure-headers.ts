import type { FastifyInstance } from 'fastify'

/**
 * What every answer says to a browser that should come across it. Routes with pages of their own set other values.
 *
 * Answers hold what is one client's own, so no cache keeps them; they are data, so nothing in them may run, be framed or
 * be taken for another type.
 */
export const SECURE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** A year. Only over TLS: without it the header means nothing, and a browser must not believe it. */
export const TRANSPORT_SECURITY = 'max-age=31536000'

/** Before everything else, so that refusals have them too. */
export function secureHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(SECURE_HEADERS)
    if (request.protocol === 'https') void reply.header('strict-transport-security', TRANSPORT_SECURITY)
    done()
  })
}
