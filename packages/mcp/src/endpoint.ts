import { createMcpHandler } from '@modelcontextprotocol/server'
import type { ServerContext } from '@modelcontextprotocol/server'
import type { Caller, CallerInfo } from './caller.ts'
import { greetedIn, SESSION_HEADER, sessionFor } from './greeting.ts'
import { Inquiries } from './inquiries.ts'
import { LogLevels } from './log-lines.ts'
import { createMcpServer } from './mcp-server.ts'
import type { McpServerOptions } from './mcp-server.ts'

export interface McpEndpointOptions extends Omit<McpServerOptions, 'inquiries' | 'levels'> {
  /** Told of what could not be answered. */
  readonly onError: (error: Error) => void
}

export interface McpEndpoint {
  /** Answers one HTTP request. The caller was let in before, and the body was read within its bounds. */
  handle(request: Request, caller: Caller, body: unknown): Promise<Response>
  close(): Promise<void>
}

/** Streams that are open at once over all callers; further ones are refused. */
const SUBSCRIPTIONS_MAX = 256

/** The protocol over HTTP, in both revisions. Any instance can answer any request: what has to be known travels with it, sealed. */
export function createMcpEndpoint(given: McpEndpointOptions): McpEndpoint {
  const inquiries = new Inquiries(given.stateKey)
  const options = { ...given, inquiries, levels: new LogLevels() }
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
    handle: async (request, caller, body) => {
      const greeted = greetedBy(request, options.stateKey, caller.callerId)
      if (greeted === undefined) return unknownSession()
      if (await inquiries.settle(body, caller)) return new Response(null, { status: 202 })
      const info: CallerInfo = { ...caller, greeted }
      callers.set(request, info)
      const authInfo = { token: '', clientId: caller.callerId, scopes: [], extra: { caller: info } }
      const response = await handler.fetch(request, { authInfo, ...(body === undefined ? {} : { parsedBody: body }) })
      const session = response.ok ? sessionFor(body, options.stateKey, caller.callerId) : undefined
      return session === undefined ? response : withSession(response, session)
    },
    close: () => handler.close(),
  }
}

/** What the client said in its greeting, if its session is one. `undefined`: it is a session of another caller or server. */
function greetedBy({ headers }: Request, key: Uint8Array, callerId: string): CallerInfo['greeted'] | undefined {
  const session = headers.get(SESSION_HEADER)
  return session === null ? {} : greetedIn(session, key, callerId)
}

function withSession({ status, statusText, headers, body }: Response, session: string): Response {
  const told = new Headers(headers)
  told.set(SESSION_HEADER, session)
  return new Response(body, { status, statusText, headers: told })
}

/** After this a client begins a new session. */
function unknownSession(): Response {
  const error = { code: -32_001, message: 'There is no such session. Initialize a new one.' }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 })
}
