import type { FastifyInstance } from 'fastify'
import { FirstInOrder } from '@impresario/core'
import type { RunnableBlueprint, Storage, WorkerRecord } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { GraphTooLargeError, renderGraph } from '@impresario/graph'
import { ImpresarioError, JOB_STATUSES, LIMITS, writeJson } from '@impresario/protocol'
import type { DashboardBody } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf, isAdmin } from '../http/access.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { ownerFilter } from './job-access.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { ANY_NAME, decodeCursor, encodeCursor, JsonPage, linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import { catalogueOf } from '../worker-protocol/skill-catalogue.ts'
import { blueprintBody } from './wire-job.ts'
import { workerBody } from '../worker-protocol/wire-worker.ts'

export interface CatalogueOptions {
  readonly engine: Engine
  readonly storage: Storage
  readonly blueprints: ReloadableRegistry
  readonly history: Pick<HistoryReader, 'status'>
}

const WORKERS = route({
  access: 'viewer',
  tag: 'workers',
  id: 'listWorkers',
  isList: true,
  summary: 'List the workers that are live, by their ids',
  description: `Up to ${LIMITS.workersPageMax.toLocaleString('en')} or ${LIMITS.pageBytesMax / 1_048_576} MB on one page; only a page without \`X-Next-Cursor\` is the last.`,
  query: schemas.workerListQuery,
  replies: { 200: { description: 'One page of workers.', body: schemas.workerList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST'],
})

const WORKER = route({
  access: 'viewer',
  tag: 'workers',
  id: 'getWorker',
  summary: 'Read a worker',
  params: schemas.workerParams,
  replies: { 200: { description: 'The worker.', body: schemas.workerBody } },
  refusals: ['WORKER_NOT_FOUND'],
})

const CATALOGUE = route({
  access: 'viewer',
  tag: 'workers',
  id: 'getSkillCatalogue',
  isList: true,
  summary: 'What the live workers can do',
  description: `Up to ${LIMITS.pageBytesMax / 1_048_576} MB on one page; only a page without \`X-Next-Cursor\` is the last.`,
  query: schemas.catalogueQuery,
  replies: { 200: { description: 'The skills, by name.', body: schemas.catalogueBody, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST'],
})

const DASHBOARD = route({
  access: 'viewer',
  tag: 'server',
  id: 'getDashboard',
  summary: 'Counts of workers and jobs',
  description: 'Of the own jobs; for an admin, of everybody’s, and how the writing of the history goes.',
  replies: { 200: { description: 'The counts.', body: schemas.dashboardBody } },
})

const BLUEPRINTS = route({
  access: 'viewer',
  tag: 'blueprints',
  id: 'listBlueprints',
  summary: 'List the blueprints in all their versions',
  replies: { 200: { description: 'The blueprints.', body: schemas.blueprintList } },
})

const BLUEPRINT = route({
  access: 'viewer',
  tag: 'blueprints',
  id: 'getBlueprint',
  summary: 'Read a blueprint: its states and where they lead',
  params: schemas.nameParams,
  query: schemas.blueprintQuery,
  replies: { 200: { description: 'The blueprint.', body: schemas.blueprintBody } },
  refusals: ['INVALID_REQUEST', 'BLUEPRINT_NOT_FOUND'],
})

const GRAPH = route({
  access: 'viewer',
  tag: 'blueprints',
  id: 'getBlueprintGraph',
  summary: 'Draw a blueprint',
  params: schemas.nameParams,
  query: schemas.graphQuery,
  replies: { 200: { description: 'The graph, as DOT or as SVG.', types: ['text/vnd.graphviz', 'image/svg+xml'] } },
  refusals: ['INVALID_REQUEST', 'BLUEPRINT_NOT_FOUND'],
})

/** What there is beside jobs: workers, blueprints and an overview. */
export function registerCatalogueRoutes(app: FastifyInstance, options: CatalogueOptions): void {
  registerWorkerViews(app, options)
  registerBlueprintViews(app, options)
  app.get('/dashboard', DASHBOARD, async (request): Promise<DashboardBody> => {
    const workers: Record<string, number> = {}
    const live = options.engine.dispatcher.workers()
    for (const { status } of live) workers[status] = (workers[status] ?? 0) + 1
    const caller = callerOf(request)
    const jobs = await jobCounts(options, ownerFilter(caller, undefined))
    const { isAway, waiting, dropped } = options.history.status
    return {
      workers: { total: live.length, ...workers },
      jobs: { queued: jobs['pending'] ?? 0, ...jobs },
      ...(isAdmin(caller) ? { history: { is_away: isAway, waiting, dropped } } : {}),
    }
  })
}

function registerWorkerViews(app: FastifyInstance, { engine: { dispatcher } }: CatalogueOptions): void {
  app.get('/workers', WORKERS, async (request, reply) => {
    const { limit = LIMITS.workersPageMax, cursor } = readQuery(schemas.workerListQuery, request.query)
    const after = cursor === undefined ? undefined : decodeCursor(cursor, ANY_NAME)
    const first = new FirstInOrder<WorkerRecord>(limit + 1, (a, b) => (a.id < b.id ? -1 : 1))
    for (const worker of dispatcher.workers()) if (after === undefined || worker.id > after) first.add(worker)
    const page = new JsonPage()
    let last: string | undefined
    for (const worker of first.first()) {
      const text = writeJson(workerBody(worker, dispatcher.loadOf(worker.id)))
      if (page.length < limit && page.add(text)) last = worker.id
      else break
    }
    if (last !== undefined && page.length < first.count) linkNextPage(request, reply, 'cursor', encodeCursor(last))
    return page.send(reply)
  })

  app.get('/workers/catalog', CATALOGUE, async (request, reply) => {
    const { cursor } = readQuery(schemas.catalogueQuery, request.query)
    const after = cursor === undefined ? undefined : decodeCursor(cursor, ANY_NAME)
    const all = await catalogueOf(dispatcher.workers())
    const skills = after === undefined ? all : all.filter(([name]) => name > after)
    const page = new JsonPage()
    let last: string | undefined
    for (const [name, entry] of skills) {
      if (!page.add(`${JSON.stringify(name)}:${writeJson(entry)}`)) break
      last = name
    }
    if (last !== undefined && page.length < skills.length) linkNextPage(request, reply, 'cursor', encodeCursor(last))
    return page.send(reply, 'object')
  })

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id', WORKER, async (request) => {
    const { worker_id: id } = request.params
    const worker = dispatcher.worker(id)
    if (worker === undefined) throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
    return workerBody(worker, dispatcher.loadOf(id))
  })
}

function registerBlueprintViews(app: FastifyInstance, { blueprints }: CatalogueOptions): void {
  const find = (name: string, version: number | undefined): RunnableBlueprint => {
    const found = version === undefined ? blueprints.latest(name) : blueprints.get(name, version)
    if (found === undefined) throw new ImpresarioError('BLUEPRINT_NOT_FOUND', 'Blueprint not found')
    return found
  }

  app.get('/blueprints', BLUEPRINTS, async () => blueprints.list().map(blueprintBody))

  app.get<{ Params: { name: string } }>('/blueprints/:name', BLUEPRINT, async (request) => {
    const { version } = readQuery(schemas.blueprintQuery, request.query)
    return blueprintBody(find(request.params.name, version))
  })

  app.get<{ Params: { name: string } }>('/blueprints/:name/graph', GRAPH, async (request, reply) => {
    const { version, format } = readQuery(schemas.graphQuery, request.query)
    const blueprint = find(request.params.name, version)
    const isSvg = format === 'svg' || (format === undefined && wantsSvg(request.headers.accept))
    const type = isSvg ? 'image/svg+xml' : 'text/vnd.graphviz'
    const drawn = await drawingOf(blueprint, isSvg ? 'svg' : 'dot')
    return reply
      .header('content-type', `${type}; charset=utf-8`)
      .header('vary', 'accept')
      .header('x-content-type-options', 'nosniff')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
      .send(drawn)
  })
}

async function drawingOf(blueprint: RunnableBlueprint, format: 'svg' | 'dot'): Promise<string> {
  try {
    return await renderGraph(blueprint, { format })
  } catch (error) {
    if (!(error instanceof GraphTooLargeError)) throw error
    throw new ImpresarioError('LIMIT_EXCEEDED', `${error.message} Ask for format=dot and draw it yourself.`)
  }
}

function wantsSvg(accept: string | undefined): boolean {
  return accept?.includes('image/svg+xml') === true && !accept.includes('text/vnd.graphviz')
}

/** Jobs counted per status at most where the storage keeps no counts: an overview has to stay cheap. */
const COUNTED_MAX = 1_000

async function jobCounts(
  { engine, storage }: CatalogueOptions,
  of: { readonly owner?: string },
): Promise<Readonly<Record<string, number>>> {
  const counted = await storage.counts?.('job', of)
  if (counted !== undefined) return counted
  const counts: Record<string, number> = {}
  for (const status of JOB_STATUSES) {
    const found = await engine.listJobs({ ...of, status, limit: COUNTED_MAX })
    if (found.length > 0) counts[status] = found.length
  }
  return counts
}
