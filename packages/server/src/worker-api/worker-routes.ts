import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import type { PollOptions } from '@impresario/engine'
import { HEADERS, ImpresarioError, isJsonObject, LIMITS, WIRE_VERSION, writeJson } from '@impresario/protocol'
import type {
  EventReply,
  EventRequest,
  HeartbeatRequest,
  RegisterReply,
  RegisterRequest,
  TaskBatchRequest,
} from '@impresario/protocol'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { ifNotSent } from '../http/connection.ts'
import type { OpenWaits } from '../http/connection.ts'
import {
  isOldestHeartbeat,
  isOldestResult,
  oldestHeartbeatReply,
  oldestResultReply,
  versionFor,
  versionWarning,
} from '../worker-protocol/generation.ts'
import { inSlices } from '../runtime/in-slices.ts'
import { errorFields } from '../runtime/log.ts'
import { refuseRepeated } from '../auth/signatures.ts'
import type { Signatures } from '../auth/signatures.ts'
import type { TaskFileDesk } from '../files/task-file-desk.ts'
import { registerTaskFileRoutes } from './file-routes.ts'
import { namesIn, waitOf } from './short-request.ts'
import { registerSocketRoutes } from './socket-routes.ts'
import type { Sockets } from './sockets.ts'
import { registerTokenRoutes } from './token-routes.ts'
import type { WorkerAuth } from '../auth/worker-auth.ts'
import type { WireHandout, WorkerGateway } from '../worker-protocol/worker-gateway.ts'
import { WORKER_ROUTES } from './worker-route-table.ts'
import { identifyWorkers, workerOf } from '../auth/worker-identity.ts'

export interface WorkerRoutesOptions {
  readonly gateway: WorkerGateway
  readonly auth: WorkerAuth
  readonly tokens: AccessTokens
  readonly signatures: Signatures
  readonly sockets: Sockets
  readonly log: Log
  readonly waits: OpenWaits
  readonly pollMs: number
  readonly taskFiles: TaskFileDesk
}

interface Params {
  readonly workerId: string
}

/** The worker protocol. The transport is all that happens here: the desk decides. */
export function registerWorkerRoutes(app: FastifyInstance, options: WorkerRoutesOptions): void {
  identifyWorkers(app, options)
  registerLifeRoutes(app, options)
  registerPollRoutes(app, options)
  registerResultRoutes(app, options)
  registerTokenRoutes(app, options)
  registerTaskFileRoutes(app, options.taskFiles)
  registerSocketRoutes(app, options.sockets)
}

function registerLifeRoutes(app: FastifyInstance, { gateway }: WorkerRoutesOptions): void {
  app.route<{ Body: RegisterRequest }>({
    ...WORKER_ROUTES.register,
    handler: async (request): Promise<RegisterReply> => {
      // Two registrations of one second may be the same to the last letter: the second says nothing new.
      const isKnown = request.freshness === 'repeated' && (await gateway.isRegistered(request.body.worker_id))
      const reply = isKnown ? gateway.registered() : await gateway.register(request.body)
      const { headers } = request
      const version = versionFor(headers)
      const warning = versionWarning(headers)
      if (warning === undefined && majorOf(version) === majorOf(WIRE_VERSION)) return { ...reply, version }
      const { batch: _, ...known } = reply
      return { ...known, version, ...(warning === undefined ? {} : { warning }) }
    },
  })

  app.route<{ Params: Params; Body: HeartbeatRequest | null | undefined }>({
    ...WORKER_ROUTES.heartbeat,
    handler: async (request) => {
      const { headers, params, body } = request
      // Two heartbeats of one second may be the same to the last letter: the second says nothing new.
      if (request.freshness === 'repeated') return { status: 'ok' }
      const { reply, worker } = await gateway.heartbeat(params.workerId, body)
      return isOldestHeartbeat(headers, body) ? oldestHeartbeatReply(gateway.shown(worker), reply) : reply
    },
  })

  app.route<{ Body: EventRequest }>({
    ...WORKER_ROUTES.event,
    attachValidation: true,
    handler: async (request): Promise<EventReply> => {
      const { validationError } = request
      if (validationError !== undefined) {
        return { status: 'error', code: 'INVALID_REQUEST', message: validationError.message }
      }
      refuseRepeated(request.freshness)
      return gateway.event(request.workerId, request.body)
    },
  })
}

/** Workers of another line of versions may refuse fields that they do not know, so they get none. */
function majorOf(version: string): string {
  return version.split('.', 1)[0] ?? version
}

interface PollQuery {
  readonly timeout?: string
  readonly available_skills?: string
  readonly hot_skills?: string
}

function registerPollRoutes(app: FastifyInstance, options: WorkerRoutesOptions): void {
  app.route<{ Params: Params; Querystring: PollQuery }>({
    ...WORKER_ROUTES.nextTask,
    handler: async (request, reply) => {
      const { timeout, available_skills: available, hot_skills: hot } = request.query
      const handout = await poll(options, reply, request.params.workerId, {
        limit: 1,
        waitMs: waitOf(Number(timeout), options.pollMs),
        availableSkills: namesIn(available),
        hotSkills: namesIn(hot),
      })
      const [task] = handout.tasks
      if (task === undefined) return reply.code(204).send()
      const { traceparent, tracestate } = task.tracing_context ?? {}
      if (traceparent !== undefined) void reply.header(HEADERS.traceparent, traceparent)
      if (tracestate !== undefined) void reply.header(HEADERS.tracestate, tracestate)
      return sendJson(reply, task)
    },
  })

  app.route<{ Params: Params; Body: TaskBatchRequest }>({
    ...WORKER_ROUTES.taskBatch,
    handler: async (request, reply) => {
      const { limit, timeout, available_skills: available, hot_skills: hot } = request.body
      const { tasks, cancelled } = await poll(options, reply, request.params.workerId, {
        limit,
        waitMs: waitOf(timeout ?? Number.NaN, options.pollMs),
        availableSkills: available ?? undefined,
        hotSkills: hot ?? undefined,
        wantsCancelled: true,
      })
      return sendJson(reply, { tasks, ...(cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }) })
    },
  })
}

/** Waits for tasks as long as the caller is there. What cannot be handed over goes back into the queue at once. */
async function poll(
  { gateway, waits, log }: WorkerRoutesOptions,
  reply: FastifyReply,
  workerId: string,
  wanted: Omit<PollOptions, 'signal'>,
): Promise<WireHandout> {
  const wait = waits.begin(reply)
  try {
    const handout = await gateway.poll(workerId, { ...wanted, signal: wait.signal })
    if (handout.tasks.length > 0) {
      reply.request.hasBrought = true
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
  return reply.header('content-type', 'application/json; charset=utf-8').send(writeJson(body))
}

/** A signed result may be repeated without harm: each delivery of a task counts once. */
function registerResultRoutes(app: FastifyInstance, { gateway }: WorkerRoutesOptions): void {
  app.route({
    ...WORKER_ROUTES.result,
    handler: async (request) => {
      const reply = await gateway.result(workerOf(request), request.body)
      return isOldestResult(request.headers, request.body) ? oldestResultReply(reply) : reply
    },
  })

  app.route({
    ...WORKER_ROUTES.results,
    handler: async (request, reply) => {
      const workerId = workerOf(request)
      return sendJson(reply, {
        results: await inSlices(resultsIn(request), (slice) => gateway.results(workerId, slice)),
      })
    },
  })
}

function resultsIn({ body }: FastifyRequest): readonly unknown[] {
  const items = isJsonObject(body) ? body['results'] : undefined
  if (Array.isArray(items) && items.length <= LIMITS.batchItemsMax) return items
  throw new ImpresarioError('INVALID_REQUEST', `"results" must be a list of at most ${LIMITS.batchItemsMax}.`)
}
