import { approvalOf, jsonObjectCopy, shownJobId, wallTime } from '@impresario/core'
import type { Clock, DecisionDetails, Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { CLIENT_PATHS, ImpresarioError, LIMITS } from '@impresario/protocol'
import type { ApprovalBody, ApprovalReply, ApprovalRequest, WireApproval } from '@impresario/protocol'
import { LINK_HOLDER } from '../auth/capabilities.ts'
import type { Capabilities, Permission } from '../auth/capabilities.ts'
import type { Caller } from '../http/access.ts'
import { checkedForm } from './approval-form.ts'
import { jobNotFound, visibleJob } from './job-access.ts'
import { approvalBody } from './wire-job.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

/* What jobs ask people, and what these answer. */

export interface ApprovalParts {
  readonly engine: Engine
  readonly clock: Clock
  readonly capabilities: Capabilities
}

/** The open question of a job, with links to decide it. `base`: where people reach the server. */
export async function readApproval(
  { engine, clock, capabilities }: ApprovalParts,
  caller: Caller,
  jobId: string,
  base: string,
): Promise<ApprovalBody> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  const approval = openQuestion(job)
  const expiresAt = Math.min(wallTime(clock) + LIMITS.capabilityMs, endOf(approval))
  const link = (decision?: string): string => {
    const capability = capabilities.issue({ jobId: job.id, visit: job.visit, decision, expiresAt })
    return `${withoutEndSlashes(base)}${CLIENT_PATHS.approval(job.id)}?capability=${capability}`
  }
  return {
    job_id: shownJobId(job.id),
    blueprint_name: job.blueprint,
    ...approval,
    url: link(),
    decision_urls: Object.fromEntries(approval.decisions.map((decision) => [decision, link(decision)])),
    urls_expire_at: Math.floor(expiresAt / 1_000),
  }
}

function endOf({ expires_at: expiresAt }: WireApproval): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : expiresAt * 1_000
}

export function openQuestion(job: Job): WireApproval {
  const approval = approvalBody(job)
  if (approval === undefined) throw notWaiting()
  return approval
}

function notWaiting(): ImpresarioError {
  return new ImpresarioError('NOT_WAITING', 'Job is not in a state that can be approved')
}

export function stale(): ImpresarioError {
  return new ImpresarioError('STALE_DECISION', 'The job has gone on since: what was asked here is no longer open.')
}

/** In the name of a client. */
export async function decideApproval(
  engine: Engine,
  caller: Caller,
  jobId: string,
  request: ApprovalRequest,
): Promise<ApprovalReply> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  const details = detailsOf(job, request)
  return settled(await engine.decideApproval(job.id, request.decision, caller.client.id, details), request.decision)
}

/** What comes with a decision. Data is checked against the form of the question that is open, and answers no other one. */
function detailsOf(job: Job, request: ApprovalRequest): DecisionDetails {
  const { decision } = request
  const comment = request.comment ?? undefined
  const visit = request.visit ?? undefined
  const question = approvalOf(job)
  const isOpen = question !== undefined && (visit === undefined || visit === question.visit)
  // What was decided before is perhaps repeated: the engine knows.
  if (!isOpen || !question.decisions.includes(decision)) return { comment, visit, data: request.data ?? undefined }
  // A program in this process may give anything.
  const given = request.data ?? undefined
  const copy = given === undefined ? undefined : jsonObjectCopy(given, '`data`')
  const data = checkedForm(question, decision, copy)
  return { comment, visit: data === undefined ? visit : question.visit, data }
}

/** By a person with a link. */
export async function decideByLink(
  engine: Engine,
  permission: Permission,
  request: ApprovalRequest,
): Promise<ApprovalReply> {
  const { decision } = request
  mayDecide(permission, decision)
  const { jobId, visit } = permission
  const job = (await engine.readJob(jobId))?.value
  if (job === undefined) throw jobNotFound()
  const details = detailsOf(job, { ...request, visit })
  return settled(await engine.decideApproval(jobId, decision, LINK_HOLDER, details), decision)
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
