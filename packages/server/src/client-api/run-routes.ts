import { DAY_MS } from '@impresario/protocol'
import type { FastifyInstance } from 'fastify'
import type { AuditQuery, RunQuery } from '@impresario/automations'
import { storedCopy, wallTime } from '@impresario/core'
import type { Json, JsonObject } from '@impresario/protocol'
import type { Tool } from '@impresario/tools'
import type { WorkerTask } from '../automations/worker-tasks.ts'
import type { z } from 'zod'
import { callerOf } from '../http/access.ts'
import { ownerFilter } from './job-access.ts'
import { momentOf } from './job-query.ts'
import { keyOf } from './request-key.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { readQuery, route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import { paged, pageOf } from './automation-routes.ts'
import type { AutomationRoutesOptions } from './automation-routes.ts'
import * as wire from './wire-automation.ts'

const TAG = { tag: 'automations' } as const

const LIST_RUNS = route({
  ...TAG,
  access: 'viewer',
  scope: 'runs:read',
  isList: true,
  id: 'listRuns',
  summary: 'List runs of automations, newest first',
  description: 'A run is a job, and is found among the jobs too. Steps are in the answer for one run.',
  query: wire.runListQuery,
  replies: { 200: { description: 'One page of runs.', body: wire.runList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ_RUN = route({
  ...TAG,
  access: 'viewer',
  scope: 'runs:read',
  id: 'getRun',
  summary: 'Read a run, with every step of it',
  params: wire.runParams,
  replies: { 200: { description: 'The run.', body: wire.runBody } },
  refusals: ['NOT_FOUND'],
})

const CANCEL_RUN = route({
  ...TAG,
  access: 'client',
  scope: 'runs:cancel',
  id: 'cancelRun',
  summary: 'Cancel a run',
  description: 'Also one that waits for its place. One that has ended stays as it is.',
  params: wire.runParams,
  body: wire.reasonRequest,
  isBodyOptional: true,
  replies: { 204: { description: 'It is cancelled, or had ended before.' } },
  refusals: ['NOT_FOUND'],
})

const STATISTICS = route({
  ...TAG,
  access: 'viewer',
  scope: 'runs:read',
  id: 'getRunStatistics',
  summary: 'How many runs there were, what became of them, and how long they took',
  query: wire.runStatisticsQuery,
  replies: { 200: { description: 'Of the last days.', body: wire.runStatisticsBody } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const RERUN = route({
  ...TAG,
  access: 'client',
  scope: 'automations:run',
  isNewWork: true,
  id: 'rerunRun',
  summary: 'Run again what a run was for',
  description:
    'With its event and params, and the pipeline that the automation has now. With `from`, the steps before that one are not run again: their outputs are taken from the run.',
  params: wire.runParams,
  body: wire.rerunRequest,
  isBodyOptional: true,
  replies: { 202: { description: 'What became of it.', body: wire.launchedBody } },
  refusals: ['NOT_FOUND', 'CONFLICT', 'INPUT_REFUSED'],
})

const PUBLISH = route({
  ...TAG,
  access: 'client',
  scope: 'events:publish',
  isNewWork: true,
  id: 'publishAutomationEvent',
  summary: 'Publish an event to automations',
  description:
    'It is durable before it is answered. Every automation of the caller whose topic and filter fit runs once for it, and jobs that wait for the topic and `key` get it. With the header `Idempotency-Key` the same call once more answers with the event of the first one.',
  body: wire.publishRequest,
  replies: { 202: { description: 'The event is safe.', body: wire.eventBody } },
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED', 'FORBIDDEN', 'IDEMPOTENCY_KEY_REUSED'],
})

const LIST_EVENTS = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listPublishedEvents',
  summary: 'List events that were published to automations, newest first',
  query: wire.eventListQuery,
  replies: { 200: { description: 'One page of events.', body: wire.eventList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ_EVENT = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'getPublishedEvent',
  summary: 'Read an event, and what automations made of it',
  params: wire.eventParams,
  replies: { 200: { description: 'The event.', body: wire.eventBody } },
  refusals: ['NOT_FOUND'],
})

const AUDIT = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listAuditEntries',
  summary: 'Who changed which automation, and which occurrences did not run',
  query: wire.auditQuery,
  replies: { 200: { description: 'One page of entries, newest first.', body: wire.auditList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ_AUDIT = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'getAuditEntry',
  summary: 'Read an entry of the audit log',
  params: wire.auditParams,
  replies: { 200: { description: 'The entry.', body: wire.auditEntryBody } },
  refusals: ['NOT_FOUND'],
})

const TOOLS = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'listTools',
  summary: 'List the tools that steps can use, with their schemas',
  replies: { 200: { description: 'The tools, by name.', body: wire.toolList } },
})

/** What a list of runs is narrowed down to. */
export function runFilter(query: z.output<typeof wire.runListQuery>): Omit<RunQuery, 'limit'> {
  const { automation_id: automationId, status, trigger } = query
  return { automationId, status, trigger, ...spanOf(query) }
}

export function auditFilter(query: z.output<typeof wire.auditQuery>): Omit<AuditQuery, 'owner' | 'before' | 'limit'> {
  const { subject, action, actor } = query
  return { subject, action, actor, ...spanOf(query) }
}

interface SpanQuery {
  readonly created_after?: string | undefined
  readonly created_before?: string | undefined
}

function spanOf({
  created_after: after,
  created_before: before,
}: SpanQuery): Pick<RunQuery, 'createdAfter' | 'createdBefore'> {
  return {
    createdAfter: after === undefined ? undefined : momentOf('created_after', after),
    createdBefore: before === undefined ? undefined : momentOf('created_before', before),
  }
}

interface PublishBody {
  readonly topic: string
  readonly payload?: Json
  readonly audience?: 'own' | 'all'
  readonly key?: string
}

/** Runs, the events that start them, the tools of their steps, and the audit log. */
export function registerRunRoutes(
  app: FastifyInstance,
  { automations: service, clock }: AutomationRoutesOptions,
): void {
  const { runs, reruns, events, automations, tools } = service

  app.get('/runs', LIST_RUNS, async (request, reply) => {
    const query = readQuery(wire.runListQuery, request.query)
    const { items, next } = await runs.list({ ...pageOf(request, query), ...runFilter(query) })
    return paged(request, reply, next, items.map(wire.wireListedRun))
  })

  app.get('/runs/statistics', STATISTICS, async (request) => {
    const { automation_id: automationId, days = 7, trigger, owner } = readQuery(wire.runStatisticsQuery, request.query)
    const now = wallTime(clock)
    const query = { owner: ownerFilter(callerOf(request), owner).owner, automationId, trigger }
    return wire.wireStatistics(await runs.statistics({ ...query, createdAfter: now - days * DAY_MS }, now))
  })

  app.post<{ Params: { run_id: string }; Body: { from?: string; params?: JsonObject } | null }>(
    '/runs/:run_id/rerun',
    RERUN,
    async (request, reply) => {
      const { from, params } = request.body ?? {}
      const wanted = { from, params: params && storedCopy(params) }
      return reply
        .code(202)
        .send(wire.wireLaunched(await reruns.rerun(request.params.run_id, actorOf(request), wanted)))
    },
  )

  app.get<{ Params: { run_id: string } }>('/runs/:run_id', READ_RUN, async (request) =>
    wire.wireRun(await runs.read(request.params.run_id, actorOf(request))),
  )

  app.post<{ Params: { run_id: string }; Body: { reason?: string } | null }>(
    '/runs/:run_id/cancel',
    CANCEL_RUN,
    async (request, reply) => {
      await runs.cancel(request.params.run_id, actorOf(request), request.body?.reason)
      return reply.code(204).send()
    },
  )

  app.post<{ Body: PublishBody }>('/automations/events', PUBLISH, async (request, reply) => {
    const { topic, payload = null, audience, key } = request.body
    const said = { topic, payload: storedCopy(payload), audience, key, idempotencyKey: keyOf(request)?.key }
    return reply.code(202).send(wire.wireEvent(await events.publish(said, actorOf(request))))
  })

  app.get('/automations/events', LIST_EVENTS, async (request, reply) => {
    const { topic, ...query } = readQuery(wire.eventListQuery, request.query)
    const { items, next } = await events.list({ ...pageOf(request, query), topic })
    return paged(request, reply, next, items.map(wire.wireEvent))
  })

  app.get<{ Params: { event_id: string } }>('/automations/events/:event_id', READ_EVENT, async (request) =>
    wire.wireEvent(await events.read(request.params.event_id, actorOf(request))),
  )

  app.get('/audit', AUDIT, async (request, reply) => {
    const query = readQuery(wire.auditQuery, request.query)
    const { items, next } = await automations.audit({ ...pageOf(request, query), ...auditFilter(query) })
    return paged(request, reply, next, items.map(wire.wireAudit))
  })

  app.get<{ Params: { entry_id: string } }>('/audit/:entry_id', READ_AUDIT, async (request) =>
    wire.wireAudit(await automations.auditEntry(request.params.entry_id, actorOf(request))),
  )

  app.get('/tools', TOOLS, async (request) => wireTools(tools.list(), service.workerTasks(callerOf(request).scopes)))
}

export function wireTools(tools: readonly Tool[], tasks: readonly WorkerTask[]): z.infer<typeof wire.toolList> {
  return [...tools.map(wireTool), ...tasks.map(wireTask)].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** A task of workers. They check their input themselves. */
function wireTask({ name, workers }: WorkerTask): z.infer<typeof wire.toolBody> {
  return {
    name,
    description: `A task that ${workers === 1 ? 'one connected worker does' : `${workers} connected workers do`}.`,
    kind: 'worker',
    input_schema: {},
    output_schema: {},
    timeout_seconds: 0,
    is_read_only: false,
  }
}

function wireTool(tool: Tool): z.infer<typeof wire.toolBody> {
  return {
    name: tool.name,
    description: tool.description,
    kind: tool.kind,
    input_schema: tool.input,
    output_schema: tool.output,
    timeout_seconds: tool.timeoutSeconds,
    is_read_only: tool.isReadOnly,
  }
}
