import { HEADERS, ImpresarioError, isImpresarioError, parseExact, pause } from '@impresario/protocol'
import { ConnectionError, isTurnedAway, refusalOf } from './errors.ts'

export type Fetch = (input: string, init: RequestInit) => Promise<Response>

export interface ConnectionOptions {
  readonly url: string
  readonly token?: string | undefined
  readonly fetch?: Fetch | undefined
  readonly timeoutMs: number
  readonly retries: number
  readonly retryAfterMsMax: number
}

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal | undefined
  /** On top of the usual time: how long the server may hold the answer back. */
  readonly holdMs?: number
  /** May be sent again without harm. */
  readonly repeatable: boolean
}

export interface StreamCall {
  readonly method: 'GET' | 'PUT'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: NonNullable<RequestInit['body']>
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly body: unknown
  readonly text: string
  readonly headers: Headers
}

const LOCAL = /^https?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::|\/|$)/i
const RETRY_MS = 100
const RETRY_MS_MAX = 5_000
/** On top of what the server asks for, so that all whom it sent away do not come back in the same moment. */
const SPREAD_MS = 250

/** Calls one server. What may be repeated is tried again when the server is out of reach or asks for patience. */
export class Connection {
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: Fetch
  readonly #timeoutMs: number
  readonly #retryAfterMsMax: number
  readonly retries: number

  constructor(options: ConnectionOptions) {
    this.#base = options.url.replace(/\/+$/, '')
    this.#headers = {
      ...(options.token === undefined ? {} : { [HEADERS.clientToken[0]]: options.token }),
      // On the own machine, packing an answer takes longer than sending it.
      ...(LOCAL.test(this.#base) ? { 'accept-encoding': 'identity' } : {}),
    }
    // Browsers want `fetch` to be called as a function of the window, not of this object.
    const own = options.fetch
    this.#fetch = own === undefined ? (input, init) => fetch(input, init) : (input, init) => own(input, init)
    this.#timeoutMs = options.timeoutMs
    this.#retryAfterMsMax = options.retryAfterMsMax
    this.retries = options.retries
  }

  async call(path: string, call: Call): Promise<Answer> {
    mustBeWithoutDots(path)
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#once(path, call)
      } catch (error) {
        const mayRepeat = call.repeatable || isTurnedAway(error)
        const again = mayRepeat && failures < this.retries && call.signal?.aborted !== true
        const waitMs = again && mayHelp(error) ? this.#waitMs(error, failures) : undefined
        if (waitMs === undefined) throw error
        await pause(waitMs, call.signal)
      }
    }
  }

  /** Until the next try; `undefined` when the server asks for more patience than there is. */
  #waitMs(error: unknown, failures: number): number | undefined {
    const backoffMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** failures) * (0.5 + Math.random() / 2)
    const askedS = isImpresarioError(error) ? error.details['retry_after_s'] : undefined
    if (typeof askedS !== 'number') return backoffMs
    const askedMs = askedS * 1_000
    return askedMs > this.#retryAfterMsMax ? undefined : Math.max(backoffMs, askedMs + Math.random() * SPREAD_MS)
  }

  /** A request or an answer of any length, which takes as long as it takes. Tried once: a stream cannot be sent again. */
  async stream(path: string, call: StreamCall): Promise<Response> {
    mustBeWithoutDots(path)
    const { method, body, headers, signal } = call
    const init: RequestInit & { duplex?: 'half' } = {
      method,
      headers: { ...this.#headers, ...headers },
      ...(signal === undefined ? {} : { signal }),
      // Node asks for it where the body is a stream.
      ...(body === undefined ? {} : { body, duplex: 'half' }),
    }
    let response: Response
    try {
      response = await this.#fetch(`${this.#base}${path}`, init)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new ConnectionError(`${method} ${this.#base}${path}: the server could not be reached.`, { cause })
    }
    if (response.ok) return response
    throw refusalOf(response.status, parse(await response.text()), retryAfterIn(response.headers))
  }

  async #once(path: string, call: Call): Promise<Answer> {
    const timeout = AbortSignal.timeout(Math.ceil(this.#timeoutMs + (call.holdMs ?? 0)))
    const signal = call.signal === undefined ? timeout : AbortSignal.any([call.signal, timeout])
    const type = call.body === undefined ? {} : { 'content-type': 'application/json' }
    const init: RequestInit = {
      method: call.method ?? 'GET',
      headers: { ...this.#headers, ...type, ...call.headers },
      signal,
      ...(call.body === undefined ? {} : { body: call.body }),
    }
    let response: Response
    let text: string
    try {
      response = await this.#fetch(`${this.#base}${path}${queryOf(call.query)}`, init)
      text = await response.text()
    } catch (cause) {
      call.signal?.throwIfAborted()
      throw new ConnectionError(`${init.method} ${this.#base}${path}: the server could not be reached.`, { cause })
    }
    const body = parse(text)
    if (!response.ok) throw refusalOf(response.status, body, retryAfterIn(response.headers))
    return { body, text, headers: response.headers }
  }
}

/**
 * `fetch` takes a part `..` away, and the one before it, whether it is encoded or not. A file or a job of that name would
 * become a request for something else.
 */
function mustBeWithoutDots(path: string): void {
  if (!/\/\.{1,2}(?:\/|$)/.test(path)) return
  throw new ImpresarioError('INVALID_REQUEST', 'Neither "." nor ".." is a name or an id.')
}

function mayHelp(error: unknown): boolean {
  if (error instanceof ConnectionError) return true
  return isImpresarioError(error) && error.retry !== 'never'
}

/** In seconds. The header is a number of them, or, from some proxies, a date. */
function retryAfterIn(headers: Headers): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text)
  const at = text === '' ? Number.NaN : Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000))
}

/** Leaves out what is not there. */
export function given<T>(fields: Readonly<Record<string, T | undefined>>): Readonly<Record<string, T>> {
  const found: Record<string, T> = {}
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value !== undefined) found[name] = value
  }
  return found
}

function queryOf(query: Call['query'] = {}): string {
  const fields = Object.entries(given(query)).map(([name, value]) => [name, String(value)])
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`
}

/** Graphs and pages of proxies are not JSON; where JSON is expected, that is `undefined`. */
function parse(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return undefined
  }
}
