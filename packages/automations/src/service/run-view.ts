import { isEnded, isoInstant, storedCopy } from '@impresario/core'
import type { Job } from '@impresario/core'
import type { Data, DataObject, Usage } from '@impresario/protocol'
import { isObject } from '../pipeline/reader.ts'
import type { Pending, RunInput, RunProgress, StepError, StepRecord } from '../run/progress.ts'
import { withoutMarks } from '../run/secrets.ts'
import type { WaitingRun } from './waiting-run.ts'
import { timeOfId } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { automationOf, runStateOf, startOf } from './run-start.ts'
import type { RunTrigger } from './run-start.ts'

export const RUN_STATUSES = ['running', 'succeeded', 'failed', 'canceled', 'quarantined'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

interface RunContext {
  readonly now: string
  readonly params: DataObject
  readonly event: Data
  /** By the names of `save_as`. */
  readonly saved: DataObject
  /** How many steps the pipeline has. */
  readonly steps: number
}

/** A run as people see it. */
export interface RunView {
  readonly id: string
  readonly automationId: string
  readonly title: string
  readonly owner: string
  /** `waiting`: it has not begun, because another run of its automation or with its concurrency key is open. */
  readonly status: RunStatus | 'waiting'
  readonly trigger: RunTrigger
  readonly attempt: number
  /** Attempts before this one that failed. */
  readonly attempts: readonly {
    readonly attempt: number
    readonly error: StepError
    readonly steps: readonly StepRecord[]
  }[]
  readonly steps: readonly StepRecord[]
  readonly output: Data
  /** What its templates could read: what it began with, and the outputs that steps saved under a name. */
  readonly context: RunContext
  readonly error: StepError | undefined
  /** What its tasks have used, with all parts. Only where one run is read. */
  readonly usage?: Usage
  readonly createdAt: number
  readonly endedAt: number | undefined
}

/** A run that waits for its place. It has no job yet. */
export function waitingViewOf({ runId, trigger, event = null, params }: WaitingRun, record: AutomationRecord): RunView {
  const { id: automationId, owner, definition } = record
  const createdAt = timeOfId(runId) ?? record.updatedAt
  const { title, pipeline } = definition
  return withoutMarks({
    id: runId,
    automationId,
    title,
    owner,
    status: 'waiting',
    trigger,
    attempt: 1,
    attempts: [],
    steps: [],
    output: null,
    context: {
      now: isoInstant(createdAt),
      params: { ...definition.params, ...params },
      event,
      saved: {},
      steps: pipeline.steps.length,
    },
    error: undefined,
    createdAt,
    endedAt: undefined,
  })
}

/** The run that a job is; nothing for another job. */
export function runViewOf(job: Job): RunView | undefined {
  const automationId = automationOf(job)
  if (automationId === undefined) return undefined
  const { input, trigger } = startOf(job)
  const { attempt, attempts, progress, output, error, status } = runStateOf(job)
  return withoutMarks({
    id: job.id,
    automationId,
    title: input.automation.title,
    owner: job.client.id,
    status: statusOf(job),
    trigger: trigger ?? { kind: 'manual' },
    attempt,
    attempts: attempts.map((one) => ({ attempt: one.attempt, error: one.error, steps: one.records })),
    steps: stepsOf(job, progress),
    output: status === undefined ? null : (output ?? outputIn(job)),
    context: contextOf(input, progress),
    error: error ?? errorOf(job),
    createdAt: job.createdAt,
    endedAt: job.endedAt,
  })
}

function contextOf({ now, params, event, pipeline: { steps } }: RunInput, { outputs }: RunProgress): RunContext {
  const names = steps.flatMap(({ saveAs }) => (saveAs !== undefined && Object.hasOwn(outputs, saveAs) ? [saveAs] : []))
  const saved = Object.fromEntries(names.map((name) => [name, outputs[name] ?? null]))
  return { now, params, event, saved, steps: steps.length }
}

function statusOf(job: Job): RunStatus {
  switch (job.status) {
    case 'finished':
      return 'succeeded'
    case 'failed':
    case 'error':
      return 'failed'
    case 'cancelled':
      return 'canceled'
    case 'quarantined':
      return 'quarantined'
    default:
      return 'running'
  }
}

function errorOf({ error }: Job): StepError | undefined {
  return error === undefined ? undefined : { code: error.code, message: error.message }
}

function outputIn({ result }: Job): Data {
  const seen = result === undefined ? null : storedCopy(result)
  return isObject(seen) ? ((seen as DataObject)['output'] ?? null) : null
}

/** With the step that is under way, or at which the run was stopped. */
function stepsOf(job: Job, { records, pending, at }: RunProgress): readonly StepRecord[] {
  if (pending === undefined) return records
  const { pipeline } = startOf(job).input
  const id = pipeline.steps[pending.at]?.id ?? pipeline.steps[at]?.id ?? ''
  return [...records, underWay(id, pending, isEnded(job) ? isoInstant(job.endedAt ?? job.updatedAt) : undefined)]
}

function underWay(id: string, pending: Pending, endedAt: string | undefined): StepRecord {
  const { input, condition, attempt, startedAt } = pending
  const status = endedAt === undefined ? 'running' : 'failed'
  const error = endedAt === undefined ? undefined : { code: 'CANCELLED', message: 'The run ended before the step did.' }
  return { id, status, input, condition, output: null, attempts: attempt, startedAt, endedAt, error }
}
