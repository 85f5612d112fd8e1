import type { AutomationRecord } from '@impresario/automations'
import { jsonObjectCopy } from '@impresario/core'
import type { Data, DataObject, JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { stamp } from './answer.ts'
import { invalid } from './input.ts'
import { shownOwner } from './people.ts'

export const SCHEDULE_KINDS = ['cron', 'rrule', 'once', 'event', 'condition'] as const
type ScheduleKind = (typeof SCHEDULE_KINDS)[number]
export const STATUSES = ['active', 'paused', 'canceled'] as const
/** What the old system took for tasks that name no zone. */
const ZONE_DEFAULT = 'Europe/Chisinau'
/** How the old system waited between attempts. */
const RETRY_SECONDS = { initial_seconds: 1, max_seconds: 60 }

const id = z.string().min(1).max(200)

const fields = {
  title: z.string().min(1).max(200),
  description: z.string().min(1).max(2_000),
  schedule_kind: z.enum(SCHEDULE_KINDS),
  schedule_expr: z.string().min(1).max(4_000).nullish(),
  timezone: z.string().min(1).max(100),
  payload: z.record(z.string(), z.unknown()),
  priority: z.int().min(1).max(9),
  max_retries: z.int().min(0).max(10),
  backoff_strategy: z.enum(['exponential_jitter', 'linear', 'fixed']),
  concurrency_key: z.string().min(1).max(100).nullish(),
}

export const taskCreate = z.object({
  ...fields,
  timezone: fields.timezone.default(ZONE_DEFAULT),
  priority: fields.priority.default(5),
  dedupe_key: z.string().min(1).max(100).nullish(),
  dedupe_window_seconds: z.int().min(0).max(31_536_000).default(0),
  max_retries: fields.max_retries.default(3),
  backoff_strategy: fields.backoff_strategy.default('exponential_jitter'),
  created_by: id.nullish(),
})
export type TaskFields = z.output<typeof taskCreate>

export const taskUpdate = z.object({ ...fields, status: z.enum(STATUSES) }).partial()

/** A task as the old system showed it. */
export interface Task {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly created_by: string
  readonly schedule_kind: ScheduleKind
  readonly schedule_expr: string | null
  readonly timezone: string
  readonly payload: JsonObject
  readonly status: AutomationRecord['status']
  readonly priority: number
  readonly dedupe_key: string | null
  readonly dedupe_window_seconds: number
  readonly max_retries: number
  readonly backoff_strategy: 'exponential_jitter' | 'linear' | 'fixed'
  readonly concurrency_key: string | null
  readonly created_at: string
}

/** The definition that a task is, and what of it has no place there. */
export interface Translated {
  readonly body: DataObject
  readonly extra: DataObject
}

/** `payload` as it is read: numbers as they were written. */
export function definitionOf(task: Omit<TaskFields, 'payload' | 'created_by'>, payload: DataObject): Translated {
  const { dedupe_key: key, dedupe_window_seconds: windowSeconds } = task
  const { body, extra } = changedDefinition({ given: {} }, task, payload)
  const isDeduplicated = !isNone(key) && windowSeconds > 0
  // Keys of ours are templates, those of the old system were not.
  const dedupe = { key: key?.replaceAll('${', () => '$${') ?? '', window_seconds: windowSeconds }
  return {
    body: { ...body, ...(isDeduplicated ? { dedupe } : {}) },
    extra: {
      ...extra,
      ...(isNone(key) ? {} : { dedupe_key: key }),
      ...(windowSeconds === 0 ? {} : { dedupe_window_seconds: windowSeconds }),
    },
  }
}

type Changes = Omit<z.output<typeof taskUpdate>, 'payload' | 'status'>

/** Only what is named changes: an automation may say more than a task could, and keeps it. */
export function changedDefinition(
  { given, extra = {} }: Pick<AutomationRecord, 'given' | 'extra'>,
  changes: Changes,
  payload?: DataObject,
): Translated {
  const { title, description, timezone, priority } = changes
  const plain = Object.entries({ title, description, timezone, priority }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const schedule = scheduleIn(extra, given, changes)
  const work = payload === undefined ? { body: {}, extra: {} } : workIn(payload)
  const { trigger: _, triggers: __, ...untimed } = given
  const { pipeline: ___, params: ____, ...idle } = schedule === undefined ? given : untimed
  const { payload: _____, ...kept } = extra
  return {
    body: {
      ...(payload === undefined ? (schedule === undefined ? given : untimed) : idle),
      ...Object.fromEntries(plain),
      ...schedule?.body,
      ...work.body,
      ...retryIn(given, changes),
      ...concurrencyIn(changes),
    },
    extra: { ...(payload === undefined ? extra : kept), ...schedule?.extra, ...work.extra },
  }
}

function workIn(payload: DataObject): Translated {
  const { pipeline, params, ...others } = payload
  if (!Array.isArray(pipeline)) throw invalid(['body', 'payload', 'pipeline'], 'Must be a list of steps.')
  const steps = pipeline.map((step) => withRetry(step as Data))
  const isTranslated = steps.some((step, at) => step !== pipeline[at]) || Object.keys(others).length > 0
  return {
    body: { pipeline: steps, ...(params === undefined || params === null ? {} : { params }) },
    extra: isTranslated ? { payload } : {},
  }
}

function retryIn(given: DataObject, { max_retries: retries, backoff_strategy: backoff }: Changes): DataObject {
  if (retries === undefined && backoff === undefined) return {}
  const before = given['retry'] ?? RETRY_SECONDS
  return {
    retry: {
      ...(before as DataObject),
      ...(retries === undefined ? {} : { max_retries: retries }),
      ...(backoff === undefined ? {} : { backoff }),
    },
  }
}

/** Without a key, runs of a task never waited for each other. */
function concurrencyIn({ concurrency_key: key }: Changes): DataObject {
  if (key === undefined) return {}
  return key === null ? { overlap: 'parallel', concurrency: {} } : { concurrency: { key }, overlap: 'queue' }
}

function scheduleIn(
  extra: DataObject,
  given: DataObject,
  { schedule_kind: kind, schedule_expr: expression }: Changes,
): Translated | undefined {
  if (kind === undefined && expression === undefined) return undefined
  const before = extra['schedule_kind']
  const named = kind ?? SCHEDULE_KINDS.find((one) => one === before)
  if (named === undefined) throw invalid(['body', 'schedule_kind'], 'Name the kind of the new schedule_expr too.')
  const written = expression === undefined ? expressionIn(given) : expression
  const trigger = triggerOf(named, written)
  return { body: trigger === undefined ? {} : { triggers: [trigger] }, extra: { schedule_kind: named } }
}

function isNone(value: string | null | undefined): value is null | undefined {
  return value === undefined || value === null
}

/** Steps of the old system counted retries, ours count attempts. */
function withRetry(step: Data): Data {
  if (typeof step !== 'object' || step === null || Array.isArray(step)) return step
  const { max_retries: retries, ...rest } = step as DataObject
  if (typeof retries !== 'number' || 'retry' in rest) return step
  return { ...rest, retry: { max_attempts: retries + 1 } }
}

function triggerOf(kind: ScheduleKind, expression: string | null): DataObject | undefined {
  if (expression === null) {
    // What observes a condition outside runs the task when it holds.
    if (kind === 'condition') return undefined
    throw invalid(['body', 'schedule_expr'], `A schedule of the kind ${kind} needs it, such as ${SAMPLES[kind]}.`)
  }
  return kind === 'condition' ? { kind, expression } : { [kind]: expression }
}

const SAMPLES: Readonly<Record<Exclude<ScheduleKind, 'condition'>, string>> = {
  cron: '0 9 * * 1-5',
  rrule: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17',
  once: '2030-12-25T09:00:00+02:00',
  event: 'github.push',
}

export function taskOf(record: AutomationRecord): Task {
  const { definition, extra = {} } = record
  const { retry, concurrency, dedupe } = definition
  const key = extra['dedupe_key'] ?? dedupe?.key ?? null
  const [kind, expression] = scheduleOf(record)
  return {
    id: record.id,
    title: definition.title,
    description: definition.description,
    created_by: shownOwner(record.owner),
    schedule_kind: kind,
    schedule_expr: expression,
    timezone: definition.timezone,
    payload: payloadOf(record),
    status: record.status,
    priority: definition.priority,
    dedupe_key: typeof key === 'string' ? key : null,
    dedupe_window_seconds: dedupe?.windowSeconds ?? Number(extra['dedupe_window_seconds'] ?? 0),
    max_retries: retry.maxRetries,
    backoff_strategy: retry.backoff === 'exponential' ? 'exponential_jitter' : retry.backoff,
    concurrency_key: concurrency.key ?? null,
    created_at: stamp(record.createdAt),
  }
}

/** Params and pipeline as they were written. */
function payloadOf({ definition, given, extra }: AutomationRecord): JsonObject {
  const kept = extra?.['payload']
  if (typeof kept === 'object' && kept !== null) return jsonObjectCopy(kept, 'The payload')
  const params = given['params'] === undefined ? {} : { params: definition.params }
  return jsonObjectCopy({ ...params, pipeline: definition.source }, 'The payload')
}

const WORDS = ['cron', 'rrule', 'once', 'at', 'event', 'topic', 'expression', 'condition'] as const

/** The first trigger, in the words of the old system. Those that it did not know are shown as the nearest of its kinds. */
export function scheduleOf({ definition, given, extra }: AutomationRecord): readonly [ScheduleKind, string | null] {
  const [trigger] = definition.triggers
  const expression = expressionIn(given)
  const kind = SCHEDULE_KINDS.find((one) => one === extra?.['schedule_kind'])
  if (kind !== undefined) return [kind, expression]
  switch (trigger?.kind) {
    case 'time':
      return trigger.spec.kind === 'every'
        ? ['rrule', `FREQ=SECONDLY;INTERVAL=${trigger.spec.everyMs / 1_000}`]
        : [trigger.spec.kind, expression]
    case 'event':
      return ['event', expression]
    case 'webhook':
      return ['event', null]
    default:
      return ['condition', expression]
  }
}

function expressionIn(given: DataObject): string | null {
  const list = given['triggers']
  const first: unknown = Array.isArray(list) ? list[0] : given['trigger']
  const written = typeof first === 'object' && first !== null ? (first as DataObject) : {}
  const word = WORDS.map((name) => written[name]).find((value) => typeof value === 'string')
  return typeof word === 'string' ? word : null
}
