import type { IncomingMessage, ServerOptions } from 'node:http'
import fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import type { Log } from '@impresario/core'
import { ImpresarioError, LIMITS, mustBePlainText, writeJson } from '@impresario/protocol'
import { acceptEmptyBodies } from './empty-body.ts'
import { readJsonBodies } from './json-body.ts'
import { answerParserError, refuseExpectations, refuseWithoutHost } from './parser-errors.ts'
import { createErrorHandler, pathOf, sendProblem } from './problem.ts'
import { setDeadlines } from './request-deadline.ts'
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
    // Files take longer than other requests: see `setDeadlines`.
    requestTimeout: 0,
    keepAliveTimeout: LIMITS.keepAliveMs,
    // Ours wait for nothing outside. A handler that holds up the process while it starts must not keep it from starting.
    pluginTimeout: 0,
    // A stop ends the waits first; whatever is left then may be cut.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Asking for the head of a poll would take a task and throw it away.
    exposeHeadRoutes: false,
    rewriteUrl: ({ url = '/' }: IncomingMessage) => rewriteUrl(url),
    routerOptions: {
      // A name of 1,024 bytes, each written as `%` and two digits.
      maxParamLength: 3 * LIMITS.fileKeyBytesMax,
      ignoreTrailingSlash: true,
      // Every value is one text, also when a name is repeated.
      querystringParser: (query) => Object.fromEntries(new URLSearchParams(query)),
    },
    frameworkErrors: (error, request, reply) => {
      // No hook has seen this request.
      void reply.headers(SECURE_HEADERS)
      answerError(error, request, reply)
    },
    clientErrorHandler: answerParserError,
    ...transport(tls),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, strict: false } },
  })
  readJsonBodies(app)
  acceptEmptyBodies(app)
  refuseOddNames(app)
  // Answers are described by schemas for readers; they are written as they are, and fast.
  app.setSerializerCompiler(() => writeJson)
  app.setErrorHandler(answerError)
  refuseExpectations(app.server)
  setDeadlines(app.server)
  refuseWithoutHost(app)
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
    // Node would refuse it with an empty answer; see `refuseWithoutHost`.
    requireHostHeader: false,
  }
  return tls === undefined ? { http: bounds } : ({ https: { ...bounds, ...tls } } as unknown as { http: ServerOptions })
}

/** Names in the path and in the query are looked up in the storage, or searched for there. */
function refuseOddNames(app: FastifyInstance): void {
  app.addHook('preValidation', (request, _reply, done) => {
    try {
      for (const part of [request.params, request.query]) {
        for (const [name, value] of Object.entries(part ?? {})) {
          if (typeof value === 'string') mustBePlainText(name, value)
        }
      }
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  })
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
