import { jsonObjectCopy, storedCopy } from '@impresario/core'
import type { Job } from '@impresario/core'
import type { Data, JsonObject } from '@impresario/protocol'
import type { RunRetry } from '../automation/definition.ts'
import { BEGINNING } from '../run/progress.ts'
import type { RunInput, RunProgress, StepError, StepRecord } from '../run/progress.ts'

/** What set a run off. */
export interface RunTrigger {
  readonly kind: 'time' | 'event' | 'condition' | 'webhook' | 'manual' | 'rerun'
  /** The occurrence that it stands for; milliseconds since 1970. */
  readonly scheduledFor?: number
  readonly eventId?: string
  /** Who asked for it, or published the event. */
  readonly by?: string
  /** The run that it repeats. */
  readonly rerunOf?: string
}

/** What the job of a run begins with. */
export interface RunStart {
  readonly input: RunInput
  /** Absent for a part of another run, which repeats nothing. */
  readonly retry?: RunRetry
  readonly trigger?: RunTrigger
  /** The gate that counts it as open. */
  readonly gate?: string
  /** Where each attempt begins, if not at the first step: with what another run has done before. */
  readonly begins?: RunProgress
}

/** One attempt of a run that failed and was repeated. */
interface FailedAttempt {
  readonly attempt: number
  readonly records: readonly StepRecord[]
  readonly error: StepError
  readonly endedAt: string
}

/** Where the job of a run stands: its state history. */
export interface RunState {
  readonly attempt: number
  readonly progress: RunProgress
  readonly attempts: readonly FailedAttempt[]
  /** The tool of the pending step, where it is not a task. */
  readonly sleeping?: boolean
  readonly status?: 'succeeded' | 'failed'
  readonly output?: Data
  readonly error?: StepError
}

const PREFIX = 'automation/'
/** What a part of a run (an item of a loop, a branch) runs as. Lists of runs do not show it. */
export const PART_BLUEPRINT = 'automation-part'

/** Runs are listed by the blueprint of their jobs, which every storage has an index for. */
export function runBlueprintName(automationId: string): string {
  return `${PREFIX}${automationId}`
}

/** The automation that a job is a run of. */
export function automationOf(job: Pick<Job, 'blueprint'>): string | undefined {
  return job.blueprint.startsWith(PREFIX) ? job.blueprint.slice(PREFIX.length) : undefined
}

/** What was read of the beginnings of runs. Each is looked at in every turn of its run, and never changes. */
const STARTS = new WeakMap<JsonObject, RunStart>()

/** Boundary: only `startData` has written it. */
export function startOf({ initialData }: Pick<Job, 'initialData'>): RunStart {
  const known = STARTS.get(initialData)
  if (known !== undefined) return known
  const start = storedCopy(initialData) as unknown as RunStart
  STARTS.set(initialData, start)
  return start
}

export function startData(start: RunStart): JsonObject {
  return jsonObjectCopy(start, 'The run')
}

/** Boundary: only `stateData` has written it. */
export function runStateOf(job: Pick<Job, 'stateHistory' | 'initialData'>): RunState {
  const state = storedCopy(job.stateHistory) as unknown as Partial<RunState>
  return {
    ...state,
    attempt: state.attempt ?? 1,
    progress: state.progress ?? startOf(job).begins ?? BEGINNING,
    attempts: state.attempts ?? [],
  }
}

export function stateData(state: RunState): JsonObject {
  return jsonObjectCopy(state, 'The state of the run')
}
