import { ERROR_CODES, ImpresarioError, isJsonObject, type ErrorCode, type FieldProblem } from '@impresario/protocol'
import type { Job } from './views.ts'

/** The server could not be reached, or did not answer in time. Whether it acted is unknown. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
}

/** A job that has given no result: it failed, was cancelled, or stands in quarantine. */
export class JobFailedError extends Error {
  override readonly name = 'JobFailedError'
  readonly job: Job
  /** Why, as `job.errorCode` says. */
  readonly code: string | undefined

  constructor(job: Job) {
    super(`Job ${job.id} is "${job.status}"${job.errorMessage === undefined ? '.' : `: ${job.errorMessage}`}`)
    this.job = job
    this.code = job.errorCode
  }
}

/** Waiting took longer than allowed. The job goes on. */
export class WaitTimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

const BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'INVALID_REQUEST',
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  409: 'CONFLICT',
  413: 'BODY_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA',
  422: 'INPUT_REFUSED',
  429: 'TOO_MANY_REQUESTS',
  503: 'SHUTTING_DOWN',
}

function isErrorCode(value: unknown): value is ErrorCode {
  return ERROR_CODES.some((code) => code === value)
}

/**
 * What a server refused, as an error with the server's own code; by the status when it is one we don't know. When the
 * server said how long to wait, `details.retry_after_s` says it too.
 */
export function refusalOf(status: number, body: unknown, retryAfterSeconds?: number): ImpresarioError {
  const fields = isJsonObject(body) ? body : {}
  const { code, error, detail } = fields
  const known = isErrorCode(code) ? code : (BY_STATUS[status] ?? 'INTERNAL')
  const sentence = typeof error === 'string' ? error : detail
  const details = {
    status,
    ...(typeof code === 'string' && !isErrorCode(code) ? { code } : {}),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_s: retryAfterSeconds }),
  }
  const message = typeof sentence === 'string' ? sentence : `The server answered ${status}.`
  const refusal = new ImpresarioError(known, message, { details, problems: problemsIn(fields['problems']) })
  if (known === 'TOO_MANY_REQUESTS' || code === 'SHUTTING_DOWN' || code === 'OVERLOADED') turnedAway.add(refusal)
  return refusal
}

/** A server may be newer than this client: what has another shape is left out. */
function problemsIn(value: unknown): readonly FieldProblem[] {
  if (!Array.isArray(value)) return []
  return value.filter(isJsonObject).flatMap(({ field, step, message }) => {
    if (typeof field !== 'string' || typeof message !== 'string') return []
    return [{ field, message, ...(typeof step === 'string' ? { step } : {}) }]
  })
}

const turnedAway = new WeakSet<object>()

/**
 * A request that was turned away at the door has done nothing, so that even what must not be done twice may be sent again. A
 * server of ours that is about to stop does that by its own code; a proxy's 503 may come after the request was passed on.
 */
export function isTurnedAway(error: unknown): boolean {
  return typeof error === 'object' && error !== null && turnedAway.has(error)
}
