import type { FastifyInstance, FastifyRequest } from 'fastify'
import { shownJobId, storedCopy } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { HEADERS } from '@impresario/protocol'
import type { SentEventReply, SentEventRequest, JobEventReply, JobEventRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import type { AutomationService } from '../automations/automation-service.ts'
import { actorOf } from './actor.ts'
import { callerOf } from '../http/access.ts'
import { route } from '../http/route.ts'
import { visibleJob } from './job-access.ts'
import type { JobParams } from './job-routes.ts'

const SEND = route({
  access: 'client',
  scope: 'events:publish',
  tag: 'events',
  id: 'sendJobEvent',
  summary: 'Send a job an event',
  description:
    'A job that waits for the topic goes on; any other open job keeps the event until it waits for it. Under the same id an event counts once.',
  params: schemas.jobParams,
  body: schemas.jobEventRequest,
  replies: { 200: { description: 'The job has it.', body: schemas.jobEventReply } },
  refusals: [
    'INVALID_REQUEST',
    'JOB_NOT_FOUND',
    'NOT_WAITING',
    'INPUT_REFUSED',
    'LIMIT_EXCEEDED',
    'IDEMPOTENCY_KEY_REUSED',
  ],
})

const PUBLISH = route({
  access: 'client',
  scope: 'events:publish',
  tag: 'events',
  id: 'publishEvent',
  summary: 'Publish an event, for automations and for jobs that wait for its key',
  description:
    'Every automation of the caller whose topic and filter fit runs once for it. With a key it also reaches every job of the caller that waits for the topic and the key, once each. It is kept for a day: a job that begins to wait later gets it if no job has had it, or if the job was there when it came.',
  body: schemas.sentEventRequest,
  replies: {
    202: { description: 'The event is safe, and reaches those who wait soon.', body: schemas.sentEventReply },
  },
  refusals: ['INVALID_REQUEST', 'INPUT_REFUSED', 'LIMIT_EXCEEDED', 'IDEMPOTENCY_KEY_REUSED'],
})

export interface EventRoutesOptions {
  readonly engine: Engine
  readonly automations: AutomationService
}

/** Events from outside, for jobs that wait for them, and for automations. */
export function registerEventRoutes(app: FastifyInstance, { engine, automations }: EventRoutesOptions): void {
  app.post<{ Params: JobParams; Body: JobEventRequest }>(
    '/jobs/:job_id/events',
    SEND,
    async (request): Promise<JobEventReply> => {
      const { value: job } = await visibleJob(engine, callerOf(request), request.params.job_id)
      const sent = await engine.sendEvent(job.id, eventOf(request))
      return {
        status: 'event_accepted',
        event_id: sent.eventId,
        is_new: sent.isNew,
        job_id: shownJobId(sent.job.id),
        job_status: sent.job.status,
      }
    },
  )

  app.post<{ Body: SentEventRequest }>('/events', PUBLISH, async (request, reply): Promise<SentEventReply> => {
    const { topic, payload, eventId } = eventOf(request)
    const said = { topic, payload: storedCopy(payload), key: request.body.key, idempotencyKey: eventId }
    const { id, isNew } = await automations.events.publish(said, actorOf(request))
    void reply.code(202)
    return { status: 'event_accepted', event_id: eventId ?? id, is_new: isNew }
  })
}

function eventOf({ body, headers }: FastifyRequest<{ Body: JobEventRequest }>): Parameters<Engine['sendEvent']>[1] {
  const { [HEADERS.idempotencyKey]: header } = headers
  const eventId = body.event_id ?? (typeof header === 'string' ? header : undefined)
  return { topic: body.topic, payload: body.payload ?? {}, eventId }
}
