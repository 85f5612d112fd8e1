import { createMcpHandler } from '@modelcontextprotocol/server'
import type { ServerContext } from '@modelcontextprotocol/server'
import { createMcpServer } from './mcp-server.ts'
import type { CallerInfo, McpServerOptions } from './mcp-server.ts'

export interface McpEndpointOptions extends McpServerOptions {
  /** Told of what could not be answered. */
  readonly onError: (error: Error) => void
}

export interface McpEndpoint {
  /** Answers one HTTP request. The caller was let in before, and the body was read within its bounds. */
  handle(request: Request, caller: CallerInfo, body: unknown): Promise<Response>
  close(): Promise<void>
}

/** Streams that are open at once over all callers; further ones are refused. */
const SUBSCRIPTIONS_MAX = 256

/** The protocol over HTTP, in both revisions. Nothing is kept between two requests, so any instance can answer any of them. */
export function createMcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const callers = new WeakMap<Request, CallerInfo>()
  const callerOf = (known: CallerInfo | undefined) => (ctx: ServerContext) => {
    const request = ctx.http?.req
    const caller = known ?? (request === undefined ? undefined : callers.get(request))
    if (caller === undefined) throw new Error('A request of nobody reached the MCP server.')
    return caller
  }
  const handler = createMcpHandler(
    ({ era, authInfo }) =>
      createMcpServer(options, era, callerOf(authInfo?.extra?.['caller'] as CallerInfo | undefined)),
    { onerror: options.onError, maxSubscriptions: SUBSCRIPTIONS_MAX },
  )
  return {
    handle: (request, caller, body) => {
      callers.set(request, caller)
      const authInfo = { token: '', clientId: caller.callerId, scopes: [], extra: { caller } }
      return handler.fetch(request, { authInfo, ...(body === undefined ? {} : { parsedBody: body }) })
    },
    close: () => handler.close(),
  }
}
