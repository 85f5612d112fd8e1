import { Readable } from 'node:stream'
import type { ReadableStream as WebStream } from 'node:stream/web'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import type { McpEndpoint } from '@impresario/mcp'
import { isImpresarioError, plainText } from '@impresario/protocol'
import { z } from 'zod'
import { listIn } from '../config/mcp-keys.ts'
import type { McpSettings } from '../config/mcp-keys.ts'
import type { SecretKey } from '../config/secret-key.ts'
import { callerOf } from '../http/access.ts'
import type { OpenWaits } from '../http/connection.ts'
import { route } from '../http/route.ts'
import { VERSION } from '../runtime/version.ts'
import { errorFields } from '../runtime/log.ts'
import { hostCheck } from './host-check.ts'
import { inProcessApi } from './in-process-api.ts'

export interface McpRoutesOptions {
  readonly settings: McpSettings & {
    readonly clientApiPrefix: string
    readonly publicUrl: string
    readonly corsOrigins: string
  }
  readonly log: Log
  readonly waits: OpenWaits
  readonly secretKey: SecretKey
}

const PATH = '/mcp'
const METADATA_PATH = '/.well-known/oauth-protected-resource'

const TAG = { tag: 'assistants' } as const
const ANSWERED = {
  200: { description: 'The answer as JSON, or a stream of messages.', types: ['application/json', 'text/event-stream'] },
  202: { description: 'A notification was taken.' },
}

const POST = route({
  ...TAG,
  access: 'viewer',
  id: 'mcpMessage',
  summary: 'Model Context Protocol: one message of an assistant',
  description:
    'JSON-RPC 2.0 over streamable HTTP, in the revisions 2025-11-25 and 2026-07-28 of the protocol. What a tool may do is what the token may do on the routes of this API.',
  body: z.unknown(),
  isBodyReadByHandler: true,
  replies: ANSWERED,
  refusals: ['FORBIDDEN'],
})

const OTHERS = (method: string) =>
  route({
    ...TAG,
    access: 'viewer',
    id: `mcp${method}`,
    summary: `Model Context Protocol: ${method === 'Stream' ? 'a stream of messages to the assistant' : 'the end of a session'}`,
    replies: ANSWERED,
    refusals: ['FORBIDDEN', 'METHOD_NOT_ALLOWED'],
  })

const METADATA = (id: string) =>
  route({
    ...TAG,
    access: 'public',
    id,
    summary: 'What OAuth clients have to know of /mcp (RFC 9728)',
    replies: { 200: { description: 'The metadata.', body: z.looseObject({ resource: z.string() }) } },
  })

/** The server for assistants. Its code is loaded with the first message, since many servers never get one. */
export function registerMcpRoutes(app: FastifyInstance, options: McpRoutesOptions): () => Promise<void> {
  const { settings } = options
  let opening: Promise<McpEndpoint> | undefined
  const endpoint = (): Promise<McpEndpoint> => (opening ??= open(options))
  void app.register(async (scope) => {
    const check = hostCheck(settings)
    scope.addHook('onRequest', async ({ headers, routeOptions }) => {
      if (routeOptions.config.access !== 'public') check(headers)
    })
    scope.addHook('onSend', async (request, reply) => {
      if (reply.statusCode === 401) void reply.header('www-authenticate', challenge(request, settings))
    })
    answerProblems(scope, options)
    const handle = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
      serve(app, await endpoint(), options, request, reply)
    scope.post(PATH, POST, handle)
    scope.get(PATH, OTHERS('Stream'), handle)
    scope.delete(PATH, OTHERS('End'), handle)
    const metadata = async (request: FastifyRequest): Promise<object> => metadataOf(request, settings)
    scope.get(METADATA_PATH, METADATA('mcpMetadata'), metadata)
    scope.get(`${METADATA_PATH}${PATH}`, METADATA('mcpMetadataOfPath'), metadata)
  })
  return async () => (await opening)?.close()
}

async function open({ log, secretKey }: McpRoutesOptions): Promise<McpEndpoint> {
  const { createMcpEndpoint } = await import('@impresario/mcp')
  return createMcpEndpoint({
    name: 'impresario',
    version: VERSION,
    stateKey: secretKey.derive('mcp-state'),
    onError: (error) => log.debug('an MCP request could not be answered', errorFields(error)),
  })
}

async function serve(
  app: FastifyInstance,
  endpoint: McpEndpoint,
  { settings, waits }: McpRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = callerOf(request)
  const base = baseOf(request, settings.publicUrl)
  const { signal, end } = waits.begin(reply)
  const api = inProcessApi(app, `/${settings.clientApiPrefix}/v1`, request, () => true)
  try {
    const { body } = request
    const response = await endpoint.handle(
      webRequest(request, base, signal),
      { api, base, callerId: caller.client.id, signal },
      body,
    )
    return await send(reply, response, end)
  } catch (error) {
    end()
    throw error
  }
}

/** The request in the form of the web; its body was read already. */
function webRequest({ method, headers, url, body }: FastifyRequest, base: string, signal: AbortSignal): Request {
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && !SECRET_HEADERS.has(name)) given.set(name, value)
  }
  const text = method === 'POST' ? { body: JSON.stringify(body ?? null) } : {}
  return new Request(new URL(url, base), { method, headers: given, signal, ...text })
}

/** Nobody behind the door needs them. */
const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-client-token', 'cookie', 'content-length'])

async function send(reply: FastifyReply, response: Response, end: () => void): Promise<FastifyReply> {
  void reply.code(response.status)
  for (const [name, value] of response.headers) void reply.header(name, value)
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (!isStream || response.body === null) {
    const text = plainText(await response.text())
    end()
    return reply.send(text === '' ? undefined : text)
  }
  // Boundary: the two declarations of the same stream differ in name only.
  const events = response.body.pipeThrough(withPlainNumbers()) as unknown as WebStream<Uint8Array>
  const stream = Readable.fromWeb(events)
  stream.once('close', end)
  return reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').send(stream)
}

/** Each piece is a whole event. */
function withPlainNumbers(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  return new TransformStream({
    transform: (piece, controller) => controller.enqueue(encoder.encode(plainText(decoder.decode(piece)))),
  })
}

/** Refusals before a message was understood, as the protocol shows errors. */
function answerProblems(scope: FastifyInstance, { log }: McpRoutesOptions): void {
  scope.setErrorHandler<Error & { readonly statusCode?: number; readonly code?: string }>((error, request, reply) => {
    const isOurs = isImpresarioError(error)
    const status = isOurs ? error.status : (error.statusCode ?? 500)
    if (status >= 500) log.error('an MCP request failed', { method: request.method, ...errorFields(error) })
    const retryAfter = isOurs ? error.details['retry_after_s'] : undefined
    if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter))
    const message = status >= 500 && status !== 503 ? 'Internal error' : error.message
    const code = isOurs ? error.code : 'INVALID_REQUEST'
    const number = code === 'INVALID_JSON' ? -32_700 : status >= 500 ? -32_603 : -32_600
    return reply
      .code(status)
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: number, message, data: { code } } }))
  })
}

function baseOf(request: FastifyRequest, publicUrl: string): string {
  return (publicUrl === '' ? `${request.protocol}://${request.host}` : publicUrl).replace(/\/+$/, '')
}

function challenge(request: FastifyRequest, { publicUrl }: McpRoutesOptions['settings']): string {
  return `Bearer resource_metadata="${baseOf(request, publicUrl)}${METADATA_PATH}${PATH}"`
}

function metadataOf(request: FastifyRequest, { publicUrl, mcpAuthorizationServers }: McpRoutesOptions['settings']): object {
  const servers = listIn(mcpAuthorizationServers)
  return {
    resource: `${baseOf(request, publicUrl)}${PATH}`,
    resource_name: 'Impresario',
    bearer_methods_supported: ['header'],
    ...(servers.length === 0 ? {} : { authorization_servers: servers }),
  }
}
