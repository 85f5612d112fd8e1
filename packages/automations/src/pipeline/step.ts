import type { DataObject } from '@impresario/protocol'

/** What happens when a step has failed for good. */
export type OnError = 'fail' | 'continue' | { readonly goto: string }

export interface StepRetry {
  /** All tries together, the first one included. */
  readonly maxAttempts: number
  readonly backoff: 'exponential_jitter' | 'exponential' | 'linear' | 'fixed'
  readonly initialSeconds: number
  readonly maxSeconds: number
}

/** A question to a person in the middle of a pipeline. */
export interface StepApproval {
  /** A template. */
  readonly message: string
  /** What can be decided; the first one lets the pipeline go on, the others are its result. */
  readonly decisions: readonly string[]
  readonly expiresSeconds: number | undefined
}

/** Runs the step once for each item of a list. */
export interface StepLoop {
  /** An expression that gives the list. */
  readonly items: string
  /** The name of the item in templates. */
  readonly as: string
  readonly concurrency: number
}

/** What a step does: calls a tool, asks a person, or runs further steps, one after the other or side by side. */
export type StepBody =
  | { readonly kind: 'tool'; readonly uses: string; readonly with: DataObject }
  | { readonly kind: 'approval'; readonly approval: StepApproval }
  | { readonly kind: 'pipeline'; readonly steps: readonly Step[] }
  | { readonly kind: 'parallel'; readonly branches: readonly Step[] }

/** One step of a compiled pipeline. Everything in it was checked and can be stored as JSON. */
export interface Step {
  readonly id: string
  /** The name under which later steps read its output: `steps.<saveAs>`. The id is always readable too. */
  readonly saveAs: string | undefined
  readonly if: string | undefined
  readonly timeoutSeconds: number | undefined
  readonly retry: StepRetry | undefined
  readonly onError: OnError
  readonly forEach: StepLoop | undefined
  readonly body: StepBody
}

export interface Pipeline {
  readonly steps: readonly Step[]
}

/** Bounds of pipelines. Each is generous for people and keeps a run's record small. */
export const PIPELINE_LIMITS = {
  /** Steps of one pipeline, those inside other steps included. */
  stepsMax: 100,
  depthMax: 4,
  /** The pipeline as it is written. It travels with every run. */
  bytesMax: 131_072,
  idCharsMax: 64,
  timeoutSecondsMax: 86_400,
  retryAttemptsMax: 20,
  concurrencyMax: 100,
  /**
   * What the parts of a run that are side by side carry together: each has all that the run has, and is in memory while it begins. Parts
   * of parts share it. A hundred items with a hundred each of 200 kB were 4 GB.
   */
  sideBySideChars: 4_194_304,
  /** Items of one `for_each`. */
  itemsMax: 1_000,
  approvalSecondsMax: 31_536_000,
} as const
