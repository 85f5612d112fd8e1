import type { FastifyInstance } from 'fastify'
import type { PublishedEvent } from '@impresario/automations'
import { jsonObjectCopy, storedCopy, wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { actorOf } from '../client-api/actor.ts'
import { keyOf } from '../client-api/request-key.ts'
import { operation, stamp } from './answer.ts'
import { readBody, readFilter } from './input.ts'
import { oldRoute } from './old-route.ts'
import { ownerNamed, shownOwner } from './people.ts'

export interface EventRoutesOptions {
  readonly automations: AutomationService
  readonly agents: AgentBook
  readonly clock: Clock
}

const publishRequest = z.object({
  topic: z.string().min(1).max(100),
  payload: z.record(z.string(), z.unknown()),
  source_agent_id: z.string().min(1).max(200).nullish(),
})
const recentQuery = z.object({ count: z.coerce.number().int().min(1).max(200).default(50) })
const cleanupQuery = z.object({ max_age_hours: z.coerce.number().min(0).max(87_600).default(24) })

/** Tasks that an answer names. */
const TRIGGERED_MAX = 1_000
const TASKS_MAX = 10_000
const REMOVED_MAX = 10_000
const PAGE = 200
const HOUR_MS = 3_600_000
const READ = oldRoute('automations:read', { access: 'viewer', isList: true })

/** Events, and who listens to them. */
export function registerEventRoutes(app: FastifyInstance, options: EventRoutesOptions): void {
  const { events, automations, listeners } = options.automations
  const { agents, clock } = options

  app.post('/events', oldRoute('events:publish', { isNewWork: true }), async (request, reply) => {
    const { topic, payload, source_agent_id: named } = readBody(publishRequest, request.body)
    const actor = actorOf(request)
    const { owner } = await ownerNamed(agents, actor, named ?? undefined, 'source_agent_id')
    const isOwn = owner === actor.id
    // In the old system everybody heard everything. Here that is for admins; agents reach their own tasks.
    const audience = actor.isAdmin && isOwn ? 'all' : 'own'
    const key = keyOf(request)?.key
    const said = { topic, payload: storedCopy(payload as JsonObject), audience, idempotencyKey: key } as const
    const event = await events.publish(said, isOwn ? actor : { id: owner, isAdmin: false })
    const triggered = await listeners.idsFor(event, TRIGGERED_MAX)
    void reply.code(202)
    return operation(`The event is published, and ${counted(triggered.length)} for it.`, {
      event_id: event.id,
      stream_id: streamId(event),
      topic,
      triggered_tasks: triggered,
      published_at: stamp(event.at),
    })
  })

  app.get('/events/topics', READ, async (request) => {
    const actor = actorOf(request)
    const owner = actor.isAdmin ? undefined : actor.id
    const topics = new Map<string, string[]>()
    let before: string | undefined
    let seen = 0
    do {
      const page = await automations.list({ owner, status: 'active', before, limit: PAGE })
      for (const { id, definition } of page.items) {
        for (const topic of new Set(definition.triggers.flatMap((one) => (one.kind === 'event' ? [one.topic] : [])))) {
          topics.set(topic, [...(topics.get(topic) ?? []), id])
        }
      }
      seen += page.items.length
      before = page.next
    } while (before !== undefined && seen < TASKS_MAX)
    const sorted = [...topics].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return {
      total_topics: sorted.length,
      topics: sorted.map(([topic, ids]) => ({ topic, active_tasks: ids.length, task_ids: ids })),
    }
  })

  app.get('/events/stream/recent', READ, async (request) => {
    const { count } = readFilter(recentQuery, request.query)
    const actor = actorOf(request)
    const { items } = await events.list({ owner: actor.isAdmin ? undefined : actor.id, limit: count })
    return { total_events: items.length, events: items.map(wireEvent) }
  })

  app.delete('/events/stream/cleanup', oldRoute('events:publish'), async (request) => {
    const { max_age_hours: hours } = readFilter(cleanupQuery, request.query)
    const actor = actorOf(request)
    const before = wallTime(clock) - hours * HOUR_MS
    const owner = actor.isAdmin ? undefined : actor.id
    const deleted = await events.remove({ owner, before, limit: REMOVED_MAX }, actor)
    return { deleted_count: deleted, max_age_hours: hours, cutoff_timestamp: stamp(before) }
  })
}

/** In the form of ids of a Redis stream. */
function streamId({ at }: PublishedEvent): string {
  return `${Math.floor(at)}-0`
}

function wireEvent(event: PublishedEvent): JsonObject {
  const owner = shownOwner(event.owner)
  const { id, topic, payload, at } = event
  return jsonObjectCopy(
    {
      event_id: id,
      topic,
      payload,
      source_agent_id: owner,
      published_at: stamp(at),
      published_by: owner,
      stream_id: streamId(event),
    },
    'The event',
  )
}

function counted(tasks: number): string {
  return tasks === 1 ? '1 task runs' : `${tasks} tasks run`
}
