/** Every error that Impresario can return, and how a caller should handle it. Codes are never renamed. */
const CATALOGUE = {
  INVALID_REQUEST: { status: 400, retry: 'never' },
  INVALID_JSON: { status: 400, retry: 'never' },
  UNAUTHENTICATED: { status: 401, retry: 'never' },
  FORBIDDEN: { status: 403, retry: 'never' },
  NOT_FOUND: { status: 404, retry: 'never' },
  JOB_NOT_FOUND: { status: 404, retry: 'never' },
  BLUEPRINT_NOT_FOUND: { status: 404, retry: 'never' },
  WORKER_NOT_FOUND: { status: 404, retry: 'never' },
  FILE_NOT_FOUND: { status: 404, retry: 'never' },
  METHOD_NOT_ALLOWED: { status: 405, retry: 'never' },
  REQUEST_TIMEOUT: { status: 408, retry: 'later' },
  CONFLICT: { status: 409, retry: 'now' },
  NOT_WAITING: { status: 409, retry: 'never' },
  STATE_MISSING: { status: 409, retry: 'never' },
  STALE_DECISION: { status: 409, retry: 'never' },
  STALE_REVISION: { status: 412, retry: 'never' },
  BODY_TOO_LARGE: { status: 413, retry: 'never' },
  FILE_TOO_LARGE: { status: 413, retry: 'never' },
  UNSUPPORTED_MEDIA: { status: 415, retry: 'never' },
  RANGE_NOT_SATISFIABLE: { status: 416, retry: 'never' },
  INPUT_REFUSED: { status: 422, retry: 'never' },
  LIMIT_EXCEEDED: { status: 422, retry: 'never' },
  FILE_MISMATCH: { status: 422, retry: 'now' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, retry: 'never' },
  QUOTA_EXCEEDED: { status: 429, retry: 'never' },
  TOO_MANY_REQUESTS: { status: 429, retry: 'later' },
  QUEUE_FULL: { status: 429, retry: 'later' },
  HEADERS_TOO_LARGE: { status: 431, retry: 'never' },
  INTERNAL: { status: 500, retry: 'later' },
  OVERLOADED: { status: 503, retry: 'later' },
  SHUTTING_DOWN: { status: 503, retry: 'later' },
  STORAGE_REFUSED: { status: 503, retry: 'later' },
  STORAGE_UNAVAILABLE: { status: 503, retry: 'later' },
  FILES_UNAVAILABLE: { status: 503, retry: 'later' },
  INVALID_BLUEPRINT: { status: 500, retry: 'never' },
  INVALID_EXPRESSION: { status: 500, retry: 'never' },
  INVALID_CONFIGURATION: { status: 500, retry: 'never' },
} as const satisfies Record<string, { readonly status: number; readonly retry: 'never' | 'now' | 'later' }>

export type ErrorCode = keyof typeof CATALOGUE
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(CATALOGUE) as ErrorCode[]

/** One of several things that are wrong with what was sent: where, and what. */
export interface FieldProblem {
  /** Such as `pipeline[2].with.url`. */
  readonly field: string
  /** The id of the step of a pipeline, where there is one. */
  readonly step?: string
  readonly message: string
}

interface ErrorOptions {
  readonly details?: Readonly<Record<string, string | number>>
  readonly problems?: readonly FieldProblem[]
  readonly cause?: unknown
}

/**
 * An error that a caller can act on. Any other error is a bug in this program.
 *
 * The code is the contract; the message is for people and may change. Compare codes, not classes: a package that is
 * installed twice breaks `instanceof`.
 */
export class ImpresarioError extends Error {
  override readonly name = 'ImpresarioError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, string | number>>
  /** All that is wrong, by field, where the message names several things. */
  readonly problems: readonly FieldProblem[]

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
    this.problems = options.problems ?? []
  }

  get status(): number {
    return CATALOGUE[this.code].status
  }

  get retry(): 'never' | 'now' | 'later' {
    return CATALOGUE[this.code].retry
  }
}

export function isImpresarioError(value: unknown, code?: ErrorCode): value is ImpresarioError {
  return (
    value instanceof Error &&
    value.name === 'ImpresarioError' &&
    'code' in value &&
    (code === undefined || value.code === code)
  )
}
