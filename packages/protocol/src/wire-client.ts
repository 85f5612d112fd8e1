import type { Data, DataObject } from './exact/exact-json.ts'
import type { Json, JsonObject } from './json.ts'
import type { Usage } from './usage.ts'

/** The messages of clients, in snake_case; `null` means absent. Times are Unix seconds, durations are seconds. */
type Maybe<T> = T | null

export const CLIENT_API_PREFIX = '/api/v1'

const segment = encodeURIComponent

export const CLIENT_PATHS = {
  jobs: `${CLIENT_API_PREFIX}/jobs`,
  jobBatch: `${CLIENT_API_PREFIX}/jobs/batch`,
  job: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}`,
  cancel: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/cancel`,
  jobEvents: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/events`,
  /** Events by key, for all jobs that wait for them. */
  sentEvents: `${CLIENT_API_PREFIX}/events`,
  explain: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/explain`,
  log: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/log`,
  history: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/history`,
  retry: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/retry`,
  discard: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/discard`,
  /** The open approval of a job, with links for people. */
  question: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/approval`,
  approval: (jobId: string) => `/_public/webhooks/approval/${segment(jobId)}`,
  files: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/files`,
  fileUpload: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/files/upload`,
  fileLink: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/files/link`,
  fileContent: (jobId: string, name: string) =>
    `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/files/content/${segment(name)}`,
  signedFile: (jobId: string, name: string) => `/_public/files/${segment(jobId)}/${segment(name)}`,
  quarantine: `${CLIENT_API_PREFIX}/quarantine`,
  quarantined: (jobId: string) => `${CLIENT_API_PREFIX}/quarantine/${segment(jobId)}`,
  quarantineRetry: `${CLIENT_API_PREFIX}/quarantine/retry`,
  quarantineDiscard: `${CLIENT_API_PREFIX}/quarantine/discard`,
  workers: `${CLIENT_API_PREFIX}/workers`,
  worker: (workerId: string) => `${CLIENT_API_PREFIX}/workers/${segment(workerId)}`,
  workerHistory: (workerId: string) => `${CLIENT_API_PREFIX}/workers/${segment(workerId)}/history`,
  /** Events of all jobs and workers, and their counts. */
  events: `${CLIENT_API_PREFIX}/history`,
  eventCounts: `${CLIENT_API_PREFIX}/history/counts`,
  durations: `${CLIENT_API_PREFIX}/history/durations`,
  schedules: `${CLIENT_API_PREFIX}/schedules`,
  schedule: (name: string) => `${CLIENT_API_PREFIX}/schedules/${segment(name)}`,
  scheduleRun: (name: string) => `${CLIENT_API_PREFIX}/schedules/${segment(name)}/run`,
  schedulePause: (name: string) => `${CLIENT_API_PREFIX}/schedules/${segment(name)}/pause`,
  scheduleResume: (name: string) => `${CLIENT_API_PREFIX}/schedules/${segment(name)}/resume`,
  catalogue: `${CLIENT_API_PREFIX}/workers/catalog`,
  blueprints: `${CLIENT_API_PREFIX}/blueprints`,
  blueprint: (name: string) => `${CLIENT_API_PREFIX}/blueprints/${segment(name)}`,
  graph: (name: string) => `${CLIENT_API_PREFIX}/blueprints/${segment(name)}/graph`,
  dashboard: `${CLIENT_API_PREFIX}/dashboard`,
} as const

export interface CreateJobRequest {
  readonly blueprint: string
  readonly initial_data?: Maybe<JsonObject>
  readonly idempotency_key?: Maybe<string>
  /** A UUIDv7 created by the caller that becomes the job's id: a retry with the same id creates no second job. */
  readonly job_id?: Maybe<string>
  readonly priority?: Maybe<number>
  /** Timeouts are in seconds. */
  readonly dispatch_timeout?: Maybe<number>
  readonly result_timeout?: Maybe<number>
  readonly tracing_context?: Maybe<{ readonly traceparent: string; readonly tracestate?: Maybe<string> }>
  readonly execution_timeout?: Maybe<number>
  readonly metadata?: Maybe<JsonObject>
  readonly webhook_url?: Maybe<string>
}

export interface CreateJobReply {
  readonly status: 'accepted'
  readonly job_id: string
}

export interface CreateJobBatchRequest {
  readonly jobs: readonly CreateJobRequest[]
}

export interface ItemError {
  readonly error: string
  readonly code: string
}

/** One per job, in the same order. */
export interface CreateJobBatchReply {
  readonly results: readonly (CreateJobReply | ItemError)[]
}

export interface WireTrailEntry {
  /** Unix seconds, like every time in a job's body. */
  readonly at: number
  readonly event: string
  readonly state?: string
  readonly note?: string
}

/** The question that a job asks a person. */
export interface WireApproval {
  readonly message: string
  readonly decisions: readonly string[]
  /** Distinguishes this question from a later one of the same job. */
  readonly visit: number
  readonly expires_at?: number
  /** Number of reminders sent so far. */
  readonly reminders: number
  /** What is asked for beside the decision: a JSON Schema of an object. */
  readonly form?: JsonObject
  /** The decisions that need it. */
  readonly form_for?: readonly string[]
}

/** The open question of a job, for its owner. The holder of one of the links may decide, once. */
export interface ApprovalBody extends WireApproval {
  readonly job_id: string
  readonly blueprint_name: string
  readonly url: string
  readonly decision_urls: Readonly<Record<string, string>>
  readonly urls_expire_at: number
}

/** The statuses of a job. */
export const JOB_STATUSES = [
  'pending',
  'running',
  'waiting_for_worker',
  'waiting_for_human',
  'waiting_for_parallel',
  'waiting_for_child',
  'waiting_for_time',
  'waiting_for_event',
  'quarantined',
  'finished',
  'failed',
  'cancelled',
  'error',
] as const
export type JobStatusName = (typeof JOB_STATUSES)[number]

/** What a worker reports about itself. */
export const WORKER_STATUSES = ['idle', 'busy', 'full', 'draining', 'offline'] as const
export type WorkerStatusName = (typeof WORKER_STATUSES)[number]

/** What a job can wait for by itself. */
export const WAIT_KINDS = ['time', 'event'] as const

/** What a job waits for, other than a worker, a child or a person. */
export interface WireWait {
  readonly kind: (typeof WAIT_KINDS)[number]
  /** When it continues by itself, in Unix seconds. */
  readonly until?: number
  /** Of an event. */
  readonly topic?: string
  /** The key that also reaches it. */
  readonly key?: string
}

/** How a job undoes what it did before it ends. */
export interface WireCompensation {
  /** How it ends then. */
  readonly outcome: string
  /** States that are left to undo, in this order; the first is under way. */
  readonly left: readonly string[]
  readonly undone: readonly string[]
}

/** An event for one job. */
export interface JobEventRequest {
  readonly topic: string
  readonly payload?: Maybe<JsonObject>
  /** The same id is the same event, however often it is sent. */
  readonly event_id?: Maybe<string>
}

/** An event for automations, and with a key for all jobs that wait for its topic and key. */
export interface SentEventRequest extends JobEventRequest {
  readonly key?: string | undefined
}

export interface SentEventReply {
  readonly status: 'event_accepted'
  readonly event_id: string
  /** It was not sent before. */
  readonly is_new: boolean
}

export interface JobEventReply extends SentEventReply {
  readonly job_id: string
  readonly job_status: JobStatusName
}

/** The error that led a job to its present state. */
export interface WireJobFailure {
  readonly code: string
  readonly message: string
  /** Where it happened. */
  readonly state: string
  /** Tries of the task that failed. */
  readonly attempts: number
  readonly task?: { readonly id: string; readonly type: string }
  readonly child?: {
    readonly job_id: string
    readonly blueprint_name: string
    readonly status: string
    /** The code of its own error. */
    readonly code?: string
  }
}

/** Where the tasks and children are that a job waits for. */
export interface WireWork {
  /** Tasks that no worker has picked up yet. */
  readonly waiting: number
  /** Tasks that are tried again later. */
  readonly delayed: number
  /** Tasks that workers have in their hands. */
  readonly running: number
  /** Ids of these workers, each once, ten at most. */
  readonly workers: readonly string[]
  /** Ids of children that have not ended, ten at most. */
  readonly children: readonly string[]
  /** Tasks beyond those that were looked up; absent when all were. */
  readonly unseen?: number
}

export interface JobBody {
  readonly id: string
  readonly job_id: string
  /** Id of the client that started it. */
  readonly owner?: string
  readonly blueprint_name: string
  readonly blueprint_version: number
  readonly status: JobStatusName
  readonly current_state: string
  readonly initial_data: DataObject
  readonly state_history: DataObject
  readonly result?: Data
  readonly progress?: number
  readonly progress_message?: string
  /** What its own tasks have used, as their workers reported. */
  readonly usage?: Usage
  readonly error_message?: string
  readonly error_code?: string
  /** The error that led to the present state, if there was one. */
  readonly failure?: WireJobFailure
  readonly parent_job_id?: string
  readonly metadata?: DataObject
  /** While it waits for a person. */
  readonly approval?: WireApproval
  /** While it waits for tasks or children: where they are at this moment. */
  readonly work?: WireWork
  /** While it waits for a moment or an event. */
  readonly waits_for?: WireWait
  /** Since it began to undo what it did. */
  readonly compensation?: WireCompensation
  readonly created_at: number
  readonly updated_at: number
  readonly ended_at?: number
  /** Increases with every change; a long poll waits for a newer one. */
  readonly version: number
  readonly trail: readonly WireTrailEntry[]
}

/** Fields of a job that may be long. A list leaves out those that are longer than `LIMITS.listedFieldBytesMax`. */
export const LARGE_JOB_FIELDS = [
  'initial_data',
  'state_history',
  'result',
  'metadata',
  'approval',
  'failure',
  'trail',
] as const satisfies readonly (keyof JobBody)[]
export type LargeJobField = (typeof LARGE_JOB_FIELDS)[number]

/** A job in a list. Fields that are too long are left out and named; the job, or a list with `fields`, has them. */
export type ListedJobBody = Omit<JobBody, LargeJobField> &
  Partial<Pick<JobBody, LargeJobField>> & { readonly omitted_fields?: readonly LargeJobField[] }

export interface WireJobError {
  readonly code: string
  readonly message: string
  readonly state: string
  readonly stack?: string
}

export interface QuarantinedBody extends JobBody {
  readonly error?: WireJobError
  readonly quarantined_at: number
}

export type ListedQuarantinedBody = ListedJobBody & Pick<QuarantinedBody, 'error' | 'quarantined_at'>

export interface JobQuery {
  /** Seconds to wait for a newer version. */
  readonly wait?: number
  readonly version?: number
  readonly until?: 'end'
  /** Comma-separated. */
  readonly fields?: string
}

export interface JobListQuery {
  /** Comma-separated. */
  readonly status?: string
  readonly blueprint?: string
  /** ISO 8601, or Unix seconds. */
  readonly created_after?: string
  readonly created_before?: string
  readonly q?: string
  /** `newest` without it. */
  readonly order?: 'newest' | 'oldest'
  readonly owner?: string
  readonly fields?: string
  readonly limit?: number
  readonly cursor?: string
}

/** One event of a job's history, oldest first. */
export interface HistoryBody {
  readonly event_id: string
  readonly job_id: string
  /** Unix seconds. */
  readonly timestamp: number
  /** The same time as ISO 8601 in the server's time zone. */
  readonly time: string
  readonly event_type: string
  readonly state: Maybe<string>
  readonly previous_state: Maybe<string>
  readonly next_state: Maybe<string>
  readonly worker_id: Maybe<string>
  readonly task_id: Maybe<string>
  readonly attempt_number: Maybe<number>
  readonly duration_ms: Maybe<number>
  readonly note: Maybe<string>
  readonly context_snapshot: Data
}

/** One event of a list over all jobs and workers, newest first. */
export interface EventBody extends Omit<HistoryBody, 'job_id'> {
  /** Null for events of a worker itself. */
  readonly job_id: Maybe<string>
  readonly blueprint: Maybe<string>
  /** The client that owns the job. */
  readonly owner: Maybe<string>
}

/** The number of events of this name in the span that begins there. */
export interface EventCountBody {
  readonly timestamp: number
  readonly time: string
  readonly event_type: string
  readonly count: number
}

interface SpreadBody {
  readonly count: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly max_ms: number
}

/** How long jobs and their stays in states took. */
export interface DurationsBody {
  readonly since: number
  readonly until: number
  /** There were more events than are looked at; the newest are. */
  readonly is_partial: boolean
  readonly blueprints: readonly ({ readonly blueprint: string; readonly failed: number } & SpreadBody)[]
  readonly states: readonly ({ readonly blueprint: string; readonly state: string } & SpreadBody)[]
  readonly spans: readonly {
    readonly timestamp: number
    readonly finished: number
    readonly failed: number
    readonly p50_ms: Maybe<number>
    readonly p95_ms: Maybe<number>
  }[]
}

/** One event of a worker's history, newest first. */
export interface WorkerHistoryBody {
  readonly event_id: string
  readonly worker_id: string
  readonly timestamp: number
  readonly time: string
  readonly event_type: string
  /** For an update: the names of the changed fields. */
  readonly note: Maybe<string>
  readonly worker_info_snapshot: Json
}

/** A recurring job and its state. */
export interface ScheduleBody {
  readonly name: string
  readonly blueprint: string
  /** As its file says. */
  readonly enabled: boolean
  /** Since when it is paused, and by whom. */
  readonly paused_at: Maybe<number>
  readonly paused_by: Maybe<string>
  readonly client: string
  readonly trigger: JsonObject
  readonly timezone: string
  readonly misfire: 'skip' | 'run_once' | 'catch_up'
  /** When it fires next; null while it is disabled or paused. Unix seconds, like all of these. */
  readonly next_at: Maybe<number>
  /** The last firing: its scheduled time, when it ran, and its job. */
  readonly last_for: Maybe<number>
  readonly last_at: Maybe<number>
  readonly last_job_id: Maybe<string>
  /** The next ten firings; none while it is off or paused. */
  readonly upcoming: readonly number[]
  /** What became of the last ten firings since it is on, newest first. */
  readonly recent: readonly ScheduleFiringBody[]
}

/** A firing of a schedule that is over. */
export interface ScheduleFiringBody {
  /** When it was due. */
  readonly for: number
  /** When it was served or left out. */
  readonly at: number
  /** The job that it started. */
  readonly job_id: Maybe<string>
  /** Why it started none. */
  readonly skipped: Maybe<'missed' | 'clock_went_back' | 'paused'>
}

/** A new job that takes over from this one. */
export interface RerunJobRequest {
  /** The state to begin in; the first one without it, with an empty state history. */
  readonly from_state?: Maybe<string>
  /** Instead of what the job began with. */
  readonly initial_data?: Maybe<JsonObject>
  /** Instead of what its states had written. Only with `from_state`. */
  readonly state_history?: Maybe<JsonObject>
}

export interface RetryJobRequest {
  readonly initial_data?: Maybe<JsonObject>
  readonly state_history?: Maybe<JsonObject>
}

export interface QuarantineFilter {
  readonly blueprint?: string
  readonly error_code?: string
  /** Seconds in quarantine. */
  readonly older_than?: number
}

/** Either `ids` or `filter`. */
export interface BulkRequest {
  readonly ids?: readonly string[]
  readonly filter?: QuarantineFilter
  readonly limit?: number
}

export interface CommandReply {
  readonly status: string
  readonly job_id: string
  /** The resulting state of the job. */
  readonly job_status?: JobStatusName
}

export interface BulkReply {
  readonly results: readonly (CommandReply | (ItemError & { readonly job_id: string }))[]
  /** Whether the filter may match jobs beyond the limit. */
  readonly has_more: boolean
}

export interface CancelJobRequest {
  readonly reason?: Maybe<string>
}

export interface CancelJobReply {
  readonly status: 'cancellation_request_accepted'
  readonly job_id?: string
  /** The resulting state of the job. */
  readonly job_status?: JobStatusName
}

export interface ApprovalRequest {
  readonly decision: string
  readonly comment?: Maybe<string>
  /** The question that it answers; it does not decide a later one. */
  readonly visit?: Maybe<number>
  /** What the form of the question asks for. */
  readonly data?: Maybe<JsonObject>
  readonly capability?: Maybe<string>
}

export interface ApprovalReply {
  readonly status: 'approval_received'
  readonly job_id: string
  /** The resulting state of the job. */
  readonly job_status?: JobStatusName
}

export interface WorkerBody {
  readonly worker_id: string
  readonly worker_type: string
  readonly status: WorkerStatusName
  readonly supported_skills: readonly string[]
  readonly [field: string]: Json
}

/** A skill, as its providers offer it. */
export interface CatalogueEntry {
  readonly contract: Maybe<JsonObject>
  readonly providers_count: number
  readonly worker_types: readonly string[]
  readonly average_reputation: number
}

export interface DashboardBody {
  readonly workers: { readonly total: number; readonly [status: string]: number }
  readonly jobs: { readonly queued: number; readonly [status: string]: number }
  /** Whether every event of jobs is kept, so that lists and counts of events are complete. */
  readonly keeps_history: boolean
  /** The state of this instance's history writer; for admins. */
  readonly history?: { readonly is_away: boolean; readonly waiting: number; readonly dropped: number }
}

export interface BlueprintBody {
  readonly name: string
  readonly version: number
  readonly [field: string]: Json
}

/** Every error, of every route. `error` is for people, `code` for programs. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly type?: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** All that is wrong with what was sent, by field, where there may be several things. */
  readonly problems?: readonly { readonly field: string; readonly step?: string; readonly message: string }[]
}

/** A job in one of these statuses does not change any more. */
export const ENDED_STATUSES: readonly string[] = ['finished', 'failed', 'cancelled', 'error']
