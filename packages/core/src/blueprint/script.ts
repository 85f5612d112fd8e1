import type { Outcome } from '../job/job.ts'

/**
 * What the rules need to know of a blueprint. User code is not in here: the executor runs the
 * handler, and what it chose reaches the rules as data.
 */
export interface Script {
  readonly name: string
  readonly version: number
  readonly start: string
  state(name: string): ScriptState | undefined
  readonly policy: ScriptPolicy
}

export type ScriptState =
  /** `hasUndo`: what it does can be undone. */
  | { readonly kind: 'handler'; readonly hasUndo?: boolean }
  | {
      readonly kind: 'aggregator'
      /** The names of the branches that it expects, if it says so: one branch each, or any number. */
      readonly gathers?: Readonly<Record<string, 'one' | 'many'>>
      readonly hasUndo?: boolean
    }
  /** `computes`: its result comes from user code, so it needs a turn of its own. */
  | { readonly kind: 'end'; readonly outcome: Outcome; readonly computes: boolean; readonly hasUndo?: false }

export interface ScriptPolicy {
  readonly transitionsMax: number
  readonly handlerAttemptsMax: number
  readonly taskAttemptsMax: number
  readonly backoffMs: number
  readonly backoffMsMax: number
  /** By how much each wait is longer than the one before; 2 without it. */
  readonly backoffFactor?: number
  /** For tasks that name none. */
  readonly resultTimeoutMs?: number
  /** For tasks that do not say whether a timeout is tried again. */
  readonly retryTimeouts?: boolean
  /** From a worker's pickup on; for tasks that have neither a run timeout nor a result timeout of their own or their job's. */
  readonly runTimeoutMs?: number
  readonly executionTimeoutMs?: number
  /** The storage keeps large values of jobs apart from their records. Set by the server, not by blueprints. */
  readonly offloads?: boolean
}
