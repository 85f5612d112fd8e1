import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { whenOver } from '../http/answer-end.ts'
import { problemBody } from '../http/problem.ts'
import { SECURE_HEADERS } from '../http/secure-headers.ts'
import type { LoadShedding } from './load-shedding.ts'
import { RefusingConnections } from './refusing-connections.ts'

const RETRY_AFTER_S = 1
const REFUSAL = new ImpresarioError('OVERLOADED', 'There is more work than can be done in time.', {
  details: { retry_after_s: RETRY_AFTER_S },
})
const BODY = Buffer.from(JSON.stringify(problemBody(REFUSAL)))
/** Names and values by turns, as Node writes them out. */
const HEADER_LINES = Object.entries({
  ...SECURE_HEADERS,
  'content-type': 'application/json; charset=utf-8',
  'content-length': String(BODY.length),
  'retry-after': String(RETRY_AFTER_S),
})
const HEADERS = HEADER_LINES.flat()

/** The same as Node would write it. It need not say what time it is (RFC 9110, 6.6.1). */
const WHOLE_ANSWER = Buffer.concat([
  Buffer.from(
    [
      `HTTP/1.1 ${REFUSAL.status} ${STATUS_CODES[REFUSAL.status] ?? ''}`,
      ...HEADER_LINES.map(([name, value]) => `${name}: ${value}`),
      'connection: keep-alive',
      `keep-alive: timeout=${LIMITS.keepAliveMs / 1_000}`,
      '\r\n',
    ].join('\r\n'),
  ),
  BODY,
])

/**
 * Refuses requests for new work before anything looks at them, while `shedding` says so: no hook runs, no token is looked up and
 * no body is read. Web pages of other origins need headers for their refusals, and take the long way.
 */
export function refuseEarly(app: FastifyInstance, shedding: LoadShedding): void {
  const routes = new NewWorkRoutes()
  app.addHook('onRoute', (route) => routes.add(route))
  // When all others listen: those for whom a request is not meant must not hear of it.
  app.addHook('onReady', (done) => {
    guard(app.server, shedding, routes)
    done()
  })
}

function guard(server: Server, shedding: LoadShedding, routes: NewWorkRoutes): void {
  const listeners = server.rawListeners('request')
  server.removeAllListeners('request')
  const connections = new RefusingConnections(server, {
    isShedding: () => shedding.bound !== Infinity,
    isRefused: (request) => routes.has(request) && shedding.refuses(),
    answer: WHOLE_ANSWER,
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (routes.has(request)) {
      if (request.headers.origin === undefined && shedding.refuses()) {
        connections.refuse(request, response, () => {
          response.writeHead(REFUSAL.status, HEADERS)
          response.end(BODY)
        })
        return
      }
      connections.noteWork(request)
      shedding.began()
      whenOver(response, () => shedding.ended())
    }
    for (const listener of listeners) Reflect.apply(listener, server, [request, response])
  })
}

/** The paths that ask for more work to be done. */
class NewWorkRoutes {
  readonly #paths = new Set<string>()
  readonly #patterns: RegExp[] = []

  add({ method, url, config }: RouteOptions): void {
    if (config?.isNewWork !== true || ![method].flat().includes('POST')) return
    if (!/[:*]/.test(url)) {
      this.#paths.add(url)
      return
    }
    const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`)
    this.#patterns.push(new RegExp(`^${escaped.replaceAll(/:[^/]+/g, '[^/]+').replaceAll('*', '.*')}$`))
  }

  has({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
    if (method !== 'POST') return false
    const end = url.indexOf('?')
    const path = end === -1 ? url : url.slice(0, end)
    return this.#paths.has(path) || this.#patterns.some((pattern) => pattern.test(path))
  }
}
