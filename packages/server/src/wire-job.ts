import type { ClientInfo, Job, JobRequest, RunnableBlueprint, Stored } from '@impresario/core'
import type { CreateOptions, TaskExplanation } from '@impresario/engine'
import { isJsonObject } from '@impresario/protocol'
import type { BlueprintBody, CreateJobRequest, JobBody, Json, JsonObject } from '@impresario/protocol'

/** A job as its owner sees it: never the client's configuration, never a stack. */
export function jobBody({ value: job, version }: Stored<Job>): JobBody {
  const { error, progress, parent } = job
  return {
    id: job.id,
    job_id: job.id,
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
    created_at: job.createdAt / 1_000,
    updated_at: job.updatedAt / 1_000,
    ...(job.endedAt === undefined ? {} : { ended_at: job.endedAt / 1_000 }),
    version,
    trail: job.trail.map((entry) => ({ ...entry, at: entry.at / 1_000 })),
  }
}

export interface Caller {
  readonly client: ClientInfo
  /** The trace that the request belongs to, from its header. */
  readonly traceparent?: string | undefined
  /** From the header; the body's own key goes before it. */
  readonly idempotencyKey?: string | undefined
}

export function readCreate(body: CreateJobRequest, caller: Caller): JobRequest & CreateOptions {
  const { traceparent } = caller
  return {
    blueprint: body.blueprint,
    client: caller.client,
    initialData: body.initial_data ?? {},
    priority: body.priority ?? undefined,
    dispatchTimeoutMs: milliseconds(body.dispatch_timeout),
    resultTimeoutMs: milliseconds(body.result_timeout),
    executionTimeoutMs: milliseconds(body.execution_timeout),
    metadata: body.metadata ?? undefined,
    webhookUrl: body.webhook_url ?? undefined,
    idempotencyKey: body.idempotency_key ?? caller.idempotencyKey,
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
