import { approvalOf, roughJsonLength, shownJobId, waitReason, waitReasons } from '@impresario/core'
import type { ClientInfo, Explanation, Job, JobFailure, RunnableBlueprint, Stored } from '@impresario/core'
import type { JobWork, NewJob, Quota, TaskExplanation } from '@impresario/engine'
import {
  ImpresarioError,
  isJsonObject,
  LARGE_JOB_FIELDS,
  LIMITS,
  traceContextOf,
  writeJson,
  snakeName,
} from '@impresario/protocol'
import type {
  BlueprintBody,
  CreateJobRequest,
  JobBody,
  Json,
  JsonObject,
  QuarantinedBody,
  TraceContext,
  WireApproval,
  WireCompensation,
  WireJobFailure,
  WireWait,
  WireWork,
} from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { tracingFor } from '../telemetry/request-spans.ts'

/** A job as its owner sees it: never the client's configuration, never a stack. */
export function jobBody({ value: job, version }: Stored<Job>): JobBody {
  const { error, progress, parent } = job
  const approval = approvalBody(job)
  return {
    id: shownJobId(job.id),
    job_id: shownJobId(job.id),
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
    ...(job.usage === undefined ? {} : { usage: job.usage }),
    ...(error === undefined ? {} : { error_message: error.message, error_code: error.code }),
    ...(job.failure === undefined ? {} : { failure: failureBody(job.failure) }),
    ...(parent === undefined ? {} : { parent_job_id: shownJobId(parent.jobId) }),
    ...(job.metadata === undefined ? {} : { metadata: job.metadata }),
    ...(approval === undefined ? {} : { approval }),
    ...waitsFor(job),
    ...compensationOf(job),
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

function compensationOf({ compensation }: Job): { readonly compensation?: WireCompensation } {
  if (compensation === undefined) return {}
  const { outcome, left, undone } = compensation
  return { compensation: { outcome, left: left.map(({ state }) => state), undone } }
}

function waitsFor({ wait }: Job): { readonly waits_for?: WireWait } {
  if (wait?.kind === 'sleep') return { waits_for: { kind: 'time', until: wait.until / 1_000 } }
  if (wait?.kind !== 'event') return {}
  const { topic, key, expiresAt } = wait
  const until = expiresAt === undefined ? {} : { until: expiresAt / 1_000 }
  return { waits_for: { kind: 'event', topic, ...(key === undefined ? {} : { key }), ...until } }
}

function failureBody({ child, ...failure }: JobFailure): WireJobFailure {
  if (child === undefined) return failure
  const { jobId, blueprint, ...rest } = child
  return { ...failure, child: { job_id: jobId, blueprint_name: blueprint, ...rest } }
}

/** Where its work is, for those jobs that wait for some. */
export function workBody(work: JobWork): WireWork {
  const { waiting, delayed, running, workers, children, unseen } = work
  return {
    waiting,
    delayed,
    running,
    workers,
    children: children.map(shownJobId),
    ...(unseen === 0 ? {} : { unseen }),
  }
}

/** What the job asks a person, while it does. */
export function approvalBody(job: Job): WireApproval | undefined {
  const approval = approvalOf(job)
  if (approval === undefined) return undefined
  const { message, decisions, visit, expiresAt, reminders, form, formFor } = approval
  return {
    message,
    decisions,
    visit,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt / 1_000 }),
    reminders,
    ...(form === undefined ? {} : { form, form_for: formFor }),
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
export const QUARANTINED_FIELDS: readonly string[] = Object.keys(schemas.quarantinedBody.shape)

/** Whether a list of fields names this one; without a list, all are meant. */
export function hasField(fields: string | undefined, field: string): boolean {
  return fields === undefined || fields.split(',').some((one) => one.trim() === field)
}

/** Only the fields that are named; without names, all of them. */
export function fieldPicker(fields: string | undefined): (body: JobBody) => Partial<JobBody> {
  const wanted = wantedFields(fields, JOB_FIELDS)
  if (wanted === undefined) return (body) => body
  return (body) => Object.fromEntries(Object.entries(body).filter(([key]) => wanted.has(key)))
}

function wantedFields(fields: string | undefined, known: readonly string[]): ReadonlySet<string> | undefined {
  if (fields === undefined) return undefined
  const wanted = new Set(fields.split(',').map((field) => field.trim()))
  const unknown = [...wanted].find((field) => !known.includes(field))
  if (unknown === undefined) return wanted
  throw new ImpresarioError(
    'INVALID_REQUEST',
    `"fields" has ${JSON.stringify(unknown)}, which no job has. Fields: ${known.join(', ')}.`,
  )
}

const LARGE: ReadonlySet<string> = new Set(LARGE_JOB_FIELDS)

/** Writes a job for a list: the fields that are named, or all but those that are too long for one. */
export function listedWriter(
  fields: string | undefined,
  known: readonly string[] = JOB_FIELDS,
): (body: JobBody) => string {
  const wanted = wantedFields(fields, known)
  return (body) => {
    const parts: string[] = []
    const omitted: string[] = []
    for (const [key, value] of Object.entries(body)) {
      if (value === undefined || wanted?.has(key) === false) continue
      const text = wanted === undefined && LARGE.has(key) ? shortText(value) : writeJson(value)
      if (text === undefined) omitted.push(key)
      else parts.push(`${JSON.stringify(key)}:${text}`)
    }
    if (omitted.length > 0) parts.push(`"omitted_fields":${JSON.stringify(omitted)}`)
    return `{${parts.join(',')}}`
  }
}

/** Eight of what `roughJsonLength` counts are one at least. */
const ROUGH_MAX = 8 * LIMITS.listedFieldBytesMax

/** `undefined` for what is too long. What is far too long is not even written. */
function shortText(value: unknown): string | undefined {
  if (roughJsonLength(value, ROUGH_MAX) > ROUGH_MAX) return undefined
  const text = writeJson(value)
  return Buffer.byteLength(text) > LIMITS.listedFieldBytesMax ? undefined : text
}

export interface Origin {
  readonly client: ClientInfo
  /** The trace that the request belongs to, from its headers; the body's own goes before it. */
  readonly tracing?: TraceContext | undefined
  /** The trace for each job, where a request starts several. */
  readonly tracingOfJob?: (() => NewJob['tracing']) | undefined
  /** From the header; the body's own key goes before it. */
  readonly idempotencyKey?: string | undefined
  readonly quota?: Quota | undefined
}

export function readCreate(body: CreateJobRequest, origin: Origin): NewJob {
  const own = body.tracing_context
  const tracing =
    own === undefined || own === null
      ? (origin.tracingOfJob?.() ?? origin.tracing)
      : tracingFor(traceContextOf(own), origin.tracing)
  return {
    blueprint: body.blueprint,
    client: origin.client,
    quota: origin.quota,
    initialData: body.initial_data ?? {},
    priority: body.priority ?? undefined,
    dispatchTimeoutMs: milliseconds(body.dispatch_timeout),
    resultTimeoutMs: milliseconds(body.result_timeout),
    executionTimeoutMs: milliseconds(body.execution_timeout),
    metadata: body.metadata ?? undefined,
    webhookUrl: body.webhook_url ?? undefined,
    idempotencyKey: body.idempotency_key ?? origin.idempotencyKey,
    jobId: body.job_id ?? undefined,
    tracing: tracing === undefined ? undefined : { ...tracing },
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
    input_schema: inputSchemaOf(blueprint),
    states: blueprint.nodes.map((node) => ({
      name: node.name,
      kind: node.kind,
      outcome: node.outcome ?? null,
      waits: node.waits ?? [],
      has_undo: node.hasUndo === true,
      tasks: namesOf(node, 'task'),
      children: namesOf(node, 'child'),
      asks_person: namesOf(node, 'person').length > 0,
      transitions: node.links.map((link) => ({ to: link.to, label: link.label ?? null })),
    })),
  }
}

function namesOf(
  { calls = [] }: RunnableBlueprint['nodes'][number],
  kind: 'task' | 'child' | 'person',
): readonly string[] {
  return calls.filter((call) => call.kind === kind).map(({ name }) => name)
}

/** Schemas come from programs: one that JSON cannot hold, or that is huge, is not shown. */
function inputSchemaOf({ inputSchema = {} }: RunnableBlueprint): JsonObject | null {
  const { $schema: _, ...schema } = inputSchema
  const text = JSON.stringify(schema)
  const isShown = text !== '{}' && Buffer.byteLength(text) <= LIMITS.listedFieldBytesMax
  return isShown ? (JSON.parse(text) as JsonObject) : null
}

/** Tasks of one job that are explained: each lists up to a hundred workers. */
const EXPLAINED_MAX = 20
/** What all workers of one explanation may say together; those beyond it are counted as omitted. */
const VERDICTS_BYTES_MAX = 65_536

/** A child that a job waits for. `status` is absent while it is being created, and beyond the first that are looked up. */
export interface ChildView {
  readonly jobId: string
  readonly blueprint: string
  readonly status?: string | undefined
}

export function explanationBody(
  job: Job,
  tasks: readonly TaskExplanation[],
  children: readonly ChildView[] = [],
): JsonObject {
  const explained = new Set(tasks.filter(({ explanation }) => explanation !== undefined).slice(0, EXPLAINED_MAX))
  return {
    job_id: shownJobId(job.id),
    status: job.status,
    current_state: job.state,
    parent_job_id: job.parent === undefined ? null : shownJobId(job.parent.jobId),
    children: children.map(({ jobId, blueprint, status }) => ({
      job_id: shownJobId(jobId),
      blueprint_name: blueprint,
      status: status ?? null,
    })),
    ...reasonsBody(job),
    waits_for: waitBody(job),
    tasks: tasks.map((task) => ({
      task_id: task.taskId,
      type: task.type,
      where: task.where,
      worker: task.worker ?? null,
      attempt: task.attempt,
      deadline: task.deadlineAt === undefined ? null : task.deadlineAt / 1_000,
      last_error: task.lastError === undefined ? null : { code: task.lastError.code, message: task.lastError.message },
      explanation: explained.has(task) && task.explanation !== undefined ? wireExplanation(task.explanation) : null,
    })),
  }
}

/** What it stands still for, in words and as data. Moments are Unix seconds on the wire. */
function reasonsBody(job: Job): JsonObject {
  return {
    summary: waitReason(job) ?? null,
    reasons: waitReasons(job).map(({ code, values }) => {
      const { until } = values
      return { code, values: typeof until === 'number' ? { ...values, until: until / 1_000 } : values }
    }),
  }
}

function waitBody(job: Job): JsonObject | null {
  const { waits_for: wait } = waitsFor(job)
  return wait === undefined ? null : { ...wait }
}

function wireExplanation(explanation: Explanation): Json {
  const { workers } = explanation
  let bytes = 0
  const enough = workers.findIndex(
    (verdict) => (bytes += roughJsonLength(verdict, VERDICTS_BYTES_MAX)) > VERDICTS_BYTES_MAX,
  )
  if (enough === -1) return snakeCased(explanation)
  const omitted = explanation.omitted + workers.length - enough
  return snakeCased({ ...explanation, workers: workers.slice(0, enough), omitted })
}

/** The explanation is plain data; on the wire its keys are in snake_case like all others. */
function snakeCased(value: unknown): Json {
  if (Array.isArray(value)) return value.map(snakeCased)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [snakeName(key), snakeCased(inner)]))
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
