import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { HEADERS, isJsonObject, parseExact, WIRE_VERSION } from '@impresario/protocol'
import { messageOf } from '../runtime/log.ts'
import type { TlsMaterial } from '../settings/settings.ts'
import { TransportError } from './transport.ts'

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly token: string | undefined
  readonly body?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly text: string
  readonly retryAfter: string | undefined
}

const REQUEST_MS = 30_000

/** Requests to one orchestrator, over connections that are kept, with a client certificate if there is one. */
export class HttpLine {
  readonly name: string
  readonly workerId: string
  readonly tls: TlsMaterial
  readonly #base: URL
  readonly #agent: HttpAgent

  constructor(url: string, workerId: string, tls: TlsMaterial) {
    this.#base = new URL(url)
    this.name = url
    this.workerId = workerId
    this.tls = tls
    const options = { keepAlive: true, maxSockets: 64 }
    this.#agent = this.#base.protocol === 'https:' ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options)
  }

  get agent(): HttpAgent {
    return this.#agent
  }

  headers(token: string | undefined): Readonly<Record<string, string>> {
    return {
      [HEADERS.workerId]: this.workerId,
      [HEADERS.wireVersion]: WIRE_VERSION,
      ...(token === undefined ? {} : { [HEADERS.workerToken[0]]: token }),
    }
  }

  /** An orchestrator may live under a path of a shared host. */
  address(path: string): URL {
    return new URL(`${this.#base.pathname.replace(/\/$/, '')}${path}`, this.#base)
  }

  /** Resolves with whatever was answered; rejects when nothing was. */
  request(call: HttpCall): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const send = this.#base.protocol === 'https:' ? httpsRequest : httpRequest
      const length = call.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(call.body)) }
      const request: ClientRequest = send(this.address(call.path), {
        method: call.method,
        agent: this.#agent,
        headers: { 'content-type': 'application/json', ...this.headers(call.token), ...length },
        ...(call.signal === undefined ? {} : { signal: call.signal }),
      })
      const late = (): void => {
        request.destroy(new Error('no answer in time'))
      }
      const timer = setTimeout(late, call.timeoutMs ?? REQUEST_MS)
      const fail = (error: unknown): void => {
        clearTimeout(timer)
        const message = `${call.method} ${this.name}${call.path}: ${messageOf(error)}`
        reject(new TransportError('unavailable', message, { cause: error }))
      }
      request.on('error', fail)
      request.on('response', (response) => {
        readText(response).then((text) => {
          clearTimeout(timer)
          resolve({ status: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] })
        }, fail)
      })
      request.end(call.body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

export function readText(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('aborted', () => reject(new Error('the connection broke off')))
    response.on('error', reject)
  })
}

/** The boundary at which an orchestrator's answer is believed to have the shape that the protocol gives it. */
export function replyOf<T>({ status, text }: HttpAnswer): T {
  let body: unknown
  try {
    body = text === '' ? {} : parseExact(text)
  } catch (cause) {
    const message = 'The answer is not JSON; something else may be listening there.'
    throw new TransportError('unavailable', message, { status, cause })
  }
  if (isJsonObject(body)) return body as T
  throw new TransportError('unavailable', 'The answer is not a JSON object.', { status })
}

const REFUSED = new Set([400, 405, 409, 413, 415, 422])

/** What an answer that is no success means for the caller. */
export function refusalOf(
  call: { readonly method: string; readonly path: string },
  answer: HttpAnswer,
): TransportError {
  const { status, text, retryAfter } = answer
  const message = `${call.method} ${call.path}: ${status} ${reasonIn(text)}`
  if (status === 404) {
    const aboutResult = call.path.startsWith('/_worker/tasks/')
    const kind = aboutResult && !/worker/i.test(text) ? 'refused' : 'unknown_worker'
    return new TransportError(kind, message, { status })
  }
  if (REFUSED.has(status)) return new TransportError('refused', message, { status })
  const retryAfterMs = spanOf(retryAfter)
  return new TransportError('unavailable', message, {
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** The sentence of an answer that has one, else its beginning: a log is read by people. */
function reasonIn(text: string): string {
  let said: unknown
  try {
    const body: unknown = JSON.parse(text)
    said = isJsonObject(body) ? body['error'] : undefined
  } catch {
    said = undefined
  }
  return (typeof said === 'string' ? said : text).slice(0, 300)
}

/** `Retry-After` is a number of seconds or a date. */
function spanOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined
  const seconds = Number(retryAfter)
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(retryAfter) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
