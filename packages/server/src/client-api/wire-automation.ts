import { AUTOMATION_STATUSES, RUN_STATUSES, triggerWords } from '@impresario/automations'
import type {
  AuditEntry,
  AutomationRecord,
  Launched,
  PublishedEvent,
  RunStatistics,
  RunView,
} from '@impresario/automations'
import { jsonObjectCopy } from '@impresario/core'
import { LIMITS, NO_USAGE } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { preview } from '../automations/preview.ts'
import type { Restriction, Zones } from '@impresario/recurrence'
import { usageBody } from '@impresario/protocol/schemas'
import { z } from 'zod'

const moment = z.number().describe('Unix seconds.')
const perhaps = moment.nullable()
const TRIGGER_KINDS = ['time', 'event', 'condition', 'webhook', 'manual', 'rerun'] as const
export const object = z.record(z.string(), z.unknown())

export const automationParams = z.object({ automation_id: z.string().describe('Id of an automation.') })
export const runParams = z.object({ run_id: z.string().describe('Id of a run.') })
export const eventParams = z.object({ event_id: z.string().describe('Id of an event.') })
export const auditParams = z.object({ entry_id: z.string().describe('Id of an entry of the audit log.') })

export const page = {
  limit: z.coerce.number().int().min(1).max(LIMITS.pageSizeMax).optional().describe('Entries on one page.'),
  cursor: z.string().optional().describe('From the header X-Next-Cursor of the page before.'),
  owner: z.string().optional().describe('Only those of this client. Admins may name any, others themselves.'),
}

export const automationListQuery = z.looseObject({
  status: z.enum(AUTOMATION_STATUSES).optional().describe('Only those that are so.'),
  search: z.string().min(1).max(200).optional().describe('Only those whose id or title contains this.'),
  ...page,
})
const runSpan = {
  trigger: z.enum(TRIGGER_KINDS).optional().describe('Only runs that this kind of trigger set off.'),
  created_after: z.string().optional().describe('ISO 8601 with its offset, or Unix seconds.'),
  created_before: z.string().optional().describe('ISO 8601 with its offset, or Unix seconds.'),
}
export const runStatisticsQuery = z.looseObject({
  automation_id: z.string().min(1).max(200).optional().describe('Only runs of this automation.'),
  days: z.coerce.number().min(0.01).max(365).optional().describe('Of so many days; 7 without it.'),
  trigger: z.enum(TRIGGER_KINDS).optional().describe('Only runs that this kind of trigger set off.'),
  owner: z.string().optional().describe('Only those of this client. Admins may name any, others themselves.'),
})
export const runListQuery = z.looseObject({
  automation_id: z.string().min(1).max(200).optional().describe('Only runs of this automation.'),
  status: z.enum(RUN_STATUSES).optional().describe('Only runs that are so.'),
  ...runSpan,
  ...page,
})
export const eventListQuery = z.looseObject({
  topic: z.string().min(1).max(200).optional().describe('Only events of exactly this topic.'),
  ...page,
})
export const auditQuery = z.looseObject({
  subject: z.string().min(1).max(200).optional().describe('Only entries about this automation.'),
  action: z.string().min(1).max(100).optional().describe('Such as `automation.paused` or `run.skipped`.'),
  actor: z.string().min(1).max(200).optional().describe('Only what this client or agent did.'),
  created_after: z.string().optional().describe('ISO 8601 with its offset, or Unix seconds.'),
  created_before: z.string().optional().describe('ISO 8601 with its offset, or Unix seconds.'),
  ...page,
})
export const previewQuery = z.looseObject({
  count: z.coerce.number().int().min(1).max(100).optional().describe('How many firings; ten without it.'),
})

export const updateQuery = z.looseObject({
  revision: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'The revision that the author has read. A later one is not overwritten: STALE_REVISION. As `If-Match` too.',
    ),
})

/** What is inside is checked by the reader of definitions, which names every problem. */
export const automationRequest = z
  .looseObject({
    key: z.string().min(1).max(100).optional().describe('By which files find it again, whatever its title becomes.'),
    title: z.string().min(1).max(200),
    description: z.string().max(2_000).optional(),
    timezone: z.string().min(1).max(100).optional(),
    triggers: z.array(object).max(20).optional(),
    pipeline: z.array(object).max(100).describe('The steps.'),
    params: object.optional(),
    priority: z.int().min(1).max(9).optional().describe('1 is the most important one; 5 without it.'),
    overlap: z.enum(['queue', 'skip', 'restart', 'parallel']).optional(),
  })
  .describe('An automation as it is written; see the guide for all fields.')

export const runNowRequest = z.object({ params: object.optional().describe('In place of single params.') })
export const snoozeRequest = z.object({
  seconds: z.number().min(1).max(604_800),
  reason: z.string().min(1).max(200).optional(),
})
export const reasonRequest = z.object({ reason: z.string().min(1).max(200).optional() })
export const publishRequest = z.object({
  topic: z.string().min(1).max(200),
  payload: z.unknown().optional(),
  audience: z.enum(['own', 'all']).optional().describe('`all`: automations of every owner. For admins.'),
  key: z.string().min(1).max(200).optional().describe('Jobs that wait for the topic with this key get it too.'),
})

const warnings = z
  .array(z.string())
  .describe(
    'What is doubtful in it, such as a task that no connected worker knows. Only where it was written or previewed.',
  )
export const automationBody = z.object({
  id: z.string(),
  owner: z.string(),
  status: z.enum(AUTOMATION_STATUSES),
  revision: z.number(),
  title: z.string(),
  definition: z.looseObject({}).describe('As it was written.'),
  when: z.array(z.string()).describe('Its triggers in words.'),
  next_run_at: perhaps.describe('When it runs next by the clock, in Unix seconds.'),
  next_run_for: perhaps.describe('The occurrence that this run stands for.'),
  snoozed: z.looseObject({}).nullable().describe('Who delayed the next run, and why.'),
  created_at: moment,
  created_by: z.string(),
  updated_at: moment,
  updated_by: z.string(),
  warnings: warnings.optional(),
})
export const automationList = z.array(automationBody)

const stepError = z.object({ code: z.string(), message: z.string() })
export const stepBody = z.object({
  id: z.string(),
  status: z.enum(['running', 'succeeded', 'failed', 'skipped']),
  input: z.unknown(),
  condition: z.looseObject({}).nullable().describe('What `if` looked at, and whether it held.'),
  output: z.unknown(),
  attempts: z.number(),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  error: stepError.nullable(),
})
const runFields = {
  id: z.string(),
  automation_id: z.string(),
  title: z.string(),
  owner: z.string(),
  status: z
    .enum([...RUN_STATUSES, 'waiting'])
    .describe(
      '`waiting`: it has not begun, because another run is open. Such a run is read by its id, and not in lists.',
    ),
  trigger: z.looseObject({}).describe('What set it off.'),
  attempt: z.number(),
  output: z.unknown(),
  error: stepError.nullable(),
  created_at: moment,
  ended_at: perhaps,
}
export const listedRun = z.object(runFields)
export const runList = z.array(listedRun)
export const runBody = z.object({
  ...runFields,
  usage: usageBody.describe('What its tasks have used, as their workers reported; with all parts and child jobs.'),
  steps: z.array(stepBody),
  attempts: z.array(z.looseObject({})).describe('Attempts before this one, with their steps.'),
})
export const runStatisticsBody = z.object({
  since: moment,
  until: moment,
  total: z.int(),
  by_status: z.object(Object.fromEntries(RUN_STATUSES.map((status) => [status, z.int()]))),
  automations: z.int().describe('How many automations had runs.'),
  success_rate: z.number().nullable().describe('Of the runs that succeeded or failed.'),
  duration_seconds: z.object({ mean: z.number(), p50: z.number(), p95: z.number() }).nullable(),
  last_run_at: perhaps,
  last_success_at: perhaps,
  last_failure_at: perhaps,
  is_partial: z.boolean().describe('There were more runs than the newest 10,000, which are counted.'),
})
export const rerunRequest = z.object({
  from: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('The step to begin with. The outputs of the steps before it are kept.'),
  params: object.optional().describe('In place of single params.'),
})
export const launchedBody = z.object({
  status: z.enum(['started', 'waiting', 'skipped']).describe('`waiting`: until its concurrency key has a place.'),
  run_id: z.string().nullable().describe('The run; for a skip the one that stands for it, if there is one.'),
  reason: z.string().optional().describe('Why it was skipped.'),
})
export const eventBody = z.object({
  id: z.string(),
  topic: z.string(),
  payload: z.unknown(),
  owner: z.string(),
  published_at: moment,
  source: z.string().nullable().describe('The source of webhooks that it came from.'),
  runs: z.array(z.looseObject({})).nullable().describe('What automations made of it; null until all have heard it.'),
})
export const eventList = z.array(eventBody)
export const auditEntryBody = z.object({
  id: z.string(),
  at: moment,
  actor: z.string(),
  on_behalf_of: z.string().nullable().describe('The person for whom an agent did it.'),
  action: z.string(),
  subject: z.string(),
  owner: z.string(),
  details: z.looseObject({}),
})
export const auditList = z.array(auditEntryBody)
export const toolBody = z.object({
  name: z.string(),
  description: z.string(),
  kind: z.string(),
  input_schema: z.looseObject({}),
  output_schema: z.looseObject({}),
  timeout_seconds: z.number().describe('0 for tasks of workers: the step or the task says how long.'),
  is_read_only: z.boolean(),
})
export const toolList = z.array(toolBody)
export const previewBody = z.object({
  words: z.array(z.string()),
  firings: z.array(z.object({ at: moment, local: z.string(), notes: z.array(z.string()) })),
  left_out: z.array(z.object({ at: moment, local: z.string(), reason: z.string() })),
  is_complete: z.boolean().describe('The series ends with the last of these firings.'),
  warnings: warnings.optional(),
})

export function wireAutomation(record: AutomationRecord, zones: Zones): z.infer<typeof automationBody> {
  const { id, owner, status, revision, definition, next, snooze } = record
  return {
    id,
    owner,
    status,
    revision,
    title: definition.title,
    definition: kept(record.given),
    when: definition.triggers.map((each) => triggerWords(each, zones)),
    next_run_at: seconds(next?.runAt),
    next_run_for: seconds(next?.scheduledFor),
    snoozed:
      snooze === undefined
        ? null
        : { until: snooze.until / 1_000, by: snooze.by, reason: snooze.reason ?? null, at: snooze.at / 1_000 },
    created_at: record.createdAt / 1_000,
    created_by: record.createdBy,
    updated_at: record.updatedAt / 1_000,
    updated_by: record.updatedBy,
  }
}

export function wirePreview(
  record: Pick<AutomationRecord, 'definition'>,
  zones: Zones,
  restriction: Restriction,
  after: number,
  count: number,
): z.infer<typeof previewBody> {
  const { words, firings, leftOut, isComplete } = preview(record, zones, restriction, after, count)
  return {
    words: [...words],
    firings: firings.map(({ at, local, notes }) => ({ at: at / 1_000, local, notes: [...notes] })),
    left_out: leftOut.map(({ at, local, reason }) => ({ at: at / 1_000, local, reason })),
    is_complete: isComplete,
  }
}

export function wireListedRun(run: RunView): z.infer<typeof listedRun> {
  const { kind, scheduledFor, eventId, by, rerunOf } = run.trigger
  return {
    id: run.id,
    automation_id: run.automationId,
    title: run.title,
    owner: run.owner,
    status: run.status,
    trigger: {
      kind,
      ...(scheduledFor === undefined ? {} : { scheduled_for: scheduledFor / 1_000 }),
      ...(eventId === undefined ? {} : { event_id: eventId }),
      ...(by === undefined ? {} : { by }),
      ...(rerunOf === undefined ? {} : { rerun_of: rerunOf }),
    },
    attempt: run.attempt,
    output: kept({ output: run.output })['output'] ?? null,
    error: run.error ?? null,
    created_at: run.createdAt / 1_000,
    ended_at: seconds(run.endedAt),
  }
}

export function wireRun(run: RunView): z.infer<typeof runBody> {
  return {
    ...wireListedRun(run),
    usage: run.usage ?? NO_USAGE,
    steps: run.steps.map(wireStep),
    attempts: run.attempts.map(({ attempt, error, steps }) => ({ attempt, error, steps: steps.map(wireStep) })),
  }
}

function wireStep(step: RunView['steps'][number]): z.infer<typeof stepBody> {
  const { input, output, condition } = kept({ input: step.input, output: step.output, condition: step.condition })
  return {
    id: step.id,
    status: step.status,
    input: input ?? null,
    condition: (condition ?? null) as JsonObject | null,
    output: output ?? null,
    attempts: step.attempts,
    started_at: step.startedAt,
    ended_at: step.endedAt ?? null,
    error: step.error ?? null,
  }
}

export function wireStatistics(found: RunStatistics): z.infer<typeof runStatisticsBody> {
  const { durationMs, successRate } = found
  return {
    since: found.since / 1_000,
    until: found.until / 1_000,
    total: found.total,
    by_status: found.byStatus,
    automations: found.automations,
    success_rate: successRate ?? null,
    duration_seconds:
      durationMs === undefined
        ? null
        : { mean: durationMs.mean / 1_000, p50: durationMs.p50 / 1_000, p95: durationMs.p95 / 1_000 },
    last_run_at: seconds(found.lastRunAt),
    last_success_at: seconds(found.lastSuccessAt),
    last_failure_at: seconds(found.lastFailureAt),
    is_partial: found.isPartial,
  }
}

export function wireLaunched(launched: Exclude<Launched, { type: 'lost' }>): z.infer<typeof launchedBody> {
  const { type, runId } = launched
  return { status: type, run_id: runId ?? null, ...(type === 'skipped' ? { reason: launched.reason } : {}) }
}

export function wireEvent({ id, topic, payload, owner, at, source, runs }: PublishedEvent): z.infer<typeof eventBody> {
  return {
    id,
    topic,
    payload: kept({ payload })['payload'] ?? null,
    owner,
    published_at: at / 1_000,
    source: source ?? null,
    runs:
      runs?.map(({ automationId, runId, outcome }) => ({
        automation_id: automationId,
        run_id: runId ?? null,
        outcome,
      })) ?? null,
  }
}

export function wireAudit({
  id,
  at,
  actor,
  onBehalfOf,
  action,
  subject,
  owner,
  details,
}: AuditEntry): z.infer<typeof auditEntryBody> {
  return {
    id,
    at: at / 1_000,
    actor,
    on_behalf_of: onBehalfOf ?? null,
    action,
    subject,
    owner,
    details: kept(details),
  }
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : ms / 1_000
}

/** As it is stored: the codec at the edge writes numbers as they were. */
export function kept(value: object): JsonObject {
  return jsonObjectCopy(value, 'The answer')
}
