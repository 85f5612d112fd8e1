import { DAY_MS } from '@impresario/protocol'
import type { FastifyInstance } from 'fastify'
import { runBlueprintName } from '@impresario/automations'
import type { RunQuery, RunStatistics, RunView } from '@impresario/automations'
import { jsonObjectCopy, wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import type { AutomationService } from '../automations/automation-service.ts'
import { actorOf } from '../client-api/actor.ts'
import { stamp, stampOrNull } from './answer.ts'
import { invalid, readFilter } from './input.ts'
import { oldPage, oldRoute, pageFields } from './old-route.ts'
import { readTask } from './task-routes.ts'

export interface RunRoutesOptions {
  readonly automations: AutomationService
  readonly storage: Storage
  readonly clock: Clock
}

const flag = z.stringbool()
const listQuery = z.object({
  task_id: z.string().min(1).max(200).optional(),
  success: flag.optional(),
  include_errors: flag.default(false),
  start_time: z.string().max(50).optional(),
  end_time: z.string().max(50).optional(),
  ...pageFields,
})
const days = (otherwise: number) => z.object({ days: z.coerce.number().int().min(1).max(365).default(otherwise) })
const [taskDays, allDays] = [days(30), days(7)]

const PAGE = 100
const HIDDEN = 'The run failed. Ask with include_errors=true, or for this run, to see why.'
const READ = oldRoute('runs:read', { access: 'viewer' })
const LIST = oldRoute('runs:read', { access: 'viewer', isList: true })

interface OfTask {
  readonly Params: { readonly task_id: string }
}

/** Runs of tasks. */
export function registerRunRoutes(app: FastifyInstance, options: RunRoutesOptions): void {
  const { runs, automations } = options.automations
  const { clock } = options

  app.get('/runs', LIST, async (request) => {
    const { limit, offset, include_errors: isOpen, ...query } = readFilter(listQuery, request.query)
    const actor = actorOf(request)
    const owner = actor.isAdmin ? undefined : actor.id
    const filter = { owner, ...filterOf(query) }
    const { success } = query
    const isMeant = ({ status }: RunView): boolean => success !== false || FAILED.has(status)
    const total = await totalOf(options, filter, success)
    const read = async (before: string | undefined) => {
      const found = await runs.list({ ...filter, before, limit: PAGE })
      return { ...found, items: found.items.filter(isMeant) }
    }
    return oldPage({ read, write: (run) => wireRun(run, isOpen) }, { limit, offset, total })
  })

  app.get<{ Params: { run_id: string } }>('/runs/:run_id', READ, async (request) =>
    wireRun(await runs.read(request.params.run_id, actorOf(request)), true),
  )

  app.get<OfTask>('/runs/task/:task_id/latest', READ, async (request) => {
    const { id, owner } = await readTask(automations, request.params.task_id, actorOf(request))
    const { items } = await runs.list({ owner, automationId: id, limit: 1 })
    const [latest] = items
    return latest === undefined ? null : wireRun(latest, true)
  })

  app.get<OfTask>('/runs/task/:task_id/stats', READ, async (request) => {
    const { days: period } = readFilter(taskDays, request.query)
    const { id, owner } = await readTask(automations, request.params.task_id, actorOf(request))
    const now = wallTime(clock)
    const found = await runs.statistics({ owner, automationId: id, createdAfter: now - period * DAY_MS }, now)
    return {
      task_id: id,
      period_days: period,
      ...countsOf(found),
      last_run: stampOrNull(found.lastRunAt),
      last_success: stampOrNull(found.lastSuccessAt),
      last_failure: stampOrNull(found.lastFailureAt),
    }
  })

  app.get('/runs/stats/summary', READ, async (request) => {
    const { days: period } = readFilter(allDays, request.query)
    const actor = actorOf(request)
    const now = wallTime(clock)
    const owner = actor.isAdmin ? undefined : actor.id
    const found = await runs.statistics({ owner, createdAfter: now - period * DAY_MS }, now)
    const { total_runs: total, ...counts } = countsOf(found)
    return {
      period_days: period,
      total_runs: total,
      total_tasks_executed: found.automations,
      ...counts,
      runs_per_day: total / period,
    }
  })
}

const FAILED: ReadonlySet<RunView['status']> = new Set(['failed', 'canceled', 'quarantined'])

type Filter = Omit<RunQuery, 'limit' | 'before' | 'owner'>

function filterOf(query: Pick<z.output<typeof listQuery>, 'task_id' | 'success' | 'start_time' | 'end_time'>): Filter {
  const { task_id: automationId, success, start_time: from, end_time: to } = query
  return {
    automationId,
    status: success === true ? 'succeeded' : undefined,
    createdAfter: from === undefined ? undefined : timeIn('start_time', from),
    createdBefore: to === undefined ? undefined : timeIn('end_time', to),
  }
}

/** A time without an offset is in UTC, as the old system read it. A `+` of the offset may have become a space on its way. */
function timeIn(name: string, text: string): number {
  const written = text.trim().replace(/ (?=\d{2}:?\d{2}$)/, '+')
  const isComplete = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(written)
  const ms = Date.parse(isComplete || !written.includes('T') ? written : `${written}Z`)
  if (Number.isNaN(ms)) throw invalid(['query', name], 'Must be a time such as 2026-01-31T09:00:00Z.')
  return ms
}

/** Runs of one task are counted by the storage; others by going over them. */
async function totalOf(
  { storage }: RunRoutesOptions,
  { owner, automationId, status, createdAfter, createdBefore }: Filter & { readonly owner: string | undefined },
  success: boolean | undefined,
): Promise<number | undefined> {
  const isCounted = automationId !== undefined && createdAfter === undefined && createdBefore === undefined
  if (!isCounted || success === false) return undefined
  const name = runBlueprintName(automationId)
  const counts = await storage.counts('job', owner === undefined ? { name } : { owner, name })
  if (status === 'succeeded') return counts['finished'] ?? 0
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function countsOf({ total, byStatus, successRate, durationMs }: RunStatistics) {
  const { succeeded, failed } = byStatus
  return {
    total_runs: total,
    successful_runs: succeeded,
    failed_runs: failed,
    success_rate: successRate ?? 0,
    failure_rate: successRate === undefined ? 0 : 1 - successRate,
    avg_execution_time_seconds: durationMs === undefined ? null : durationMs.mean / 1_000,
  }
}

/** `isOpen`: with the text of its error. */
function wireRun(run: RunView, isOpen: boolean): JsonObject {
  const isOver = run.endedAt !== undefined
  const failure = run.error?.message ?? (FAILED.has(run.status) ? `The run was ${run.status}.` : undefined)
  const error = failure === undefined ? null : isOpen ? failure : HIDDEN
  return jsonObjectCopy(
    {
      id: run.id,
      task_id: run.automationId,
      lease_owner: null,
      leased_until: null,
      started_at: stamp(run.createdAt),
      finished_at: stampOrNull(run.endedAt),
      success: isOver ? run.status === 'succeeded' : null,
      error,
      attempt: run.attempt,
      output: isOver ? outputOf(run, isOpen) : null,
      created_at: stamp(run.createdAt),
    },
    'The run',
  )
}

/** What the pipeline had before it when it ended, and each of its steps. */
function outputOf(run: RunView, isOpen: boolean): object {
  const { context, steps } = run
  const failedAt = steps.findIndex(({ status }) => status === 'failed')
  const isSuccess = run.status === 'succeeded'
  const failure = { failed_step_index: failedAt === -1 ? null : failedAt, error: isOpen ? run.error?.message : HIDDEN }
  return {
    now: stamp(Date.parse(context.now)),
    params: context.params,
    event: context.event,
    steps: context.saved,
    _task_id: run.automationId,
    _task_title: run.title,
    _execution_start: stamp(run.createdAt),
    _execution_summary: {
      success: isSuccess,
      total_steps: context.steps,
      executed_steps: steps.filter(({ status }) => status !== 'skipped').length,
      skipped_steps: steps.filter(({ status }) => status === 'skipped').length,
      execution_time_seconds: ((run.endedAt ?? run.createdAt) - run.createdAt) / 1_000,
      ...(isSuccess ? {} : failure),
    },
    _steps: steps.map(({ id, status, attempts, output, error }) => ({
      id,
      status,
      attempts,
      output,
      error: error === undefined ? null : isOpen ? error.message : HIDDEN,
    })),
  }
}
