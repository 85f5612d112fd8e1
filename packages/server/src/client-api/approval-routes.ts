import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { shownJobId, wallTime } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { CLIENT_PATHS, ImpresarioError, isImpresarioError, LIMITS } from '@impresario/protocol'
import type { ApprovalBody, ApprovalReply, ApprovalRequest, WireApproval } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { admit, callerOf } from '../http/access.ts'
import type { Gate } from '../http/access.ts'
import { noticePage, PAGE_HEADERS, questionPage } from './approval-page.ts'
import { LINK_HOLDER } from '../auth/capabilities.ts'
import type { Capabilities, Permission } from '../auth/capabilities.ts'
import { jobNotFound, visibleJob } from './job-access.ts'
import type { JobParams } from './job-routes.ts'
import { route, readQuery } from '../http/route.ts'
import { approvalBody } from './wire-job.ts'

export interface ApprovalRoutesOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly gate: Gate
  readonly capabilities: Capabilities
  /** Where people reach this server; empty for the address that the request was sent to. */
  readonly publicUrl: string
}

const QUESTION = route({
  access: 'client',
  tag: 'approvals',
  id: 'getApproval',
  summary: 'What a job asks a person, with links to decide it',
  description:
    'Whoever has a link may decide this question, once, without a token. Give it only to those who may. Each call makes new links; older ones stay good until they expire or somebody decides.',
  params: schemas.jobParams,
  replies: { 200: { description: 'The question.', body: schemas.approvalBody } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const DECIDE = route({
  access: 'capability',
  tag: 'approvals',
  id: 'decideApproval',
  summary: 'Decide what a job asks',
  description:
    'With the token of the job’s owner or of an admin, or with a capability from the job’s question, in the query or the body. A form (`application/x-www-form-urlencoded`) needs a capability and is answered with a page.',
  params: schemas.jobParams,
  query: schemas.approvalQuery,
  body: schemas.approvalRequest,
  replies: { 200: { description: 'The job goes on.', body: schemas.approvalReply } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING', 'STALE_DECISION'],
})

const PAGE = route({
  access: 'capability',
  tag: 'approvals',
  id: 'showApproval',
  summary: 'The page on which a person decides',
  description: 'Nothing is decided by opening it. Needs a capability.',
  params: schemas.jobParams,
  query: schemas.approvalQuery,
  replies: { 200: { description: 'The question with one button for each decision.', types: ['text/html'] } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING', 'STALE_DECISION'],
})

/** The open question of a job, for its owner. */
export function registerQuestionRoute(app: FastifyInstance, options: ApprovalRoutesOptions): void {
  const { engine, capabilities, clock, publicUrl } = options
  app.get<{ Params: JobParams }>('/jobs/:job_id/approval', QUESTION, async (request, reply): Promise<ApprovalBody> => {
    const { value: job } = await visibleJob(engine, callerOf(request), request.params.job_id)
    const approval = openQuestion(job)
    const base = publicUrl === '' ? `${request.protocol}://${request.host}` : publicUrl.replace(/\/+$/, '')
    const expiresAt = Math.min(wallTime(clock) + LIMITS.capabilityMs, endOf(approval))
    const link = (decision?: string): string => {
      const capability = capabilities.issue({ jobId: job.id, visit: job.visit, decision, expiresAt })
      return `${base}${CLIENT_PATHS.approval(job.id)}?capability=${capability}`
    }
    void reply.header('cache-control', 'no-store')
    return {
      job_id: shownJobId(job.id),
      blueprint_name: job.blueprint,
      ...approval,
      url: link(),
      decision_urls: Object.fromEntries(approval.decisions.map((decision) => [decision, link(decision)])),
      urls_expire_at: Math.floor(expiresAt / 1_000),
    }
  })
}

function endOf({ expires_at: expiresAt }: WireApproval): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : expiresAt * 1_000
}

function openQuestion(job: Job): WireApproval {
  const approval = approvalBody(job)
  if (approval === undefined) throw notWaiting()
  return approval
}

function notWaiting(): ImpresarioError {
  return new ImpresarioError('NOT_WAITING', 'Job is not in a state that can be approved')
}

function stale(): ImpresarioError {
  return new ImpresarioError('STALE_DECISION', 'The job has gone on since: what was asked here is no longer open.')
}

/** Where people decide: a page for them, and the call that it makes. */
export function registerApprovalRoutes(app: FastifyInstance, options: ApprovalRoutesOptions): void {
  const { engine, capabilities } = options
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: FORM_BYTES_MAX },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  )

  app.get<{ Params: JobParams }>('/webhooks/approval/:job_id', PAGE, async (request, reply) => {
    const { capability } = readQuery(schemas.approvalQuery, request.query)
    return answerWithPage(reply, async () => {
      if (capability === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'This page needs a complete link.')
      const permission = capabilities.check(capability, request.params.job_id)
      const job = (await engine.readJob(permission.jobId))?.value
      if (job === undefined) throw jobNotFound()
      if (job.visit !== permission.visit) throw stale()
      const { message, decisions, expires_at: expiresAt } = openQuestion(job)
      return questionPage({
        jobId: job.id,
        blueprint: job.blueprint,
        message,
        decisions: permission.decision === undefined ? decisions : [permission.decision],
        capability,
        expiresAt: expiresAt === undefined ? undefined : expiresAt * 1_000,
      })
    })
  })

  app.post<{ Params: JobParams; Body: ApprovalRequest }>(
    '/webhooks/approval/:job_id',
    DECIDE,
    async (request, reply) => {
      if (!isForm(request)) return decide(options, request)
      return answerWithPage(reply, async () => {
        await decide(options, request)
        return noticePage('Thank you', `Your decision is recorded: ${request.body.decision}.`)
      })
    },
  )
}

/** A comment of the largest size, each character escaped, and the rest. */
const FORM_BYTES_MAX = 65_536

function isForm({ headers }: FastifyRequest): boolean {
  return headers['content-type']?.toLowerCase().startsWith('application/x-www-form-urlencoded') === true
}

async function decide(
  { engine, gate, capabilities }: ApprovalRoutesOptions,
  request: FastifyRequest<{ Params: JobParams; Body: ApprovalRequest }>,
): Promise<ApprovalReply> {
  const { decision, comment, visit } = request.body
  const { job_id: jobId } = request.params
  const capability = request.body.capability ?? readQuery(schemas.approvalQuery, request.query).capability
  if (capability !== undefined) {
    const permission = capabilities.check(capability, jobId)
    mayDecide(permission, decision)
    const by = LINK_HOLDER
    return settled(await engine.decideApproval(jobId, decision, by, comment ?? undefined, permission.visit), decision)
  }
  // A web page elsewhere can make a browser send a form, but neither a token nor JSON.
  if (isForm(request)) throw new ImpresarioError('UNAUTHENTICATED', 'A form needs a capability.')
  const caller = admit(gate, request, 'client')
  const { value: job } = await visibleJob(engine, caller, jobId)
  const by = caller.client.id
  return settled(await engine.decideApproval(job.id, decision, by, comment ?? undefined, visit ?? undefined), decision)
}

function mayDecide(permission: Permission, decision: string): void {
  if (permission.decision === undefined || permission.decision === decision) return
  throw new ImpresarioError('FORBIDDEN', `This link is for the decision '${permission.decision}' only.`)
}

/** A decision that the same person has made before is answered as the first time: that answer was perhaps lost. */
function settled(applied: Commanded, decision: string): ApprovalReply {
  if (applied.type === 'applied' || applied.type === 'repeated') {
    return { status: 'approval_received', job_id: shownJobId(applied.job.id), job_status: applied.job.status }
  }
  if (applied.type === 'lost') throw notWaiting()
  switch (applied.reason) {
    case 'unknown_decision':
      throw new ImpresarioError('INVALID_REQUEST', `Invalid decision '${decision.slice(0, 100)}' for this job`)
    case 'stale_decision':
      throw stale()
    case 'job_not_found':
      throw jobNotFound()
    default:
      throw notWaiting()
  }
}

/** People get every answer as a page, refusals too. */
async function answerWithPage(reply: FastifyReply, work: () => Promise<string>): Promise<FastifyReply> {
  let page: string
  try {
    page = await work()
  } catch (error) {
    if (!isImpresarioError(error) || error.status >= 500) throw error
    void reply.code(error.status)
    page = noticePage('This cannot be decided here', error.message)
  }
  return reply.headers(PAGE_HEADERS).send(page)
}
