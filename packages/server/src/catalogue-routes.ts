import type { FastifyInstance } from 'fastify'
import type { JobStatus } from '@impresario/core'
import { renderGraph } from '@impresario/graph'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { clientOf } from './job-routes.ts'
import type { ClientRoutesOptions } from './job-routes.ts'
import { blueprintBody } from './wire-job.ts'
import { workerBody } from './wire-worker.ts'

/** Jobs counted per status at most: an overview has to stay cheap, and nobody reads the difference beyond. */
const COUNTED_MAX = 1_000

const STATUSES: readonly JobStatus[] = [
  'pending',
  'running',
  'waiting_for_worker',
  'waiting_for_human',
  'waiting_for_parallel',
  'waiting_for_child',
  'quarantined',
  'finished',
  'failed',
  'cancelled',
  'error',
]

/** What there is beside jobs: workers, blueprints and an overview. */
export function registerCatalogueRoutes(app: FastifyInstance, { engine, blueprints }: ClientRoutesOptions): void {
  const { dispatcher } = engine

  app.get('/workers', async () =>
    dispatcher.workers().map((worker) => workerBody(worker, dispatcher.loadOf(worker.id))),
  )

  app.get('/blueprints', async () => blueprints.list().map(blueprintBody))

  app.get<{ Params: { name: string }; Querystring: { format?: string } }>(
    '/blueprints/:name/graph',
    async (request, reply) => {
      const blueprint = blueprints.latest(request.params.name)
      if (blueprint === undefined) throw new ImpresarioError('BLUEPRINT_NOT_FOUND', 'Blueprint not found')
      const { format } = request.query
      if (format !== undefined && format !== 'dot' && format !== 'svg') {
        throw new ImpresarioError('INVALID_REQUEST', '"format" must be dot or svg.')
      }
      const isSvg = format === 'svg' || (format === undefined && wantsSvg(request.headers.accept))
      const type = isSvg ? 'image/svg+xml' : 'text/vnd.graphviz'
      const drawn = await renderGraph(blueprint, { format: isSvg ? 'svg' : 'dot' })
      return reply
        .header('content-type', `${type}; charset=utf-8`)
        .header('vary', 'accept')
        .header('x-content-type-options', 'nosniff')
        .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
        .send(drawn)
    },
  )

  app.get('/dashboard', async (request): Promise<JsonObject> => {
    const owner = clientOf(request).id
    const jobs: Record<string, number> = {}
    for (const status of STATUSES) {
      const found = await engine.listJobs({ owner, status, limit: COUNTED_MAX })
      if (found.length > 0) jobs[status] = found.length
    }
    const queued = jobs['pending'] ?? 0
    return { workers: { total: dispatcher.workers().length }, jobs: { queued, ...jobs }, counted_up_to: COUNTED_MAX }
  })
}

function wantsSvg(accept: string | undefined): boolean {
  return accept?.includes('image/svg+xml') === true && !accept.includes('text/vnd.graphviz')
}
