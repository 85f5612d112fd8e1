import { z } from 'zod'
import { LOG_LINE_LEVELS } from './job-log.ts'
import { LIMITS } from './limits.ts'

/** Queries of the history and their results. The types are in `wire-client.ts`. */
const moment = z.number().describe('Unix seconds.')
const localTime = z.string().describe('The same moment as ISO 8601 in the time zone of the server.')
const nullableText = z.string().nullable()

export const historyQuery = z.looseObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LIMITS.historyPageMax)
    .optional()
    .describe('Events on one page; as many as possible without it.'),
  after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('Only events after this one: its `event_id`, or X-Next-Cursor of the page before.'),
})
export const jobEvent = z.looseObject({
  event_id: z.string(),
  job_id: z.string(),
  timestamp: moment,
  time: localTime,
  event_type: z.string(),
  state: nullableText,
  previous_state: nullableText,
  next_state: nullableText,
  worker_id: nullableText,
  task_id: nullableText,
  attempt_number: z.int().nullable(),
  duration_ms: z.number().nullable(),
  note: nullableText,
  context_snapshot: z.unknown().describe('What the job looked like then, as far as it is small.'),
})
export const historyList = z.array(jobEvent)
export const jobLogList = z.array(
  z.looseObject({
    timestamp: moment,
    level: z.enum(LOG_LINE_LEVELS),
    message: z.string(),
    source: z.enum(['handler', 'worker']),
    state: z.string().optional(),
    task_id: z.string().optional(),
    worker_id: z.string().optional(),
    fields: z.record(z.string(), z.unknown()).optional(),
  }),
)

const before = z
  .string()
  .regex(/^\d{1,15}-\d{1,16}$/)
  .optional()
  .describe('Only events before this one: its `event_id`, or X-Next-Cursor of the page before.')

export const workerHistoryQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(LIMITS.historyPageMax).optional().describe('Events on one page.'),
  before,
})
export const workerEvent = z.looseObject({
  event_id: z.string(),
  worker_id: z.string(),
  timestamp: moment,
  time: localTime,
  event_type: z.string().describe('`registered`, `status_update`, `reputation` or `removed`.'),
  note: nullableText.describe('Of an update: the names of what changed.'),
  worker_info_snapshot: z.unknown().describe('What was known of the worker then, as far as it is small.'),
})
export const workerHistoryList = z.array(workerEvent)

const time = z.string().max(40).optional()
const name = z.string().max(LIMITS.identifierCharsMax).optional()
const filter = {
  event: z.string().max(2_000).optional().describe('One or several names of events, separated by commas.'),
  job: z.string().max(800).optional().describe('Only events of this job.'),
  worker: name.describe('Only events that name this worker.'),
  blueprint: name.describe('Only events of jobs of this blueprint.'),
  owner: z.string().optional().describe('Only events of this client’s jobs. Admins may name any, others themselves.'),
  since: time.describe(
    'Only events at or after this moment: ISO 8601 with its offset, such as 2026-01-31T12:00:00Z, or Unix seconds.',
  ),
  until: time.describe('Only events before this moment.'),
}

export const eventListQuery = z.looseObject({
  ...filter,
  limit: z.coerce.number().int().min(1).max(LIMITS.historyPageMax).optional().describe('Events on one page; 100.'),
  before,
})
export const anyEvent = jobEvent.extend({
  job_id: nullableText.describe('Null for what happened to a worker itself.'),
  blueprint: nullableText,
  owner: nullableText.describe('The client whose job it is.'),
})
export const eventList = z.array(anyEvent)

export const eventCountQuery = z.looseObject({
  ...filter,
  per: z
    .enum(['hour', 'day'])
    .optional()
    .describe('Counts of each hour or day, as the clocks of the server’s time zone show them; one sum without it.'),
})
export const eventCount = z.looseObject({
  timestamp: moment.describe('When the hour or day begins. Unix seconds.'),
  time: localTime,
  event_type: z.string(),
  count: z.int(),
})
export const eventCountList = z.array(eventCount)

export const durationQuery = z.looseObject({
  blueprint: filter.blueprint,
  owner: filter.owner,
  since: filter.since,
  until: filter.until,
  spans: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Also for so many equal parts of the time from `since` to `until`, such as 60 for the minutes of an hour.',
    ),
})
const spread = {
  count: z.int().describe('How many were measured.'),
  p50_ms: z.number().describe('Half of them took at most so long.'),
  p95_ms: z.number().describe('19 of 20 took at most so long.'),
  max_ms: z.number(),
}
export const jobDurations = z.looseObject({ blueprint: z.string(), ...spread, failed: z.int() })
export const stateDurations = z.looseObject({ blueprint: z.string(), state: z.string(), ...spread })
export const durationSpan = z.looseObject({
  timestamp: moment.describe('When it begins. Unix seconds.'),
  finished: z.int(),
  failed: z.int(),
  p50_ms: z.number().nullable().describe('Of the jobs that finished; null where none did.'),
  p95_ms: z.number().nullable(),
})
export const durations = z.looseObject({
  since: moment.describe('From when on events were looked at. Unix seconds.'),
  until: moment,
  is_partial: z
    .boolean()
    .describe(
      `There were more than ${LIMITS.durationEventsMax} events. The newest are counted; \`since\` says from when on.`,
    ),
  blueprints: z
    .array(jobDurations)
    .describe('From creation to end, by blueprint, the most frequent first. At most 200.'),
  states: z.array(stateDurations).describe('Stays in states that have ended, the most frequent first. At most 1,000.'),
  spans: z.array(durationSpan),
})

/** Of a stream of changes. */
export const changesQuery = z.looseObject({
  wait: z.coerce
    .number()
    .min(0)
    .max(86_400)
    .optional()
    .describe(
      'Seconds after which the stream ends, for callers that cannot read it piece by piece. Without it, never.',
    ),
})
