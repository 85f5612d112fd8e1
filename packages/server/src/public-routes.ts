import type { FastifyInstance } from 'fastify'
import type { Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { ApprovalReply, ApprovalRequest } from '@impresario/protocol'
import { approvalRequest } from '@impresario/protocol/schemas'
import type { ClientAuth } from './auth.ts'
import type { Health } from './health.ts'
import { authenticateClients, clientOf, ownJob } from './job-routes.ts'
import { jsonSchema } from './json-schema.ts'

export interface PublicRoutesOptions {
  readonly engine: Engine
  readonly auth: ClientAuth
  readonly health: Health
  readonly storage: Storage
}

const APPROVAL_SCHEMA = jsonSchema(approvalRequest)

export function registerPublicRoutes(app: FastifyInstance, { health, storage }: PublicRoutesOptions): void {
  app.get('/status', async () => ({ status: 'ok' }))
  app.get('/live', async () => ({ status: 'ok' }))
  app.get('/ready', async (_request, reply) => {
    const report = await health.report(storage)
    return reply.code(report.status === 'ready' ? 200 : 503).send(report)
  })
}

/** People decide here; the decision must come with the token of the job's owner. */
export function registerApprovalRoute(app: FastifyInstance, { engine, auth }: PublicRoutesOptions): void {
  authenticateClients(app, auth)
  app.post<{ Params: { jobId: string }; Body: ApprovalRequest }>(
    '/webhooks/approval/:jobId',
    { schema: { body: APPROVAL_SCHEMA } },
    async (request): Promise<ApprovalReply> => {
      const client = clientOf(request)
      const { decision, comment } = request.body
      const { value: job } = await ownJob(engine, client, request.params.jobId)
      const applied = await engine.decideApproval(job.id, decision, client.id, comment ?? undefined)
      if (applied.type === 'applied') return { status: 'approval_received', job_id: job.id }
      if (applied.type === 'ignored' && applied.reason === 'unknown_decision') {
        throw new ImpresarioError('INVALID_REQUEST', `Invalid decision '${decision}' for this job`)
      }
      throw new ImpresarioError('NOT_WAITING', 'Job is not in a state that can be approved')
    },
  )
}
