import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Job } from '@impresario/core'
import { isJsonObject, traceContextOf } from '@impresario/protocol'
import type { TraceContext } from '@impresario/protocol'
import type { CallSpan, CallSpans } from './call-spans.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Its span, where it is recorded. */
    callSpan: CallSpan | undefined
  }
}

const PATH_CHARS_MAX = 500
const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A span for each request that belongs to a trace, and for each that changes something on behalf of a client. Reads, polls
 * and probes without a trace are not recorded: there are many of them, and nothing follows from them.
 */
export function traceRequests(app: FastifyInstance, spans: CallSpans | undefined): void {
  app.decorateRequest('callSpan', undefined)
  if (spans === undefined) return
  const open = (request: FastifyRequest, reply: FastifyReply, caller: TraceContext | undefined): void => {
    request.callSpan = spans.open(caller, () => {
      const { method, routeOptions } = request
      const route = routeOptions.url ?? ''
      return {
        name: `${method} ${route}`,
        kind: 'server',
        sinceMs: reply.elapsedTime,
        attributes: {
          'http.request.method': method,
          'http.route': route,
          'url.path': (request.url.split('?', 1)[0] ?? '').slice(0, PATH_CHARS_MAX),
        },
      }
    })
  }
  app.addHook('onRequest', (request, reply, done) => {
    const caller = spans.isOn ? traceContextOf(request.headers) : undefined
    if (caller !== undefined && request.routeOptions.url !== undefined) open(request, reply, caller)
    done()
  })
  const isRecorded = ({ method, callSpan, routeOptions: { config } }: FastifyRequest): boolean =>
    spans.isOn &&
    callSpan === undefined &&
    !READS.has(method) &&
    config.access !== 'public' &&
    config.access !== 'worker'
  // A body can name its trace too.
  app.addHook('preHandler', (request, reply, done) => {
    if (isRecorded(request)) {
      const { tracing_context: own } = isJsonObject(request.body) ? request.body : {}
      open(request, reply, traceContextOf(isJsonObject(own) ? own : request.headers))
    }
    done()
  })
  app.addHook('onResponse', ({ callSpan }, { statusCode }, done) => {
    if (callSpan?.context !== undefined) {
      const attributes = { 'http.response.status_code': statusCode }
      callSpan.end({ attributes, error: statusCode >= 500 ? `HTTP ${statusCode}` : undefined })
    }
    done()
  })
}

/** The trace that what this request causes belongs to. */
export function tracingOf(request: FastifyRequest): TraceContext | undefined {
  return request.callSpan?.context ?? traceContextOf(request.headers)
}

/** The same for the record of a single job that this request starts. */
export function jobTracingOf(request: FastifyRequest): Job['tracing'] {
  if (request.callSpan !== undefined) return request.callSpan.contextForJob()
  const context = traceContextOf(request.headers)
  return context && { ...context }
}

/** What a body says goes before that, unless both are of one trace: then the request is the parent. */
export function tracingFor(
  own: TraceContext | undefined,
  ofRequest: TraceContext | undefined,
): TraceContext | undefined {
  return own !== undefined && ofRequest !== undefined && traceIdIn(own) === traceIdIn(ofRequest) ? ofRequest : own
}

function traceIdIn({ traceparent }: TraceContext): string | undefined {
  return traceparent.split('-')[1]
}
