import type { FastifyInstance } from 'fastify'
import { childJobId, shownJobId } from '@impresario/core'
import type { Job } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { CancelJobReply, CancelJobRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import type { OpenWaits } from '../http/connection.ts'
import { isVisible, storedJobId, visibleJob } from './job-access.ts'
import { jobListing } from './job-query.ts'
import { encodeCursor, JsonPage, linkNextPage, walkJobs } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import { explanationBody, fieldPicker, jobBody, listedWriter } from './wire-job.ts'
import type { ChildView } from './wire-job.ts'

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

const READ = route({
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

const LIST = route({
  access: 'viewer',
  tag: 'jobs',
  id: 'listJobs',
  isList: true,
  summary: 'List jobs, newest first',
  description: `A page ends at its limit or at ${LIMITS.pageBytesMax / 1_048_576} MB: it may have fewer jobs than its limit, even none, and still name a next one. Only a page without \`X-Next-Cursor\` is the last.`,
  query: schemas.jobListQuery,
  replies: { 200: { description: 'One page of jobs.', body: schemas.jobList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const EXPLAIN = route({
  access: 'viewer',
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
    return explanationBody(job, await engine.explainJob(job), await childrenOf(engine, job))
  })
}

/** Whoever explains a job with a thousand children wants to see that there are many, and how the first of them fare. */
const CHILDREN_MAX = 100
const CHILDREN_READ_MAX = 20

/** The children that a job waits for, those that are under way first. */
async function childrenOf(engine: Engine, { id, visit, branches }: Job): Promise<readonly ChildView[]> {
  const open: ChildView[] = []
  const ended: ChildView[] = []
  for (const [name, { call, outcome }] of Object.entries(branches)) {
    if (call.kind !== 'child') continue
    const places = outcome === undefined ? open : ended
    places.push({ jobId: childJobId(id, visit, name), blueprint: call.blueprint })
  }
  return Promise.all(
    [...open, ...ended].slice(0, CHILDREN_MAX).map(async (child, index) => {
      if (index >= CHILDREN_READ_MAX) return child
      return { ...child, status: (await engine.readJob(child.jobId))?.value.status }
    }),
  )
}

function registerLists(app: FastifyInstance, { engine }: JobRoutesOptions): void {
  app.get('/jobs', LIST, async (request, reply) => {
    const given = readQuery(schemas.jobListQuery, request.query)
    const write = listedWriter(given.fields)
    const { query, offset } = jobListing(callerOf(request), given)
    const page = new JsonPage()
    const next = await walkJobs(engine, { query, skip: offset, take: (job) => page.add(write(jobBody(job))) })
    if (next !== undefined) linkNextPage(request, reply, 'cursor', encodeCursor(next))
    return page.send(reply)
  })
}

function registerCancel(app: FastifyInstance, { engine }: JobRoutesOptions): void {
  app.post<{ Params: JobParams; Body: CancelJobRequest | null | undefined }>(
    '/jobs/:job_id/cancel',
    CANCEL,
    async (request): Promise<CancelJobReply> => {
      const caller = callerOf(request)
      const { job_id: jobId } = request.params
      const id = await storedJobId(engine, caller, jobId)
      const stored = await engine.readJob(id)
      if (stored === undefined || !isVisible(caller, stored.value)) throw notCancellable()
      const reason = request.body?.reason ?? undefined
      const applied = await engine.cancelJob(id, caller.client.id, reason)
      // One that is cancelled already has what was asked for: the first answer was perhaps lost.
      if (applied.type !== 'applied' && applied.type !== 'repeated') throw notCancellable()
      return { status: 'cancellation_request_accepted', job_id: shownJobId(id), job_status: applied.job.status }
    },
  )
}

function notCancellable(): ImpresarioError {
  return new ImpresarioError('JOB_NOT_FOUND', 'Job not found or already terminal.')
}
