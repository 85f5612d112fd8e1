import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { didYouMean } from '@impresario/core'
import type { Log } from '@impresario/core'
import type { McpEndpoint } from '@impresario/mcp'
import { isImpresarioError, isJsonObject, plainText, SCOPES, traceContextOf } from '@impresario/protocol'
import { listIn } from '../config/mcp-keys.ts'
import type { McpSettings } from '../config/mcp-keys.ts'
import type { OauthSettings } from '../config/oauth-keys.ts'
import type { SecretKey } from '../config/secret-key.ts'
import { callerOf, forBearers } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import type { OpenWaits } from '../http/connection.ts'
import type { RouteDeclaration } from '../http/route.ts'
import type { SlowReaders } from '../http/slow-readers.ts'
import { VERSION } from '../runtime/version.ts'
import { errorFields } from '../runtime/log.ts'
import type { CallSpan, CallSpans } from '../telemetry/call-spans.ts'
import { tracingOf } from '../telemetry/request-spans.ts'
import { hostCheck } from './host-check.ts'
import { inProcessApi } from './in-process-api.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

export interface McpRoutesOptions {
  readonly settings: McpSettings &
    OauthSettings & {
      readonly clientApiPrefix: string
      readonly publicUrl: string
      readonly corsOrigins: string
    }
  readonly log: Log
  readonly waits: OpenWaits
  readonly secretKey: SecretKey
  readonly telemetry: { readonly calls: CallSpans | undefined }
  readonly readers: Pick<SlowReaders, 'addPiece'>
}

const PATH = '/mcp'
const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** Not in the document of the API: what goes through here is described by the protocol. */
const MESSAGES: RouteDeclaration = { config: { access: 'viewer', scope: 'any' }, schema: { hide: true } }
/** What OAuth clients have to know (RFC 9728). */
const METADATA: RouteDeclaration = { config: { access: 'public' }, schema: { hide: true } }

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
    scope.post(PATH, MESSAGES, handle)
    scope.get(PATH, MESSAGES, handle)
    scope.delete(PATH, MESSAGES, handle)
    const metadata = async (request: FastifyRequest): Promise<object> => metadataOf(request, settings)
    scope.get(METADATA_PATH, METADATA, metadata)
    scope.get(`${METADATA_PATH}${PATH}`, METADATA, metadata)
  })
  return async () => (await opening)?.close()
}

async function open({ log, secretKey }: McpRoutesOptions): Promise<McpEndpoint> {
  const { createMcpEndpoint } = await import('@impresario/mcp')
  return createMcpEndpoint({
    name: 'impresario',
    version: VERSION,
    stateKey: secretKey.derive('mcp-state'),
    didYouMean,
    onError: (error) => log.debug('an MCP request could not be answered', errorFields(error)),
  })
}

async function serve(
  app: FastifyInstance,
  endpoint: McpEndpoint,
  { settings, waits, telemetry: { calls }, readers }: McpRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = callerOf(request)
  const base = baseOf(request, settings.publicUrl)
  const wait = waits.begin(reply)
  const { signal } = wait
  const end = (error?: string): void => {
    wait.end()
    span?.end({ error })
  }
  const span = openMessage(calls, request)
  const tracing = span?.context ?? tracingOf(request)
  const api = inProcessApi(app, `/${settings.clientApiPrefix}/v1`, request, (scope) => mayUse(caller, scope), tracing)
  try {
    const { body } = request
    const response = await endpoint.handle(
      webRequest(request, base, signal),
      { api, base, callerId: caller.client.id, signal },
      body,
    )
    return await send(reply, response, { end, readers })
  } catch (error) {
    end('The message could not be answered.')
    throw error
  }
}

/** A span for each message of an assistant: its own trace, if the message has one, goes before that of the request. */
function openMessage(calls: CallSpans | undefined, request: FastifyRequest): CallSpan | undefined {
  const { body } = request
  if (calls?.isOn !== true || !isJsonObject(body)) return undefined
  const { method, params } = body
  if (typeof method !== 'string' || !METHOD.test(method)) return undefined
  const { name, _meta: meta } = isJsonObject(params) ? params : {}
  const tool = typeof name === 'string' && TOOL.test(name) ? name : undefined
  const caller = (isJsonObject(meta) ? traceContextOf(meta) : undefined) ?? tracingOf(request)
  return calls.open(caller, () => ({
    name: tool === undefined ? method : `${method} ${tool}`,
    kind: 'server',
    attributes: { 'mcp.method.name': method, ...(tool === undefined ? {} : { 'gen_ai.tool.name': tool }) },
  }))
}

const METHOD = /^[\w/]{1,64}$/
const TOOL = /^[\w.-]{1,128}$/

/** Which tools are shown. The routes decide what may be done: here it only matters that nobody reads what is of no use. */
function mayUse(caller: Caller & { readonly scopes?: readonly string[] }, scope: string): boolean {
  const { role, scopes } = caller
  if (role === 'viewer' && !/:(?:read|search)$/.test(scope)) return false
  return scopes === undefined || scopes.includes(scope) || scopes.includes('admin')
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

async function send(
  reply: FastifyReply,
  response: Response,
  { end, readers }: Pick<McpRoutesOptions, 'readers'> & { readonly end: () => void },
): Promise<FastifyReply> {
  void reply.code(response.status)
  for (const [name, value] of response.headers) void reply.header(name, value)
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (!isStream || response.body === null) {
    const text = plainText(await response.text())
    end()
    return reply.send(text === '' ? undefined : text)
  }
  const pieces = withPlainNumbers((bytes) => readers.addPiece(reply.raw, bytes))
  const stream = Readable.fromWeb(response.body.pipeThrough(pieces))
  stream.once('close', () => end())
  return reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').send(stream)
}

/**
 * Each piece is a whole event. They are taken as they come: the library makes them without a look at the reader, and they are
 * counted here.
 */
function withPlainNumbers(count: (bytes: number) => void): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const transform = (piece: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void => {
    const plain = encoder.encode(plainText(decoder.decode(piece)))
    count(plain.length)
    controller.enqueue(plain)
  }
  return new TransformStream({ transform }, undefined, { highWaterMark: Infinity })
}

/** Refusals before a message was understood, as the protocol shows errors. */
function answerProblems(scope: FastifyInstance, { log }: McpRoutesOptions): void {
  scope.setErrorHandler<Error & { readonly statusCode?: number; readonly code?: string }>((error, request, reply) => {
    const isOurs = isImpresarioError(error)
    const status = isOurs ? error.status : (error.statusCode ?? 500)
    if (status >= 500) log.error('an MCP request failed', { method: request.method, ...errorFields(error) })
    const retryAfter = isOurs ? error.details['retry_after_s'] : undefined
    if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter))
    const message = status >= 500 && status !== 503 ? 'Internal error' : forBearers(error.message)
    const code = isOurs ? error.code : 'INVALID_REQUEST'
    const number = code === 'INVALID_JSON' ? -32_700 : status >= 500 ? -32_603 : -32_600
    return reply
      .code(status)
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: number, message, data: { code } } }))
  })
}

function baseOf(request: FastifyRequest, publicUrl: string): string {
  return withoutEndSlashes(publicUrl === '' ? `${request.protocol}://${request.host}` : publicUrl)
}

/** RFC 6750 and RFC 9728: that a token is needed, or that this one is not valid, and where clients learn how to get one. */
function challenge(request: FastifyRequest, { publicUrl }: McpRoutesOptions['settings']): string {
  const { authorization, 'x-client-token': own } = request.headers
  const hasToken = authorization !== undefined || own !== undefined
  const metadata = `resource_metadata="${baseOf(request, publicUrl)}${METADATA_PATH}${PATH}"`
  return hasToken ? `Bearer error="invalid_token", ${metadata}` : `Bearer ${metadata}`
}

function metadataOf(
  request: FastifyRequest,
  { publicUrl, mcpAuthorizationServers, oauthIssuers, oauthScopePrefix }: McpRoutesOptions['settings'],
): object {
  const issuers = listIn(oauthIssuers)
  const servers = [...new Set([...issuers, ...listIn(mcpAuthorizationServers)])]
  return {
    resource: `${baseOf(request, publicUrl)}${PATH}`,
    resource_name: 'Impresario',
    bearer_methods_supported: ['header'],
    ...(servers.length === 0 ? {} : { authorization_servers: servers }),
    ...(issuers.length === 0 ? {} : { scopes_supported: SCOPES.map((scope) => `${oauthScopePrefix}${scope}`) }),
  }
}
