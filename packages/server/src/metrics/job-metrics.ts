import { questionOf } from '@impresario/core'
import type { Job, TrailEntry, WorkerRecord } from '@impresario/core'
import type { Delivery, HistorySink } from '@impresario/engine'
import type { Metrics } from './metrics.ts'
import type { JobOfValue } from './open-metrics.ts'

/** Outcomes of jobs by the event that tells of them. */
const ENDS: Readonly<Record<string, string>> = {
  job_finished: 'finished',
  job_failed: 'failed',
  job_error: 'error',
  job_cancelled: 'cancelled',
}
const TASK_ENDS: Readonly<Record<string, string>> = {
  task_finished: 'finished',
  task_failed: 'failed',
  task_expired: 'expired',
  task_abandoned: 'abandoned',
}

/** Counts what happens to jobs. Each moment is told to the instance that committed it, so the sum over instances is right. */
export function countedHistory(metrics: Metrics, history: HistorySink): HistorySink {
  return {
    append(jobId, job, entries) {
      const behind = job === undefined ? undefined : { id: jobId, tracing: job.tracing }
      for (const entry of entries) countEntry(metrics, { job, behind }, entry)
      history.append(jobId, job, entries)
    },
    appendWorker: (moment) => history.appendWorker(moment),
  }
}

/** Counts tasks that went to a worker which had their skill, or the model that they name, loaded already. */
export function countHot(metrics: Metrics, { blueprint, call }: Delivery, worker: WorkerRecord): void {
  const { type, model } = questionOf(call, undefined)
  const isHotModel = model !== undefined && worker.hotModels.includes(model)
  const kind = worker.hotSkills.includes(type) ? 'skill' : isHotModel ? 'model' : undefined
  if (kind === undefined) return
  metrics.count('orchestrator_tasks_hot_dispatched_total', { blueprint: labelOf(blueprint), kind })
}

interface Counted {
  readonly job: Job | undefined
  /** The job as the example of a figure. */
  readonly behind: JobOfValue | undefined
}

function countEntry(metrics: Metrics, { job, behind }: Counted, { event, code, durationMs }: TrailEntry): void {
  const blueprint = blueprintLabel(job)
  if (event === 'job_created') {
    metrics.count('orchestrator_jobs_total', { blueprint })
    const scheduledFor = job?.metadata?.['scheduled_for']
    if (scheduledFor !== undefined) {
      metrics.count('orchestrator_scheduler_jobs_triggered_total', { blueprint })
      // By the clock on the wall, as schedules go; it was written a moment ago.
      const lagMs = typeof scheduledFor === 'string' ? Date.now() - Date.parse(scheduledFor) : Number.NaN
      if (Number.isFinite(lagMs)) metrics.observe('impresario_scheduler_lag_seconds', {}, Math.max(0, lagMs) / 1_000)
    }
  }
  const outcome = own(ENDS, event)
  if (outcome !== undefined) {
    metrics.count('impresario_jobs_ended_total', { blueprint, outcome })
    if (outcome === 'failed' || outcome === 'error') metrics.count('orchestrator_jobs_failed_total', { blueprint })
    if (durationMs !== undefined) {
      metrics.observe('orchestrator_job_duration_seconds', { blueprint }, durationMs / 1_000, behind)
    }
    if (job?.error?.code === 'EXECUTION_TIMEOUT') {
      metrics.count('orchestrator_jobs_timeouts_total', { blueprint, type: 'execution' })
    }
  }
  if (event === 'job_quarantined') {
    metrics.count('orchestrator_jobs_failed_total', { blueprint })
    metrics.count('impresario_jobs_quarantined_total', { blueprint })
  }
  if (event === 'result_ignored') {
    metrics.count('orchestrator_tasks_ignored_total', { blueprint, reason: code ?? 'unknown' })
  }
  countTask(metrics, { blueprint, behind }, { event, code, durationMs })
}

function countTask(
  metrics: Metrics,
  { blueprint, behind }: { readonly blueprint: string; readonly behind: JobOfValue | undefined },
  { event, code, durationMs }: Pick<TrailEntry, 'event' | 'code' | 'durationMs'>,
): void {
  const outcome = own(TASK_ENDS, event)
  if (outcome === undefined) return
  metrics.count('impresario_tasks_ended_total', { blueprint, outcome })
  if (durationMs !== undefined) {
    metrics.observe('impresario_task_duration_seconds', { blueprint }, durationMs / 1_000, behind)
  }
  if (outcome === 'expired') metrics.count('orchestrator_jobs_timeouts_total', { blueprint, type: 'dispatch' })
  else if (code === 'TIMEOUT_ERROR') {
    metrics.count('orchestrator_jobs_timeouts_total', { blueprint, type: 'execution' })
  }
}

function own(table: Readonly<Record<string, string>>, event: string): string | undefined {
  return Object.hasOwn(table, event) ? table[event] : undefined
}

/** Each automation has a blueprint of its own, named after its id: they count as one. */
function blueprintLabel(job: Job | undefined): string {
  return labelOf(job?.blueprint ?? 'unknown')
}

function labelOf(name: string): string {
  return name.startsWith('automation/') ? 'automation' : name
}
