import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { JOB_STATUSES, WAIT_KINDS, LARGE_JOB_FIELDS, WORKER_STATUSES } from './wire-client.ts'
import { jobCompensation, jobFailure, jobWork, usageBody } from './job-part-schemas.ts'

/**
 * The messages that clients send and receive. The types are in `wire-client.ts`. Requests are validated with these
 * schemas, and the API document is generated from them. Bodies of commands on jobs are strict, because a misspelt field
 * would do something unintended; all others keep unknown fields, for clients that were written for older servers.
 */
const object = z.record(z.string(), z.unknown())
const nullable = object.nullish()
const text = z.string().nullish()
const number = z.number().nullish()
const seconds = z.number().min(0).nullish()
const moment = z.number().describe('Unix seconds.')
const jobStatus = z.enum(JOB_STATUSES)
const identifier = z.string().min(1).max(LIMITS.identifierCharsMax)

export const createJobRequest = z.looseObject({
  blueprint: identifier.describe('Name of the blueprint to run.'),
  initial_data: nullable.describe('What the job begins with; checked by the blueprint’s input schema.'),
  idempotency_key: z
    .string()
    .min(1)
    .max(LIMITS.idempotencyKeyCharsMax)
    .nullish()
    .describe('The same key gives the same job. May stand in the header Idempotency-Key instead.'),
  job_id: z
    .string()
    .regex(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    .nullish()
    .describe('A UUIDv7 of the caller’s making that becomes the job’s id.'),
  priority: number.describe('Higher first; 0 without it.'),
  dispatch_timeout: seconds.describe('Longest wait of a task for a worker, in seconds.'),
  result_timeout: seconds.describe(
    'Longest time from the first dispatch of a task to its result, in seconds: a deadline over all its tries.',
  ),
  execution_timeout: seconds.describe('Longest life of the job, in seconds.'),
  metadata: nullable.describe('Kept with the job and shown with it; nothing is decided by it.'),
  webhook_url: text.describe('Gets a message when the job ends.'),
  tracing_context: z
    .looseObject({
      traceparent: z.string().max(128),
      tracestate: z.string().max(8_192).nullish(),
    })
    .nullish()
    .describe('The trace that the job belongs to (W3C Trace Context). Goes before the headers of the same names.'),
})

/** The body of a blueprint's own endpoint: the same, without its name. */
export const endpointRequest = createJobRequest.omit({ blueprint: true })

/** The items are validated one by one, with `createJobRequest`, so that an invalid one affects only its own result. */
export const createJobBatchRequest = z.looseObject({
  jobs: z.array(z.unknown()).max(LIMITS.batchItemsMax).describe('Each as in the request for one job.'),
})

export const createJobReply = z.object({ status: z.literal('accepted'), job_id: z.string() })
export const itemError = z.object({ error: z.string(), code: z.string() })
export const createJobBatchReply = z.object({
  results: z.array(z.union([createJobReply, itemError])).describe('One for each job, in the same order.'),
})

export const jobParams = z.object({ job_id: z.string().describe('Id of a job.') })
export const nameParams = z.object({ name: z.string().describe('Name of a blueprint.') })
export const workerParams = z.object({ worker_id: z.string().describe('Id of a worker.') })
export const endpointParams = z.object({ endpoint: z.string().describe('Endpoint of a blueprint.') })

export const jobQuery = z.looseObject({
  wait: z.coerce.number().min(0).optional().describe('Seconds to wait for something newer.'),
  version: z.coerce.number().int().min(0).optional().describe('With `wait`: return once the version is beyond it.'),
  until: z
    .enum(['end'])
    .optional()
    .describe('With `wait`: return once the job has ended or stands aside in quarantine.'),
  fields: z.string().optional().describe('Only these fields, separated by commas.'),
})

const page = {
  limit: z.coerce.number().int().min(1).max(LIMITS.pageSizeMax).optional().describe('Jobs on one page at most.'),
  cursor: z.string().optional().describe('From the header X-Next-Cursor of the page before.'),
  owner: z.string().optional().describe('Only jobs of this client. Admins may name any, others themselves.'),
}

const time = z
  .string()
  .max(40)
  .describe(
    'ISO 8601 with its offset, such as 2026-01-31T12:00:00Z, or Unix seconds. A job counts by the time in its id, a child with its parent.',
  )
  .optional()

const listFields = z
  .string()
  .optional()
  .describe(
    `Only these fields of each job, separated by commas. Without it, fields of more than ${LIMITS.listedFieldBytesMax / 1_024} kB are left out and named in \`omitted_fields\`; a field that is asked for is always there.`,
  )

export const jobListQuery = z.looseObject({
  status: z
    .string()
    .optional()
    .describe(`One or several statuses, separated by commas: ${JOB_STATUSES.join(', ')}.`),
  blueprint: z.string().optional().describe('Only jobs of this blueprint.'),
  created_after: time,
  created_before: time,
  q: z
    .string()
    .max(LIMITS.identifierCharsMax)
    .optional()
    .describe(
      'Only jobs whose id, blueprint, state, error or metadata has this in it, whatever the case of its letters.',
    ),
  order: z
    .enum(['newest', 'oldest'])
    .optional()
    .describe(
      'Which jobs come first, by the time of their creation; the newest without it. `oldest` goes without `q`.',
    ),
  fields: listFields,
  ...page,
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(LIMITS.pageOffsetMax)
    .optional()
    .describe('Jobs to leave out, for older clients. Use `cursor`: it costs the same on every page.'),
})

export const quarantineQuery = z.looseObject({
  blueprint: z.string().optional().describe('Only jobs of this blueprint.'),
  error_code: z.string().optional().describe('Only jobs with this error.'),
  older_than: z.coerce.number().min(0).optional().describe('Only jobs quarantined for at least so many seconds.'),
  fields: listFields,
  ...page,
})

export const cancelJobRequest = z.looseObject({
  reason: z.string().max(LIMITS.commentCharsMax).nullish().describe('Kept as the job’s error message.'),
})
const jobStatusNow = jobStatus.optional().describe('What has become of the job.')
export const cancelJobReply = z.object({
  status: z.literal('cancellation_request_accepted'),
  job_id: z.string().optional(),
  job_status: jobStatusNow,
})

export const jobEventRequest = z.strictObject({
  topic: z.string().describe('Names joined by dots, such as `order.paid`.'),
  payload: nullable.describe('What the event brings; checked by the schema that the blueprint declares for the topic.'),
  event_id: z
    .string()
    .nullish()
    .describe('The same id is the same event, however often it is sent; goes before the header `Idempotency-Key`.'),
})
export const sentEventRequest = jobEventRequest.extend({
  key: z
    .string()
    .optional()
    .describe('Reaches the jobs whose `match` is this key too. Automations hear it in any case.'),
})
export const sentEventReply = z.object({
  status: z.literal('event_accepted'),
  event_id: z.string(),
  is_new: z.boolean().describe('It was not sent before.'),
})
export const jobEventReply = sentEventReply.extend({ job_id: z.string(), job_status: jobStatus })

export const retryJobRequest = z.strictObject({
  initial_data: nullable.describe('Instead of what the job began with; checked by the blueprint’s input schema.'),
  state_history: nullable.describe('Instead of what its states have written so far.'),
})
export const discardJobRequest = z.strictObject({})

export const bulkRequest = z.strictObject({
  ids: z.array(identifier).min(1).max(LIMITS.batchItemsMax).optional().describe('These jobs.'),
  filter: z
    .strictObject({
      blueprint: identifier.optional(),
      error_code: identifier.optional(),
      older_than: z.number().min(0).optional().describe('Seconds in quarantine.'),
    })
    .optional()
    .describe('Or all that fit; an empty filter fits all.'),
  limit: z.int().min(1).max(LIMITS.batchItemsMax).optional().describe('With `filter`: the maximum number of jobs.'),
})
export const commandReply = z.object({ status: z.string(), job_id: z.string(), job_status: jobStatusNow })
export const bulkReply = z.object({
  results: z.array(z.union([commandReply, z.object({ job_id: z.string(), error: z.string(), code: z.string() })])),
  has_more: z.boolean().describe('Whether the filter may fit jobs beyond the limit: ask again.'),
})

export const approvalRequest = z.looseObject({
  decision: identifier.describe('One of the decisions that the job asks for.'),
  comment: z.string().max(LIMITS.commentCharsMax).nullish().describe('Kept with the decision.'),
  visit: z
    .int()
    .min(0)
    .nullish()
    .describe(
      'Which question it answers; a later one is not decided by it. 0: none is open, and the decision that was made last is repeated.',
    ),
  data: nullable

    .describe('What the `form` of the question asks for. Checked against it, and kept with the decision.'),
  capability: text.describe('A signed permission for this one decision, instead of a token.'),
})
export const approvalReply = z.object({
  status: z.literal('approval_received'),
  job_id: z.string(),
  job_status: jobStatusNow,
})
export const approvalQuery = z.looseObject({
  capability: z.string().optional().describe('A signed permission for this one decision, instead of a token.'),
})

export const openApproval = z.looseObject({
  message: z.string(),
  decisions: z.array(z.string()),
  visit: z.int(),
  expires_at: moment.nullish(),
  reminders: z.int().describe('Number of reminders sent so far.'),
  form: object.optional().describe('What is asked for beside the decision: a JSON Schema of an object.'),
  form_for: z.array(z.string()).optional().describe('The decisions that need it.'),
})
export const approvalBody = openApproval.extend({
  job_id: z.string(),
  blueprint_name: z.string(),
  url: z.string().describe('Page where a person decides. Anyone with this link can decide once.'),
  decision_urls: z.record(z.string(), z.string()).describe('The same page for one decision only.'),
  urls_expire_at: moment,
})

export const trailEntry = z.looseObject({
  at: moment,
  event: z.string(),
  state: z.string().optional(),
  note: z.string().optional(),
})

export const jobWait = z.looseObject({
  kind: z.enum(WAIT_KINDS),
  until: moment.optional().describe('When it goes on by itself.'),
  topic: z.string().optional().describe('Of the event.'),
  key: z.string().optional().describe('The key that also reaches it.'),
})

export const jobBody = z.looseObject({
  id: z.string(),
  job_id: z.string(),
  owner: z.string().describe('Id of the client who started it.'),
  blueprint_name: z.string(),
  blueprint_version: z.int(),
  status: jobStatus,
  current_state: z.string(),
  initial_data: object,
  state_history: object,
  result: z.unknown().optional(),
  progress: z.number().optional().describe('From 0 to 1.'),
  progress_message: z.string().optional(),
  usage: usageBody.optional().describe('What its own tasks have used, as their workers reported.'),
  error_message: z.string().optional(),
  error_code: z.string().optional(),
  failure: jobFailure.optional().describe('What led to the present state, if something went wrong before it.'),
  parent_job_id: z.string().optional(),
  metadata: object.optional(),
  approval: openApproval.optional().describe('While it waits for a person.'),
  work: jobWork.optional().describe('While it waits for tasks or children: where they are at this moment.'),
  waits_for: jobWait.optional().describe('While it waits for a moment or an event.'),
  compensation: jobCompensation.optional().describe('Since it began to undo what it did.'),
  created_at: moment,
  updated_at: moment,
  ended_at: moment.optional(),
  version: z.int().describe('Grows with every change.'),
  trail: z.array(trailEntry).describe('The newest notable moments.'),
})
const omittedFields = z
  .array(z.enum(LARGE_JOB_FIELDS))
  .optional()
  .describe('Fields that are too long for a list. Read the job itself, or name them in `fields`.')
export const listedJob = jobBody.partial().extend({ omitted_fields: omittedFields })
export const jobList = z.array(listedJob)
export const jobError = z.looseObject({
  code: z.string(),
  message: z.string(),
  state: z.string(),
  stack: z.string().optional(),
})
export const quarantinedBody = jobBody.extend({
  error: jobError.optional(),
  quarantined_at: moment,
})
export const listedQuarantined = quarantinedBody.partial().extend({ omitted_fields: omittedFields })
export const quarantineList = z.array(listedQuarantined)

export const explainedTask = z.looseObject({
  task_id: z.string(),
  type: z.string(),
  where: z.enum(['waiting', 'assigned', 'running', 'delayed', 'ended']),
  worker: z.string().nullable(),
  attempt: z.int().describe('Number of the attempt, from 1.'),
  deadline: z.number().nullable().describe('When its result must be there, in Unix seconds.'),
  last_error: object.nullable().describe('Why the attempt before failed: `code` and `message`.'),
  explanation: object
    .nullable()
    .describe(
      'Every worker that is live, a hundred at most: what keeps it out, or how it scores. `summary` says it in a sentence, `reason` with a code and values. Null for tasks that have ended, and beyond the first twenty of a job.',
    ),
})
export const explanationBody = z.looseObject({
  job_id: z.string(),
  status: jobStatus,
  current_state: z.string(),
  parent_job_id: z.string().nullable().describe('The job that waits for this one.'),
  children: z
    .array(z.looseObject({ job_id: z.string(), blueprint_name: z.string(), status: z.string().nullable() }))
    .describe('The jobs that it waits for, a hundred at most. The status is null beyond the first twenty.'),
  summary: z.string().nullable().describe('What it waits for, in a sentence; null for a job that does not wait.'),
  reasons: z
    .array(z.looseObject({ code: z.string(), values: object }))
    .describe('The same as data: `undoing`, `quarantined`, `sleep`, `event`, `human`, `branch` or `branches`.'),
  waits_for: jobWait.nullable().describe('While it waits for a moment or an event.'),
  tasks: z.array(explainedTask),
})

export const workerBody = z.looseObject({
  worker_id: z.string(),
  worker_type: z.string(),
  status: z.enum(WORKER_STATUSES),
  supported_skills: z.array(z.string()),
  available_skills: z.array(z.string()).describe('Those that it can start now.'),
  hot_skills: z.array(z.string()),
  hot_cache: z.array(z.string()).describe('Models that are loaded.'),
  max_concurrent_tasks: z.number().nullable().describe('Null for a worker without a limit.'),
  load: z.int().describe('Tasks that it holds.'),
  resources: z.looseObject({
    cpu_cores: z.number(),
    ram_gb: z.number(),
    gpus: z.array(z.looseObject({ model: z.string(), vram_gb: z.number() })),
    properties: object,
  }),
  installed_models: z.array(z.string()),
  installed_software: z.record(z.string(), z.string()),
  cost_per_second: z.number().nullable(),
  cost_per_skill: z.record(z.string(), z.number()),
  reputation: z.number().describe('From 0 to 1.'),
  registered_at: moment,
  seen_at: moment,
})
export const workerList = z.array(workerBody)
export const workerListQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(LIMITS.workersPageMax).optional().describe('Workers on one page.'),
  cursor: z.string().optional().describe('From the header X-Next-Cursor of the page before.'),
})
export const catalogueQuery = workerListQuery.pick({ cursor: true })
export const catalogueEntry = z.object({
  contract: object.nullable().describe('The skill as its newest provider describes it.'),
  providers_count: z.int(),
  worker_types: z.array(z.string()),
  average_reputation: z.number(),
})
export const catalogueBody = z.record(z.string(), catalogueEntry).describe('By the name of the skill.')

export const dashboardBody = z.looseObject({
  workers: z.looseObject({ total: z.int() }),
  jobs: z.record(z.string(), z.int()).describe('By status; `queued` are those that nothing has begun yet.'),
  keeps_history: z
    .boolean()
    .describe(
      'Whether every event of jobs is kept (`HISTORY_DATABASE_URI`), so that `/history` and its counts are complete.',
    ),
  history: z
    .object({
      is_away: z.boolean().describe('Its database does not take events at the moment.'),
      waiting: z.int().describe('Events that are to be written.'),
      dropped: z.int().describe('Events that were lost since this instance started.'),
    })
    .optional()
    .describe('How this instance fares with writing the history; for admins.'),
})

export const homeBody = z.looseObject({
  name: z.literal('impresario'),
  version: z.string(),
  links: z.record(z.string(), z.string()).describe('Paths on this server, by what is there.'),
})

export const problem = z.looseObject({
  error: z.string().describe('For people; may change.'),
  code: z.string().describe('For programs; never renamed.'),
  type: z.string().optional(),
  title: z.string().optional(),
  status: z.int().optional(),
  detail: z.string().optional(),
  problems: z
    .array(z.object({ field: z.string(), step: z.string().optional(), message: z.string() }))
    .optional()
    .describe('All that is wrong with what was sent, by field, where there may be several things.'),
})
