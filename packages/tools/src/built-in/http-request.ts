import { stringifyExact } from '@impresario/protocol'
import http from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { Data, DataObject } from '@impresario/protocol'
import { checkUrl, pinnedLookup, resolveTarget, systemResolve } from '@impresario/webhooks'
import type { OutboundPolicy, Resolve, Target } from '@impresario/webhooks'
import { ToolError } from '../tool.ts'
import type { BuiltInTool, ToolCall } from '../tool.ts'

export interface HttpRequestOptions {
  /** Where requests may go: the same rules as for webhooks. */
  readonly policy: OutboundPolicy
  readonly resolve?: Resolve
}

/** An answer that is longer is cut off there, and fails: half of it would be taken for the whole. */
const ANSWER_BYTES_MAX = 200_000
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/** They belong to the connection, which is not the caller's. */
const HEADERS_REFUSED = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
])

/** The input, as its schema has checked it. */
interface Given {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly json?: Data
  readonly body?: string
  readonly expect_status?: readonly number[]
}

interface Wanted {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** Makes one HTTP request. Redirects are given back, not followed: they would lead around the checks of the address. */
export function httpRequest({ policy, resolve = systemResolve }: HttpRequestOptions): BuiltInTool {
  return {
    name: 'http.request',
    kind: 'built_in',
    description:
      'Makes one HTTP request and gives status, headers and body. A JSON body is parsed. Statuses from 400 on fail the step unless they are in expect_status.',
    input: {
      type: 'object',
      additionalProperties: false,
      required: ['url'],
      properties: {
        url: { type: 'string', minLength: 1 },
        method: { type: 'string', enum: METHODS, default: 'GET' },
        headers: { type: 'object', additionalProperties: { type: 'string' } },
        query: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
        json: { description: 'Sent as JSON.' },
        body: { type: 'string', description: 'Sent as it is.' },
        expect_status: { type: 'array', items: { type: 'integer', minimum: 100, maximum: 599 } },
      },
    },
    output: {
      type: 'object',
      required: ['status', 'headers', 'body'],
      properties: { status: { type: 'integer' }, headers: { type: 'object' }, body: {} },
    },
    timeoutSeconds: 30,
    scopes: [],
    isIdempotent: false,
    isReadOnly: false,
    run: async (input, call) => {
      const given = givenIn(input)
      const wanted = wantedIn(given, policy, call)
      const target = await resolveTarget(wanted.url, policy, resolve)
      if ('problem' in target) throw new ToolError('PERMANENT_ERROR', `The address ${target.problem}.`)
      const answer = await exchange(target, wanted, call.signal)
      return judged(answer, given.expect_status)
    },
  }
}

/** Boundary: the schema of the tool was checked before. */
function givenIn(input: DataObject): Given {
  return input as unknown as Given
}

function wantedIn(given: Given, policy: OutboundPolicy, call: ToolCall): Wanted {
  const { method = 'GET', json, body } = given
  const url = checkUrl(given.url, policy)
  if ('problem' in url) throw new ToolError('INVALID_INPUT_ERROR', `The address ${url.problem}.`)
  for (const [key, value] of Object.entries(given.query ?? {})) url.searchParams.append(key, String(value))
  if (json !== undefined && body !== undefined) {
    throw new ToolError('INVALID_INPUT_ERROR', 'Give "json" or "body", not both.')
  }
  const headers = new Map<string, string>(Object.entries(call.tracing ?? {}))
  if (method !== 'GET' && method !== 'HEAD') headers.set('idempotency-key', call.idempotencyKey)
  if (json !== undefined) headers.set('content-type', 'application/json')
  for (const [name, value] of Object.entries(given.headers ?? {})) {
    const key = name.toLowerCase()
    if (HEADERS_REFUSED.has(key) || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || /[\r\n\0]/.test(value)) {
      throw new ToolError('INVALID_INPUT_ERROR', `The header "${name.slice(0, 50)}" cannot be set.`)
    }
    headers.set(key, value)
  }
  return { method, url, headers: Object.fromEntries(headers), body: json === undefined ? body : stringifyExact(json) }
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

function exchange(target: Target, { method, url, headers, body }: Wanted, signal: AbortSignal): Promise<Answer> {
  const host = url.hostname.replaceAll(/^\[|\]$/g, '')
  const isSecure = url.protocol === 'https:'
  const options: RequestOptions & https.RequestOptions = {
    method,
    host,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    agent: false,
    signal,
    lookup: pinnedLookup(target.addresses),
    ...(isSecure && isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {}),
    headers: {
      'user-agent': 'Impresario/1',
      accept: '*/*',
      ...headers,
      ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
      'accept-encoding': 'identity',
      connection: 'close',
    },
  }
  return new Promise((resolve, reject) => {
    const sending = (isSecure ? https : http).request(options)
    sending.on('error', (error) => reject(new ToolError('TRANSIENT_ERROR', problemOf(error))))
    sending.on('response', (answer) => {
      void read(answer).then(resolve, (error: unknown) => {
        sending.destroy()
        reject(error instanceof Error ? error : new Error('The answer could not be read.'))
      })
    })
    sending.end(body)
  })
}

/** Messages of the system name addresses, which belong to this network. */
function problemOf(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return `The request failed (${code}).`
}

async function read(answer: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > ANSWER_BYTES_MAX) {
      throw new ToolError('PERMANENT_ERROR', `The answer is longer than ${ANSWER_BYTES_MAX} bytes.`)
    }
    chunks.push(chunk)
  }
  const headers = Object.entries(answer.headers).map(([name, value]): [string, string] => [
    name,
    [value ?? ''].flat().join(', '),
  ])
  return {
    status: answer.statusCode ?? 0,
    headers: Object.fromEntries(headers),
    text: Buffer.concat(chunks).toString('utf8'),
  }
}

function judged({ status, headers, text }: Answer, expected: readonly number[] | undefined): Data {
  const isExpected = expected === undefined ? status < 400 : expected.includes(status)
  if (!isExpected) {
    const isPassing = status === 408 || status === 425 || status === 429 || status >= 500
    throw new ToolError(
      isPassing ? 'TRANSIENT_ERROR' : 'PERMANENT_ERROR',
      `The server answered ${status}: ${text.slice(0, 300)}`,
    )
  }
  return { status, headers, body: bodyOf(headers, text) }
}

function bodyOf(headers: Readonly<Record<string, string>>, text: string): Data {
  if (!/\bjson\b/i.test(headers['content-type'] ?? '')) return text
  try {
    return JSON.parse(text) as Data
  } catch {
    return text
  }
}
