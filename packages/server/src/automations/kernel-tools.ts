import type { EventLog } from '@impresario/automations'
import { jsonObjectCopy } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { isImpresarioError } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { ToolError } from '@impresario/tools'
import type { BuiltInTool } from '@impresario/tools'

export interface KernelToolsOptions {
  readonly engine: () => Engine
  readonly events: () => EventLog
}

const PLAIN = {
  kind: 'built_in',
  timeoutSeconds: 30,
  isIdempotent: true,
  isReadOnly: false,
  isKeeping: true,
} as const

/** Tools that reach back into the orchestrator, in the name of the owner of the run. */
export function kernelTools({ engine, events }: KernelToolsOptions): readonly BuiltInTool[] {
  const startJob: BuiltInTool = {
    ...PLAIN,
    name: 'job.start',
    scopes: ['jobs:write'],
    description: 'Starts a job and does not wait for it. Use blueprint.<name> to wait for its result.',
    input: {
      type: 'object',
      additionalProperties: false,
      required: ['blueprint'],
      properties: {
        blueprint: { type: 'string', minLength: 1, maxLength: 200 },
        initial_data: { type: 'object' },
        priority: { type: 'number' },
      },
    },
    output: { type: 'object', required: ['job_id'], properties: { job_id: { type: 'string' } } },
    run: (input, { owner, idempotencyKey }) =>
      refusedAs(async () => {
        const { blueprint, initial_data: data = {}, priority } = input as unknown as JobInput
        const created = await engine().createJob({
          blueprint,
          client: { id: owner },
          initialData: jsonObjectCopy(data, 'The data of the job'),
          idempotencyKey: `step ${idempotencyKey}`,
          ...(priority === undefined ? {} : { priority }),
        })
        return { job_id: created.jobId }
      }),
  }
  const publish: BuiltInTool = {
    ...PLAIN,
    name: 'event.publish',
    scopes: ['events:publish'],
    description: 'Publishes an event, for automations and for jobs that wait for its key.',
    input: {
      type: 'object',
      additionalProperties: false,
      required: ['topic'],
      properties: {
        topic: { type: 'string', minLength: 1, maxLength: 200 },
        payload: {},
        key: { type: 'string', minLength: 1, maxLength: 200 },
      },
    },
    output: { type: 'object', required: ['event_id'], properties: { event_id: { type: 'string' } } },
    run: (input, { owner, idempotencyKey }) =>
      refusedAs(async () => {
        const { topic, payload = null, key } = input as unknown as EventInput
        const said = { topic, payload, key, idempotencyKey: `step ${idempotencyKey}` }
        const { id } = await events().publish(said, { id: owner, isAdmin: false })
        return { event_id: id }
      }),
  }
  return [startJob, publish]
}

/** Boundary: the schemas of the tools were checked before. */
interface JobInput {
  readonly blueprint: string
  readonly initial_data?: DataObject
  readonly priority?: number
}
interface EventInput {
  readonly topic: string
  readonly payload?: Data
  readonly key?: string
}

/** What the orchestrator refuses is refused for good, unless it says that a later try may help. */
async function refusedAs<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isImpresarioError(error)) throw error
    const isLater = error.retry !== 'never'
    throw new ToolError(isLater ? 'TRANSIENT_ERROR' : 'PERMANENT_ERROR', error.message)
  }
}
