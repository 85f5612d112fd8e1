import type { IgnoredReason, Job, TaskCall } from '@impresario/core'
import type { Json, JsonObject, TaskError, Usage } from '@impresario/protocol'

/* What passes over the desk between workers and the engine. */

/** One task as it is handed to a worker. */
export interface Delivery {
  readonly taskId: string
  readonly jobId: string
  readonly blueprint: string
  readonly idempotencyKey: string
  readonly attempt: number
  readonly delivery: number
  readonly call: TaskCall
  /** What the record of the job keeps of its trace. */
  readonly tracing: Job['tracing']
  /** When it expires, on the engine's clock, if the worker keeps it. */
  readonly deadlineAt: number | undefined
}

export interface Handout {
  readonly deliveries: readonly Delivery[]
  /** Tasks that the worker shall stop. Only in the answer to a poll that asked for them. */
  readonly cancelled: readonly string[]
  /** Takes everything back into the queue: it could not be handed over. */
  readonly giveBack: () => Promise<void>
}

export interface Report {
  readonly taskId: string
  readonly status: string
  readonly data?: Json | undefined
  readonly error?: TaskError | undefined
  /** Where in the worker's code it failed. */
  readonly stack?: string | undefined
}

/** Something that a worker says about a task before its result. */
export interface WorkerEvent {
  readonly type: string
  readonly payload: JsonObject
  /** The sender's own id. Without one, an event that is sent twice counts twice. */
  readonly eventId?: string | undefined
}

/** What a task has used, beside what was reported of it before. */
export interface Metering {
  readonly usage: Usage
  /** The sender's own id: a report that comes twice counts once. */
  readonly eventId: string
}

/** Takes what a task has used, and writes beside it what else depends on it. */
export type MeterBook = (workerId: string, taskId: string, metering: Metering) => Promise<Receipt>

/** An event that was taken, for listeners in this process. */
export interface WorkerEventNews extends WorkerEvent {
  readonly workerId: string
  readonly jobId: string
  /** The delivery that it is about, as the worker names it. */
  readonly taskId: string
}

/** What a worker hears about a result or an event. */
export type Receipt =
  | { readonly type: 'accepted'; readonly job: Job; readonly before: Job | undefined }
  | { readonly type: 'ignored'; readonly reason: IgnoredReason | 'worker_mismatch'; readonly job: Job | undefined }
  /** It cannot be held. The worker still has the task, and may report something else. */
  | { readonly type: 'refused'; readonly message: string }

/** Something that the commit depends on has changed. */
export interface Lost {
  readonly type: 'lost'
}

/** Tells a poll that its caller is gone. An `AbortSignal` is one; who has ten thousand polls open may have something smaller. */
export interface PollSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface PollOptions {
  readonly limit: number
  /** A wait of more than a second may end up to a tenth of a second late, together with others. */
  readonly waitMs: number
  readonly signal: PollSignal
  /** The worker lives in this process: what it holds is free again when the process ends. */
  readonly isLocal?: boolean
  /** What the worker could start at this moment, when it says so. */
  readonly availableSkills?: readonly string[] | undefined
  /** What is warm there, when it says so. */
  readonly hotSkills?: readonly string[] | undefined
  /** The answer can name tasks that the worker shall stop: such a poll ends as soon as there is one. */
  readonly wantsCancelled?: boolean
}
