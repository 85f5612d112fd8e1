import { RUN_STATUSES } from './run-view.ts'
import type { RunStatus, RunView } from './run-view.ts'

/** What became of the runs of a span of time. Times are milliseconds since 1970. */
export interface RunStatistics {
  readonly since: number
  readonly until: number
  readonly total: number
  readonly byStatus: Readonly<Record<RunStatus, number>>
  readonly automations: number
  /** Of those that ended as succeeded or failed; `undefined` without any. */
  readonly successRate: number | undefined
  readonly durationMs: { readonly mean: number; readonly p50: number; readonly p95: number } | undefined
  readonly lastRunAt: number | undefined
  readonly lastSuccessAt: number | undefined
  readonly lastFailureAt: number | undefined
  /** There were more runs than were looked at. */
  readonly isPartial: boolean
}

/** What is counted of a run. */
export type CountedRun = Pick<RunView, 'automationId' | 'status' | 'createdAt' | 'endedAt'>

export function countedRun({ automationId, status, createdAt, endedAt }: RunView): CountedRun {
  return { automationId, status, createdAt, endedAt }
}

interface Span {
  readonly since: number
  readonly until: number
  readonly isPartial: boolean
}

/** `runs`: the newest first. */
export function statisticsOf(runs: readonly CountedRun[], { since, until, isPartial }: Span): RunStatistics {
  const count = (status: RunStatus): number => runs.filter((run) => run.status === status).length
  const byStatus = Object.fromEntries(RUN_STATUSES.map((status) => [status, count(status)])) as Record<
    RunStatus,
    number
  >
  const { succeeded, failed } = byStatus
  const last = (isWanted: (run: CountedRun) => boolean): number | undefined => runs.find(isWanted)?.createdAt
  return {
    since,
    until,
    total: runs.length,
    byStatus,
    automations: new Set(runs.map(({ automationId }) => automationId)).size,
    successRate: succeeded + failed === 0 ? undefined : succeeded / (succeeded + failed),
    durationMs: durationsOf(runs),
    lastRunAt: last(() => true),
    lastSuccessAt: last(({ status }) => status === 'succeeded'),
    lastFailureAt: last(({ status }) => status === 'failed'),
    isPartial,
  }
}

function durationsOf(runs: readonly CountedRun[]): RunStatistics['durationMs'] {
  const spans = runs
    .flatMap(({ createdAt, endedAt }) => (endedAt === undefined ? [] : [endedAt - createdAt]))
    .toSorted((a, b) => a - b)
  if (spans.length === 0) return undefined
  const at = (share: number): number => spans[Math.min(spans.length - 1, Math.floor(spans.length * share))] ?? 0
  const sum = spans.reduce((total, span) => total + span, 0)
  return { mean: sum / spans.length, p50: at(0.5), p95: at(0.95) }
}
