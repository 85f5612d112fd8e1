import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { ErrorBody, ErrorCode } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'

/** What Fastify refuses by itself, in the words of our catalogue. */
const FASTIFY_CODES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'The body is too large.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['INVALID_JSON', 'Invalid JSON body'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['INVALID_JSON', 'Invalid JSON body'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['INVALID_REQUEST', 'The body is not as long as its header says.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['UNSUPPORTED_MEDIA', 'Send JSON, with the content type application/json.'],
}

/** Every refusal has one shape: `error` for people, `code` for programs, and the fields of RFC 9457 beside them. */
export function problemBody(error: ImpresarioError): ErrorBody {
  // What went wrong inside is for the log, not for the outside.
  const isOurs = error.status >= 500 && error.status !== 503
  const text = isOurs ? 'Internal error' : error.message
  const code = isOurs ? 'INTERNAL' : error.code
  return {
    error: text,
    code,
    type: `urn:impresario:error:${code}`,
    title: titleOf(code),
    status: error.status,
    detail: text,
    ...(isOurs || error.problems.length === 0 ? {} : { problems: error.problems }),
  }
}

function titleOf(code: string): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** A refusal as it is sent. `accept`: what the caller says that it reads. */
export function problemAnswer(
  error: ImpresarioError,
  accept: string | undefined,
): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly text: string } {
  const accepts = accept?.includes('application/problem+json') === true
  const retryAfter = error.details['retry_after_s'] ?? (error.retry === 'later' ? 1 : undefined)
  return {
    status: error.status,
    headers: {
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      'content-type': `application/${accepts ? 'problem+json' : 'json'}; charset=utf-8`,
    },
    text: JSON.stringify(problemBody(error)),
  }
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, error: ImpresarioError): void {
  const { status, headers, text } = problemAnswer(error, request.headers.accept)
  void reply.code(status).headers(headers).send(text)
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Why it was refused, for the metrics. */
    refusal: { readonly code: ErrorCode; readonly reason: string | undefined } | undefined
  }
}

function reasonOf({ details }: ImpresarioError): string | undefined {
  const { reason } = details
  return typeof reason === 'string' ? reason : undefined
}

/** Errors of a connection whose other side has gone. The answer reaches nobody, and the caller is not a failure of ours. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

export function createErrorHandler(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = refusalOf(error)
    request.refusal = { code: refusal.code, reason: reasonOf(refusal) }
    logFailure(log, request, error, refusal)
    sendProblem(request, reply, refusal)
  }
}

/** Too much work is told once in a while by whoever refuses it, and not for each request: that would be more work. */
export function logFailure(
  log: Log,
  request: Pick<FastifyRequest, 'method' | 'url'>,
  error: unknown,
  { status, code }: ImpresarioError,
): void {
  if (status < 500 || code === 'OVERLOADED') return
  log.error('a request failed', { method: request.method, path: pathOf(request), ...errorFields(error) })
}

/** Without the query: it may contain private data. */
export function pathOf(request: Pick<FastifyRequest, 'url'>): string {
  return request.url.split('?', 1)[0] ?? request.url
}

/** The refusal that an error is, whoever threw it. */
export function refusalOf(error: Error & Partial<FastifyError>): ImpresarioError {
  if (isImpresarioError(error)) return error
  if (error.validation !== undefined) return new ImpresarioError('INVALID_REQUEST', withChoices(error))
  const { code = '' } = error
  if (GONE.has(code)) {
    return new ImpresarioError('INVALID_REQUEST', 'The connection closed before the body ended.')
  }
  const known = FASTIFY_CODES[code]
  if (known !== undefined) return new ImpresarioError(known[0], known[1])
  const status = error.statusCode ?? 500
  if (status >= 400 && status < 500) return new ImpresarioError('INVALID_REQUEST', error.message)
  return new ImpresarioError('INTERNAL', 'Internal error', { cause: error })
}

const CHOICES_MAX = 30

/** What a schema allows is said too, where it is a list of words. */
function withChoices({ message, validation = [] }: Error & Partial<FastifyError>): string {
  const allowed: unknown = validation[0]?.params['allowedValues']
  const isShort = Array.isArray(allowed) && allowed.length <= CHOICES_MAX && message.endsWith('allowed values')
  return isShort ? `${message}: ${allowed.join(', ')}` : message
}
