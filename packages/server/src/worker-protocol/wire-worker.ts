import { isEnded, parseDeliveryId, shownJobId } from '@impresario/core'
import type { Gpu, NewWorker, WorkerPatch, WorkerRecord, WorkerStatus } from '@impresario/core'
import type { Delivery, Receipt, Report } from '@impresario/engine'
import {
  doubleOf,
  isAnyNumber,
  isJsonObject,
  isTaskErrorCode,
  LIMITS,
  mustBePlainText,
  seenText,
} from '@impresario/protocol'
import type {
  FileMeta,
  HeartbeatRequest,
  IgnoredReason,
  ItemError,
  Json,
  JsonObject,
  RegisterRequest,
  ResultReply,
  TaskError,
  WireArtifact,
  WireResources,
  WireSkill,
  WireTask,
  WorkerBody,
} from '@impresario/protocol'

/*
 * The one place where the worker protocol meets the engine. Workers of five generations say the same things in
 * different fields; every reader here takes the first that is present, and `null` counts as absent.
 */

type Maybe<T> = T | null | undefined

/** What a worker says of itself when it registers. */
export function readRegistration(body: RegisterRequest): NewWorker {
  const { resources, capabilities } = body
  // Workers are listed by it.
  if (typeof body.worker_type === 'string') mustBePlainText('worker_type', body.worker_type)
  const skills = namesOf(body.supported_skills) ?? body.supported_tasks ?? []
  const skillInfo = infosOf(body.supported_skills)
  const properties = resources?.properties ?? {}
  const concurrencyMax =
    resources?.max_concurrent_tasks ??
    body.max_concurrent_tasks ??
    numberIn(properties, 'max_concurrent_tasks') ??
    numberIn(capabilities, 'max_concurrent_tasks') ??
    numberIn(capabilities?.extra, 'max_concurrent_tasks')
  return {
    id: body.worker_id,
    type: body.worker_type,
    skills,
    availableSkills: body.available_skills,
    hotSkills: namesOf(body.hot_skills),
    hotModels: body.hot_cache,
    concurrencyMax,
    ...(concurrencyMax === undefined ? { isOpenEnded: true } : {}),
    cpuCores: resources?.cpu_cores ?? numberIn(properties, 'cpu_cores'),
    ramGb: resources?.ram_gb ?? numberIn(properties, 'ram_gb'),
    gpus: gpusOf(resources),
    models: artifactNames(body.installed_artifacts ?? body.installed_models),
    software: textValues(body.installed_software),
    properties: { ...capabilities?.extra, ...properties },
    costPerSecond: capabilities?.cost_per_second ?? body.cost_per_second,
    costPerSkill: capabilities?.cost_per_skill ?? body.cost_per_skill,
    ...(skillInfo.length === 0 ? {} : { skillInfo }),
    metadata: metadataOf(body),
  }
}

/**
 * What has changed since. The older generations send as skills what they could start at this moment. `known`: what was
 * said before, of which a list of skills changes the hash.
 */
export function readHeartbeat(body: HeartbeatRequest, known: JsonObject = {}): WorkerPatch {
  const skillInfo = infosOf(body.supported_skills)
  const named = namesOf(body.supported_skills) ?? body.supported_tasks
  return {
    status: statusOf(body.status),
    ...(skillInfo.length === 0 ? {} : { skills: namesOf(body.supported_skills), skillInfo }),
    availableSkills: body.available_skills ?? named,
    hotSkills: namesOf(body.hot_skills),
    hotModels: body.hot_cache,
    ...(skillInfo.length > 0 && typeof body.skills_hash === 'string'
      ? { metadata: { ...known, skills_hash: body.skills_hash } }
      : {}),
  }
}

/** True for a body that says nothing: such a heartbeat only keeps the worker alive. */
export function isEmptyBody(body: unknown): boolean {
  return !isJsonObject(body) || Object.keys(body).length === 0
}

function namesOf(skills: Maybe<readonly WireSkill[]>): readonly string[] | undefined {
  return skills?.map((skill) => (typeof skill === 'string' ? skill : skill.name))
}

function infosOf(skills: Maybe<readonly WireSkill[]>): readonly JsonObject[] {
  const infos: JsonObject[] = []
  for (const skill of skills ?? []) if (isJsonObject(skill)) infos.push(skill)
  return infos
}

function gpusOf(resources: Maybe<WireResources>): readonly Gpu[] | undefined {
  if (resources === null || resources === undefined) return undefined
  const gpus: Gpu[] = []
  const { gpu_info: single, devices } = resources
  if (single) gpus.push({ model: single.model ?? '', vramGb: single.vram_gb ?? 0 })
  for (const device of devices ?? []) {
    if (device.type.toLowerCase() !== 'gpu') continue
    const vramGb = numberIn(device.properties, 'vram_gb') ?? numberIn(device.metrics, 'vram_gb') ?? 0
    gpus.push({ model: device.model ?? '', vramGb })
  }
  return gpus
}

function artifactNames(artifacts: Maybe<readonly (WireArtifact | string)[]>): readonly string[] | undefined {
  return artifacts?.map((artifact) => (typeof artifact === 'string' ? artifact : artifact.name))
}

function textValues(map: Maybe<Readonly<Record<string, unknown>>>): Readonly<Record<string, string>> | undefined {
  if (map === null || map === undefined) return undefined
  const texts: Record<string, string> = {}
  for (const [key, value] of Object.entries(map)) {
    const seen = typeof value === 'string' ? seenText(value) : value
    if (typeof seen === 'string' || isAnyNumber(seen)) texts[key] = String(seen)
  }
  return texts
}

function numberIn(map: Maybe<object>, key: string): number | undefined {
  return doubleOf(isJsonObject(map) ? map[key] : undefined)
}

/** Kept for people who look at the worker; nothing is decided by it. */
function metadataOf(body: RegisterRequest): JsonObject {
  const { capabilities } = body
  const said: Readonly<Record<string, Maybe<Json>>> = {
    hostname: capabilities?.hostname ?? body.hostname,
    ip_address: capabilities?.ip_address ?? body.ip_address,
    s3_config_hash: capabilities?.s3_config_hash,
    skills_hash: body.skills_hash,
  }
  const kept: Record<string, Json> = { ...body.metadata }
  for (const [key, value] of Object.entries(said)) if (value !== null && value !== undefined) kept[key] = value
  return kept
}

const STATUSES: ReadonlySet<string> = new Set<WorkerStatus>(['idle', 'busy', 'full', 'draining', 'offline'])

function statusOf(status: Maybe<string>): WorkerStatus | undefined {
  return typeof status === 'string' && STATUSES.has(status) ? (status as WorkerStatus) : undefined
}

/** A task on its way to a worker. The deadline is absolute, in whole seconds, and rather late than early. */
export function taskBody(delivery: Delivery, worker?: WorkerRecord, tracing = delivery.tracing): WireTask {
  const { call, deadlineAt } = delivery
  const skill = worker?.skillInfo?.find(({ name }) => name === call.type)
  return {
    job_id: delivery.jobId,
    task_id: delivery.taskId,
    type: call.type,
    params: call.params,
    tracing_context: tracing ?? {},
    priority: call.priority,
    ...(deadlineAt === undefined ? {} : { deadline: Math.ceil(deadlineAt / 1_000) }),
    ...(typeof skill?.['version'] === 'string' ? { skill_version: skill['version'] } : {}),
    ...(typeof skill?.['type'] === 'string' ? { skill_type: skill['type'] } : {}),
    ...paramsMetadata(call.params),
    attempt: delivery.attempt,
    delivery: delivery.delivery,
    idempotency_key: delivery.idempotencyKey,
  }
}

/** Where a parameter is a file with its size and tag, workers check what they load against them. */
function paramsMetadata(params: JsonObject): Pick<WireTask, 'params_metadata'> {
  const found: Record<string, FileMeta> = {}
  for (const [name, value] of Object.entries(params)) {
    if (!isJsonObject(value) || typeof value['uri'] !== 'string') continue
    const { uri, size, etag } = value
    found[name] = {
      uri,
      ...(doubleOf(size) === undefined ? {} : { size: sizeIn(size) }),
      ...(typeof etag === 'string' ? { etag } : {}),
    }
  }
  return Object.keys(found).length === 0 ? {} : { params_metadata: found }
}

/** Boundary: a number, or a text that is written as one. */
function sizeIn(size: Json | undefined): number {
  return size as number
}

/** A result, flat or nested, or what is wrong with it. Plain checks: posts of 500 results go through here. */
export function readReport(item: unknown): Report | ItemError {
  if (!isJsonObject(item)) return { error: 'A result must be an object.', code: 'INVALID_REQUEST' }
  const { task_id: taskId, job_id: jobId } = item
  if (typeof jobId !== 'string' || typeof taskId !== 'string') {
    return { error: 'job_id and task_id are required.', code: 'INVALID_REQUEST' }
  }
  // An id that we never gave out is judged by the desk.
  const own = parseDeliveryId(taskId)?.jobId
  if (own !== undefined && jobId !== own && jobId !== shownJobId(own)) {
    return { error: 'task_id names a task of another job than job_id does.', code: 'INVALID_REQUEST' }
  }
  const nested = item['result']
  const body = isJsonObject(nested) ? nested : item
  const { status, data } = body
  if (typeof status === 'string' && status.length > LIMITS.identifierCharsMax) {
    return { error: `status has more than ${LIMITS.identifierCharsMax} characters.`, code: 'INVALID_REQUEST' }
  }
  const error = errorOf(body)
  return {
    taskId,
    // An error without a status comes from the oldest workers, and can only mean one thing.
    status: typeof status === 'string' && status !== '' ? status : error === undefined ? 'success' : 'failure',
    ...(data === undefined || data === null ? {} : { data }),
    ...(error === undefined ? {} : { error }),
    ...stackIn(body),
  }
}

/** Everything that steers a terminal, except for the ends of lines: stacks are shown there. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g

function stackIn({ error }: JsonObject): Pick<Report, 'stack'> {
  const stack = isJsonObject(error) ? error['stack'] : undefined
  if (typeof stack !== 'string' || stack === '') return {}
  return { stack: stack.slice(0, LIMITS.taskStackCharsMax).replaceAll(CONTROLS, '') }
}

const MESSAGE_CHARS_MAX = 10_000

function errorOf(body: JsonObject): TaskError | undefined {
  const { error, error_message: loose } = body
  if (isJsonObject(error)) {
    const { code, message } = error
    return {
      code: isTaskErrorCode(code) ? code : 'TRANSIENT_ERROR',
      message: textOf(message) ?? textOf(loose) ?? 'The worker gave no message.',
    }
  }
  const message = textOf(error) ?? textOf(loose)
  return message === undefined ? undefined : { code: 'TRANSIENT_ERROR', message }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, MESSAGE_CHARS_MAX) : undefined
}

/** What the worker hears about its result. */
export function receiptBody(receipt: Receipt, status: string): ResultReply | ItemError {
  if (receipt.type === 'refused') return { error: receipt.message, code: 'LIMIT_EXCEEDED' }
  if (receipt.type === 'ignored') return { status: 'ignored', ...whyIgnored(receipt) }
  const { before, job } = receipt
  if (before?.wait?.kind === 'parallel') return { status: 'accepted', transition: 'parallel_branch_accepted' }
  if (status === 'failure') return { status: 'accepted', transition: 'failure_handled' }
  if (status === 'cancelled') return { status: 'accepted', transition: 'cancelled_handled' }
  const isUnhandled = isEnded(job) && job.error?.code === 'UNHANDLED_STATUS'
  return { status: 'accepted', transition: isUnhandled ? 'unhandled_status_failure' : 'success_transition' }
}

const MESSAGES: Readonly<Record<IgnoredReason, string>> = {
  job_not_found: 'There is no such job.',
  stale_task: 'This delivery of the task no longer counts.',
  worker_mismatch: 'The task is held by another worker.',
  deadline_exceeded: 'The job ran out of time.',
  job_cancelled: 'The job was cancelled.',
  job_already_terminated: 'The job has ended.',
}

export function whyIgnored(receipt: Extract<Receipt, { type: 'ignored' }>): { reason: IgnoredReason; message: string } {
  const reason = ignoredReason(receipt)
  return { reason, message: MESSAGES[reason] }
}

function ignoredReason({ reason, job }: Extract<Receipt, { type: 'ignored' }>): IgnoredReason {
  if (reason === 'worker_mismatch' || reason === 'job_not_found') return reason
  if (job === undefined || !isEnded(job)) return 'stale_task'
  if (job.status === 'cancelled') return 'job_cancelled'
  const code = job.error?.code
  return code === 'EXECUTION_TIMEOUT' || code === 'TIMEOUT_ERROR' ? 'deadline_exceeded' : 'job_already_terminated'
}

/** How far a task is, from an event of type `progress`. */
export function readProgress(
  payload: Maybe<JsonObject>,
): { fraction: number; message: string | undefined } | undefined {
  const fraction = numberIn(payload, 'progress')
  if (fraction === undefined || !Number.isFinite(fraction)) return undefined
  return { fraction: Math.min(1, Math.max(0, fraction)), message: textOf(payload?.['message']) }
}

/** A worker as clients see it. */
export function workerBody(worker: WorkerRecord, load: number): WorkerBody {
  return {
    worker_id: worker.id,
    worker_type: worker.type,
    status: worker.status,
    supported_skills: worker.skills,
    available_skills: worker.availableSkills ?? worker.skills,
    hot_skills: worker.hotSkills,
    hot_cache: worker.hotModels,
    max_concurrent_tasks: worker.isOpenEnded === true ? null : worker.concurrencyMax,
    load,
    resources: {
      cpu_cores: worker.cpuCores,
      ram_gb: worker.ramGb,
      gpus: worker.gpus.map((gpu) => ({ model: gpu.model, vram_gb: gpu.vramGb })),
      properties: worker.properties,
    },
    installed_models: worker.models,
    installed_software: worker.software,
    cost_per_second: worker.costPerSecond ?? null,
    cost_per_skill: worker.costPerSkill,
    reputation: worker.reputation,
    registered_at: worker.registeredAt / 1_000,
    seen_at: worker.seenAt / 1_000,
  }
}
