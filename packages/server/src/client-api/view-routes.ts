import type { FastifyInstance } from 'fastify'
import type { SavedViewRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { z } from 'zod'
import { callerOf } from '../http/access.ts'
import { route } from '../http/route.ts'
import { deleteView, listViews, saveView } from './view-operations.ts'
import type { ViewOperationsOptions } from './view-operations.ts'

const TAG = { tag: 'jobs', access: 'viewer', scope: 'jobs:read' } as const
const params = schemas.viewParams

const LIST = route({
  ...TAG,
  id: 'listViews',
  summary: 'List your saved views of the job list',
  description: 'By name. Each caller has its own; nobody else sees them.',
  replies: { 200: { description: 'All of them.', body: z.array(schemas.savedView) } },
})

const PUT = route({
  ...TAG,
  id: 'saveView',
  summary: 'Save filters of the job list under a name, or replace them',
  params,
  body: schemas.savedViewRequest,
  replies: { 200: { description: 'The view is kept.', body: schemas.savedView } },
  refusals: ['INVALID_REQUEST', 'LIMIT_EXCEEDED'],
})

const DELETE = route({
  ...TAG,
  id: 'deleteView',
  summary: 'Delete a saved view',
  params,
  replies: { 204: { description: 'It is gone.' } },
  refusals: ['NOT_FOUND'],
})

interface ViewParams {
  readonly view: string
}

/** Filters that people come back to, on every machine on which they sign in. */
export function registerViewRoutes(app: FastifyInstance, options: ViewOperationsOptions): void {
  app.get('/views', LIST, (request) => listViews(options, callerOf(request)))

  app.put<{ Params: ViewParams; Body: SavedViewRequest }>('/views/:view', PUT, (request) =>
    saveView(options, callerOf(request), request.params.view, request.body.search),
  )

  app.delete<{ Params: ViewParams }>('/views/:view', DELETE, async (request, reply) => {
    await deleteView(options, callerOf(request), request.params.view)
    return reply.code(204).send()
  })
}
