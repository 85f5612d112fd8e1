import type { FastifyInstance } from 'fastify'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { CancelJobReply, CancelJobRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from './access.ts'
import type { OpenWaits } from './connection.ts'
import { isVisible, visibleJob } from './job-access.ts'
import { jobListing } from './job-query.ts'
import { encodeCursor, linkNextPage } from './page.ts'
import { contract, readQuery } from './route-contract.ts'
import { explanationBody, fieldPicker, jobBody } from './wire-job.ts'

export interface JobRoutesOptions {
  readonly engine: Engine
  readonly waits: OpenWaits
}

export interface JobParams {
  readonly job_id: string
}

export const PAGE_HEADERS = {
  'X-Next-Cursor': 'Where the next page begins; absent on the last page.',
  Link: 'The next page, as `rel="next"`.',
}

const READ = contract({
  access: 'viewer',
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

const LIST = contract({
  access: 'viewer',
  tag: 'jobs',
  id: 'listJobs',
  summary: 'List jobs, newest first',
  query: schemas.jobListQuery,
  replies: { 200: { description: 'One page of jobs.', body: schemas.jobList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const EXPLAIN = contract({
  access: 'viewer',
  tag: 'jobs',
  id: 'explainJob',
  summary: 'Why a job’s tasks are where they are',
  description: 'For each task of the present state: where it is, and for each live worker why it fits or does not.',
  params: schemas.jobParams,
  replies: { 200: { description: 'The explanation.', body: schemas.explanationBody } },
  refusals: ['JOB_NOT_FOUND'],
})

const CANCEL = contract({
  access: 'client',
  tag: 'jobs',
  id: 'cancelJob',
  summary: 'Cancel a job',
  description: 'Its children are cancelled with it, its workers are told, and what they still send is ignored.',
  params: schemas.jobParams,
  body: schemas.cancelJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job is cancelled.', body: schemas.cancelJobReply } },
  refusals: ['JOB_NOT_FOUND'],
})

export function registerJobRoutes(app: FastifyInstance, options: JobRoutesOptions): void {
  registerRead(app, options)
  registerLists(app, options)
  registerCancel(app, options)
}

function registerRead(app: FastifyInstance, { engine, waits }: JobRoutesOptions): void {
  app.get<{ Params: JobParams }>('/jobs/:job_id', READ, async (request, reply) => {
    const { wait = 0, version, until, fields } = readQuery(schemas.jobQuery, request.query)
    const pick = fieldPicker(fields)
    const known = await visibleJob(engine, callerOf(request), request.params.job_id)
    const waitMs = Math.min(wait * 1_000, LIMITS.longPollMsMax)
    if (waitMs === 0) return pick(jobBody(known))
    const afterVersion = until === 'end' ? undefined : version
    const waiting = waits.begin(reply)
    try {
      const found = await engine.waitForJob(known.value.id, { afterVersion, waitMs, signal: waiting.signal })
      return pick(jobBody(found ?? known))
    } finally {
      waiting.end()
    }
  })

  app.get<{ Params: JobParams }>('/jobs/:job_id/explain', EXPLAIN, async (request) => {
    const { value: job } = await visibleJob(engine, callerOf(request), request.params.job_id)
    return explanationBody(job, await engine.explainJob(job))
  })
}

function registerLists(app: FastifyInstance, { engine }: JobRoutesOptions): void {
  app.get('/jobs', LIST, async (request, reply) => {
    const given = readQuery(schemas.jobListQuery, request.query)
    const pick = fieldPicker(given.fields)
    const { query, limit, offset } = jobListing(callerOf(request), given)
    const found = await engine.listJobs(query)
    const page = found.slice(offset, offset + limit)
    const last = page.at(-1)
    if (found.length > offset + limit && last !== undefined) {
      linkNextPage(request, reply, 'cursor', encodeCursor(last.id))
    }
    return page.map((job) => pick(jobBody(job)))
  })
}

function registerCancel(app: FastifyInstance, { engine }: JobRoutesOptions): void {
  app.post<{ Params: JobParams; Body: CancelJobRequest | null | undefined }>(
    '/jobs/:job_id/cancel',
    CANCEL,
    async (request): Promise<CancelJobReply> => {
      const caller = callerOf(request)
      const { job_id: jobId } = request.params
      const stored = await engine.readJob(jobId)
      if (stored === undefined || !isVisible(caller, stored.value)) throw notCancellable()
      const reason = request.body?.reason ?? undefined
      const applied = await engine.cancelJob(jobId, caller.client.id, reason)
      if (applied.type !== 'applied') throw notCancellable()
      return { status: 'cancellation_request_accepted' }
    },
  )
}

function notCancellable(): ImpresarioError {
  return new ImpresarioError('JOB_NOT_FOUND', 'Job not found or already terminal.')
}
