import type { Json, JsonObject } from '@impresario/protocol'
import type { BranchPolicy, Call, ChildCall, TaskCall, Transitions } from './job.ts'

/** What a handler chose. Made by user code through `actions`, applied by `decide`. */
export type Action =
  | { readonly type: 'transition'; readonly to: string }
  | {
      readonly type: 'task'
      readonly call: TaskCall
      readonly transitions: Transitions
      readonly eventTransitions?: Transitions
    }
  | {
      readonly type: 'parallel'
      readonly calls: readonly Call[]
      readonly into: string
      readonly policy: BranchPolicy
    }
  | {
      readonly type: 'human'
      readonly message: string
      readonly transitions: Transitions
      readonly expiresMs?: number
      /** Until the first reminder; without it, `remindEveryMs` counts from the beginning. */
      readonly remindAfterMs?: number
      readonly remindEveryMs?: number
      /** What is asked for beside the decision, as a JSON Schema of an object. */
      readonly form?: JsonObject
      /** The decisions that need it. */
      readonly formFor?: readonly string[]
    }
  | {
      readonly type: 'event'
      readonly topic: string
      readonly transitions: Transitions
      readonly timeoutMs?: number
      /** Also reached by events that are sent to this key. */
      readonly key?: string
    }
  /** Of the two moments one is there: so long from now, or that moment (milliseconds since 1970). */
  | { readonly type: 'sleep'; readonly afterMs?: number; readonly until?: number; readonly to: string }
  | { readonly type: 'child'; readonly call: ChildCall; readonly transitions: Transitions }
  /** An undo is done; no task or child is needed. */
  | { readonly type: 'undone' }
  | { readonly type: 'end'; readonly result?: Json }
