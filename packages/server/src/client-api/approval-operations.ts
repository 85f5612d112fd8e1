import { shownJobId, wallTime } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { CLIENT_PATHS, ImpresarioError, LIMITS } from '@impresario/protocol'
import type { ApprovalBody, ApprovalReply, ApprovalRequest, WireApproval } from '@impresario/protocol'
import { LINK_HOLDER } from '../auth/capabilities.ts'
import type { Capabilities, Permission } from '../auth/capabilities.ts'
import type { Caller } from '../http/access.ts'
import { jobNotFound, visibleJob } from './job-access.ts'
import { approvalBody } from './wire-job.ts'

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
    return `${base.replace(/\/+$/, '')}${CLIENT_PATHS.approval(job.id)}?capability=${capability}`
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
  { decision, comment, visit }: ApprovalRequest,
): Promise<ApprovalReply> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  const by = caller.client.id
  return settled(await engine.decideApproval(job.id, decision, by, comment ?? undefined, visit ?? undefined), decision)
}

/** By a person with a link. */
export async function decideByLink(
  engine: Engine,
  permission: Permission,
  { decision, comment }: ApprovalRequest,
): Promise<ApprovalReply> {
  mayDecide(permission, decision)
  const { jobId, visit } = permission
  return settled(await engine.decideApproval(jobId, decision, LINK_HOLDER, comment ?? undefined, visit), decision)
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
