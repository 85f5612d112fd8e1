import type { FastifyInstance } from 'fastify'
import type { Engine } from '@impresario/engine'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import { route } from '../http/route.ts'
import { keyOf } from './request-key.ts'
import { listSchedules, pauseSchedule, readSchedule, resumeSchedule, runSchedule } from './schedule-operations.ts'

export interface ScheduleRoutesOptions {
  readonly engine: Engine
}

interface ScheduleParams {
  readonly schedule: string
}

const LIST = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'schedules',
  id: 'listSchedules',
  summary: 'List the schedules',
  description: 'Those whose jobs are the caller’s own; for an admin, all.',
  replies: { 200: { description: 'The schedules.', body: schemas.scheduleList } },
})

const READ = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'schedules',
  id: 'getSchedule',
  summary: 'Read a schedule: when it fires next, and what it started last',
  params: schemas.scheduleParams,
  replies: { 200: { description: 'The schedule.', body: schemas.scheduleBody } },
  refusals: ['NOT_FOUND'],
})

const RUN = route({
  access: 'admin',
  scope: 'admin',
  tag: 'schedules',
  id: 'runSchedule',
  summary: 'Start the job of a schedule now',
  description:
    'Also of one that is switched off. Its own firings go on as if nothing had been. With the header `Idempotency-Key` the same call once more answers with the job of the first one.',
  params: schemas.scheduleParams,
  replies: { 202: { description: 'The job is safe.', body: schemas.createJobReply } },
  refusals: ['NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED'],
})

const PAUSE = route({
  access: 'admin',
  scope: 'admin',
  tag: 'schedules',
  id: 'pauseSchedule',
  summary: 'Pause a schedule',
  description:
    'Nothing fires until it is resumed, also after a restart. A schedule that is paused already stays so. One that is switched off in its file is refused.',
  params: schemas.scheduleParams,
  replies: { 200: { description: 'The schedule.', body: schemas.scheduleBody } },
  refusals: ['NOT_FOUND', 'INVALID_REQUEST', 'CONFLICT'],
})

const RESUME = route({
  access: 'admin',
  scope: 'admin',
  tag: 'schedules',
  id: 'resumeSchedule',
  summary: 'Resume a schedule',
  description:
    'It fires again from its next time on. Times that have passed while it was paused are skipped, whatever its `misfire` says; `recent` tells the newest of them.',
  params: schemas.scheduleParams,
  replies: { 200: { description: 'The schedule.', body: schemas.scheduleBody } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

/** Jobs by the calendar. */
export function registerScheduleRoutes(app: FastifyInstance, { engine }: ScheduleRoutesOptions): void {
  app.get('/schedules', LIST, (request) => listSchedules(engine, callerOf(request)))

  app.get<{ Params: ScheduleParams }>('/schedules/:schedule', READ, (request) =>
    readSchedule(engine, callerOf(request), request.params.schedule),
  )

  app.post<{ Params: ScheduleParams }>('/schedules/:schedule/run', RUN, async (request, reply) => {
    const jobId = await runSchedule(engine, request.params.schedule, keyOf(request))
    return reply.code(202).send({ status: 'accepted', job_id: jobId })
  })

  app.post<{ Params: ScheduleParams }>('/schedules/:schedule/pause', PAUSE, (request) =>
    pauseSchedule(engine, callerOf(request), request.params.schedule),
  )

  app.post<{ Params: ScheduleParams }>('/schedules/:schedule/resume', RESUME, (request) =>
    resumeSchedule(engine, callerOf(request), request.params.schedule),
  )
}
