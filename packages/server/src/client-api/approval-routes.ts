import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { approvalOf } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { ApprovalReply, ApprovalRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { admit, callerOf } from '../http/access.ts'
import type { Gate } from '../http/access.ts'
import { decideApproval, decideByLink, openQuestion, readApproval, stale } from './approval-operations.ts'
import { dataIn, fieldsOf, formProblems } from './approval-form.ts'
import { questionPage, recordedPage, refusalPage } from './approval-page.ts'
import type { Question } from './approval-page.ts'
import type { Capabilities, Permission } from '../auth/capabilities.ts'
import { jobNotFound } from './job-access.ts'
import type { JobParams } from './job-routes.ts'
import { PAGE_HEADERS } from './page-frame.ts'
import { pageLanguage } from './page-language.ts'
import type { PageLanguage } from './page-language.ts'
import { addVary } from '../http/cors.ts'
import { route, readQuery } from '../http/route.ts'

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
  scope: 'approvals:decide',
  tag: 'approvals',
  id: 'getApproval',
  summary: 'What a job asks a person, with links to decide it',
  description:
    'Anyone with a link can answer this question once, without a token. Share it only with people who may decide. Each call creates new links; older links stay valid until they expire or the question is answered.',
  params: schemas.jobParams,
  replies: { 200: { description: 'The question.', body: schemas.approvalBody } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const DECIDE = route({
  access: 'capability',
  scope: 'approvals:decide',
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
  scope: 'approvals:decide',
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
  const { publicUrl } = options
  app.get<{ Params: JobParams }>('/jobs/:job_id/approval', QUESTION, async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    const base = publicUrl === '' ? `${request.protocol}://${request.host}` : publicUrl
    return readApproval(options, callerOf(request), request.params.job_id, base)
  })
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
    return answerWithPage(request, reply, async (language) => {
      if (capability === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'This page needs a complete link.')
      const permission = capabilities.check(capability, request.params.job_id)
      const job = (await engine.readJob(permission.jobId))?.value
      if (job === undefined) throw jobNotFound()
      if (job.visit !== permission.visit) throw stale()
      return questionPage(questionOf(job, permission, capability), language)
    })
  })

  app.post<{ Params: JobParams; Body: ApprovalRequest }>(
    '/webhooks/approval/:job_id',
    DECIDE,
    async (request, reply) => {
      if (!isForm(request)) return decide(options, request)
      return answerWithPage(request, reply, async (language) => {
        const refused = await refusedForm(options, request, language)
        if (refused !== undefined) {
          void reply.code(422)
          return refused
        }
        await decide(options, request)
        return recordedPage(request.body.decision, language)
      })
    },
  )
}

function questionOf(job: Job, permission: Permission, capability: string): Question {
  const { message, decisions, expires_at: expiresAt, form, form_for: formFor = [] } = openQuestion(job)
  return {
    jobId: job.id,
    blueprint: job.blueprint,
    message,
    decisions: permission.decision === undefined ? decisions : [permission.decision],
    capability,
    expiresAt: expiresAt === undefined ? undefined : expiresAt * 1_000,
    form,
    formFor,
  }
}

/**
 * Puts what a page has sent together as data. Gives the page once more, with what is wrong, if it does not fit; what it
 * decides then is the same as without a page.
 */
async function refusedForm(
  { engine, capabilities }: ApprovalRoutesOptions,
  request: FastifyRequest<{ Params: JobParams; Body: ApprovalRequest }>,
  language: PageLanguage,
): Promise<string | undefined> {
  const { data: _, ...body } = request.body
  request.body = body
  const capability = body.capability ?? readQuery(schemas.approvalQuery, request.query).capability
  if (typeof capability !== 'string') return undefined
  const permission = capabilities.check(capability, request.params.job_id)
  const job = (await engine.readJob(permission.jobId))?.value
  const approval = job === undefined ? undefined : approvalOf(job)
  if (job === undefined || approval?.form === undefined || job.visit !== permission.visit) return undefined
  // What the others leave out is not looked at: who rejects need not fill in anything.
  if (!approval.formFor.includes(body.decision)) return undefined
  const sent = { ...body }
  const data = dataIn(fieldsOf(approval.form), sent)
  const problems = formProblems(approval.form, data)
  request.body = { ...body, data }
  if (problems.length === 0) return undefined
  return questionPage({ ...questionOf(job, permission, capability), refused: { sent, problems } }, language)
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
  const { job_id: jobId } = request.params
  const capability = request.body.capability ?? readQuery(schemas.approvalQuery, request.query).capability
  if (capability !== undefined) return decideByLink(engine, capabilities.check(capability, jobId), request.body)
  // A web page elsewhere can make a browser send a form, but neither a token nor JSON.
  if (isForm(request)) throw new ImpresarioError('UNAUTHENTICATED', 'A form needs a capability.')
  const caller = await admit(gate, request, { role: 'client', scope: 'approvals:decide' })
  return decideApproval(engine, caller, jobId, request.body)
}

/** People get every answer as a page in their language, refusals too. */
async function answerWithPage(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  work: (language: PageLanguage) => Promise<string>,
): Promise<FastifyReply> {
  const language = pageLanguage(headers['accept-language'])
  addVary(reply, 'Accept-Language')
  let page: string
  try {
    page = await work(language)
  } catch (error) {
    if (!isImpresarioError(error) || error.status >= 500) throw error
    void reply.code(error.status)
    page = refusalPage(error, language)
  }
  return reply.headers({ ...PAGE_HEADERS, 'content-language': language }).send(page)
}
