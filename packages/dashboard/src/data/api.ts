import { HEADERS as WIRE_HEADERS, parseExact, stringifyExact } from '@impresario/protocol'
import type { FieldProblem } from '@impresario/protocol'
import { ApiError } from './api-error.ts'
import { takeEarly } from './early-answers.ts'
import { noteReach } from './reach.ts'
import { HEADERS, apiUrl, rootUrl } from './places.ts'
import type { Query } from './places.ts'

export { ApiError }

export interface Page<T> {
  readonly items: readonly T[]
  readonly next: string | undefined
  /** Unix seconds; where a page ended early, everything since then has been looked through. */
  readonly lookedBackTo: number | undefined
}

const listeners = new Set<() => void>()

/** Calls back when the server says that nobody is signed in. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export async function request(url: URL, { isStream = false, ...init }: Init = {}): Promise<Response> {
  let response: Response
  try {
    response =
      (isPlainRead(init) ? await takeEarly(url) : undefined) ??
      (await fetch(url, {
        credentials: 'same-origin',
        ...init,
        headers: { ...HEADERS, ...(init.body === undefined || init.body === null ? {} : JSON_BODY), ...init.headers },
      }))
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    if (!isStream) noteReach(false)
    throw new ApiError(0, 'UNREACHABLE', 'The server cannot be reached.')
  }
  noteReach(true)
  if (response.ok) return response
  const failure = await failureOf(response)
  if (response.status === 401) for (const listener of listeners) listener()
  throw failure
}

/** Headers as a plain object, so that ours can be added. */
type Init = Omit<RequestInit, 'headers'> & {
  readonly headers?: Readonly<Record<string, string>>
  /** Something on the way may refuse streams, and nothing else: that it fails does not tell that the server is away. */
  readonly isStream?: boolean
}

function isPlainRead({ method = 'GET', headers }: Init): boolean {
  return method === 'GET' && headers === undefined
}

const JSON_BODY = { 'content-type': 'application/json' }

async function failureOf(response: Response): Promise<ApiError> {
  const said: unknown = await response.json().catch(() => undefined)
  const { error, code, problems } = (typeof said === 'object' && said !== null ? said : {}) as Record<string, unknown>
  return new ApiError(
    response.status,
    typeof code === 'string' ? code : `HTTP_${response.status}`,
    typeof error === 'string' ? error : response.statusText,
    Array.isArray(problems) ? (problems as readonly FieldProblem[]) : [],
  )
}

/** The boundary at which an answer is believed to be what its route describes. Numbers stay as they were written. */
async function bodyOf<T>(response: Response): Promise<T> {
  const text = await response.text()
  return (text === '' ? undefined : parseExact(text)) as T
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return bodyOf(await request(apiUrl(path, query), signal === undefined ? {} : { signal }))
}

export async function getPage<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Page<T>> {
  const response = await request(apiUrl(path, query), signal === undefined ? {} : { signal })
  const items: readonly T[] = await bodyOf(response)
  const { headers } = response
  const looked = headers.get(WIRE_HEADERS.lookedBackTo)
  return {
    items,
    next: headers.get(WIRE_HEADERS.nextCursor) ?? undefined,
    lookedBackTo: looked === null ? undefined : Number(looked),
  }
}

export async function send<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
  return bodyOf(await request(apiUrl(path), withBody(method, body)))
}

export async function sendRoot<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  return bodyOf(await request(rootUrl(path), withBody(method, body)))
}

function withBody(method: string, body: unknown): Init {
  return body === undefined ? { method } : { method, body: stringifyExact(body) }
}
