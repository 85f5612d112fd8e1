import type { WireLogLine } from './job-log.ts'
import type { Json, JsonObject } from './json.ts'
import type { ItemError } from './wire-client.ts'

export * from './wire-client.ts'
export type * from './wire-views.ts'

/**
 * The messages on the wire, in snake_case. Existing workers come in five generations whose messages differ slightly, so
 * a request type here is the union of what any of them sends. `null` always means absent.
 */
type Maybe<T> = T | null

/** Sent with every response to a worker. A difference between the two sides only causes a warning. */
export const WIRE_VERSION = '0.1.0'

/** Lower case, as Node and fetch report them. Readers use the first that is present; we send the first. */
export const HEADERS = {
  workerToken: ['x-worker-token', 'x-orchestrator-worker-token'],
  workerId: 'x-worker-id',
  clientToken: ['x-client-token', 'x-avtomatika-token', 'x-orchestrator-token'],
  wireVersion: 'x-rxon-version',
  idempotencyKey: 'idempotency-key',
  nextCursor: 'x-next-cursor',
  lookedBackTo: 'x-looked-back-to',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
} as const

const segment = encodeURIComponent

export const WORKER_PATHS = {
  register: '/_worker/workers/register',
  worker: (workerId: string) => `/_worker/workers/${segment(workerId)}`,
  nextTask: (workerId: string) => `/_worker/workers/${segment(workerId)}/tasks/next`,
  taskBatch: (workerId: string) => `/_worker/workers/${segment(workerId)}/tasks/batch`,
  result: '/_worker/tasks/result',
  results: '/_worker/tasks/results',
  events: '/_worker/events',
  token: '/_worker/auth/token',
  tokenRefresh: '/_worker/auth/token/refresh',
  taskFiles: (taskId: string, prefix: string) => `/_worker/tasks/${segment(taskId)}/files?prefix=${segment(prefix)}`,
  taskFile: (taskId: string, name: string) => `/_worker/tasks/${segment(taskId)}/files/content?name=${segment(name)}`,
  socket: (workerId: string) => `/_worker/ws/${segment(workerId)}`,
} as const

/** The newest generations describe a skill; the older ones only name it. */
export interface SkillInfo {
  readonly name: string
  readonly type?: Maybe<string>
  readonly version?: Maybe<string>
  readonly description?: Maybe<string>
  readonly input_schema?: Maybe<JsonObject>
  readonly output_schema?: Maybe<JsonObject>
  readonly events_schema?: Maybe<JsonObject>
  readonly output_statuses?: Maybe<readonly string[]>
  readonly schema_dialect?: Maybe<string>
  readonly properties?: Maybe<JsonObject>
}

export type WireSkill = string | SkillInfo

export interface WireGpu {
  readonly model?: Maybe<string>
  readonly vram_gb?: Maybe<number>
}

export interface WireDevice {
  readonly type: string
  readonly model?: Maybe<string>
  readonly id?: Maybe<string>
  readonly properties?: Maybe<JsonObject>
  readonly metrics?: Maybe<JsonObject>
}

export interface WireResources {
  readonly max_concurrent_tasks?: Maybe<number>
  readonly cpu_cores?: Maybe<number>
  readonly ram_gb?: Maybe<number>
  readonly gpu_info?: Maybe<WireGpu>
  readonly devices?: Maybe<readonly WireDevice[]>
  /** The newest generation puts `cpu_cores` and `ram_gb` in here. */
  readonly properties?: Maybe<JsonObject>
}

export interface WireArtifact {
  readonly name: string
  readonly version?: Maybe<string>
  readonly type?: Maybe<string>
  readonly properties?: Maybe<JsonObject>
}

export interface WireCapabilities {
  readonly hostname?: Maybe<string>
  readonly ip_address?: Maybe<string>
  readonly cost_per_skill?: Maybe<Readonly<Record<string, number>>>
  readonly cost_per_second?: Maybe<number>
  readonly s3_config_hash?: Maybe<string>
  readonly extra?: Maybe<JsonObject>
}

export interface WireSecurity {
  readonly signature?: Maybe<string>
  readonly signer_id?: Maybe<string>
  readonly identity_chain?: Maybe<Json>
  readonly metadata?: Maybe<JsonObject>
}

/** The signed generation adds these to every message. */
interface Signed {
  readonly security?: Maybe<WireSecurity>
  readonly metadata?: Maybe<JsonObject>
  readonly timestamp?: Maybe<number>
}

export interface RegisterRequest extends Signed {
  readonly worker_id: string
  readonly worker_type?: Maybe<string>
  readonly supported_skills?: Maybe<readonly WireSkill[]>
  /** The earlier name of `supported_skills`. */
  readonly supported_tasks?: Maybe<readonly string[]>
  readonly available_skills?: Maybe<readonly string[]>
  readonly hot_skills?: Maybe<readonly WireSkill[]>
  readonly hot_cache?: Maybe<readonly string[]>
  readonly resources?: Maybe<WireResources>
  readonly installed_software?: Maybe<Readonly<Record<string, string>>>
  readonly installed_models?: Maybe<readonly WireArtifact[]>
  readonly installed_artifacts?: Maybe<readonly WireArtifact[]>
  readonly capabilities?: Maybe<WireCapabilities>
  readonly skills_hash?: Maybe<string>
  // The oldest generation has these at the top level instead of in `resources` and `capabilities`.
  readonly max_concurrent_tasks?: Maybe<number>
  readonly cost_per_skill?: Maybe<Readonly<Record<string, number>>>
  readonly cost_per_second?: Maybe<number>
  readonly hostname?: Maybe<string>
  readonly ip_address?: Maybe<string>
}

export interface RegisterReply {
  readonly status: 'registered'
  readonly version: string
  readonly warning?: string
  /** Present when the server offers the batched calls. */
  readonly batch?: { readonly tasks_max: number }
}

export type WireWorkerStatus = 'idle' | 'busy' | 'full' | 'draining' | 'offline'

/** An empty body is only a sign of life. */
export interface HeartbeatRequest extends Signed {
  readonly worker_id?: Maybe<string>
  readonly status?: Maybe<WireWorkerStatus>
  readonly load?: Maybe<number>
  readonly usage?: Maybe<JsonObject>
  /** The ids of the tasks that are running there. */
  readonly current_tasks?: Maybe<readonly string[]>
  /** In the older generations: the tasks that the worker could start now. */
  readonly supported_tasks?: Maybe<readonly string[]>
  readonly supported_skills?: Maybe<readonly WireSkill[]>
  readonly available_skills?: Maybe<readonly string[]>
  readonly hot_cache?: Maybe<readonly string[]>
  readonly hot_skills?: Maybe<readonly WireSkill[]>
  readonly skill_dependencies?: Maybe<Readonly<Record<string, readonly string[]>>>
  readonly skills_hash?: Maybe<string>
}

export interface HeartbeatReply {
  readonly status: 'ok' | 'ttl_refreshed'
  readonly cancel_task_ids?: readonly string[]
  readonly require_full_sync?: boolean
  readonly next_heartbeat_jitter_ms?: number
}

/** The query of the single poll. */
export interface NextTaskQuery {
  readonly timeout?: number
  readonly available_skills?: string
  readonly hot_skills?: string
}

export interface FileMeta {
  readonly uri: string
  readonly size?: Maybe<number>
  readonly etag?: Maybe<string>
}

export interface WireTask {
  readonly job_id: string
  readonly task_id: string
  readonly type: string
  readonly params: JsonObject
  readonly tracing_context?: Readonly<Record<string, string>>
  readonly params_metadata?: Maybe<Readonly<Record<string, FileMeta>>>
  readonly priority?: number
  /** Unix seconds after which a result is ignored. */
  readonly deadline?: Maybe<number>
  /** As the worker itself described the skill. */
  readonly skill_version?: string
  readonly skill_type?: string
  /** From 1; an attempt follows a failed one. */
  readonly attempt?: number
  /** From 1; a delivery follows one whose worker vanished. */
  readonly delivery?: number
  /** The same for every delivery and every attempt of a task: an idempotency key for external side effects. */
  readonly idempotency_key?: string
}

export interface TaskBatchRequest {
  readonly limit: number
  /** Seconds. */
  readonly timeout?: Maybe<number>
  /** The skills that the worker could start now, if not all of them. A hint: other tasks that it gets wait there. */
  readonly available_skills?: Maybe<readonly string[]>
  readonly hot_skills?: Maybe<readonly string[]>
}

export interface TaskBatchReply {
  readonly tasks: readonly WireTask[]
  readonly cancel_task_ids?: readonly string[]
}

export interface WireTaskError {
  /** One of `TASK_ERROR_CODES`; anything else counts as transient. */
  readonly code?: Maybe<string>
  readonly message?: Maybe<string>
  readonly details?: Maybe<Json>
  /** Where in the worker's code it failed, for operators. Servers that do not know the field ignore it. */
  readonly stack?: Maybe<string>
}

interface ResultBody {
  /** Absent means `success`. */
  readonly status?: Maybe<string>
  readonly data?: Maybe<Json>
  /** A plain string in the oldest generation. */
  readonly error?: Maybe<string | WireTaskError>
  readonly error_message?: Maybe<string>
  readonly data_metadata?: Maybe<Readonly<Record<string, FileMeta>>>
}

export interface ResultRequest extends ResultBody, Signed {
  readonly job_id: string
  readonly task_id: string
  readonly worker_id?: Maybe<string>
  /** The oldest generation nests the body. */
  readonly result?: Maybe<ResultBody>
  readonly origin_worker_id?: Maybe<string>
  readonly costs?: Maybe<Json>
  /** What the handler wrote with `task.log`. Older orchestrators do not read it. */
  readonly log?: Maybe<readonly WireLogLine[]>
}

export interface ResultBatchRequest {
  readonly worker_id: string
  readonly results: readonly ResultRequest[]
}

export type ResultTransition =
  | 'success_transition'
  | 'failure_handled'
  | 'cancelled_handled'
  | 'parallel_branch_accepted'
  | 'unhandled_status_failure'

export type IgnoredReason =
  | 'job_not_found'
  | 'stale_task'
  | 'worker_mismatch'
  | 'deadline_exceeded'
  | 'job_cancelled'
  | 'job_already_terminated'

export type ResultReply =
  | { readonly status: 'accepted'; readonly transition: ResultTransition }
  | { readonly status: 'ignored'; readonly reason: IgnoredReason; readonly message?: string }

/** One reply per result, in the same order. A result that is malformed is answered in its place. */
export interface ResultBatchReply {
  readonly results: readonly (ResultReply | ItemError)[]
}

export interface EventRequest extends Signed {
  readonly event_type: string
  readonly event_id?: Maybe<string>
  readonly worker_id?: Maybe<string>
  readonly origin_worker_id?: Maybe<string>
  readonly origin_task_id?: Maybe<string>
  readonly target_job_id?: Maybe<string>
  readonly target_task_id?: Maybe<string>
  readonly payload?: Maybe<JsonObject>
  readonly bubbling_chain?: Maybe<readonly string[]>
  readonly trace_context?: Maybe<Readonly<Record<string, string>>>
  readonly priority?: Maybe<number>
}

export type EventReply =
  | {
      readonly status: 'event_accepted'
      /** Through whom it has come, us included, when it came through others. */
      readonly bubbling_chain?: readonly string[]
    }
  | { readonly status: 'error'; readonly code?: string; readonly message: string }

/** Over the socket, to the worker. Old workers read `type`, newer ones `command`: both are sent. */
export interface CancelCommand {
  readonly type: 'cancel_task'
  readonly command: 'cancel_task'
  readonly task_id: string
  readonly job_id: string
}

/** Commands that a worker does not know it ignores. */
export interface SocketError {
  readonly type: 'error'
  readonly code: string
  readonly message: string
}

/** A short-lived token and what renews it, once. */
export interface TokenReply {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  /** Not for workers that know no refresh tokens: their access tokens renew themselves. */
  readonly refresh_token?: string
  readonly refresh_expires_in?: number
  /** `null`: the token stands for one that several workers share. */
  readonly worker_id: string | null
}

export interface RevokeReply {
  readonly status: 'revoked'
  readonly revoked: number
}
