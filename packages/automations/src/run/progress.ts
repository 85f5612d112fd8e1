import type { Data, DataObject } from '@impresario/protocol'
import type { Pipeline } from '../pipeline/step.ts'

/** What a run begins with. It travels with the run, so that later changes of the automation do not reach it. */
export interface RunInput {
  readonly pipeline: Pipeline
  readonly params: DataObject
  /** What set it off: topic, payload and id of an event, or the values of a condition. */
  readonly event: Data
  /** When the run began. The same for all of its steps. */
  readonly now: string
  readonly automation: { readonly id: string; readonly title: string }
  readonly run: { readonly id: string; readonly attempt: number }
  /** Outputs of the steps around it, and items of loops, when this is a part of another run. */
  readonly outer: {
    readonly steps: DataObject
    readonly items: DataObject
    /** What its own parts may carry together, in characters of JSON. Absent in a run that is no part. */
    readonly room?: number
  }
}

/** What is on record about one step. */
export interface StepRecord {
  readonly id: string
  readonly status: 'running' | 'succeeded' | 'failed' | 'skipped'
  /** What the tool was called with. Secrets are not in it. */
  readonly input: Data
  /** What its condition looked at, and whether it held. */
  readonly condition: { readonly source: string; readonly values: DataObject; readonly holds: boolean } | undefined
  readonly output: Data
  readonly attempts: number
  readonly startedAt: string
  readonly endedAt: string | undefined
  readonly error: StepError | undefined
}

export interface StepError {
  readonly code: string
  readonly message: string
}

/** What the run is waiting for. */
export interface Pending {
  /** The position of the step. */
  readonly at: number
  readonly attempt: number
  /** `backoff`: the pause before the next attempt. `items`: a part of a loop, from this item on. */
  readonly for: 'result' | 'decision' | 'backoff' | 'items'
  readonly input: Data
  readonly condition: StepRecord['condition']
  readonly startedAt: string
  /** Results of the items of a loop that are done. */
  readonly items: readonly ItemResult[]
}

export interface ItemResult {
  readonly status: 'succeeded' | 'failed'
  readonly output: Data
  readonly error: StepError | undefined
}

/** Where a run stands. */
export interface RunProgress {
  /** The step that is next, or that is pending. */
  readonly at: number
  readonly pending: Pending | undefined
  /** Outputs by the names that later steps read them by. */
  readonly outputs: DataObject
  readonly records: readonly StepRecord[]
  /** How often `goto` was followed. */
  readonly jumps: number
}

export const BEGINNING: RunProgress = { at: 0, pending: undefined, outputs: {}, records: [], jumps: 0 }

/** What came of what the run was waiting for. */
export type Outcome =
  | { readonly kind: 'result'; readonly output: Data }
  | { readonly kind: 'error'; readonly error: StepError; readonly isFinal: boolean }
  | {
      readonly kind: 'decision'
      readonly decision: string
      readonly comment: string | undefined
      readonly by: string | undefined
    }
  | { readonly kind: 'expired' }
  | { readonly kind: 'elapsed' }
  | { readonly kind: 'items'; readonly results: readonly ItemResult[] }

/** What the run does next. */
export type Command =
  | {
      readonly do: 'call'
      readonly step: string
      readonly tool: string
      readonly input: DataObject
      readonly timeoutSeconds: number | undefined
    }
  | {
      readonly do: 'ask'
      readonly step: string
      readonly message: string
      readonly decisions: readonly string[]
      readonly expiresSeconds: number | undefined
    }
  | { readonly do: 'wait'; readonly step: string; readonly ms: number }
  /** Runs these parts side by side, each as a run of its own. */
  | {
      readonly do: 'parts'
      readonly step: string
      readonly parts: readonly { readonly name: string; readonly input: RunInput }[]
    }
  | {
      readonly do: 'end'
      readonly status: 'succeeded' | 'failed'
      readonly output: Data
      readonly error: StepError | undefined
    }

/** A `goto` that leads back can be followed so often in one run. */
export const JUMPS_MAX = 100
