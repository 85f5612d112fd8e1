import type { Json, JsonObject } from './json.ts'

/** What clients send and get, in snake_case; `null` means absent. Times are Unix seconds, spans are seconds. */
type Maybe<T> = T | null

export const CLIENT_API_PREFIX = '/api/v1'

const segment = encodeURIComponent

export const CLIENT_PATHS = {
  jobs: `${CLIENT_API_PREFIX}/jobs`,
  jobBatch: `${CLIENT_API_PREFIX}/jobs/batch`,
  job: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}`,
  cancel: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/cancel`,
  explain: (jobId: string) => `${CLIENT_API_PREFIX}/jobs/${segment(jobId)}/explain`,
  approval: (jobId: string) => `/_public/webhooks/approval/${segment(jobId)}`,
  workers: `${CLIENT_API_PREFIX}/workers`,
  blueprints: `${CLIENT_API_PREFIX}/blueprints`,
  graph: (name: string) => `${CLIENT_API_PREFIX}/blueprints/${segment(name)}/graph`,
  dashboard: `${CLIENT_API_PREFIX}/dashboard`,
} as const

export interface CreateJobRequest {
  readonly blueprint: string
  readonly initial_data?: Maybe<JsonObject>
  readonly idempotency_key?: Maybe<string>
  /** A UUIDv7 of the caller's making that becomes the job's id: a request that is repeated with it makes one job. */
  readonly job_id?: Maybe<string>
  readonly priority?: Maybe<number>
  /** Timeouts are in seconds. */
  readonly dispatch_timeout?: Maybe<number>
  readonly result_timeout?: Maybe<number>
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
  /** Unix seconds, as every time in a job's body. */
  readonly at: number
  readonly event: string
  readonly state?: string
  readonly note?: string
}

export interface JobBody {
  readonly id: string
  readonly job_id: string
  readonly blueprint_name: string
  readonly blueprint_version: number
  readonly status: string
  readonly current_state: string
  readonly initial_data: JsonObject
  readonly state_history: JsonObject
  readonly result?: Json
  readonly progress?: number
  readonly progress_message?: string
  readonly error_message?: string
  readonly error_code?: string
  readonly parent_job_id?: string
  readonly metadata?: JsonObject
  readonly created_at: number
  readonly updated_at: number
  readonly ended_at?: number
  /** Grows with every change; a long poll asks for a newer one. */
  readonly version: number
  readonly trail: readonly WireTrailEntry[]
}

export interface JobQuery {
  /** Seconds to wait for something newer. */
  readonly wait?: number
  readonly version?: number
  readonly until?: 'end'
}

export interface JobListQuery {
  /** Comma-separated. */
  readonly status?: string
  readonly blueprint?: string
  readonly limit?: number
  readonly cursor?: string
}

export interface CancelJobRequest {
  readonly reason?: Maybe<string>
}

export interface CancelJobReply {
  readonly status: 'cancellation_request_accepted'
}

export interface ApprovalRequest {
  readonly decision: string
  readonly comment?: Maybe<string>
}

export interface ApprovalReply {
  readonly status: 'approval_received'
  readonly job_id: string
}

export interface WorkerBody {
  readonly worker_id: string
  readonly worker_type: string
  readonly status: string
  readonly supported_skills: readonly string[]
  readonly [field: string]: Json
}

export interface BlueprintBody {
  readonly name: string
  readonly version: number
  readonly [field: string]: Json
}

/** Every refusal, of every route. `error` is for people, `code` for programs. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly type?: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
}

/** A job in one of these statuses changes no more. */
export const ENDED_STATUSES: readonly string[] = ['finished', 'failed', 'cancelled', 'error']
