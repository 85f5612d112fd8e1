import type { JobErrorCode, Json, JsonObject, ResourceRequirements, TaskError, Usage } from '@impresario/protocol'
import type { Command } from './command.ts'
import type { StateResult } from './result.ts'

export type OpenStatus =
  | 'pending'
  | 'running'
  | 'waiting_for_worker'
  | 'waiting_for_human'
  | 'waiting_for_parallel'
  | 'waiting_for_child'
  | 'waiting_for_time'
  | 'waiting_for_event'
/** How a job can end. */
export type Outcome = 'finished' | 'failed' | 'cancelled' | 'error'
/** A quarantined job is neither open nor ended: it stands aside until a person retries or discards it. */
export type JobStatus = OpenStatus | Outcome | 'quarantined'

export const OUTCOMES: readonly Outcome[] = ['finished', 'failed', 'cancelled', 'error']

export function isEnded(job: { readonly status: JobStatus }): boolean {
  return (OUTCOMES as readonly JobStatus[]).includes(job.status)
}

/** One unit of work for a worker, as a handler asked for it. */
export interface TaskCall {
  readonly kind: 'task'
  readonly type: string
  readonly params: JsonObject
  readonly priority: number
  readonly strategy: string
  readonly requirements?: ResourceRequirements
  /** Workers that cost more per second are not asked. */
  readonly maxCost?: number
  /** Longest wait for a worker. */
  readonly dispatchTimeoutMs?: number
  /** Longest time from the first dispatch to the result: waits for workers and all tries included. */
  readonly resultTimeoutMs?: number
  /** Longest time from a worker's pickup to the result. */
  readonly runTimeoutMs?: number
  /** Tried again after a run or result timeout. Each try then has the whole result timeout. */
  readonly retryTimeouts?: boolean
  readonly attemptsMax?: number
  /** The name of its branch in a fan-out; the branches of a list have the same one. */
  readonly as?: string
}

/** Another blueprint, run as a part of this job. */
export interface ChildCall {
  readonly kind: 'child'
  readonly blueprint: string
  readonly initialData: JsonObject
  /** As with tasks. */
  readonly as?: string
}

export type Call = TaskCall | ChildCall

export interface BranchOutcome {
  /** The name that the fan-out gave to the branch. */
  readonly as?: string | undefined
  readonly status: string
  readonly data?: Json | undefined
  readonly error?: TaskError | undefined
}

/** One call that the present state has made, and what has become of it. */
export interface Branch {
  readonly call: Call
  /** Tries so far, the present one included. */
  readonly attempt: number
  /** When the present try was sent out. */
  readonly sentAt?: number | undefined
  /** When the result must be there, whatever the number of tries. */
  readonly deadlineAt?: number | undefined
  /** Workers that failed it, newest last: the next try prefers others. */
  readonly failedWorkers?: readonly string[] | undefined
  readonly lastError?: TaskError | undefined
  /** Of the newest failure that a worker sent one with. For people who look into the job, as with `JobError`. */
  readonly lastStack?: string | undefined
  readonly outcome?: BranchOutcome | undefined
  /** The newest reports of usage of the present try: a repeated one is known by them. */
  readonly metered?: readonly string[] | undefined
}

export type Transitions = Readonly<Record<string, string>>

/** What an open job stands still for. */
export type Wait =
  | {
      readonly kind: 'task'
      readonly transitions: Transitions
      /** Where an event leads that the worker sends before its result; by the event's name. */
      readonly eventTransitions?: Transitions
    }
  | { readonly kind: 'child'; readonly transitions: Transitions }
  | {
      readonly kind: 'parallel'
      readonly into: string
      readonly policy: BranchPolicy
      /** What the data of the ended branches comes to. */
      readonly resultBytes?: number
    }
  | HumanWait
  | SleepWait
  | EventWait

/** A request for a person's decision. The job's visit is its identity: a later request has another. */
export interface HumanWait {
  readonly kind: 'human'
  readonly message: string
  readonly transitions: Transitions
  /** When the way `expired` is taken by itself. */
  readonly expiresAt?: number
  /** When the next reminder is due; absent when there is none. */
  readonly remindAt?: number | undefined
  readonly remindEveryMs?: number
  /** Reminders so far. */
  readonly reminders?: number
  /** What is asked for beside the decision, as a JSON Schema of an object. */
  readonly form?: JsonObject
  /** The decisions that need it. */
  readonly formFor?: readonly string[]
}

/** An event that was sent to a job, or to all jobs that wait for it by its key. */
export interface SentEvent {
  /** Its sender's own id for it, by which a repeated one is known. */
  readonly id: string
  readonly topic: string
  readonly payload: JsonObject
  /** When it was sent. */
  readonly at: number
  readonly key?: string | undefined
}

/** The job goes on when an event of this topic comes. */
export interface EventWait {
  readonly kind: 'event'
  readonly topic: string
  readonly transitions: Transitions
  readonly key?: string
  /** When the way `timeout` is taken by itself. */
  readonly expiresAt?: number
}

/** What a job has of its events. */
export interface JobEvents {
  /** Those that came before a state waited for them, oldest first. */
  readonly kept: readonly SentEvent[]
  /** The newest that came at all: a repeated one is known by them. */
  readonly known: readonly { readonly id: string; readonly digest: string }[]
}

/** The job goes on by itself, later. */
export interface SleepWait {
  readonly kind: 'sleep'
  /** Milliseconds since 1970. */
  readonly until: number
  readonly to: string
}

/**
 * What a branch that is given up means for the others. `wait_all`: nothing, the aggregator runs when every branch has ended.
 * `fail_fast`: the first one takes the others back and enters the aggregator. `by_code`: the error's code decides about the
 * whole job, as for a single task: quarantine or `failed`.
 */
export type BranchPolicy = (typeof BRANCH_POLICIES)[number]
export const BRANCH_POLICIES = ['wait_all', 'fail_fast', 'by_code'] as const

export interface JobError {
  readonly code: JobErrorCode
  readonly message: string
  readonly state: string
  /** Kept for people who look into a quarantined job; never sent to clients without the right to see it. */
  readonly stack?: string
}

/** Why a job is in its present state, when a failure, a timeout or a rejection led there. */
export interface JobFailure {
  readonly code: JobErrorCode
  readonly message: string
  /** The state that the job was in when it happened. */
  readonly state: string
  /** Tries of the task that failed. One where nothing is tried again. */
  readonly attempts: number
  /** The task that failed; its type, and its id as the history has it. */
  readonly task?: { readonly id: string; readonly type: string }
  /** The child job that did not finish, how it ended, and the code of its own error. */
  readonly child?: {
    readonly jobId: string
    readonly blueprint: string
    readonly status: string
    readonly code?: string
  }
}

/** The state that a result, a decision or an event led to, when the blueprint did not have it. A retry goes on there. */
export interface Onward {
  readonly state: string
  readonly failure?: JobFailure | undefined
  readonly event?: SentEvent | undefined
  /** The job's error by then, which the quarantine's own error replaced. */
  readonly error?: JobError | undefined
}

/** A state that was done and can be undone. */
export interface Undo {
  readonly state: string
  /** When it was done. */
  readonly visit: number
  /** False: it is not known whether it was done. Its task timed out, or the job ended while it was under way. */
  readonly isCertain: boolean
}

/** How a job undoes what it did, and how it ends then. */
export interface Compensation {
  readonly outcome: Outcome
  readonly error?: JobError
  readonly result?: Json
  /** The state that the job ends in. */
  readonly state: string
  /** What is left to undo, in this order. The first is under way. */
  readonly left: readonly Undo[]
  readonly undone: readonly string[]
}

/** A notable moment of a job. The newest are kept in its record, with the worker and the duration of the further facts. */
export interface TrailEntry {
  readonly at: number
  readonly event: string
  readonly state?: string
  readonly note?: string | undefined
  readonly workerId?: string | undefined
  /** The same for all tries and deliveries of a task. */
  readonly taskId?: string | undefined
  readonly attempt?: number | undefined
  /** Of a state: since the job entered it. Of a task: since its present try was sent. Of a job: since its creation. */
  readonly durationMs?: number | undefined
  readonly previousState?: string | undefined
  readonly nextState?: string | undefined
  /** Of a state that was finished: which stay in it. */
  readonly visit?: number | undefined
  /** Of a failure: the code of its error. */
  readonly code?: string | undefined
  /** Of a try that has ended: the delivery that ended it, or the try alone when no worker answered. See `fateOf`. */
  readonly delivery?: string | undefined
}

export interface ParentRef {
  readonly jobId: string
  readonly visit: number
  readonly branch: string
}

export interface ClientInfo {
  readonly id: string
  readonly plan?: string
  readonly params?: JsonObject
}

/** One execution of a blueprint: its whole durable record. Optional fields may be absent or undefined, which is the same. */
export interface Job {
  readonly id: string
  readonly blueprint: string
  readonly blueprintVersion: number
  readonly client: ClientInfo
  readonly status: JobStatus
  readonly state: string
  /** How many states this job has entered. Tells this stay in a state from an earlier one. */
  readonly visit: number
  /** When it entered the present state. */
  readonly enteredAt?: number | undefined
  /** Visits before this one do not count as a loop: a person has looked at the job since. */
  readonly loopFrom?: number | undefined
  /** Handler runs in this visit that failed. */
  readonly failures: number
  /**
   * Handler runs in this visit that were written down before they began and have not ended. Only runs of a turn whose
   * earlier run ended without a word are: the process ended with it, perhaps because of it. Zero: the newest did end.
   */
  readonly begun?: number | undefined
  /** The token of the claim under which the newest of them was begun. */
  readonly begunBy?: number | undefined
  /** Handler runs in this visit that returned, and whose process ended before what they chose was durable. */
  readonly lost?: number | undefined
  readonly initialData: JsonObject
  /** The durable dictionary that the states share. */
  readonly stateHistory: JsonObject
  /** How the calls of earlier states ended, newest last. An ended job keeps few bytes of them; absent in records of earlier versions. */
  readonly results?: readonly StateResult[] | undefined
  readonly wait?: Wait | undefined
  /** The calls of this visit, by a short name that is unique within the visit. */
  readonly branches: Readonly<Record<string, Branch>>
  /** What the branches of the last fan-out gave; read by the aggregator state. */
  readonly aggregationResults?: Readonly<Record<string, BranchOutcome>> | undefined
  readonly priority: number
  readonly parent?: ParentRef | undefined
  readonly depth: number
  readonly dispatchTimeoutMs?: number | undefined
  readonly resultTimeoutMs?: number | undefined
  readonly executionTimeoutMs?: number | undefined
  readonly tracing?: Readonly<Record<string, string>> | undefined
  readonly metadata?: JsonObject | undefined
  readonly webhookUrl?: string | undefined
  /** What workers have sent in this visit: how many events, and the ids of the newest. */
  readonly workerEvents?: { readonly count: number; readonly ids: readonly string[] } | undefined
  readonly progress?: { readonly fraction: number; readonly message?: string } | undefined
  /** What its tasks have used, as their workers reported. */
  readonly usage?: Usage | undefined
  /** The newest tries that were taken back from workers because the job went on without their results. See `fateOf`. */
  readonly takenBack?: readonly string[] | undefined
  readonly error?: JobError | undefined
  /** What led to the present state, if something went wrong before it. Gone once the job goes on. */
  readonly failure?: JobFailure | undefined
  /** The event that led to the present state, if one did. */
  readonly event?: SentEvent | undefined
  readonly events?: JobEvents | undefined
  /** Only while it is quarantined: its present state is done, and must not be repeated. */
  readonly onward?: Onward | undefined
  /** What has to be undone if the job does not finish, oldest first. */
  readonly undos?: readonly Undo[] | undefined
  readonly compensation?: Compensation | undefined
  readonly result?: Json | undefined
  /** The newest commands of people that this job has carried out: a repetition is known by them. See `isRepeated`. */
  readonly commands?: readonly Command[] | undefined
  readonly trail: readonly TrailEntry[]
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt?: number | undefined
}
