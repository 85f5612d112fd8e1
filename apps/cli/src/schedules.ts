import type { Schedule } from '@impresario/client'
import { COMMAND, EXIT } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, span, until } from './time.ts'

export function listSchedules(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const schedules = await client.schedules.list()
    if (screen.isJson) printJson(screen, schedules)
    else if (schedules.length === 0) screen.out('There are no schedules for you. Admins see all of them.')
    else screen.out(scheduleTable(screen, schedules))
    return EXIT.ok
  })
}

function scheduleTable(screen: Screen, schedules: readonly Schedule[]): string {
  const now = nowSeconds()
  return table(screen, schedules, [
    { title: 'schedule', cell: (one) => one.name },
    { title: 'blueprint', cell: (one) => one.blueprint },
    { title: 'when', cell: (one) => triggerText(one) },
    {
      title: 'next',
      cell: (one) => (one.nextAt === null ? screen.paint('gray', stillness(one)) : until(one.nextAt, now)),
    },
    { title: 'last', cell: (one) => (one.lastAt === null ? '–' : ago(one.lastAt, now)) },
    { title: 'last job', cell: (one) => one.lastJobId ?? '–' },
  ])
}

/** Why it does not fire. */
function stillness({ pausedAt }: Schedule): string {
  return pausedAt === null ? 'off' : 'paused'
}

const DAYS = ['', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

/** When it fires, as short as people say it. */
function triggerText({ trigger, timezone }: Schedule): string {
  const { kind, time, days, dates, everySeconds: every } = trigger
  const list = (values: unknown): string => (Array.isArray(values) ? values.map(String).join(', ') : '')
  const at = `${typeof time === 'string' ? time : ''} ${timezone}`
  if (kind === 'interval') return `every ${span(Number(every))}`
  if (kind === 'weekly') return `${list(Array.isArray(days) ? days.map((day) => DAYS[Number(day)]) : [])} ${at}`
  if (kind === 'monthly') return `on the ${list(dates)} of the month, ${at}`
  return `daily ${at}`
}

export function showSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const schedule = await client.schedules.get(name)
    if (screen.isJson) printJson(screen, schedule)
    else screen.out(schedulePage(screen, schedule))
    return EXIT.ok
  })
}

function schedulePage(screen: Screen, schedule: Schedule): string {
  const now = nowSeconds()
  const { nextAt, pausedAt, pausedBy, lastFor, lastAt } = schedule
  return facts(screen, [
    ['schedule', schedule.name],
    ['blueprint', schedule.blueprint],
    ['client', schedule.client],
    ['when', triggerText(schedule)],
    ['next', nextAt === null ? stillness(schedule) : `${localTime(nextAt)} (${until(nextAt, now)})`],
    ['paused', pausedAt === null ? undefined : `${localTime(pausedAt)} by ${pausedBy ?? '?'}`],
    ['last', lastAt === null ? 'never' : `${localTime(lastAt)} (${ago(lastAt, now)})`],
    ['for', lastFor === null ? undefined : localTime(lastFor)],
    ['last job', schedule.lastJobId ?? undefined],
    ['if missed', schedule.misfire.replaceAll('_', ' ')],
    ['then', schedule.upcoming.slice(1).map(localTime).join(', ') || undefined],
    ['skipped', skippedText(schedule)],
  ])
}

/** Firings of late that started no job. */
function skippedText({ recent }: Schedule): string | undefined {
  const skipped = recent.filter((firing) => firing.skipped !== null)
  return (
    skipped.map((firing) => `${localTime(firing.for)} (${firing.skipped?.replaceAll('_', ' ')})`).join(', ') ||
    undefined
  )
}

export interface RunOptions extends GlobalOptions {
  readonly key?: string
}

export function runSchedule(name: string, options: RunOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { id } = await client.schedules.run(name, { idempotencyKey: options.key })
    done(screen, `Started job ${id} of the schedule ${name}.`, { job_id: id })
    if (!screen.isJson) screen.out(screen.paint('dim', `Watch it: ${COMMAND} jobs watch ${id}`))
    return EXIT.ok
  })
}

export function pauseSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const schedule = await client.schedules.pause(name)
    return done(screen, `The schedule ${name} is paused: it starts nothing until you resume it.`, schedule)
  })
}

export function resumeSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const schedule = await client.schedules.resume(name)
    const next = schedule.nextAt === null ? '' : `: it fires next at ${localTime(schedule.nextAt)}`
    return done(screen, `The schedule ${name} goes on${next}.`, schedule)
  })
}
