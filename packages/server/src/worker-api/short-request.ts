import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { exactText, LIMITS } from '@impresario/protocol'
import type { HeartbeatRequest, TaskBatchRequest } from '@impresario/protocol'
import { Ajv } from 'ajv'
import type { FastifyContextConfig, FastifySchema } from 'fastify'
import { checkJsonText } from '../http/json-guard.ts'
import { WORKER_ROUTES } from './worker-route-table.ts'

/** One of the routes that idle workers call. */
export interface ShortRoute {
  readonly method: string
  /** As the metrics name it. */
  readonly url: string
  readonly config: FastifyContextConfig
  readonly schema: FastifySchema
}

function under(prefix: string, { method, url, config, schema }: ShortRoute): ShortRoute {
  return { method, url: `${prefix}${url}`, config, schema }
}

export const HEARTBEAT = under('/_worker', WORKER_ROUTES.heartbeat)
export const NEXT_TASK = under('/_worker', WORKER_ROUTES.nextTask)
const TASK_BATCH = under('/_worker', WORKER_ROUTES.taskBatch)

const START = '/_worker/workers/'
/** Ids and queries that mean what they look like: nothing in them has to be decoded. */
const PATH = /^\/_worker\/workers\/([\w.~-]{1,200})(\/tasks\/next|\/tasks\/batch|)(?:\?([\w.,=&~-]{0,500}))?$/

/** What was asked for, as far as the path tells. */
export interface Asked {
  readonly route: ShortRoute
  readonly workerId: string
  readonly query: string
}

/** `undefined` for whatever is not as plain as idle workers send it. */
export function askedIn(request: IncomingMessage): Asked | undefined {
  const { url = '', method } = request
  if (!url.startsWith(START) || (method !== 'GET' && method !== 'POST' && method !== 'PATCH')) return undefined
  const [, workerId, rest, query] = PATH.exec(url) ?? []
  const route = method === 'PATCH' ? HEARTBEAT : method === 'GET' ? NEXT_TASK : TASK_BATCH
  const isRoute = rest === (route === HEARTBEAT ? '' : route === NEXT_TASK ? '/tasks/next' : '/tasks/batch')
  if (workerId === undefined || !isRoute || (query !== undefined && route !== NEXT_TASK)) return undefined
  return isPlain(request, route) ? { route, workerId, query: query ?? '' } : undefined
}

/** Headers that ask for something else than a plain answer to a plain request. */
const UNUSUAL = ['transfer-encoding', 'content-encoding', 'origin', 'expect', 'upgrade', 'traceparent', 'tracestate']

/** Longer bodies are those of workers that say more of themselves than idle ones do. */
const BODY_BYTES_MAX = 4_096
const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i

function isPlain({ headers, httpVersion }: IncomingMessage, route: ShortRoute): boolean {
  if (httpVersion !== '1.1' || headers.host === undefined) return false
  for (const name of UNUSUAL) if (headers[name] !== undefined) return false
  const { 'content-length': length, 'content-type': type } = headers
  if (route === NEXT_TASK) return length === undefined || length === '0'
  if (length === '0' || (length === undefined && type === undefined)) return route === HEARTBEAT
  if (length === undefined || !/^[1-9]\d{0,3}$/.test(length) || Number(length) > BODY_BYTES_MAX) return false
  return JSON_TYPE.test(type ?? '')
}

const FORWARDED = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host']

/** Whether it came through a proxy, as that says. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return FORWARDED.some((name) => headers[name] !== undefined)
}

/** As Fastify checks it. */
const ajv = new Ajv({ strict: false })
const fitsBatch = ajv.compile<TaskBatchRequest>(WORKER_ROUTES.taskBatch.schema.body as object)
const fitsHeartbeat = ajv.compile<HeartbeatRequest | null>(WORKER_ROUTES.heartbeat.schema.body as object)

/** Names that a prototype has, in any spelling; the general parser looks at them more closely. */
const SUSPECT = /__proto__|constructor|\\u/

/**
 * The body as it is read in the general way, if it has come as a whole and is good: `{}` around it, because there may be none.
 * It stays where it is, so that others can read it; see `drop`.
 */
export function peek(
  request: IncomingMessage,
  route: ShortRoute,
): { readonly body: TaskBatchRequest | HeartbeatRequest | null | undefined } | undefined {
  const length = Number(request.headers['content-length'] ?? 0)
  if (length === 0) return { body: undefined }
  if (request.readableLength !== length) return undefined
  const bytes: unknown = request.read()
  if (!Buffer.isBuffer(bytes)) return undefined
  request.unshift(bytes)
  const text = bytes.toString()
  // Bytes that are no text, or another number of them than was said.
  if (SUSPECT.test(text) || Buffer.byteLength(text) !== length) return undefined
  try {
    checkJsonText(text)
    if (exactText(text) !== text) return undefined
    const body: unknown = JSON.parse(text)
    const fits = route === TASK_BATCH ? fitsBatch : fitsHeartbeat
    return fits(body) ? { body } : undefined
  } catch {
    return undefined
  }
}

/** Takes the body away: nobody else reads it. */
export function drop(request: IncomingMessage): void {
  request.resume()
}

/** The value of the last parameter of this name, as the general way reads it. */
export function inQuery(query: string, name: string): string | undefined {
  return query === '' ? undefined : (new URLSearchParams(query).getAll(name).at(-1) ?? undefined)
}

/** Seconds as the worker named them; anything that is not a span means the default. */
export function waitOf(seconds: number, pollMs: number): number {
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1_000, LIMITS.longPollMsMax) : pollMs
}

/** An empty list says that nothing can be started now; no list at all says nothing. */
export function namesIn(list: string | undefined): readonly string[] | undefined {
  return list?.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()]))
}
