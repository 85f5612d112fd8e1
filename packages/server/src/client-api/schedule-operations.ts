import type { Trigger } from '@impresario/core'
import type { ClientKey, Engine, ScheduleView } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonObject, ScheduleBody } from '@impresario/protocol'
import { isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'

/* Jobs by the calendar: a client sees the schedules whose jobs are its own, an admin all. */

export async function listSchedules(engine: Engine, caller: Caller): Promise<readonly ScheduleBody[]> {
  const all = await engine.scheduler.list()
  const visible = isAdmin(caller) ? all : all.filter(({ schedule }) => schedule.clientId === caller.client.id)
  return visible.map(scheduleBody)
}

export async function readSchedule(engine: Engine, caller: Caller, name: string): Promise<ScheduleBody> {
  const found = (await listSchedules(engine, caller)).find((schedule) => schedule.name === name)
  if (found === undefined) throw new ImpresarioError('NOT_FOUND', 'Schedule not found')
  return found
}

/** Gives the id of the job. Whether the caller may is asked before. */
export async function runSchedule(engine: Engine, name: string, once: ClientKey | undefined): Promise<string> {
  return (await engine.scheduler.runNow(name, once)).jobId
}

/** Whether the caller may is asked before; so for the next one. */
export async function pauseSchedule(engine: Engine, caller: Caller, name: string): Promise<ScheduleBody> {
  await engine.scheduler.pause(name, caller.client.id)
  return readSchedule(engine, caller, name)
}

export async function resumeSchedule(engine: Engine, caller: Caller, name: string): Promise<ScheduleBody> {
  await engine.scheduler.resume(name, caller.client.id)
  return readSchedule(engine, caller, name)
}

function scheduleBody({ schedule, ...view }: ScheduleView): ScheduleBody {
  return {
    name: schedule.name,
    blueprint: schedule.blueprint,
    enabled: schedule.isEnabled,
    paused_at: secondsOf(view.paused?.at),
    paused_by: view.paused?.by ?? null,
    client: schedule.clientId,
    trigger: triggerBody(schedule.trigger),
    timezone: schedule.timeZone,
    misfire: schedule.misfire,
    next_at: secondsOf(view.nextAt),
    last_for: secondsOf(view.lastFor),
    last_at: secondsOf(view.lastAt),
    last_job_id: view.lastJobId ?? null,
    upcoming: view.upcoming.map((at) => at / 1_000),
    recent: view.recent.map(({ firedFor, firedAt, jobId, skipped }) => ({
      for: firedFor / 1_000,
      at: firedAt / 1_000,
      job_id: jobId ?? null,
      skipped: skipped === undefined ? null : skipped === 'clock went back' ? 'clock_went_back' : skipped,
    })),
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
