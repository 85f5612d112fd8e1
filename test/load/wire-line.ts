import { isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'

export interface WireCall {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly body?: JsonObject
  readonly timeoutMs?: number
}

export interface WireAnswer {
  readonly status: number
  readonly body: JsonObject
}

/** Error counts by kind. A kind is the call, and its status with its code or the connection error. */
export type Mishaps = Record<string, number>

/** Errors that no retry resolves: each is a failure for its caller. */
const INCURABLE = new Set([400, 401, 403, 404, 405, 409, 413, 415, 422])
const TIMEOUT_MS = 30_000
const RETRY_MS = 100
const RETRY_MS_MAX = 2_000

/** Requests over persistent connections, without a library: thousands of callers fit into one process. */
export class WireLine {
  /** Resolved by retrying the same request. */
  readonly cured: Mishaps = {}
  readonly incurable: Mishaps = {}
  readonly #agent: Agent | PlainAgent
  readonly #url: URL
  readonly #headers: Readonly<Record<string, string>>
  /** No more retries: the run is over. */
  isClosing = false

  /** Without a certificate authority it uses plain HTTP. */
  constructor(url: string, ca: string | undefined, headers: Readonly<Record<string, string>>) {
    this.#url = new URL(url)
    const options = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY }
    this.#agent = ca === undefined ? new PlainAgent(options) : new Agent({ ...options, ca })
    this.#headers = headers
  }

  /** Retries the request until it succeeds. `undefined` if the run ends first, or if no retry can help. */
  async insist(
    name: string,
    call: WireCall,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WireAnswer | undefined> {
    const seen: string[] = []
    for (let tries = 0; !this.isClosing; tries += 1) {
      try {
        const answer = await this.#send(call, headers)
        if (answer.status < 300) {
          for (const kind of seen) count(this.cured, kind)
          return answer
        }
        const kind = `${name}: ${answer.status} ${textIn(answer.body, 'code')}`
        if (INCURABLE.has(answer.status)) {
          count(this.incurable, kind)
          return undefined
        }
        seen.push(kind)
      } catch (error) {
        if (this.isClosing) return undefined
        seen.push(`${name}: ${codeOf(error)}`)
      }
      await pause(Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** tries) * (0.5 + Math.random() / 2))
    }
    return undefined
  }

  close(): void {
    this.isClosing = true
    this.#agent.destroy()
  }

  #send(
    { method, path, body, timeoutMs = TIMEOUT_MS }: WireCall,
    headers: Readonly<Record<string, string>>,
  ): Promise<WireAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const type =
      text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#url
      const options = {
        hostname,
        port,
        path,
        method,
        agent: this.#agent,
        headers: { ...this.#headers, ...headers, ...type },
      }
      const send = this.#agent instanceof Agent ? request : plainRequest
      const sent = send(options, (answer) => {
        clearTimeout(timer)
        readAnswer(answer).then(resolve, reject)
      })
      const timer = setTimeout(() => sent.destroy(new Error('LATE')), timeoutMs)
      sent.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
      sent.end(text)
    })
  }
}

async function readAnswer(answer: IncomingMessage): Promise<WireAnswer> {
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  const body: unknown = text === '' ? {} : JSON.parse(text)
  return { status: answer.statusCode ?? 0, body: isJsonObject(body) ? body : {} }
}

/** A text field; empty if it is not a text. */
export function textIn(body: JsonObject | undefined, field: string): string {
  const value = body?.[field]
  return typeof value === 'string' ? value : ''
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? String(error.code) : error.message
}

function count(mishaps: Mishaps, kind: string, times = 1): void {
  mishaps[kind] = (mishaps[kind] ?? 0) + times
}

export function added(...all: readonly Mishaps[]): Mishaps {
  const sum: Mishaps = {}
  for (const mishaps of all) for (const [kind, times] of Object.entries(mishaps)) count(sum, kind, times)
  return sum
}
