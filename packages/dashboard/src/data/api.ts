import { parseExact, stringifyExact } from '@impresario/protocol'
import type { FieldProblem } from '@impresario/protocol'

/** Where the application lies, with a slash at its end: a proxy may have put a prefix in front. */
export const BASE = new URL(document.baseURI)
const API = new URL(document.querySelector<HTMLMetaElement>('meta[name="api"]')?.content ?? '../api/v1/', BASE)
const ROOT = new URL('../', BASE)

/** A refusal, or a server that cannot be reached (status 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  /** All that is wrong with what was sent, where the server names several things. */
  readonly problems: readonly FieldProblem[]

  constructor(status: number, code: string, message: string, problems: readonly FieldProblem[] = []) {
    super(message)
    this.status = status
    this.code = code
    this.problems = problems
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>

export interface Page<T> {
  readonly items: readonly T[]
  readonly next: string | undefined
}

/** Everything that a page has to send with a session, see `packages/server/src/dashboard/sessions.ts`. */
const HEADERS = { 'x-impresario-dashboard': '1', accept: 'application/json' } as const

const listeners = new Set<() => void>()

/** Calls back when the server says that nobody is signed in. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function apiUrl(path: string, query: Query = {}): URL {
  const url = new URL(path.replace(/^\//, ''), API)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/** Of the server itself, outside of the client API. */
export function rootUrl(path: string): URL {
  return new URL(path, ROOT)
}

export async function request(url: URL, init: Init = {}): Promise<Response> {
  let response: Response
  try {
    response = await fetch(url, {
      credentials: 'same-origin',
      ...init,
      headers: { ...HEADERS, ...(init.body === undefined || init.body === null ? {} : JSON_BODY), ...init.headers },
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, 'UNREACHABLE', 'The server cannot be reached.')
  }
  if (response.ok) return response
  const failure = await failureOf(response)
  if (response.status === 401) for (const listener of listeners) listener()
  throw failure
}

/** Headers as a plain object, so that ours can be added. */
type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> }

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
  return { items, next: response.headers.get('x-next-cursor') ?? undefined }
}

export async function send<T>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T> {
  return bodyOf(await request(apiUrl(path), withBody(method, body)))
}

export async function sendRoot<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  return bodyOf(await request(rootUrl(path), withBody(method, body)))
}

function withBody(method: string, body: unknown): Init {
  return body === undefined ? { method } : { method, body: stringifyExact(body) }
}
