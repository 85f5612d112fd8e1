import type { FastifyInstance } from 'fastify'
import type { Storage } from '@impresario/core'
import * as schemas from '@impresario/protocol/schemas'
import type { Health } from '../orchestrator/health.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { route } from '../http/route.ts'

export interface PublicRoutesOptions {
  readonly health: Health
  readonly storage: Storage
  readonly history: Pick<HistoryReader, 'status'>
}

const ALIVE = { 200: { description: 'It is.', body: schemas.statusBody } }

const STATUS = route({
  access: 'public',
  tag: 'server',
  id: 'getStatus',
  summary: 'Whether the process is alive, where older clients look for it',
  replies: ALIVE,
})

const LIVE = route({
  access: 'public',
  tag: 'server',
  id: 'getLiveness',
  summary: 'Whether the process is alive',
  replies: ALIVE,
})

const READY = route({
  access: 'public',
  tag: 'server',
  id: 'getReadiness',
  summary: 'Whether requests should come here',
  replies: {
    200: { description: 'They should.', body: schemas.readinessBody },
    503: { description: 'They should not; each part says for itself.', body: schemas.readinessBody },
  },
})

export function registerPublicRoutes(app: FastifyInstance, { health, storage, history }: PublicRoutesOptions): void {
  app.get('/status', STATUS, async () => ({ status: 'ok' }))
  app.get('/live', LIVE, async () => ({ status: 'ok' }))
  app.get('/ready', READY, async (_request, reply) => {
    const report = await health.report(storage, history.status)
    return reply.code(report.status === 'ready' ? 200 : 503).send(report)
  })
}
