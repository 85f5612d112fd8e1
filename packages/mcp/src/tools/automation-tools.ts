import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { pathTo } from '../api.ts'
import type { ApiRequest } from '../api.ts'
import { BOUNDS } from '../bounds.ts'
import { page, pageInput, pageOutput } from '../page.ts'
import { ADDS, CHANGES, fitted, objectOf, pick, READS, rowsOf, textOf, tool, ToolRefusal, withTimes } from '../tool.ts'
import type { ToolContext } from '../tool.ts'

const automationId = z.string().min(1).max(200).describe('Id of the automation.')
const runId = z.string().min(1).max(200).describe('Id of the run.')
const data = z.record(z.string(), z.unknown())
const automation = z.looseObject({ id: z.string(), status: z.string() })

const definition = z
  .looseObject({
    title: z.string().max(200),
    timezone: z.string().max(100).optional().describe('Such as Europe/Berlin.'),
    triggers: z
      .array(data)
      .max(20)
      .optional()
      .describe(
        'Any of {"cron":"0 9 * * 1-5"}, {"rrule":"FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17"}, {"once":"2027-12-25T09:00:00+02:00"}, {"every":900}, {"event":"github.*","filter":"event.payload.ref == \'main\'"}. None: only by hand.',
      ),
    pipeline: z
      .array(data)
      .max(100)
      .describe(
        'Steps {id, uses, with, save_as, if, retry, on_error}. `uses` is a name from list_tools. Texts may have templates over params, event and steps.',
      ),
    params: data.optional(),
  })
  .describe('The automation.')

const LISTED = ['id', 'title', 'status', 'when', 'next_run_at', 'snoozed', 'revision', 'updated_at']

const listAutomations = tool({
  name: 'list_automations',
  title: 'List automations',
  description: 'Lists automations with when they run next.',
  scopes: ['automations:read'],
  traits: READS,
  input: z.strictObject({
    status: z.enum(['active', 'paused', 'canceled']).optional(),
    text: z.string().min(1).max(200).optional().describe('Has to be in the id or the title.'),
    ...pageInput,
  }),
  output: pageOutput('automations'),
  run: ({ status, text, ...rest }, context) =>
    page(context, rest, {
      rows: 'automations',
      request: { method: 'GET', path: '/automations', query: { status, search: text } },
      fields: LISTED,
    }),
})

const getAutomation = tool({
  name: 'get_automation',
  title: 'Read an automation',
  description: 'Shows an automation with its definition and its next firings in times and in words.',
  scopes: ['automations:read'],
  traits: READS,
  input: z.strictObject({ automation_id: automationId }),
  output: automation,
  run: async ({ automation_id: id }, { api, signal }) => {
    const { body } = await api.call({ method: 'GET', path: pathTo('automations', id), signal })
    const query = { count: 5 }
    const preview = await api.call({ method: 'GET', path: pathTo('automations', id, 'preview'), query, signal })
    return { data: fitted({ ...withTimes(objectOf(body)), preview: preview.body }) }
  },
})

const createAutomation = tool({
  name: 'create_automation',
  title: 'Create an automation',
  description:
    'Creates an automation: triggers say when, the pipeline says what. With `preview` nothing is kept: it checks the definition and shows the next firings. Preview first, show it to the user, then create.',
  scopes: ['automations:write'],
  traits: ADDS,
  input: z.strictObject({ definition, preview: z.boolean().optional() }),
  output: z.looseObject({}),
  run: async ({ definition: given, preview }, { api, signal }) => {
    const body = given as JsonObject
    if (preview !== true) {
      const made = await api.call({ method: 'POST', path: '/automations', body, signal })
      return { data: fitted(withTimes(objectOf(made.body))) }
    }
    const query = { count: 5 }
    const seen = await api.call({ method: 'POST', path: '/automations/preview', query, body, signal })
    return { data: fitted(objectOf(seen.body)) }
  },
})

const updateAutomation = tool({
  name: 'update_automation',
  title: 'Replace an automation',
  description:
    'Replaces the whole definition. Read it with get_automation first, change what is to change, and give the revision that you read.',
  scopes: ['automations:write'],
  traits: CHANGES,
  input: z.strictObject({ automation_id: automationId, definition, revision: z.int().min(1).optional() }),
  output: automation,
  run: async ({ automation_id: id, definition: given, revision }, { api, signal }) => {
    const body = given as JsonObject
    const query = revision === undefined ? {} : { revision }
    const reply = await api.call({ method: 'PUT', path: pathTo('automations', id), query, body, signal })
    return { data: fitted(withTimes(objectOf(reply.body))) }
  },
})

const manageAutomation = tool({
  name: 'manage_automation',
  title: 'Run, snooze, pause, resume, cancel or delete an automation',
  description:
    'run starts a run now, with `params` in place of its own. snooze puts the next run off by `seconds`. cancel ends it for good. delete removes one without open runs.',
  scopes: ['automations:run', 'automations:write'],
  traits: CHANGES,
  input: z.strictObject({
    action: z.enum(['run', 'snooze', 'pause', 'resume', 'cancel', 'delete']),
    automation_id: automationId,
    seconds: z.int().min(1).max(604_800).optional(),
    reason: z.string().min(1).max(200).optional(),
    params: data.optional(),
  }),
  output: z.looseObject({}),
  run: async (args, context) => {
    const { body } = await context.api.call({ ...request(args), signal: context.signal })
    return { data: fitted({ automation_id: args.automation_id, action: args.action, ...withTimes(objectOf(body)) }) }
  },
})

interface Command {
  readonly action: 'run' | 'snooze' | 'pause' | 'resume' | 'cancel' | 'delete'
  readonly automation_id: string
  readonly seconds?: number | undefined
  readonly reason?: string | undefined
  readonly params?: object | undefined
}

function request({ action, automation_id: id, seconds, reason, params }: Command): ApiRequest {
  if (action === 'delete') return { method: 'DELETE', path: pathTo('automations', id) }
  const why = reason === undefined ? {} : { reason }
  const to = { method: 'POST', path: pathTo('automations', id, action) } as const
  if (action === 'run') return { ...to, body: params === undefined ? {} : { params: params as JsonObject } }
  if (action === 'cancel') return { ...to, body: why }
  if (action !== 'snooze') return to
  if (seconds === undefined) throw new ToolRefusal('snooze needs `seconds`: by how much the next run is put off.')
  return { ...to, body: { seconds, ...why } }
}

const RUN_FIELDS = [
  'id',
  'automation_id',
  'title',
  'status',
  'trigger',
  'attempt',
  'output',
  'error',
  'created_at',
  'ended_at',
]

const listRuns = tool({
  name: 'list_runs',
  title: 'List runs',
  description: 'Lists runs of automations, newest first.',
  scopes: ['runs:read'],
  traits: READS,
  input: z.strictObject({
    automation_id: automationId.optional(),
    status: z.enum(['running', 'succeeded', 'failed', 'canceled', 'quarantined']).optional(),
    ...pageInput,
  }),
  output: pageOutput('runs'),
  run: ({ automation_id: id, status, ...rest }, context) =>
    page(context, rest, {
      rows: 'runs',
      request: { method: 'GET', path: '/runs', query: { automation_id: id, status } },
      fields: RUN_FIELDS,
    }),
})

const getRun = tool({
  name: 'get_run',
  title: 'Read a run',
  description: 'Shows a run with every step: input, condition, output, attempts, error.',
  scopes: ['runs:read'],
  traits: READS,
  input: z.strictObject({ run_id: runId }),
  output: automation,
  run: async ({ run_id: id }, { api, signal }) => {
    const { body } = await api.call({ method: 'GET', path: pathTo('runs', id), signal })
    const { steps, ...run } = objectOf(body)
    const stepBytesMax = BOUNDS.answerBytesMax / 2 / Math.max(1, rowsOf(steps ?? []).length)
    return { data: fitted({ ...withTimes(run), steps: rowsOf(steps ?? []).map((step) => fitted(step, stepBytesMax)) }) }
  },
})

const cancelRun = tool({
  name: 'cancel_run',
  title: 'Cancel a run',
  description: 'Cancels a run that has not ended.',
  scopes: ['runs:cancel'],
  traits: { ...CHANGES, isIdempotent: true },
  input: z.strictObject({ run_id: runId, reason: z.string().min(1).max(200).optional() }),
  output: automation,
  run: async ({ run_id: id, reason }, { api, signal }) => {
    const body = reason === undefined ? {} : { reason }
    await api.call({ method: 'POST', path: pathTo('runs', id, 'cancel'), body, signal })
    return { data: { id, status: 'canceled' } }
  },
})

const publishEvent = tool({
  name: 'publish_event',
  title: 'Publish an event',
  description: 'Publishes an event. Every automation whose topic and filter fit runs once for it.',
  scopes: ['events:publish'],
  traits: ADDS,
  input: z.strictObject({
    topic: z.string().min(1).max(200).describe('Such as github.push.'),
    payload: data.optional(),
    idempotency_key: z.string().min(1).max(200).optional(),
  }),
  output: z.looseObject({ id: z.string() }),
  run: async ({ topic, payload, idempotency_key: idempotencyKey }, { api, signal }) => {
    const body = { topic, payload: (payload ?? {}) as JsonObject }
    const reply = await api.call({ method: 'POST', path: '/automations/events', body, idempotencyKey, signal })
    return { data: fitted(withTimes(objectOf(reply.body))) }
  },
})

const listTools = tool({
  name: 'list_tools',
  title: 'List tools for pipelines',
  description: 'Lists the tools that steps of a pipeline can use. With `name` it shows one with its schemas.',
  scopes: ['automations:read'],
  traits: READS,
  input: z.strictObject({ name: z.string().max(200).optional(), ...pageInput }),
  output: pageOutput('tools'),
  run: async ({ name, limit = BOUNDS.rowsMax, cursor }, context) => {
    const all = await stepTools(context)
    const found = name === undefined ? all : all.filter((one) => one['name'] === name)
    if (name !== undefined && found.length === 0) {
      throw new ToolRefusal(`There is no tool "${name}". Call list_tools without a name to see all of them.`)
    }
    const from = cursor === undefined ? 0 : found.findIndex((one) => textOf(one['name']) > cursor)
    const rows = from < 0 ? [] : found.slice(from, from + limit)
    const last = rows.at(-1)?.['name']
    const hasMore = from >= 0 && from + limit < found.length
    const shown = name === undefined ? rows.map((one) => pick(one, ['name', 'description', 'kind'])) : rows
    return { data: fitted({ tools: shown, next_cursor: hasMore && typeof last === 'string' ? last : null }) }
  },
})

async function stepTools({ api, signal }: ToolContext): Promise<readonly JsonObject[]> {
  const { body } = await api.call({ method: 'GET', path: '/tools', signal })
  return rowsOf(body).toSorted((a, b) => (textOf(a['name']) < textOf(b['name']) ? -1 : 1))
}

export const AUTOMATION_TOOLS = [
  listAutomations,
  getAutomation,
  createAutomation,
  updateAutomation,
  manageAutomation,
  listRuns,
  getRun,
  cancelRun,
  publishEvent,
  listTools,
]
