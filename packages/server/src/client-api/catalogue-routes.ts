import type { FastifyInstance } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import { linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import {
  dashboard,
  drawBlueprint,
  findBlueprint,
  listBlueprints,
  listSkills,
  listWorkers,
  readWorker,
} from './catalogue-operations.ts'
import type { CatalogueParts } from './catalogue-operations.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { blueprintBody } from './wire-job.ts'
import { explainWorker, workerExplanationReply } from './worker-explanation.ts'
import type { WorkerExplanationParts } from './worker-explanation.ts'

const WORKERS = route({
  access: 'viewer',
  scope: 'jobs:read',
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
  scope: 'jobs:read',
  tag: 'workers',
  id: 'getWorker',
  summary: 'Read a worker',
  params: schemas.workerParams,
  replies: { 200: { description: 'The worker.', body: schemas.workerBody } },
  refusals: ['WORKER_NOT_FOUND'],
})

const CATALOGUE = route({
  access: 'viewer',
  scope: 'jobs:read',
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
  scope: 'jobs:read',
  tag: 'server',
  id: 'getDashboard',
  summary: 'Counts of workers and jobs',
  description: 'Of the own jobs; for an admin, of everybody’s, and how the writing of the history goes.',
  replies: { 200: { description: 'The counts.', body: schemas.dashboardBody } },
})

const WORKER_EXPLANATION = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'workers',
  id: 'explainWorker',
  summary: 'Why a worker gets tasks, or gets none',
  description: 'Also of a worker that has fallen silent, until it is forgotten.',
  params: schemas.workerParams,
  replies: { 200: { description: 'What keeps it from tasks.', body: workerExplanationReply } },
  refusals: ['WORKER_NOT_FOUND'],
})

const BLUEPRINTS = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'blueprints',
  id: 'listBlueprints',
  summary: 'List the blueprints in all their versions',
  replies: { 200: { description: 'The blueprints.', body: schemas.blueprintList } },
})

const BLUEPRINT = route({
  access: 'viewer',
  scope: 'jobs:read',
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
  scope: 'jobs:read',
  tag: 'blueprints',
  id: 'getBlueprintGraph',
  summary: 'Draw a blueprint',
  params: schemas.nameParams,
  query: schemas.graphQuery,
  replies: { 200: { description: 'The graph, as DOT or as SVG.', types: ['text/vnd.graphviz', 'image/svg+xml'] } },
  refusals: ['INVALID_REQUEST', 'BLUEPRINT_NOT_FOUND'],
})

/** What there is beside jobs: workers, blueprints and an overview. */
export function registerCatalogueRoutes(app: FastifyInstance, options: CatalogueParts & WorkerExplanationParts): void {
  registerWorkerViews(app, options)
  registerBlueprintViews(app, options)
  app.get('/dashboard', DASHBOARD, (request) => dashboard(options, callerOf(request)))
}

function registerWorkerViews(app: FastifyInstance, parts: CatalogueParts & WorkerExplanationParts): void {
  const { engine } = parts
  app.get('/workers', WORKERS, async (request, reply) => {
    const { page, next } = listWorkers(engine, readQuery(schemas.workerListQuery, request.query))
    if (next !== undefined) linkNextPage(request, reply, 'cursor', next)
    return page.send(reply)
  })

  app.get('/workers/catalog', CATALOGUE, async (request, reply) => {
    const { page, next } = await listSkills(engine, readQuery(schemas.catalogueQuery, request.query))
    if (next !== undefined) linkNextPage(request, reply, 'cursor', next)
    return page.send(reply, 'object')
  })

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id', WORKER, async (request) =>
    readWorker(engine, request.params.worker_id),
  )

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id/explain', WORKER_EXPLANATION, (request) =>
    explainWorker(parts, callerOf(request), request.params.worker_id),
  )
}

function registerBlueprintViews(app: FastifyInstance, { blueprints }: CatalogueParts): void {
  app.get('/blueprints', BLUEPRINTS, async () => listBlueprints(blueprints))

  app.get<{ Params: { name: string } }>('/blueprints/:name', BLUEPRINT, async (request) => {
    const { version } = readQuery(schemas.blueprintQuery, request.query)
    return blueprintBody(findBlueprint(blueprints, request.params.name, version))
  })

  app.get<{ Params: { name: string } }>('/blueprints/:name/graph', GRAPH, async (request, reply) => {
    const { version, format } = readQuery(schemas.graphQuery, request.query)
    const isSvg = format === 'svg' || (format === undefined && wantsSvg(request.headers.accept))
    const type = isSvg ? 'image/svg+xml' : 'text/vnd.graphviz'
    const drawn = await drawBlueprint(blueprints, request.params.name, isSvg ? 'svg' : 'dot', version)
    return reply
      .header('content-type', `${type}; charset=utf-8`)
      .header('vary', 'accept')
      .header('x-content-type-options', 'nosniff')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
      .send(drawn)
  })
}

function wantsSvg(accept: string | undefined): boolean {
  return accept?.includes('image/svg+xml') === true && !accept.includes('text/vnd.graphviz')
}
