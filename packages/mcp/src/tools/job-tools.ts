import { JOB_STATUSES } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { pathTo } from '../api.ts'
import { BOUNDS } from '../bounds.ts'
import { JOB_FIELDS, jobView, waitForJob } from '../job-view.ts'
import { page, pageInput, pageOutput } from '../page.ts'
import { ADDS, CHANGES, fitted, objectOf, READS, rowsOf, tool, ToolRefusal, withTimes } from '../tool.ts'
import type { ToolAnswer, ToolContext } from '../tool.ts'

const jobId = z.string().min(1).max(200).describe('Id of the job.')
const data = z.record(z.string(), z.unknown())
const job = z.looseObject({ job_id: z.string(), status: z.string() })

const listJobs = tool({
  name: 'list_jobs',
  title: 'List jobs',
  description: 'Lists jobs, newest first.',
  scopes: ['jobs:read'],
  traits: READS,
  input: z.strictObject({
    status: z.enum(JOB_STATUSES).optional(),
    blueprint: z.string().max(200).optional(),
    text: z.string().max(200).optional().describe('Has to be in the id, blueprint, state, error or metadata.'),
    ...pageInput,
  }),
  output: pageOutput('jobs'),
  run: ({ status, blueprint, text, ...rest }, context) =>
    page(context, rest, {
      rows: 'jobs',
      request: { method: 'GET', path: '/jobs', query: { status, blueprint, q: text } },
      fields: JOB_FIELDS,
    }),
})

const getJob = tool({
  name: 'get_job',
  title: 'Read a job',
  description:
    'Shows a job: status, result, error, open question. `explain` tells what it waits for and why; `history` lists its steps.',
  scopes: ['jobs:read'],
  traits: READS,
  input: z.strictObject({ job_id: jobId, include: z.enum(['data', 'explain', 'history']).optional() }),
  output: job,
  run: async ({ job_id: id, include }, context) => {
    const { api, signal } = context
    const { body } = await api.call({ method: 'GET', path: pathTo('jobs', id), signal })
    return { data: fitted({ ...jobView(objectOf(body)), ...(await extra(context, id, include, body)) }) }
  },
})

async function extra(
  { api, signal }: ToolContext,
  id: string,
  include: string | undefined,
  body: unknown,
): Promise<JsonObject> {
  if (include === 'data') {
    const { initial_data: initial, state_history: history } = objectOf(body as JsonObject)
    return { initial_data: initial ?? {}, state_history: history ?? {} }
  }
  if (include === 'explain') {
    return { explanation: (await api.call({ method: 'GET', path: pathTo('jobs', id, 'explain'), signal })).body }
  }
  if (include !== 'history') return {}
  const query = { limit: BOUNDS.rowsMax }
  const reply = await api.call({ method: 'GET', path: pathTo('jobs', id, 'history'), query, signal })
  return { history: rowsOf(reply.body).map(withTimes) }
}

const startJob = tool({
  name: 'start_job',
  title: 'Start a job',
  description:
    'Starts a job of a blueprint and answers at once with its id. Then call wait_job. `list_blueprints` shows which input a blueprint takes.',
  scopes: ['jobs:write'],
  traits: ADDS,
  input: z.strictObject({
    blueprint: z.string().min(1).max(200),
    data: data.optional().describe('The input.'),
    idempotency_key: z.string().min(1).max(200).optional().describe('The same key again gives the same job.'),
    priority: z.int().min(-100).max(100).optional().describe('Higher runs earlier.'),
  }),
  output: job,
  run: async ({ blueprint, data: initial, idempotency_key: idempotencyKey, priority }, { api, signal }) => {
    const { body } = await api.call({
      method: 'POST',
      path: '/jobs',
      body: {
        blueprint,
        initial_data: (initial ?? {}) as JsonObject,
        ...(priority === undefined ? {} : { priority }),
      },
      idempotencyKey,
      signal,
    })
    return {
      data: { job_id: objectOf(body)['job_id'] ?? '', status: 'pending', next: 'Call wait_job with this job_id.' },
    }
  },
})

const waitJob = tool({
  name: 'wait_job',
  title: 'Wait for a job',
  description: `Waits until a job ends or needs a person, at most ${BOUNDS.waitSecondsMax} seconds. Call it again while is_ended is false.`,
  scopes: ['jobs:read'],
  traits: READS,
  input: z.strictObject({ job_id: jobId, seconds: z.int().min(0).max(BOUNDS.waitSecondsMax).optional() }),
  output: job,
  run: async ({ job_id: id, seconds = BOUNDS.waitSecondsMax }, context) => {
    const found = await waitForJob(context, id, seconds * 1_000)
    return { data: fitted(jobView(found)) }
  },
})

const manageJob = tool({
  name: 'manage_job',
  title: 'Cancel, retry, discard or message a job',
  description:
    'cancel ends a job. retry and discard are for quarantined jobs. send_event sends `topic` and `payload` to a job that waits for them.',
  scopes: ['jobs:write', 'events:publish'],
  traits: CHANGES,
  input: z.strictObject({
    action: z.enum(['cancel', 'retry', 'discard', 'send_event']),
    job_id: jobId,
    reason: z.string().max(200).optional(),
    topic: z.string().max(200).optional(),
    payload: data.optional(),
  }),
  output: job,
  run: async (args, context) => {
    await command(args, context)
    const { body } = await context.api.call({
      method: 'GET',
      path: pathTo('jobs', args.job_id),
      signal: context.signal,
    })
    return { data: fitted(jobView(objectOf(body))) }
  },
})

interface Command {
  readonly action: 'cancel' | 'retry' | 'discard' | 'send_event'
  readonly job_id: string
  readonly reason?: string | undefined
  readonly topic?: string | undefined
  readonly payload?: object | undefined
}

async function command({ action, job_id: id, reason, topic, payload }: Command, { api, signal }: ToolContext) {
  if (action === 'cancel') {
    const body = reason === undefined ? {} : { reason }
    return api.call({ method: 'POST', path: pathTo('jobs', id, 'cancel'), body, signal })
  }
  if (action !== 'send_event') return api.call({ method: 'POST', path: pathTo('jobs', id, action), body: {}, signal })
  if (topic === undefined) throw new ToolRefusal('send_event needs `topic`. get_job shows it under `waits_for`.')
  const body = { topic, payload: (payload ?? {}) as JsonObject }
  return api.call({ method: 'POST', path: pathTo('jobs', id, 'events'), body, signal })
}

const listApprovals = tool({
  name: 'list_approvals',
  title: 'List open questions',
  description: 'Lists jobs that wait for the decision of a person, with the question and the possible decisions.',
  scopes: ['jobs:read'],
  traits: READS,
  input: z.strictObject(pageInput),
  output: pageOutput('approvals'),
  run: (args, context) =>
    page(context, args, {
      rows: 'approvals',
      request: { method: 'GET', path: '/jobs', query: { status: 'waiting_for_human' } },
      fields: ['job_id', 'blueprint_name', 'approval', 'updated_at'],
    }),
})

const decideApproval = tool({
  name: 'decide_approval',
  title: 'Answer a question of a job',
  description:
    'Gives the decision of a person to a job that waits for it. Ask the person first and pass on what they said. Without `decision` it answers with the question and a link to a page where a person can decide.',
  scopes: ['approvals:decide'],
  traits: CHANGES,
  input: z.strictObject({
    job_id: jobId,
    decision: z.string().min(1).max(200).optional(),
    comment: z.string().max(2_000).optional(),
    data: data
      .optional()
      .describe('What `approval.form` of the question asks for, for the decisions in `approval.form_for`.'),
    visit: z
      .int()
      .optional()
      .describe('`approval.visit` of the question; a later question is then not answered by mistake.'),
  }),
  output: job,
  run: async ({ job_id: id, decision, comment, data: filled, visit }, context): Promise<ToolAnswer> => {
    const { api, signal } = context
    if (decision === undefined) {
      const { body } = await api.call({ method: 'GET', path: pathTo('jobs', id, 'approval'), signal })
      return { data: fitted({ ...withTimes(objectOf(body)), status: 'waiting_for_human' }) }
    }
    const body = {
      decision,
      ...(comment === undefined ? {} : { comment }),
      ...(filled === undefined ? {} : { data: filled as JsonObject }),
      ...(visit === undefined ? {} : { visit }),
    }
    const path = `/_public/webhooks/approval${pathTo(id)}`
    const reply = await api.call({ method: 'POST', path, isAbsolute: true, body, signal })
    return { data: { job_id: id, decision, status: objectOf(reply.body)['job_status'] ?? 'running' } }
  },
})

export const JOB_TOOLS = [listJobs, getJob, startJob, waitJob, manageJob, listApprovals, decideApproval]
