import { randomBytes } from 'node:crypto'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import type { ImpresarioError } from '@impresario/protocol'
import { forBearers } from '../http/access.ts'
import { pathOf, refusalOf } from '../http/problem.ts'
import { errorFields } from '../runtime/log.ts'
import { InvalidInput } from './input.ts'
import type { InputProblem } from './input.ts'

/** The old system wrote times in UTC, with microseconds and an offset. Older Python reads no `Z`. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000+00:00')
}

export function stampOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : stamp(ms)
}

/** The answer to a command. */
export interface Operation {
  readonly success: true
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export function operation(message: string, details: Operation['details'] = {}): Operation {
  return { success: true, message, details }
}

const REQUEST_IDS = new WeakMap<FastifyRequest, string>()

/** The name of a request, for its answer and for whoever looks for it. */
export function requestIdOf(request: FastifyRequest): string {
  const known = REQUEST_IDS.get(request)
  if (known !== undefined) return known
  const made = `req-${randomBytes(4).toString('hex')}`
  REQUEST_IDS.set(request, made)
  return made
}

const NAMES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  413: 'request_too_large',
  415: 'unsupported_media_type',
  429: 'too_many_requests',
  503: 'service_unavailable',
}

/** Gives every answer of these routes the form that clients of the old system know, refusals too. */
export function answerAsBefore(app: FastifyInstance, log: Log): void {
  app.addHook('onSend', async (request, reply) => {
    void reply.header('x-request-id', requestIdOf(request))
  })
  app.setErrorHandler((error: FastifyError | InvalidInput, request, reply) => {
    if (error instanceof InvalidInput) {
      sendInvalid(request, reply, error.problems)
      return
    }
    const refusal = refusalOf(error)
    const { status, code, details } = refusal
    request.refusal = { code, reason: typeof details['reason'] === 'string' ? details['reason'] : undefined }
    if (status >= 500 && code !== 'OVERLOADED') {
      log.error('a request failed', { method: request.method, path: pathOf(request), ...errorFields(error) })
    }
    if (INVALID.has(code)) sendInvalid(request, reply, [problemOf(refusal)])
    else sendEnvelope(request, reply, refusal)
  })
}

/** What the old system refused with 422 and a list of problems. */
const INVALID: ReadonlySet<string> = new Set(['INPUT_REFUSED', 'LIMIT_EXCEEDED', 'INVALID_REQUEST', 'INVALID_JSON'])

function sendInvalid(request: FastifyRequest, reply: FastifyReply, problems: readonly InputProblem[]): void {
  request.refusal ??= { code: 'INPUT_REFUSED', reason: undefined }
  void reply
    .code(422)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ detail: problems }))
}

function sendEnvelope(request: FastifyRequest, reply: FastifyReply, refusal: ImpresarioError): void {
  // The old system knew no 409: what the state of a task does not allow was a bad request.
  const status = refusal.status === 409 ? 400 : refusal.status
  const isOurs = status >= 500 && status !== 503
  const retryAfter = refusal.details['retry_after_s'] ?? (refusal.retry === 'later' ? 1 : undefined)
  if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter))
  const body = {
    error: NAMES[status] ?? (isOurs ? 'internal_server_error' : 'bad_request'),
    message: isOurs ? 'Internal error' : forBearers(refusal.message),
    details: { code: isOurs ? 'INTERNAL' : refusal.code },
    request_id: requestIdOf(request),
    timestamp: stamp(Date.now()),
  }
  void reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body))
}

function problemOf({ message, details, code }: ImpresarioError): InputProblem {
  const { field } = details
  const loc = typeof field === 'string' ? oldPlaceOf(field) : []
  const type = code === 'INVALID_JSON' ? 'json_invalid' : 'value_error'
  return { loc: ['body', ...loc], msg: message, type }
}

/** Where clients of the old system wrote what a definition of ours has elsewhere. */
const PLACES: readonly (readonly [RegExp, string])[] = [
  [/^triggers\b.*/, 'schedule_expr'],
  [/^(?=pipeline\b|params\b)/, 'payload.'],
  [/^retry\.backoff$/, 'backoff_strategy'],
  [/^retry\.max_retries$/, 'max_retries'],
  [/^concurrency\b.*/, 'concurrency_key'],
  [/^dedupe\b.*/, 'dedupe_key'],
]

function oldPlaceOf(field: string): readonly (string | number)[] {
  const found = PLACES.find(([pattern]) => pattern.test(field))
  const place = found === undefined ? field : field.replace(found[0], found[1])
  return place
    .split(/[.[\]]+/)
    .filter((part) => part !== '')
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
}
