import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '@impresario/mcp'
import type { Api, ApiReply, ApiRequest } from '@impresario/mcp'
import { HEADERS, readJson, writeJson } from '@impresario/protocol'
import type { Json, TraceContext } from '@impresario/protocol'

/**
 * The client API for whoever made a request to the MCP server: the same routes with the same token, without a network in
 * between. So everything that a route checks (tokens, scopes, quotas, limits, input) holds for tools too.
 */
export function inProcessApi(
  app: FastifyInstance,
  prefix: string,
  request: FastifyRequest,
  allows: (scope: string) => boolean,
  tracing?: TraceContext,
): Api {
  const carried = { ...carriedHeaders(request), ...tracing }
  return {
    allows,
    call: async ({ method, path, isAbsolute, query = {}, body, idempotencyKey, signal }: ApiRequest) => {
      const reply = await app.inject({
        method,
        url: `${isAbsolute === true ? '' : prefix}${path}`,
        query: definedIn(query),
        headers: {
          ...carried,
          ...(idempotencyKey === undefined ? {} : { [HEADERS.idempotencyKey]: idempotencyKey }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { payload: writeJson(body) }),
        remoteAddress: request.ip,
        ...(signal === undefined ? {} : { signal }),
      })
      const read = bodyOf(reply.payload)
      if (reply.statusCode >= 400) throw new ApiError(reply.statusCode, read, secondsIn(reply.headers['retry-after']))
      return { body: read, nextCursor: textIn(reply.headers[HEADERS.nextCursor.toLowerCase()]) } satisfies ApiReply
    },
  }
}

/** Who calls and for which trace. Nothing else of the request is the business of another route. */
function carriedHeaders({ headers }: FastifyRequest): Record<string, string> {
  const names = ['authorization', 'host', ...HEADERS.clientToken, HEADERS.traceparent, HEADERS.tracestate]
  const carried: Record<string, string> = {}
  for (const name of names) {
    const value = headers[name.toLowerCase()]
    if (typeof value === 'string') carried[name] = value
  }
  return carried
}

function definedIn(query: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(query)) if (value !== undefined) texts[name] = String(value)
  return texts
}

function bodyOf(text: string): Json {
  if (text === '') return null
  try {
    return readJson(text)
  } catch {
    return { error: 'The server answered in an unexpected form.' }
  }
}

function textIn(header: string | string[] | number | undefined): string | undefined {
  return typeof header === 'string' && header !== '' ? header : undefined
}

function secondsIn(header: string | string[] | number | undefined): number | undefined {
  const seconds = Number(header)
  return header !== undefined && Number.isFinite(seconds) ? seconds : undefined
}
