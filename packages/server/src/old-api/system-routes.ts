import type { FastifyInstance } from 'fastify'
import type { Clock, Storage } from '@impresario/core'
import type { AutomationService } from '../automations/automation-service.ts'
import type { Health } from '../orchestrator/health.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { requestIdOf, stamp } from './answer.ts'
import { oldRoute, openRoute } from './old-route.ts'
import { schedulerCheck } from './scheduler-check.ts'
import type { Check } from './scheduler-check.ts'

export interface SystemRoutesOptions {
  readonly automations: AutomationService
  readonly health: Health
  readonly history: Pick<HistoryReader, 'status'>
  readonly storage: Storage
  readonly clock: Clock
}

const STANDINGS = ['healthy', 'degraded', 'unhealthy'] as const
const PUBLIC = openRoute()

/** How the server is, and which tools there are. */
export function registerSystemRoutes(app: FastifyInstance, options: SystemRoutesOptions): void {
  const { clock } = options
  const startedAt = clock.now()
  const uptime = (): number => (clock.now() - startedAt) / 1_000

  app.get('/health', PUBLIC, async (request) => {
    const began = clock.now()
    const checks = await checksOf(options)
    const count = (status: Check['status']): number => checks.filter((one) => one.status === status).length
    const worst = STANDINGS.findLast((status) => count(status) > 0) ?? 'healthy'
    const timestamp = stamp(Date.now())
    return {
      status: worst,
      timestamp,
      request_id: requestIdOf(request),
      summary: {
        overall_status: worst,
        total_checks: checks.length,
        healthy_checks: count('healthy'),
        degraded_checks: count('degraded'),
        unhealthy_checks: count('unhealthy'),
        total_duration_ms: clock.now() - began,
        uptime_seconds: uptime(),
      },
      checks: checks.map(({ durationMs, ...one }) => ({
        ...one,
        duration_ms: durationMs,
        timestamp,
        error: one.status === 'healthy' ? null : one.message,
      })),
    }
  })

  app.get('/health/ready', PUBLIC, async (_request, reply) => {
    const checks = await checksOf(options)
    const isReady = checks.every(({ status }) => status !== 'unhealthy')
    const parts = checks.filter(({ name }) => name !== 'scheduler').map(({ name, status }) => [name, status] as const)
    return reply.code(isReady ? 200 : 503).send({
      status: isReady ? 'ready' : 'not_ready',
      ...Object.fromEntries(parts),
    })
  })

  app.get('/health/live', PUBLIC, async () => ({
    status: 'alive',
    timestamp: stamp(Date.now()),
    uptime_seconds: uptime(),
  }))

  app.get('/tools', oldRoute('automations:read', { access: 'viewer' }), async () =>
    Object.fromEntries(options.automations.tools.list().map(({ name, description }) => [name, { description }])),
  )

  // What extensions added are tools, blueprints and workers here.
  app.get('/extensions', oldRoute('any', { access: 'viewer' }), async () => [])
}

/** The old system kept its queue in one database and its events in Redis. Here both are in the storage. */
async function checksOf(options: SystemRoutesOptions): Promise<readonly Check[]> {
  const { health, storage, history, clock } = options
  const began = clock.now()
  const { components } = await health.report(storage, history.status)
  const durationMs = clock.now() - began
  const kept = components['storage']
  const engine = components['engine']
  const standing = (isWell: boolean): Check['status'] => (isWell ? 'healthy' : 'unhealthy')
  const isStorageWell = kept?.status === 'ok'
  const stored = kept?.reason ?? 'The storage answers.'
  const isWorking = engine?.status === 'ok'
  return [
    { name: 'api', status: 'healthy', message: 'It answers.', durationMs: 0, details: {} },
    { name: 'database', status: standing(isStorageWell), message: stored, durationMs, details: {} },
    { name: 'redis', status: standing(isStorageWell), message: `Events: ${stored}`, durationMs: 0, details: {} },
    {
      name: 'workers',
      status: standing(isWorking),
      message: isWorking ? 'Runs are executed by this process.' : 'Runs are not executed by this process now.',
      durationMs: 0,
      details: {},
    },
    isStorageWell ? await schedulerCheck(options) : { ...UNKNOWN_SCHEDULER },
  ]
}

const UNKNOWN_SCHEDULER: Check = {
  name: 'scheduler',
  status: 'unhealthy',
  message: 'The storage does not answer, so nothing is scheduled.',
  durationMs: 0,
  details: {},
}
