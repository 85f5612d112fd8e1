import { isJsonObject } from '@impresario/protocol'
import type { ErrorCode, Json, JsonObject } from '@impresario/protocol'

/** One request to the client API, in the name of whoever called the MCP server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the prefix of the API and its version: `/jobs`. Names inside are escaped already. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: JsonObject
  /** A repeated request with the same key has the same effect once. */
  readonly idempotencyKey?: string | undefined
  /** Outside of the prefix: the path is complete. */
  readonly isAbsolute?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface ApiReply {
  readonly body: Json
  /** Where the next page of a list begins. */
  readonly nextCursor: string | undefined
}

/**
 * The client API as one caller reaches it. Every tool goes through it, so that tokens, scopes, quotas, limits and checks of
 * input are those of the routes, and exist once.
 */
export interface Api {
  /** Rejects with `ApiError` for every refusal. */
  call(request: ApiRequest): Promise<ApiReply>
  /** Whether the caller may use what needs this scope. For the list of tools: the routes decide. */
  allows(scope: string): boolean
}

/** A refusal by the API. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode | 'UNKNOWN'
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, body: Json, retryAfterSeconds?: number) {
    super(textOf(body) ?? `The server refused the request with status ${status}.`)
    this.status = status
    this.code = codeOf(body)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

function textOf(body: Json): string | undefined {
  return isJsonObject(body) && typeof body['error'] === 'string' ? body['error'] : undefined
}

/** Boundary: the server sends codes of the catalogue only. */
function codeOf(body: Json): ErrorCode | 'UNKNOWN' {
  return isJsonObject(body) && typeof body['code'] === 'string' ? (body['code'] as ErrorCode) : 'UNKNOWN'
}

/** A path from its parts; each part that is a name is escaped. Two dots would lead to another route, escaped or not. */
export function pathTo(...parts: readonly string[]): string {
  if (parts.some((part) => part === '.' || part === '..' || part === '')) {
    throw new ApiError(404, { error: 'There is nothing of this name.', code: 'NOT_FOUND' })
  }
  return parts.map((part) => `/${encodeURIComponent(part.replaceAll(LONE_SURROGATES, '\uFFFD'))}`).join('')
}

/** Half a character, which no address can hold. */
const LONE_SURROGATES = /\p{Cs}/gu
