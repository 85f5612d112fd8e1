import { approvalOf } from '@impresario/core'
import type { ClientInfo, Job, JobRequest, JobStatus, RunnableBlueprint, Stored } from '@impresario/core'
import type { CreateOptions, Quota, TaskExplanation } from '@impresario/engine'
import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import type {
  BlueprintBody,
  CreateJobRequest,
  JobBody,
  Json,
  JsonObject,
  QuarantinedBody,
  WireApproval,
} from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'

export const JOB_STATUSES: readonly JobStatus[] = [
  'pending',
  'running',
  'waiting_for_worker',
  'waiting_for_human',
  'waiting_for_parallel',
  'waiting_for_child',
  'quarantined',
  'finished',
  'failed',
  'cancelled',
  'error',
]

/** A job as its owner sees it: never the client's configuration, never a stack. */
export function jobBody({ value: job, version }: Stored<Job>): JobBody {
  const { error, progress, parent } = job
  const approval = approvalBody(job)
  return {
    id: job.id,
    job_id: job.id,
    owner: job.client.id,
    blueprint_name: job.blueprint,
    blueprint_version: job.blueprintVersion,
    status: job.status,
    current_state: job.state,
    initial_data: job.initialData,
    state_history: job.stateHistory,
    ...(job.result === undefined ? {} : { result: job.result }),
    ...(progress === undefined ? {} : { progress: progress.fraction }),
    ...(progress?.message === undefined ? {} : { progress_message: progress.message }),
    ...(error === undefined ? {} : { error_message: error.message, error_code: error.code }),
    ...(parent === undefined ? {} : { parent_job_id: parent.jobId }),
    ...(job.metadata === undefined ? {} : { metadata: job.metadata }),
    ...(approval === undefined ? {} : { approval }),
    created_at: job.createdAt / 1_000,
    updated_at: job.updatedAt / 1_000,
    ...(job.endedAt === undefined ? {} : { ended_at: job.endedAt / 1_000 }),
    version,
    trail: job.trail.map(({ at, event, state, note }) => ({
      at: at / 1_000,
      event,
      ...(state === undefined ? {} : { state }),
      ...(note === undefined ? {} : { note }),
    })),
  }
}

/** What the job asks a person, while it does. */
export function approvalBody(job: Job): WireApproval | undefined {
  const approval = approvalOf(job)
  if (approval === undefined) return undefined
  const { message, decisions, visit, expiresAt, reminders } = approval
  return {
    message,
    decisions,
    visit,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt / 1_000 }),
    reminders,
  }
}

/** The job with all that is known of its failure. Only for those who may see the job. */
export function quarantinedBody(stored: Stored<Job>, options: { readonly withStack: boolean }): QuarantinedBody {
  const { error, updatedAt } = stored.value
  if (error === undefined) return { ...jobBody(stored), quarantined_at: updatedAt / 1_000 }
  const { code, message, state, stack } = error
  return {
    ...jobBody(stored),
    error: { code, message, state, ...(options.withStack && stack !== undefined ? { stack } : {}) },
    quarantined_at: updatedAt / 1_000,
  }
}

const JOB_FIELDS: readonly string[] = Object.keys(schemas.jobBody.shape)

/** Only the fields that are named; without names, all of them. */
export function fieldPicker(fields: string | undefined): (body: JobBody) => Partial<JobBody> {
  if (fields === undefined) return (body) => body
  const wanted = new Set(fields.split(',').map((field) => field.trim()))
  const unknown = [...wanted].filter((field) => !JOB_FIELDS.includes(field))
  if (unknown.length > 0) {
    throw new ImpresarioError(
      'INVALID_REQUEST',
      `"fields" has ${JSON.stringify(unknown[0])}, which no job has. Fields: ${JOB_FIELDS.join(', ')}.`,
    )
  }
  return (body) => Object.fromEntries(Object.entries(body).filter(([key]) => wanted.has(key)))
}

export interface Origin {
  readonly client: ClientInfo
  /** The trace that the request belongs to, from its header. */
  readonly traceparent?: string | undefined
  /** From the header; the body's own key goes before it. */
  readonly idempotencyKey?: string | undefined
  readonly quota?: Quota | undefined
}

export function readCreate(body: CreateJobRequest, origin: Origin): JobRequest & CreateOptions {
  const { traceparent } = origin
  return {
    blueprint: body.blueprint,
    client: origin.client,
    ...(origin.quota === undefined ? {} : { quota: origin.quota }),
    initialData: body.initial_data ?? {},
    priority: body.priority ?? undefined,
    dispatchTimeoutMs: milliseconds(body.dispatch_timeout),
    resultTimeoutMs: milliseconds(body.result_timeout),
    executionTimeoutMs: milliseconds(body.execution_timeout),
    metadata: body.metadata ?? undefined,
    webhookUrl: body.webhook_url ?? undefined,
    idempotencyKey: body.idempotency_key ?? origin.idempotencyKey,
    jobId: body.job_id ?? undefined,
    ...(traceparent === undefined ? {} : { tracing: { traceparent } }),
  }
}

/** Ten years: longer spans would leave the range in which storages keep time exactly. */
const SPAN_S_MAX = 315_360_000

function milliseconds(seconds: number | null | undefined): number | undefined {
  return typeof seconds === 'number' ? Math.min(seconds, SPAN_S_MAX) * 1_000 : undefined
}

/** Fields that show that a body of a blueprint's own endpoint is an envelope, and not the initial data itself. */
const ENVELOPE = ['initial_data', 'webhook_url', 'dispatch_timeout', 'result_timeout']

/** The oldest clients send the initial data as the whole body. */
export function readEndpointBody(blueprint: string, body: unknown): CreateJobRequest {
  if (!isJsonObject(body)) return { blueprint }
  if (ENVELOPE.some((field) => Object.hasOwn(body, field))) return { ...body, blueprint }
  return { blueprint, initial_data: body }
}

export function blueprintBody(blueprint: RunnableBlueprint): BlueprintBody {
  return {
    name: blueprint.name,
    version: blueprint.version,
    start: blueprint.start,
    endpoint: blueprint.endpoint ?? null,
    api_version: blueprint.apiVersion ?? null,
    states: blueprint.nodes.map((node) => ({
      name: node.name,
      kind: node.kind,
      outcome: node.outcome ?? null,
      transitions: node.links.map((link) => ({ to: link.to, label: link.label ?? null })),
    })),
  }
}

export function explanationBody(job: Job, tasks: readonly TaskExplanation[]): JsonObject {
  return {
    job_id: job.id,
    status: job.status,
    current_state: job.state,
    tasks: tasks.map((task) => ({
      task_id: task.taskId,
      type: task.type,
      where: task.where,
      worker: task.worker ?? null,
      explanation: task.explanation === undefined ? null : snakeCase(task.explanation),
    })),
  }
}

/** The explanation is plain data; on the wire its keys are in snake_case like all others. */
function snakeCase(value: unknown): Json {
  if (Array.isArray(value)) return value.map(snakeCase)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        key.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
        snakeCase(inner),
      ]),
    )
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
