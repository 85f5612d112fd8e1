import type { FastifyInstance } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { z } from 'zod'
import { route } from '../http/route.ts'
import type { RouteDescription, RouteDeclaration } from '../http/route.ts'

const worker = z.object({ workerId: z.string().describe('Id of the worker.') })
const accepted = z.looseObject({ status: z.string() })
const tokens = z.looseObject({
  access_token: z.string(),
  expires_in: z.number().describe('Seconds.'),
  worker_id: z.string().nullable().describe('Null where the token stands for one that several workers share.'),
  refresh_token: z.string().optional(),
})
const task = z.looseObject({
  job_id: z.string(),
  task_id: z.string().describe('Names this handing-out; give it back with the result.'),
  type: z.string(),
  params: z.record(z.string(), z.unknown()),
  tracing_context: z.record(z.string(), z.string()),
  priority: z.number(),
  deadline: z.int().optional().describe('Unix seconds.'),
  attempt: z.int(),
  delivery: z.int(),
  idempotency_key: z.string().describe('The same for all tries and deliveries of a task.'),
})
const receipt = z.looseObject({
  status: z.enum(['accepted', 'ignored']),
  transition: z.string().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
})

type Described = Omit<RouteDescription, 'access' | 'tag'>

const SOCKET: Described = {
  id: 'openSocket',
  summary: 'A WebSocket for commands and progress',
  description: 'Commands to the worker (`cancel_task`), events from it. One connection for each worker.',
  replies: { 101: { description: 'The connection is a WebSocket now.' } },
}

/** What the routes of the worker protocol say of themselves, by method and path; their handlers are elsewhere. */
const DESCRIPTIONS: Readonly<Record<string, Described>> = {
  'POST /workers/register': {
    id: 'registerWorker',
    summary: 'Register a worker, or register it anew',
    body: schemas.registerRequest,
    replies: { 200: { description: 'It is known.', body: accepted } },
  },
  'PATCH /workers/:workerId': {
    id: 'heartbeat',
    rate: 'heartbeat',
    summary: 'A sign of life, with what has changed',
    description: 'Without a body it only keeps the worker alive.',
    params: worker,
    body: schemas.heartbeatRequest,
    isBodyOptional: true,
    replies: { 200: { description: 'It lives on.', body: accepted } },
    refusals: ['WORKER_NOT_FOUND'],
  },
  'GET /workers/:workerId/tasks/next': {
    id: 'nextTask',
    rate: 'poll',
    summary: 'Wait for the next task',
    params: worker,
    query: z.looseObject({ timeout: z.coerce.number().optional().describe('Longest wait, in seconds.') }),
    replies: {
      200: {
        description: 'A task.',
        body: task,
        headers: {
          traceparent: 'The trace that the task belongs to.',
          tracestate: 'What tracing systems keep with that trace.',
        },
      },
      204: { description: 'None came in time; ask again.' },
    },
    refusals: ['WORKER_NOT_FOUND'],
  },
  'POST /workers/:workerId/tasks/batch': {
    id: 'nextTasks',
    rate: 'poll',
    summary: `Wait for up to ${LIMITS.batchItemsMax} tasks`,
    params: worker,
    body: schemas.taskBatchRequest,
    replies: {
      200: { description: 'The tasks; none when the time was up.', body: z.object({ tasks: z.array(task) }) },
    },
    refusals: ['WORKER_NOT_FOUND'],
  },
  'POST /tasks/result': {
    id: 'sendResult',
    summary: 'The result of a task',
    description:
      'Flat, or inside of `result` as the oldest workers send it. What comes too late is ignored, and said so.',
    body: schemas.resultRequest,
    isBodyReadByHandler: true,
    replies: { 200: { description: 'What became of it.', body: receipt } },
  },
  'POST /tasks/results': {
    id: 'sendResults',
    summary: `Up to ${LIMITS.batchItemsMax} results at once`,
    body: schemas.resultBatchRequest,
    isBodyReadByHandler: true,
    replies: {
      200: { description: 'One answer for each.', body: z.object({ results: z.array(z.looseObject({})) }) },
    },
  },
  'POST /events': {
    id: 'sendEvent',
    summary: 'Progress of a task, or another event',
    body: schemas.eventRequest,
    replies: { 200: { description: 'What became of it.', body: accepted } },
  },
  'POST /auth/token': {
    id: 'issueWorkerToken',
    summary: 'A short-lived token',
    replies: { 200: { description: 'The token.', body: tokens } },
    refusals: ['FORBIDDEN'],
  },
  'POST /auth/token/refresh': {
    id: 'refreshWorkerToken',
    summary: 'A new short-lived token for a refresh token',
    body: z.looseObject({ refresh_token: z.string().optional() }),
    isBodyOptional: true,
    replies: { 200: { description: 'The tokens; the old refresh token is worth nothing now.', body: tokens } },
    refusals: ['FORBIDDEN'],
  },
  'DELETE /auth/token': {
    id: 'revokeWorkerTokens',
    summary: 'Give short-lived tokens up',
    description: 'Those that came from the same sign-in; with the worker’s own credential, all of them.',
    replies: {
      200: { description: 'How many there were.', body: z.looseObject({ status: z.string(), revoked: z.int() }) },
    },
  },
  'GET /ws': SOCKET,
  'GET /ws/:workerId': {
    ...SOCKET,
    id: 'openWorkerSocket',
    summary: 'The same, for the worker that the path names',
    params: worker,
  },
}

/** Adds to the routes of a scope what is said of them here; what they say themselves goes before it. */
export function describeWorkerRoutes(scope: FastifyInstance): void {
  const { prefix } = scope
  scope.addHook('onRoute', (options) => {
    const said = declarationOf(`${[options.method].flat().join(', ')} ${options.url.slice(prefix.length)}`)
    if (said === undefined) return
    options.config = { ...said.config, ...options.config }
    options.schema = { ...said.schema, ...options.schema }
  })
}

/** Bodies are checked by the routes themselves, with the schemas that they choose. */
function declarationOf(name: string): RouteDeclaration | undefined {
  const said = DESCRIPTIONS[name]
  if (said === undefined) return undefined
  return route({ ...said, isBodyReadByHandler: true, access: 'worker', tag: 'worker protocol' })
}
