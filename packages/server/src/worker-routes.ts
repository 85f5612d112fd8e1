import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock, Log } from '@impresario/core'
import type { Desk, Handout } from '@impresario/engine'
import { HEADERS, ImpresarioError, isJsonObject, LIMITS, WIRE_VERSION } from '@impresario/protocol'
import type {
  EventRequest,
  HeartbeatRequest,
  RegisterReply,
  RegisterRequest,
  ResultReply,
  TaskBatchRequest,
} from '@impresario/protocol'
import { eventRequest, heartbeatRequest, registerRequest, taskBatchRequest } from '@impresario/protocol/schemas'
import type { TokenHash, WorkerAuth } from './auth.ts'
import { ifNotSent } from './connection.ts'
import type { OpenWaits } from './connection.ts'
import { jsonSchema } from './json-schema.ts'
import { errorFields } from './log.ts'
import { readReport, receiptBody, taskBody } from './wire-worker.ts'
import { registerWorker, takeEvent, takeHeartbeat, takeResults } from './worker-calls.ts'

export interface WorkerRoutesOptions {
  readonly desk: Desk
  readonly auth: WorkerAuth
  readonly clock: Clock
  readonly log: Log
  readonly waits: OpenWaits
  readonly pollMs: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The worker that makes this request, once it is known. */
    workerId: string | undefined
    workerToken: TokenHash | undefined
  }
}

interface Params {
  readonly workerId: string
}

const REGISTER_SCHEMA = jsonSchema(registerRequest)
const BATCH_SCHEMA = jsonSchema(taskBatchRequest)
const EVENT_SCHEMA = jsonSchema(eventRequest)
const HEARTBEAT_SCHEMA = { anyOf: [{ type: 'null' }, jsonSchema(heartbeatRequest)] }

/** The worker protocol. The transport is all that happens here: the desk decides. */
export function registerWorkerRoutes(app: FastifyInstance, options: WorkerRoutesOptions): void {
  const { auth } = options
  app.decorateRequest('workerId', undefined)
  app.decorateRequest('workerToken', undefined)
  app.addHook('onRequest', async (request, reply) => {
    void reply.header(HEADERS.wireVersion, WIRE_VERSION)
    request.workerToken = auth.recognise(request.headers)
  })
  app.addHook('preValidation', async (request) => {
    request.workerId = auth.identify(request.workerToken, hintedId(request))
  })
  registerLifeRoutes(app, options)
  registerPollRoutes(app, options)
  registerResultRoutes(app, options)
}

/** The id from the path, the header or the body; where two of them differ the request is refused. */
function hintedId(request: FastifyRequest): string | undefined {
  const { params, headers, body } = request
  const inPath = isJsonObject(params) ? params['workerId'] : undefined
  const inHeader = headers[HEADERS.workerId]
  const inBody = isJsonObject(body) ? body['worker_id'] : undefined
  const hints = [inPath, inHeader, inBody].filter((hint) => typeof hint === 'string' && hint !== '')
  const [first] = hints
  if (typeof first !== 'string') return undefined
  if (hints.some((hint) => hint !== first)) {
    throw new ImpresarioError('FORBIDDEN', 'The worker ids of the path, the header and the body differ.')
  }
  return first
}

function registerLifeRoutes(app: FastifyInstance, { desk, clock }: WorkerRoutesOptions): void {
  app.post<{ Body: RegisterRequest }>(
    '/workers/register',
    { schema: { body: REGISTER_SCHEMA } },
    async (request): Promise<RegisterReply> => {
      const reply = await registerWorker(desk, clock, request.body)
      const said = request.headers[HEADERS.wireVersion]
      if (typeof said !== 'string' || majorOf(said) === majorOf(WIRE_VERSION)) return reply
      const { batch: _, ...known } = reply
      const warning = `The worker speaks version ${said.slice(0, 32)} of the protocol, this server ${WIRE_VERSION}.`
      return { ...known, warning }
    },
  )

  app.patch<{ Params: Params; Body: HeartbeatRequest | null | undefined }>(
    '/workers/:workerId',
    { schema: { body: HEARTBEAT_SCHEMA } },
    (request) => takeHeartbeat(desk, request.params.workerId, request.body),
  )

  app.post<{ Body: EventRequest }>('/events', { schema: { body: EVENT_SCHEMA } }, (request) =>
    takeEvent(desk, request.workerId, request.body),
  )
}

/** Workers of another line of versions may refuse fields that they do not know, so they get none. */
function majorOf(version: string): string {
  return version.split('.', 1)[0] ?? version
}

function registerPollRoutes(app: FastifyInstance, options: WorkerRoutesOptions): void {
  app.get<{ Params: Params; Querystring: { timeout?: string } }>(
    '/workers/:workerId/tasks/next',
    async (request, reply) => {
      const timeout = Number(request.query.timeout)
      const handout = await poll(options, reply, { workerId: request.params.workerId, limit: 1, timeout })
      const [delivery] = handout.deliveries
      if (delivery === undefined) return reply.code(204).send()
      const { traceparent } = delivery.tracing
      if (traceparent !== undefined) void reply.header(HEADERS.traceparent, traceparent)
      return sendJson(reply, taskBody(delivery))
    },
  )

  app.post<{ Params: Params; Body: TaskBatchRequest }>(
    '/workers/:workerId/tasks/batch',
    { schema: { body: BATCH_SCHEMA } },
    async (request, reply) => {
      const { limit, timeout } = request.body
      const { workerId } = request.params
      const handout = await poll(options, reply, { workerId, limit, timeout: timeout ?? Number.NaN })
      return sendJson(reply, { tasks: handout.deliveries.map((delivery) => taskBody(delivery)) })
    },
  )
}

interface Poll {
  readonly workerId: string
  readonly limit: number
  /** Seconds; anything that is not a span means the default. */
  readonly timeout: number
}

/** Waits for tasks as long as the caller is there. What cannot be handed over goes back into the queue at once. */
async function poll(options: WorkerRoutesOptions, reply: FastifyReply, wanted: Poll): Promise<Handout> {
  const { desk, waits, log, pollMs } = options
  const { workerId, limit, timeout } = wanted
  const waitMs = Number.isFinite(timeout) && timeout >= 0 ? Math.min(timeout * 1_000, LIMITS.longPollMsMax) : pollMs
  const wait = waits.begin(reply)
  try {
    const handout = await desk.poll(workerId, { limit, waitMs, signal: wait.signal })
    if (handout.deliveries.length > 0) {
      ifNotSent(reply, () => {
        handout.giveBack().catch((error: unknown) => {
          log.warn('tasks could not be given back; they return when their leases end', {
            worker_id: workerId,
            ...errorFields(error),
          })
        })
      })
    }
    return handout
  } finally {
    wait.end()
  }
}

function sendJson(reply: FastifyReply, body: unknown): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(body))
}

function registerResultRoutes(app: FastifyInstance, { desk }: WorkerRoutesOptions): void {
  app.post('/tasks/result', async (request): Promise<ResultReply> => {
    const report = readReport(request.body)
    if ('error' in report && 'code' in report) throw new ImpresarioError('INVALID_REQUEST', report.error)
    const [receipt] = await desk.results(workerOf(request), [report])
    return receipt === undefined ? { status: 'ignored', reason: 'stale_task' } : receiptBody(receipt, report.status)
  })

  app.post('/tasks/results', async (request, reply) => {
    const { body } = request
    const items = isJsonObject(body) ? body['results'] : undefined
    if (!Array.isArray(items) || items.length > LIMITS.batchItemsMax) {
      throw new ImpresarioError('INVALID_REQUEST', `"results" must be a list of at most ${LIMITS.batchItemsMax}.`)
    }
    return sendJson(reply, { results: await takeResults(desk, workerOf(request), items) })
  })
}

function workerOf(request: FastifyRequest): string {
  const { workerId } = request
  if (workerId === undefined) throw new ImpresarioError('INVALID_REQUEST', 'worker_id is required.')
  return workerId
}
