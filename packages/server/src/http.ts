import type { IncomingMessage, ServerOptions } from 'node:http'
import fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import type { Log } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { BATCH_BOUNDS, BODY_BOUNDS, checkJsonText } from './json-guard.ts'
import { createErrorHandler, pathOf, sendProblem } from './problem.ts'
import { SECURE_HEADERS } from './secure-headers.ts'
import type { TlsOptions } from './tls.ts'
import { OfferedMessage } from './upgrade.ts'

export interface HttpOptions {
  readonly bodyLimitBytes: number
  readonly log: Log
  /** Proxies whose word about the caller's address is taken. */
  readonly trustProxy?: string | false
  /** Where a request goes instead of where it was sent. */
  readonly rewriteUrl?: (url: string) => string
  /** Speak HTTPS with these. */
  readonly tls?: TlsOptions | undefined
}

/** Paths whose bodies hold many items. */
const BATCHES = /\/(?:batch|results|quarantine\/retry|quarantine\/discard)(?:\?|$)/

/** Fastify with our limits, our parser and our errors; the routes are added by others. */
export function createHttp({
  bodyLimitBytes,
  log,
  rewriteUrl = (url) => url,
  tls,
  trustProxy = false,
}: HttpOptions): FastifyInstance {
  const answerError = createErrorHandler(log)
  const app = fastify({
    logger: false,
    bodyLimit: bodyLimitBytes,
    trustProxy,
    requestTimeout: LIMITS.requestTimeoutMs,
    keepAliveTimeout: LIMITS.keepAliveMs,
    // A stop ends the waits first; whatever is left then may be cut.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Asking for the head of a poll would take a task and throw it away.
    exposeHeadRoutes: false,
    rewriteUrl: ({ url = '/' }: IncomingMessage) => rewriteUrl(url),
    routerOptions: {
      maxParamLength: 1_024,
      ignoreTrailingSlash: true,
      // Every value is one text, also when a name is repeated.
      querystringParser: (query) => Object.fromEntries(new URLSearchParams(query)),
    },
    frameworkErrors: (error, request, reply) => {
      // No hook has seen this request.
      void reply.headers(SECURE_HEADERS)
      answerError(error, request, reply)
    },
    ...transport(tls),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, strict: false } },
  })
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = String(body)
    if (text === '') {
      done(null, undefined)
      return
    }
    try {
      checkJsonText(text, BATCHES.test(request.url) ? BATCH_BOUNDS : BODY_BOUNDS)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    void parse(request, text, done)
  })
  // Answers are described by schemas for readers; they are written as they are, and fast.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer))
  app.setErrorHandler(answerError)
  answerUnknownRoutes(app)
  return app
}

const LATE_CHECK_MS = 2_000

/** Fastify gives another type of server for HTTPS, which differs from the plain one in nothing that we use. */
function transport(tls: TlsOptions | undefined): { readonly http: ServerOptions } {
  // Node looks for those who are late every 30 seconds by itself: a bound of ten would mean up to forty.
  const bounds = {
    headersTimeout: LIMITS.headersTimeoutMs,
    connectionsCheckingInterval: LATE_CHECK_MS,
    IncomingMessage: OfferedMessage,
  }
  return tls === undefined ? { http: bounds } : ({ https: { ...bounds, ...tls } } as unknown as { http: ServerOptions })
}

/** 404, or 405 where the path exists with another method. */
function answerUnknownRoutes(app: FastifyInstance): void {
  const routes: { readonly method: string; readonly pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    if (url.includes('*')) return
    const pattern = new RegExp(
      `^${url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll(/:[^/]+/g, '[^/]+')}/?$`,
    )
    for (const one of [method].flat()) routes.push({ method: one, pattern })
  })
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request)
    const others = routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
    if (others.length === 0) {
      sendProblem(request, reply, new ImpresarioError('NOT_FOUND', 'There is nothing here.'))
      return
    }
    void reply.header('allow', [...new Set(others)].join(', '))
    sendProblem(request, reply, new ImpresarioError('METHOD_NOT_ALLOWED', `${request.method} is not possible here.`))
  })
}
