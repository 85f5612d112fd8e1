import type { FastifyInstance } from 'fastify'
import { storedCopy } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { PAGE_HEADERS } from './job-routes.ts'
import { readQuery, route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import { paged, pageOf } from './automation-routes.ts'
import type { AutomationRoutesOptions } from './automation-routes.ts'
import { automationParams } from './wire-automation.ts'
import * as wire from './wire-trigger.ts'

const TAG = { tag: 'automations' } as const

const CONDITIONS = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  id: 'listConditions',
  summary: 'How the conditions of an automation stand',
  description: 'Their state, the values that were read last, and when they crossed last.',
  params: automationParams,
  replies: { 200: { description: 'The conditions, in the order of the triggers.', body: wire.conditionList } },
  refusals: ['NOT_FOUND'],
})

const OBSERVE = route({
  ...TAG,
  access: 'client',
  scope: 'automations:write',
  isNewWork: true,
  id: 'reportValues',
  summary: 'Report values to the conditions of an automation',
  description:
    'For conditions without a tool. A condition fires when it becomes true, so the same report once more changes nothing.',
  params: automationParams,
  body: wire.observeRequest,
  replies: { 200: { description: 'How the conditions stand now.', body: wire.conditionList } },
  refusals: ['NOT_FOUND', 'CONFLICT', 'LIMIT_EXCEEDED'],
})

const named = (id: string, summary: string) => ({ ...TAG, id, summary, params: wire.calendarParams })
const CALENDAR = { 200: { description: 'The calendar.', body: wire.calendarBody } }

const LIST_CALENDARS = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listCalendars',
  summary: 'List calendars',
  query: wire.calendarListQuery,
  replies: { 200: { description: 'One page of calendars.', body: wire.calendarList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ_CALENDAR = route({
  ...named('getCalendar', 'Read a calendar'),
  access: 'viewer',
  scope: 'automations:read',
  replies: CALENDAR,
  refusals: ['NOT_FOUND'],
})

const PUT_CALENDAR = route({
  ...named('putCalendar', 'Create or replace a calendar'),
  access: 'client',
  scope: 'automations:write',
  description:
    'The automations that use it are planned again. What of an iCalendar file could not be read is in `unread`.',
  body: wire.calendarRequest,
  // A file of iCalendar is one text, and that of a few years is larger than other texts may be.
  textBytesMax: LIMITS.bodyBytesMax,
  replies: CALENDAR,
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED'],
})

const DELETE_CALENDAR = route({
  ...named('deleteCalendar', 'Delete a calendar that no automation uses'),
  access: 'client',
  scope: 'automations:write',
  replies: { 204: { description: 'It is gone.' } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

/** What sets automations off, beside the clock. */
export function registerTriggerRoutes(app: FastifyInstance, { automations: service }: AutomationRoutesOptions): void {
  const { conditions } = service

  app.get<{ Params: { automation_id: string } }>(
    '/automations/:automation_id/conditions',
    CONDITIONS,
    async (request) => (await conditions.list(request.params.automation_id, actorOf(request))).map(wire.wireCondition),
  )

  app.post<{ Params: { automation_id: string }; Body: { values: JsonObject } }>(
    '/automations/:automation_id/observe',
    OBSERVE,
    async (request) => {
      const values = storedCopy(request.body.values)
      const views = await conditions.report(request.params.automation_id, values, actorOf(request))
      return views.map(wire.wireCondition)
    },
  )
  registerCalendarRoutes(app, service)
}

interface CalendarParams {
  readonly calendar: string
}

function registerCalendarRoutes(app: FastifyInstance, { automations }: AutomationRoutesOptions['automations']): void {
  const { calendars } = automations

  app.get('/calendars', LIST_CALENDARS, async (request, reply) => {
    const { owner, limit, before } = pageOf(request, readQuery(wire.calendarListQuery, request.query))
    const { items, next } = await calendars.list(owner, limit, before)
    return paged(
      request,
      reply,
      next,
      items.map((item) => wire.wireCalendar(item)),
    )
  })

  app.get<{ Params: CalendarParams }>('/calendars/:calendar', READ_CALENDAR, async (request) =>
    wire.wireCalendar(await calendars.read(request.params.calendar, actorOf(request))),
  )

  app.put<{ Params: CalendarParams; Body: JsonObject }>('/calendars/:calendar', PUT_CALENDAR, async (request) => {
    const { record, unread } = await calendars.put(request.params.calendar, storedCopy(request.body), actorOf(request))
    return wire.wireCalendar(record, unread)
  })

  app.delete<{ Params: CalendarParams }>('/calendars/:calendar', DELETE_CALENDAR, async (request, reply) => {
    await calendars.remove(request.params.calendar, actorOf(request))
    return reply.code(204).send()
  })
}
