import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AutomationRecord } from '@impresario/automations'
import { storedCopy, wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { DataObject, JsonObject } from '@impresario/protocol'
import { ownerFilter } from './job-access.ts'
import { callerOf } from '../http/access.ts'
import { actorOf } from './actor.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { decodeCursor, encodeCursor, linkNextPage } from '../http/page.ts'
import { readQuery, route } from '../http/route.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { jobTracingOf } from '../telemetry/request-spans.ts'
import * as wire from './wire-automation.ts'
import { previewRunBody, previewRunRequest, wirePreviewRun } from './wire-preview-run.ts'
import type { PreviewRunRequest } from './wire-preview-run.ts'

export interface AutomationRoutesOptions {
  readonly automations: AutomationService
  readonly clock: Clock
}

interface AutomationParams {
  readonly automation_id: string
}

const TAG = { tag: 'automations' } as const
const TAGGED = { ETag: 'The revision of the definition, for `If-Match`.' }
const AUTOMATION = { 200: { description: 'The automation.', body: wire.automationBody, headers: TAGGED } }

const LIST = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listAutomations',
  summary: 'List automations, newest first',
  query: wire.automationListQuery,
  replies: { 200: { description: 'One page of automations.', body: wire.automationList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const CREATE = route({
  ...TAG,
  access: 'client',
  scope: 'automations:write',
  isNewWork: true,
  id: 'createAutomation',
  summary: 'Create an automation',
  description:
    'Every problem of the definition is named, with its field and its step. The answer says when it runs next. One owner has at most ' +
    'one automation with the same `key`: the same request once more is answered with it, another one is a CONFLICT.',
  body: wire.automationRequest,
  replies: { 201: { description: 'The automation is safe.', body: wire.automationBody, headers: TAGGED } },
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED', 'CONFLICT'],
})

const PREVIEW_NEW = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'previewDefinition',
  summary: 'Check a definition without keeping it, and see when it would run',
  query: wire.previewQuery,
  body: wire.automationRequest,
  replies: { 200: { description: 'The next firings.', body: wire.previewBody } },
  refusals: ['INPUT_REFUSED'],
})

const PREVIEW_RUN = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'previewRun',
  summary: 'What a run of a definition would do, without doing it',
  description:
    'Templates are filled in and conditions evaluated; no tool is called and nothing is kept. What depends on the output of a step stays as it is written, unless `steps` supposes one.',
  body: previewRunRequest,
  replies: { 200: { description: 'The steps as they would run.', body: previewRunBody } },
  refusals: ['INPUT_REFUSED'],
})

const one = (id: string, summary: string) => ({ ...TAG, id, summary, params: wire.automationParams })

const READ = route({
  ...one('getAutomation', 'Read an automation: how it stands, and when it runs next'),
  access: 'viewer',
  scope: 'automations:read',
  replies: AUTOMATION,
  refusals: ['NOT_FOUND'],
})

const PREVIEW = route({
  ...one('previewAutomation', 'When an automation runs next by the clock, in times and in words'),
  access: 'viewer',
  scope: 'automations:read',
  query: wire.previewQuery,
  replies: { 200: { description: 'The next firings.', body: wire.previewBody } },
  refusals: ['NOT_FOUND', 'INVALID_REQUEST'],
})

const UPDATE = route({
  ...one('updateAutomation', 'Replace the definition of an automation'),
  access: 'client',
  scope: 'automations:write',
  description:
    'Runs that are open keep the pipeline they began with. Other times count from now on. With the query `revision`, or the header ' +
    '`If-Match`, a change that another author made meanwhile is not overwritten.',
  query: wire.updateQuery,
  body: wire.automationRequest,
  replies: AUTOMATION,
  refusals: ['NOT_FOUND', 'INPUT_REFUSED', 'LIMIT_EXCEEDED', 'CONFLICT', 'STALE_REVISION'],
})

const DELETE = route({
  ...one('deleteAutomation', 'Delete an automation that has no open runs'),
  access: 'client',
  scope: 'automations:write',
  replies: { 204: { description: 'It is gone. Its runs and its audit log stay.' } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const RUN = route({
  ...one('runAutomation', 'Run an automation now'),
  access: 'client',
  scope: 'automations:run',
  isNewWork: true,
  description: 'Its own times go on as if nothing had been. A paused one runs too.',
  body: wire.runNowRequest,
  isBodyOptional: true,
  replies: { 202: { description: 'What became of it.', body: wire.launchedBody } },
  refusals: ['NOT_FOUND', 'CONFLICT', 'INPUT_REFUSED'],
})

const SNOOZE = route({
  ...one('snoozeAutomation', 'Put the next run off'),
  access: 'client',
  scope: 'automations:write',
  description: 'Moves the run that stands in the queue by so many seconds. Who did it and why is on record.',
  body: wire.snoozeRequest,
  replies: AUTOMATION,
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const PAUSE = route({
  ...one('pauseAutomation', 'Stop an automation for a while'),
  access: 'client',
  scope: 'automations:write',
  replies: AUTOMATION,
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const RESUME = route({
  ...one('resumeAutomation', 'Let a paused automation go on'),
  access: 'client',
  scope: 'automations:write',
  description: 'What it left out while it was paused is written into the audit log as skipped.',
  replies: AUTOMATION,
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const CANCEL = route({
  ...one('cancelAutomation', 'End an automation for good'),
  access: 'client',
  scope: 'automations:write',
  body: wire.reasonRequest,
  isBodyOptional: true,
  replies: AUTOMATION,
  refusals: ['NOT_FOUND'],
})

/** Links the next page, if there is one. */
export function paged<T>(request: FastifyRequest, reply: FastifyReply, next: string | undefined, items: T): T {
  if (next !== undefined) linkNextPage(request, reply, 'cursor', encodeCursor(next))
  return items
}

interface PageBounds {
  readonly owner: string | undefined
  readonly before: string | undefined
  readonly limit: number
}

interface PageQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly owner?: string | undefined
}

export function pageOf(request: FastifyRequest, { limit, cursor, owner }: PageQuery): PageBounds {
  return {
    owner: ownerFilter(callerOf(request), owner).owner,
    before: cursor === undefined ? undefined : decodeCursor(cursor),
    limit: limit ?? LIMITS.pageSizeDefault,
  }
}

/** What is doubtful in a definition, where there is something. */
export function doubts(
  service: Pick<AutomationService, 'warningsFor'>,
  { definition }: Pick<AutomationRecord, 'definition'>,
): { readonly warnings?: string[] } {
  const warnings = service.warningsFor(definition)
  return warnings.length === 0 ? {} : { warnings: [...warnings] }
}

/** The revision that a change is made for: in the query, or as the tag of what was read. */
function expectedIn({ query, headers }: FastifyRequest): number | undefined {
  const { revision } = readQuery(wire.updateQuery, query)
  const { 'if-match': tag } = headers
  if (tag === undefined || tag === '*') return revision
  const [, text] = /^(?:W\/)?"?(\d{1,15})"?$/.exec(tag.trim()) ?? []
  if (text === undefined) {
    throw new ImpresarioError('INVALID_REQUEST', 'If-Match must be the revision of the automation, such as "3".')
  }
  return revision ?? Number(text)
}

/** An automation as it is answered, with its revision as the tag of the answer. */
type Shown = (reply: FastifyReply, record: Parameters<typeof wire.wireAutomation>[0]) => object

/** Standing orders of clients. */
export function registerAutomationRoutes(app: FastifyInstance, options: AutomationRoutesOptions): void {
  const { automations: service, clock } = options
  const { automations } = service
  const body = (record: Parameters<typeof wire.wireAutomation>[0]) => wire.wireAutomation(record, automations.zones)
  const shown: Shown = (reply, record) => {
    void reply.header('etag', `"${record.revision}"`)
    return body(record)
  }
  const written: Shown = (reply, record) => ({ ...shown(reply, record), ...doubts(service, record) })

  app.get('/automations', LIST, async (request, reply) => {
    const { status, search, ...query } = readQuery(wire.automationListQuery, request.query)
    const { items, next } = await automations.list({ ...pageOf(request, query), status, search })
    return paged(request, reply, next, items.map(body))
  })

  app.post<{ Body: JsonObject }>('/automations', CREATE, async (request, reply) => {
    const record = await automations.create(seen(request.body), actorOf(request))
    return reply.code(201).send(written(reply, record))
  })

  app.post<{ Body: JsonObject }>('/automations/preview', PREVIEW_NEW, async (request) => {
    const { count = 10 } = readQuery(wire.previewQuery, request.query)
    const actor = actorOf(request)
    const definition = automations.check(seen(request.body), actor)
    await automations.calendars.mustKnow(definition, actor.id)
    const restriction = await automations.calendars.restrictionOf(definition, actor.id)
    const preview = wire.wirePreview({ definition }, automations.zones, restriction, wallTime(clock), count)
    return { ...preview, ...doubts(service, { definition }) }
  })

  app.post<{ Body: JsonObject }>('/automations/preview_run', PREVIEW_RUN, async (request) => {
    const { definition, ...given } = seen(request.body) as unknown as PreviewRunRequest
    return wirePreviewRun(automations.check(definition, actorOf(request)), given, wallTime(clock))
  })

  app.get<{ Params: AutomationParams }>('/automations/:automation_id', READ, async (request, reply) =>
    shown(reply, await automations.read(request.params.automation_id, actorOf(request))),
  )

  app.get<{ Params: AutomationParams }>('/automations/:automation_id/preview', PREVIEW, async (request) => {
    const { count = 10 } = readQuery(wire.previewQuery, request.query)
    const record = await automations.read(request.params.automation_id, actorOf(request))
    const restriction = await automations.calendars.restrictionOf(record.definition, record.owner)
    return wire.wirePreview(record, automations.zones, restriction, wallTime(clock), count)
  })

  app.put<{ Params: AutomationParams; Body: JsonObject }>(
    '/automations/:automation_id',
    UPDATE,
    async (request, reply) => {
      const { automation_id: id } = request.params
      const expected = expectedIn(request)
      return written(reply, await automations.update(id, seen(request.body), actorOf(request), undefined, expected))
    },
  )

  app.delete<{ Params: AutomationParams }>('/automations/:automation_id', DELETE, async (request, reply) => {
    await automations.remove(request.params.automation_id, actorOf(request))
    return reply.code(204).send()
  })
  registerCommands(app, options, shown)
}

function registerCommands(
  app: FastifyInstance,
  { automations: { automations } }: AutomationRoutesOptions,
  shown: Shown,
): void {
  app.post<{ Params: AutomationParams; Body: { params?: JsonObject } | null }>(
    '/automations/:automation_id/run',
    RUN,
    async (request, reply) => {
      const params = request.body?.params
      const id = request.params.automation_id
      const launched = await automations.runNow(id, actorOf(request), params && seen(params), jobTracingOf(request))
      return reply.code(202).send(wire.wireLaunched(launched))
    },
  )

  app.post<{ Params: AutomationParams; Body: { seconds: number; reason?: string } }>(
    '/automations/:automation_id/snooze',
    SNOOZE,
    async (request, reply) => {
      const { seconds, reason } = request.body
      return shown(reply, await automations.snooze(request.params.automation_id, seconds, actorOf(request), reason))
    },
  )

  app.post<{ Params: AutomationParams }>('/automations/:automation_id/pause', PAUSE, async (request, reply) =>
    shown(reply, await automations.pause(request.params.automation_id, actorOf(request))),
  )

  app.post<{ Params: AutomationParams }>('/automations/:automation_id/resume', RESUME, async (request, reply) =>
    shown(reply, await automations.resume(request.params.automation_id, actorOf(request))),
  )

  app.post<{ Params: AutomationParams; Body: { reason?: string } | null }>(
    '/automations/:automation_id/cancel',
    CANCEL,
    async (request, reply) =>
      shown(reply, await automations.cancel(request.params.automation_id, actorOf(request), request.body?.reason)),
  )
}

/** What a body says, with its numbers as they were written. */
function seen(body: JsonObject): DataObject {
  return storedCopy(body)
}
