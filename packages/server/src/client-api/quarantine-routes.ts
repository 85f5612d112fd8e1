import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import type { BulkRequest, RetryJobRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import { linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import type { RouteDescription } from '../http/route.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import type { JobParams } from './job-routes.ts'
import {
  discardJob,
  discardMany,
  listQuarantine,
  readQuarantined,
  retryJob,
  retryMany,
} from './quarantine-operations.ts'
import type { QuarantineParts } from './quarantine-operations.ts'

const LISTED: RouteDescription = {
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'quarantine',
  id: 'listQuarantine',
  isList: true,
  summary: 'List the jobs in quarantine, newest first',
  description:
    'A page may have fewer jobs than its limit and still name a next one: filters by error and age look through a bounded number of jobs at a time.',
  query: schemas.quarantineQuery,
  replies: { 200: { description: 'One page of jobs.', body: schemas.quarantineList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
}
const LIST = route(LISTED)
const LIST_OLD = route({
  ...LISTED,
  id: 'listQuarantineOld',
  isList: true,
  summary: 'The same list, where older clients look for it',
})

const INSPECT = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'quarantine',
  id: 'getQuarantined',
  summary: 'A job in quarantine with its whole error',
  params: schemas.jobParams,
  replies: { 200: { description: 'The job, with the stack of its error.', body: schemas.quarantinedBody } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const RETRY = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'quarantine',
  id: 'retryJob',
  summary: 'Send a job back into the state where it failed',
  description:
    'Optionally with new data. Its attempts and its time limits start again. If the blueprint lost the next state after a result or a decision had been accepted, the job goes on to that state and repeats nothing.',
  params: schemas.jobParams,
  body: schemas.retryJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job goes on.', body: schemas.commandReply } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING', 'STATE_MISSING', 'INPUT_REFUSED'],
})

const DISCARD = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'quarantine',
  id: 'discardJob',
  summary: 'Give a job in quarantine up',
  description: 'It ends as failed.',
  params: schemas.jobParams,
  body: schemas.discardJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job has ended.', body: schemas.commandReply } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const BULK = {
  access: 'client',
  scope: 'jobs:write',
  tag: 'quarantine',
  description: `Up to ${LIMITS.batchItemsMax} jobs, by their ids or by a filter. Each is answered for itself.`,
  body: schemas.bulkRequest,
  replies: { 200: { description: 'One answer for each job.', body: schemas.bulkReply } },
} as const
const RETRY_MANY = route({ ...BULK, id: 'retryQuarantined', summary: 'Send many jobs back' })
const DISCARD_MANY = route({ ...BULK, id: 'discardQuarantined', summary: 'Give many jobs up' })

/** Jobs that stand aside until a person has looked at them. */
export function registerQuarantineRoutes(app: FastifyInstance, options: QuarantineParts): void {
  app.get('/quarantine', LIST, (request, reply) => sendList(options, request, reply))

  app.get<{ Params: JobParams }>('/quarantine/:job_id', INSPECT, (request) =>
    readQuarantined(options, callerOf(request), request.params.job_id),
  )

  app.post<{ Params: JobParams; Body: RetryJobRequest | null | undefined }>('/jobs/:job_id/retry', RETRY, (request) =>
    retryJob(options, callerOf(request), request.params.job_id, request.body ?? {}),
  )

  app.post<{ Params: JobParams }>('/jobs/:job_id/discard', DISCARD, (request) =>
    discardJob(options, callerOf(request), request.params.job_id),
  )

  app.post<{ Body: BulkRequest }>('/quarantine/retry', RETRY_MANY, (request) =>
    retryMany(options, callerOf(request), request.body),
  )

  app.post<{ Body: BulkRequest }>('/quarantine/discard', DISCARD_MANY, (request) =>
    discardMany(options, callerOf(request), request.body),
  )
}

/** The place where older clients look; there, too, only for those who say who they are, and only their own. */
export function registerOldQuarantineRoute(app: FastifyInstance, options: QuarantineParts): void {
  app.get('/jobs/quarantined', LIST_OLD, (request, reply) => sendList(options, request, reply))
}

async function sendList(options: QuarantineParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = readQuery(schemas.quarantineQuery, request.query)
  const { page, next } = await listQuarantine(options, callerOf(request), query)
  if (next !== undefined) linkNextPage(request, reply, 'cursor', next)
  return page.send(reply)
}
