import type { FastifyContextConfig, FastifySchema, HTTPMethods } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { z } from 'zod'
import { jsonSchema } from '../http/json-schema.ts'
import { route } from '../http/route.ts'
import type { RouteDescription } from '../http/route.ts'

const worker = z.object({ workerId: z.string().describe('Id of the worker.') })
const taskParams = z.object({ taskId: z.string().describe('The `task_id` of a task in the worker’s hands.') })
const taskFileQuery = z.looseObject({
  name: z
    .string()
    .describe('Its name within the job, such as `in/report.pdf`; for reading also its address, `s3://…`.'),
})
const fileRef = z.object({ name: z.string(), uri: z.string(), bytes: z.int(), etag: z.string() })
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

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Messages of workers that sign are checked here; `event` leaves out what is added to an event on its way. */
    readonly signed?: 'message' | 'event'
    /** The call brings its own proof of who makes it. */
    readonly isProvenByBody?: boolean
  }
}

interface WorkerRouteGiven extends Omit<RouteDescription, 'access' | 'scope' | 'tag' | 'rate' | 'isBodyReadByHandler'> {
  readonly at: `${HTTPMethods} ${string}`
  readonly rate: NonNullable<FastifyContextConfig['rate']>
  readonly signed?: FastifyContextConfig['signed']
  readonly isProvenByBody?: boolean
  /** Its body is handed on piece by piece. */
  readonly isFile?: boolean
  /** What bodies are held against before the handler runs; without it the handler reads them itself. */
  readonly checked?: object
}

interface WorkerRoute {
  readonly method: HTTPMethods
  readonly url: string
  readonly config: FastifyContextConfig
  readonly schema: FastifySchema
}

function workerRoute({
  at,
  rate,
  signed,
  isProvenByBody,
  isFile,
  checked,
  ...described
}: WorkerRouteGiven): WorkerRoute {
  const [method, url] = at.split(' ') as [HTTPMethods, string]
  const declared = route({ ...described, rate, isBodyReadByHandler: true, access: 'worker', tag: 'worker protocol' })
  return {
    method,
    url,
    config: {
      ...declared.config,
      ...(signed === undefined ? {} : { signed }),
      ...(isProvenByBody === undefined ? {} : { isProvenByBody }),
      ...(isFile === undefined ? {} : { isFile }),
    },
    schema: { ...declared.schema, ...(checked === undefined ? {} : { body: checked }) },
  }
}

const SOCKET = {
  rate: 'general',
  summary: 'A WebSocket for commands and progress',
  description: 'Commands to the worker (`cancel_task`), events from it. One connection for each worker.',
  replies: { 101: { description: 'The connection is a WebSocket now.' } },
} as const

const TOKEN_SCHEMA = {
  anyOf: [
    { type: 'null' },
    { type: 'object', properties: { refresh_token: { type: 'string', minLength: 1, maxLength: 512 } } },
  ],
}

/** Every route of the worker protocol: where it is, what is counted and checked, and what readers are told about it. */
export const WORKER_ROUTES = {
  register: workerRoute({
    at: 'POST /workers/register',
    rate: 'general',
    signed: 'message',
    id: 'registerWorker',
    summary: 'Register a worker, or register it again',
    body: schemas.registerRequest,
    checked: jsonSchema(schemas.registerRequest),
    replies: { 200: { description: 'It is known.', body: accepted } },
  }),
  heartbeat: workerRoute({
    at: 'PATCH /workers/:workerId',
    rate: 'heartbeat',
    signed: 'message',
    id: 'heartbeat',
    summary: 'A sign of life, with what has changed',
    description: 'Without a body it only keeps the worker alive.',
    params: worker,
    body: schemas.heartbeatRequest,
    isBodyOptional: true,
    checked: { anyOf: [{ type: 'null' }, jsonSchema(schemas.heartbeatRequest)] },
    replies: { 200: { description: 'It lives on.', body: accepted } },
    refusals: ['WORKER_NOT_FOUND'],
  }),
  nextTask: workerRoute({
    at: 'GET /workers/:workerId/tasks/next',
    rate: 'poll',
    id: 'nextTask',
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
  }),
  taskBatch: workerRoute({
    at: 'POST /workers/:workerId/tasks/batch',
    rate: 'poll',
    id: 'nextTasks',
    summary: `Wait for up to ${LIMITS.batchItemsMax} tasks`,
    params: worker,
    body: schemas.taskBatchRequest,
    checked: jsonSchema(schemas.taskBatchRequest),
    replies: {
      200: { description: 'The tasks; none when the time was up.', body: z.object({ tasks: z.array(task) }) },
    },
    refusals: ['WORKER_NOT_FOUND'],
  }),
  // Results are read by hand, because 500 of them come in one body.
  result: workerRoute({
    at: 'POST /tasks/result',
    rate: 'general',
    signed: 'message',
    id: 'sendResult',
    summary: 'The result of a task',
    description:
      'Flat, or inside of `result` as the oldest workers send it. What comes too late is ignored, and said so.',
    body: schemas.resultRequest,
    replies: { 200: { description: 'What became of it.', body: receipt } },
  }),
  results: workerRoute({
    at: 'POST /tasks/results',
    rate: 'general',
    signed: 'message',
    id: 'sendResults',
    summary: `Up to ${LIMITS.batchItemsMax} results at once`,
    body: schemas.resultBatchRequest,
    replies: {
      200: { description: 'One answer for each.', body: z.object({ results: z.array(z.looseObject({})) }) },
    },
  }),
  event: workerRoute({
    at: 'POST /events',
    rate: 'general',
    signed: 'event',
    id: 'sendEvent',
    summary: 'Progress of a task, or another event',
    body: schemas.eventRequest,
    checked: jsonSchema(schemas.eventRequest),
    replies: { 200: { description: 'What became of it.', body: accepted } },
  }),
  listFiles: workerRoute({
    at: 'GET /tasks/:taskId/files',
    rate: 'general',
    id: 'listTaskFiles',
    summary: 'List the files of the job that a task belongs to',
    description: 'For the worker that has the task, as long as it has it.',
    params: taskParams,
    query: z.looseObject({ prefix: z.string().optional().describe('Only files whose names begin with this.') }),
    replies: {
      200: { description: 'All of them, in the order of their names.', body: z.object({ files: z.array(fileRef) }) },
    },
    refusals: ['FILE_NOT_FOUND', 'FILES_UNAVAILABLE'],
  }),
  readFile: workerRoute({
    at: 'GET /tasks/:taskId/files/content',
    rate: 'general',
    id: 'readTaskFile',
    summary: 'Read a file of the job that a task belongs to, or of another job of its client',
    params: taskParams,
    query: taskFileQuery,
    replies: {
      200: { description: 'The file.', types: ['application/octet-stream'] },
      206: { description: 'The part that `Range` asked for.', types: ['application/octet-stream'] },
    },
    refusals: ['INVALID_REQUEST', 'FILE_NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'FILES_UNAVAILABLE'],
  }),
  writeFile: workerRoute({
    at: 'PUT /tasks/:taskId/files/content',
    rate: 'general',
    isFile: true,
    id: 'writeTaskFile',
    summary: 'Keep a file with the job that a task belongs to',
    description: 'The body is the file, of any type and size. `X-Content-SHA256` is checked.',
    params: taskParams,
    query: taskFileQuery,
    replies: { 200: { description: 'The file is kept.', body: fileRef } },
    refusals: [
      'INVALID_REQUEST',
      'FILE_NOT_FOUND',
      'FILE_TOO_LARGE',
      'FILE_MISMATCH',
      'LIMIT_EXCEEDED',
      'FILES_UNAVAILABLE',
    ],
  }),
  token: workerRoute({
    at: 'POST /auth/token',
    rate: 'general',
    id: 'issueWorkerToken',
    summary: 'A short-lived token',
    replies: { 200: { description: 'The token.', body: tokens } },
    refusals: ['FORBIDDEN'],
  }),
  refresh: workerRoute({
    at: 'POST /auth/token/refresh',
    rate: 'general',
    isProvenByBody: true,
    id: 'refreshWorkerToken',
    summary: 'A new short-lived token for a refresh token',
    body: z.looseObject({ refresh_token: z.string().optional() }),
    isBodyOptional: true,
    checked: TOKEN_SCHEMA,
    replies: { 200: { description: 'The tokens; the old refresh token is worth nothing now.', body: tokens } },
    refusals: ['FORBIDDEN'],
  }),
  revoke: workerRoute({
    at: 'DELETE /auth/token',
    rate: 'general',
    id: 'revokeWorkerTokens',
    summary: 'Give short-lived tokens up',
    description: 'Those that came from the same sign-in; with the worker’s own credential, all of them.',
    replies: {
      200: { description: 'How many there were.', body: z.looseObject({ status: z.string(), revoked: z.int() }) },
    },
  }),
  socket: workerRoute({ ...SOCKET, at: 'GET /ws', id: 'openSocket' }),
  workerSocket: workerRoute({
    ...SOCKET,
    at: 'GET /ws/:workerId',
    id: 'openWorkerSocket',
    summary: 'The same, for the worker that the path names',
    params: worker,
  }),
} as const
