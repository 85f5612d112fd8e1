import type { FastifyInstance } from 'fastify'
import type { Engine } from '@impresario/engine'
import { HEADERS, LIMITS } from '@impresario/protocol'
import type { CancelJobRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import type { OpenWaits } from '../http/connection.ts'
import { linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { cancelJob, explainJob, listJobs, readJob } from './job-operations.ts'

export interface JobRoutesOptions {
  readonly engine: Engine
  readonly automations: AutomationService
  readonly waits: OpenWaits
}

export interface JobParams {
  readonly job_id: string
}

export const PAGE_HEADERS = {
  'X-Next-Cursor': 'Where the next page begins; absent on the last page.',
  Link: 'The next page, as `rel="next"`.',
}

const LIST_HEADERS = {
  ...PAGE_HEADERS,
  'X-Looked-Back-To':
    'Unix seconds. On a page that ended before it was full: all jobs since then have been looked through. Ask for the next page to look further.',
}

const READ = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'getJob',
  summary: 'Read a job, or wait for it',
  description:
    'With `wait` the answer comes once the job has changed or ended, or with the job as it is when the time is up.',
  params: schemas.jobParams,
  query: schemas.jobQuery,
  replies: { 200: { description: 'The job.', body: schemas.jobBody } },
  refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND'],
})

const LIST = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'listJobs',
  isList: true,
  summary: 'List jobs, newest first',
  description: `A page ends at its limit or at ${LIMITS.pageBytesMax / 1_048_576} MB: it may have fewer jobs than its limit, even none, and still name a next one. Only a page without \`X-Next-Cursor\` is the last.`,
  query: schemas.jobListQuery,
  replies: { 200: { description: 'One page of jobs.', body: schemas.jobList, headers: LIST_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const EXPLAIN = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'explainJob',
  summary: 'Why a job’s tasks are where they are',
  description:
    'For each task of the present state: where it is, and for each live worker why it fits or does not. The first twenty tasks are explained.',
  params: schemas.jobParams,
  replies: { 200: { description: 'The explanation.', body: schemas.explanationBody } },
  refusals: ['JOB_NOT_FOUND'],
})

const CANCEL = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'jobs',
  id: 'cancelJob',
  summary: 'Cancel a job',
  description:
    'Its children are cancelled with it, its workers are told, and what they still send is ignored. Repeated for a job that is cancelled, it gives the same answer.',
  params: schemas.jobParams,
  body: schemas.cancelJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job is cancelled.', body: schemas.cancelJobReply } },
  refusals: ['JOB_NOT_FOUND'],
})

export function registerJobRoutes(app: FastifyInstance, options: JobRoutesOptions): void {
  const { engine, waits } = options
  app.get<{ Params: JobParams }>('/jobs/:job_id', READ, (request, reply) => {
    const query = readQuery(schemas.jobQuery, request.query)
    return readJob(engine, callerOf(request), { ...query, id: request.params.job_id }, () => waits.begin(reply))
  })

  app.get<{ Params: JobParams }>('/jobs/:job_id/explain', EXPLAIN, (request) =>
    explainJob(engine, callerOf(request), request.params.job_id),
  )

  app.get('/jobs', LIST, async (request, reply) => {
    const query = readQuery(schemas.jobListQuery, request.query)
    const { page, next, lookedBackTo } = await listJobs(engine, callerOf(request), query)
    if (next !== undefined) linkNextPage(request, reply, 'cursor', next)
    if (lookedBackTo !== undefined) void reply.header(HEADERS.lookedBackTo, String(lookedBackTo))
    return page.send(reply)
  })

  app.post<{ Params: JobParams; Body: CancelJobRequest | null | undefined }>(
    '/jobs/:job_id/cancel',
    CANCEL,
    (request) => cancelJob(options, callerOf(request), request.params.job_id, request.body ?? {}),
  )
}
