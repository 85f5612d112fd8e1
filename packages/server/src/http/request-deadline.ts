import type { IncomingMessage, Server } from 'node:http'
import { LIMITS } from '@impresario/protocol'
import { answerParserError } from './parser-errors.ts'

const deadlines = new WeakMap<IncomingMessage, NodeJS.Timeout>()

/**
 * A request has to arrive within its time. Node has such a bound too, which holds for every request alike; files may take
 * longer (`liftDeadline`). The head of a request is bounded by Node, and what has no body has arrived with it.
 */
export function setDeadlines(server: Server, ms: number = LIMITS.requestTimeoutMs): void {
  server.prependListener('request', (request: IncomingMessage) => {
    const { headers } = request
    if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return
    const timer = setTimeout(() => {
      if (request.complete) return
      const late = Object.assign(new Error('The request did not arrive in time.'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      answerParserError(late, request.socket)
    }, ms)
    timer.unref()
    deadlines.set(request, timer)
    request.once('close', () => clearTimeout(timer))
  })
}

/** Whoever reads the body of this request sees to its end. */
export function liftDeadline(request: IncomingMessage): void {
  clearTimeout(deadlines.get(request))
}
