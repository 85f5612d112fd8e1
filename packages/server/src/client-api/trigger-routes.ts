import type { FastifyInstance } from 'fastify'
import { storedCopy } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { route } from '../http/route.ts'
import { actorOf } from './automation-routes.ts'
import type { AutomationRoutesOptions } from './automation-routes.ts'
import { automationParams } from './wire-automation.ts'
import * as wire from './wire-trigger.ts'

const TAG = { tag: 'automations' } as const

const CONDITIONS = route({
  ...TAG,
  access: 'viewer',
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
}
