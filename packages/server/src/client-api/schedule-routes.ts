import type { FastifyInstance } from 'fastify'
import type { Trigger } from '@impresario/core'
import type { Engine, ScheduleView } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonObject, ScheduleBody } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf, isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { keyOf } from './request-key.ts'
import { route } from '../http/route.ts'

export interface ScheduleRoutesOptions {
  readonly engine: Engine
}

interface ScheduleParams {
  readonly schedule: string
}

const LIST = route({
  access: 'viewer',
  tag: 'schedules',
  id: 'listSchedules',
  summary: 'List the schedules',
  description: 'Those whose jobs are the caller’s own; for an admin, all.',
  replies: { 200: { description: 'The schedules.', body: schemas.scheduleList } },
})

const READ = route({
  access: 'viewer',
  tag: 'schedules',
  id: 'getSchedule',
  summary: 'Read a schedule: when it fires next, and what it started last',
  params: schemas.scheduleParams,
  replies: { 200: { description: 'The schedule.', body: schemas.scheduleBody } },
  refusals: ['NOT_FOUND'],
})

const RUN = route({
  access: 'admin',
  tag: 'schedules',
  id: 'runSchedule',
  summary: 'Start the job of a schedule now',
  description:
    'Also of one that is switched off. Its own firings go on as if nothing had been. With the header `Idempotency-Key` the same call once more answers with the job of the first one.',
  params: schemas.scheduleParams,
  replies: { 202: { description: 'The job is safe.', body: schemas.createJobReply } },
  refusals: ['NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED'],
})

/** Jobs by the calendar. */
export function registerScheduleRoutes(app: FastifyInstance, { engine }: ScheduleRoutesOptions): void {
  const visible = async (caller: Caller): Promise<readonly ScheduleView[]> => {
    const all = await engine.scheduler.list()
    return isAdmin(caller) ? all : all.filter(({ schedule }) => schedule.clientId === caller.client.id)
  }

  app.get('/schedules', LIST, async (request) => (await visible(callerOf(request))).map(scheduleBody))

  app.get<{ Params: ScheduleParams }>('/schedules/:schedule', READ, async (request) => {
    const name = request.params.schedule
    const found = (await visible(callerOf(request))).find(({ schedule }) => schedule.name === name)
    if (found === undefined) throw new ImpresarioError('NOT_FOUND', 'Schedule not found')
    return scheduleBody(found)
  })

  app.post<{ Params: ScheduleParams }>('/schedules/:schedule/run', RUN, async (request, reply) => {
    const { jobId } = await engine.scheduler.runNow(request.params.schedule, keyOf(request))
    return reply.code(202).send({ status: 'accepted', job_id: jobId })
  })
}

function scheduleBody({ schedule, ...view }: ScheduleView): ScheduleBody {
  return {
    name: schedule.name,
    blueprint: schedule.blueprint,
    enabled: schedule.isEnabled,
    client: schedule.clientId,
    trigger: triggerBody(schedule.trigger),
    timezone: schedule.timeZone,
    misfire: schedule.misfire,
    next_at: secondsOf(view.nextAt),
    last_for: secondsOf(view.lastFor),
    last_at: secondsOf(view.lastAt),
    last_job_id: view.lastJobId ?? null,
  }
}

function secondsOf(ms: number | undefined): number | null {
  return ms === undefined ? null : ms / 1_000
}

function triggerBody(trigger: Trigger): JsonObject {
  const { kind } = trigger
  switch (kind) {
    case 'interval':
      return { kind, every_seconds: trigger.everyMs / 1_000 }
    case 'daily':
      return { kind, time: timeOfDay(trigger.at) }
    case 'weekly':
      return { kind, time: timeOfDay(trigger.at), days: trigger.days }
    case 'monthly':
      return { kind, time: timeOfDay(trigger.at), dates: trigger.dates }
  }
}

function timeOfDay(minutes: number): string {
  const two = (part: number): string => String(part).padStart(2, '0')
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}
