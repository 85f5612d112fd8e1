import type { Json, JsonObject, TaskError, Usage } from '@impresario/protocol'
import type { Action } from './action.ts'
import type { ClientInfo, Job, JobError, Outcome, ParentRef, SentEvent } from './job.ts'

/** What a client, a parent or a schedule asks for. */
export interface JobRequest {
  readonly blueprint: string
  readonly client: ClientInfo
  readonly initialData: JsonObject
  readonly priority?: number | undefined
  readonly parent?: ParentRef | undefined
  readonly depth?: number | undefined
  readonly dispatchTimeoutMs?: number | undefined
  readonly resultTimeoutMs?: number | undefined
  readonly executionTimeoutMs?: number | undefined
  readonly tracing?: Readonly<Record<string, string>> | undefined
  readonly metadata?: JsonObject | undefined
  readonly webhookUrl?: string | undefined
  /** Begins in another state than the first, with what an earlier job had when it was there. */
  readonly from?: JobOrigin | undefined
}

/** Where a job takes over from an earlier one. */
export interface JobOrigin {
  readonly jobId: string
  readonly state: string
  readonly stateHistory: JsonObject
  /** How the calls of earlier states ended, as far as it is known. */
  readonly results?: Job['results']
}

/** Names one try of one call of one visit. What came of an older try no longer matters. */
export interface TryRef {
  readonly visit: number
  readonly branch: string
  readonly attempt: number
}

/** What can happen to a job. Time and chance come in with it, so that `decide` needs neither. */
export type JobEvent = { readonly at: number } & (
  | { readonly type: 'created'; readonly id: string; readonly request: JobRequest }
  /** The handler of the present state ran and chose. */
  | { readonly type: 'turnTaken'; readonly visit: number; readonly action: Action; readonly stateHistory: JsonObject }
  /**
   * The handler of the present state is about to run again, after a run that ended without a word. `begunMax`: after so many
   * of these a person is asked instead. `token` is that of its claim. `hasReturned`: the handler did return in the earlier run,
   * and what it chose was lost; that run counts for `lostMax` alone.
   */
  | {
      readonly type: 'turnBegun'
      readonly visit: number
      readonly token: number
      readonly begunMax: number
      readonly lostMax: number
      readonly hasReturned: boolean
    }
  | {
      readonly type: 'turnFailed'
      readonly visit: number
      readonly message: string
      readonly stack?: string | undefined
      /** Chance, from 0 to 1, for the jitter of the next try. */
      readonly chance: number
    }
  | ({
      readonly type: 'taskEnded'
      readonly workerId: string
      readonly status: string
      readonly data?: Json | undefined
      readonly error?: TaskError | undefined
      /** Where in the worker's code it failed. */
      readonly stack?: string | undefined
      readonly chance: number
      /** Which delivery of the try the worker answers. */
      readonly token?: number | undefined
    } & TryRef)
  /** A try ran out of time, in a worker's hands or before any had it. */
  | ({
      readonly type: 'taskExpired'
      readonly wasTaken: boolean
      readonly workerId?: string | undefined
      readonly chance: number
    } & TryRef)
  /** The task was handed out again and again, and every worker that had it fell silent. */
  | ({ readonly type: 'taskAbandoned'; readonly deliveries: number } & TryRef)
  | ({ readonly type: 'progressed'; readonly fraction: number; readonly message?: string | undefined } & TryRef)
  /** A worker says what its task has used, beside what it said before. `eventId`: its own id, by which a repetition is known. */
  | ({ readonly type: 'metered'; readonly usage: Usage; readonly eventId: string } & TryRef)
  /** A worker says something about a task that it holds, before its result. */
  | ({
      readonly type: 'eventRaised'
      readonly workerId: string
      readonly name: string
      readonly payload: JsonObject
      /** The sender's own id for it, by which a repeated event is known. */
      readonly eventId?: string | undefined
    } & TryRef)
  | {
      readonly type: 'childEnded'
      readonly visit: number
      readonly branch: string
      readonly outcome: Outcome | 'quarantined'
      readonly result?: Json | undefined
      readonly error?: { readonly code: string; readonly message: string } | undefined
    }
  | {
      readonly type: 'decisionMade'
      readonly decision: string
      readonly by: string
      readonly comment?: string | undefined
      /** What the question asked for beside the decision. Whoever sends it has checked it. */
      readonly data?: JsonObject | undefined
      /** Which request for approval it answers. Without it: the one that is open. */
      readonly visit?: number | undefined
    }
  | { readonly type: 'approvalExpired'; readonly visit: number }
  | { readonly type: 'reminderDue'; readonly visit: number }
  /** An event was sent to the job. `visit`: it came by key, for that wait only. */
  | { readonly type: 'eventSent'; readonly event: SentEvent; readonly visit?: number | undefined }
  | { readonly type: 'eventWaitExpired'; readonly visit: number }
  | { readonly type: 'sleepEnded'; readonly visit: number }
  | { readonly type: 'cancelled'; readonly by: string; readonly reason?: string | undefined }
  | { readonly type: 'timeRanOut' }
  /** A person sends a quarantined job back into the state where it failed, perhaps with other data. */
  | {
      readonly type: 'retried'
      readonly by: string
      readonly initialData?: JsonObject | undefined
      readonly stateHistory?: JsonObject | undefined
    }
  /** A person gives a quarantined job up. */
  | { readonly type: 'discarded'; readonly by: string }
  /** The job goes on under another version of its blueprint. */
  | { readonly type: 'migrated'; readonly version: number; readonly state: string; readonly stateHistory: JsonObject }
  /** The job cannot go on: its blueprint, or the version that it began under, is gone. */
  | { readonly type: 'stranded'; readonly error: JobError }
)

export type EventOf<T extends JobEvent['type']> = Extract<JobEvent, { readonly type: T }>

/** What comes with a decision. */
export type DecisionDetails = Partial<Pick<EventOf<'decisionMade'>, 'comment' | 'visit' | 'data'>>
