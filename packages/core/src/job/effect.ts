import type { JsonObject } from '@impresario/protocol'
import type { Job, TaskCall, TrailEntry } from './job.ts'
import type { EventOf, JobRequest } from './event.ts'

/** Mail is how one job reaches another: only the receiver ever writes the receiver's record. */
export type Letter =
  | { readonly type: 'create'; readonly request: JobRequest }
  | EventOf<'childEnded'>
  | EventOf<'cancelled'>
  | EventOf<'eventSent'>
  /** To an inbox: this job has begun to wait. `known`: events that it has had. */
  | {
      readonly type: 'listen'
      readonly jobId: string
      readonly visit: number
      readonly createdAt: number
      readonly known: readonly string[]
    }
  /** To an inbox: tell those who wait of an event. `before`: where the next of them are. */
  | { readonly type: 'spread'; readonly eventId: string; readonly before?: string | undefined }

/** What must follow from a decision, as data. */
export type Effect =
  | { readonly type: 'turn'; readonly visit: number; readonly delayMs: number }
  | {
      readonly type: 'task'
      readonly visit: number
      readonly branch: string
      readonly attempt: number
      readonly delayMs: number
      readonly call: TaskCall
      readonly failedWorkers: readonly string[]
      /** What this try has of the time for the result, from the moment it is due. */
      readonly resultMs: number | undefined
    }
  /** `attempt`: the attempt that is dropped. An older one may still be counted as held by a worker. */
  | { readonly type: 'dropTask'; readonly visit: number; readonly branch: string; readonly attempt: number }
  | { readonly type: 'timer'; readonly timer: TimerName; readonly visit: number; readonly afterMs: number }
  | { readonly type: 'dropTimer'; readonly timer: TimerName }
  | { readonly type: 'mail'; readonly to: string; readonly letterId: string; readonly letter: Letter }
  /** The job can be reached by this key, until it cannot. */
  | { readonly type: 'listen' | 'unlisten'; readonly visit: number; readonly topic: string; readonly key: string }
  /** A message to the job's webhook. `messageId`: the same whenever the same is decided again. */
  | {
      readonly type: 'webhook'
      readonly event: string
      readonly messageId: string
      /** What this kind of event has beside the job's own fields, as it goes over the wire. */
      readonly details?: JsonObject
    }

/**
 * `life`: the execution timeout of the job. `approval`: the end of the wait for a person. `reminder`: the next word to him.
 * `sleep`: the end of a sleep. `event`: the end of the wait for an event.
 */
export type TimerName = 'life' | 'approval' | 'reminder' | 'sleep' | 'event'

export interface Decision {
  readonly type: 'decided'
  readonly job: Job
  readonly effects: readonly Effect[]
  readonly entries: readonly TrailEntry[]
}

/** Why an event no longer matters. Late and repeated events are normal in a distributed system. */
export type IgnoredReason =
  | 'job_not_found'
  | 'job_exists'
  | 'job_ended'
  | 'job_quarantined'
  | 'job_not_quarantined'
  /** The blueprint does not have the state that a retry leads to. */
  | 'state_missing'
  | 'stale_turn'
  | 'stale_task'
  | 'stale_child'
  | 'not_waiting_for_human'
  | 'unknown_decision'
  | 'stale_decision'
  | 'repeated_event'
  | 'too_many_events'
  /** The result does not fit into the job. The worker may send a smaller one: it still holds its task. */
  | 'too_large'
  | 'no_time_limit'
  | 'not_sleeping'
  /** The job undoes what it did before it ends; that is not interrupted. */
  | 'compensating'
  | 'not_waiting_for_event'

export interface Ignored {
  readonly type: 'ignored'
  readonly reason: IgnoredReason
  /** What the history should say of it all the same: a late result is worth a note. */
  readonly entries: readonly TrailEntry[]
}
