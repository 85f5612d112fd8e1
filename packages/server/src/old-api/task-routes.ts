import type { FastifyInstance } from 'fastify'
import type { Actor, AutomationRecord, Launched } from '@impresario/automations'
import { sha256, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Put, Storage } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { actorOf } from '../client-api/actor.ts'
import { operation } from './answer.ts'
import type { Operation } from './answer.ts'
import { readBody, readFilter } from './input.ts'
import { oldPage, oldRoute, pageFields } from './old-route.ts'
import { listedOwner, ownerNamed } from './people.ts'
import {
  changedDefinition,
  definitionOf,
  SCHEDULE_KINDS,
  scheduleOf,
  STATUSES,
  taskCreate,
  taskOf,
  taskUpdate,
} from './task.ts'
import type { Task, TaskFields } from './task.ts'

export interface TaskRoutesOptions {
  readonly automations: AutomationService
  readonly agents: AgentBook
  readonly storage: Storage
  readonly clock: Clock
}

interface Named {
  readonly Params: { readonly task_id: string }
}

const listQuery = z.object({
  status: z.enum(STATUSES).optional(),
  created_by: z.string().min(1).max(200).optional(),
  schedule_kind: z.enum(SCHEDULE_KINDS).optional(),
  ...pageFields,
})
const snoozeRequest = z.object({
  delay_seconds: z.int().min(1).max(604_800),
  reason: z.string().min(1).max(200).nullish(),
})

const PAGE = 200
const READ = oldRoute('automations:read', { access: 'viewer' })
const LIST = oldRoute('automations:read', { access: 'viewer', isList: true })
const WRITE = oldRoute('automations:write')

/** Tasks of the old system, which are automations. */
export function registerTaskRoutes(app: FastifyInstance, options: TaskRoutesOptions): void {
  const { automations } = options.automations

  app.post<{ Body: JsonObject }>(
    '/tasks',
    oldRoute('automations:write', { isNewWork: true }),
    async (request, reply): Promise<Task> => {
      const actor = actorOf(request)
      const task = readBody(taskCreate, request.body)
      void reply.code(201)
      return createTask(options, actor, task)
    },
  )

  app.get('/tasks', LIST, async (request) => {
    const { status, created_by: named, schedule_kind: kind, ...bounds } = readFilter(listQuery, request.query)
    const owner = listedOwner(actorOf(request), named)
    const counts = await options.storage.counts('automation', owner === undefined ? {} : { owner })
    const all = STATUSES.filter((one) => status === undefined || one === status)
    const total = kind === undefined ? all.reduce((sum, one) => sum + (counts[one] ?? 0), 0) : undefined
    const read = async (before: string | undefined) => {
      const found = await automations.list({ owner, status, before, limit: PAGE })
      return { ...found, items: found.items.filter((one) => kind === undefined || scheduleOf(one)[0] === kind) }
    }
    return oldPage({ read, write: taskOf }, { ...bounds, total })
  })

  app.get<Named>('/tasks/:task_id', READ, async (request): Promise<Task> =>
    taskOf(await readTask(automations, request.params.task_id, actorOf(request))),
  )

  app.put<Named & { Body: JsonObject }>('/tasks/:task_id', WRITE, async (request): Promise<Task> => {
    const changes = readBody(taskUpdate, request.body)
    return updateTask(options, actorOf(request), request.params.task_id, changes)
  })
  registerTaskCommands(app, options)
}

function registerTaskCommands(app: FastifyInstance, options: TaskRoutesOptions): void {
  const { automations } = options.automations

  app.post<Named>('/tasks/:task_id/run_now', oldRoute('automations:run', { isNewWork: true }), async (request) => {
    const { task_id: id } = request.params
    const actor = actorOf(request)
    mustBeActive(await readTask(automations, id, actor))
    return launchedAnswer(id, await automations.runNow(id, actor))
  })

  app.post<Named & { Body: JsonObject }>('/tasks/:task_id/snooze', WRITE, async (request): Promise<Operation> => {
    const { delay_seconds: seconds, reason } = readBody(snoozeRequest, request.body)
    const { task_id: id } = request.params
    const actor = actorOf(request)
    const record = await readTask(automations, id, actor)
    mustBeActive(record)
    const isQueued = record.next !== undefined
    if (isQueued) await automations.snooze(id, seconds, actor, reason ?? undefined)
    const message = isQueued ? 'The next run is put off.' : 'No run stands in the queue, so none is put off.'
    return operation(message, { task_id: id, delay_seconds: seconds, affected_work_items: isQueued ? 1 : 0 })
  })

  for (const [verb, status] of [
    ['pause', 'paused'],
    ['resume', 'active'],
  ] as const) {
    app.post<Named>(`/tasks/:task_id/${verb}`, WRITE, async (request): Promise<Operation> => {
      const { task_id: id } = request.params
      const actor = actorOf(request)
      const before = await readTask(automations, id, actor)
      await automations[verb](id, actor)
      const isSame = before.status === status
      const message = isSame ? `The task already has status ${status}.` : `The task has the status ${status} now.`
      return operation(message, { task_id: id, old_status: before.status, new_status: status })
    })
  }

  app.post<Named>('/tasks/:task_id/cancel', WRITE, async (request): Promise<Operation> => {
    const { task_id: id } = request.params
    const actor = actorOf(request)
    const before = await readTask(automations, id, actor)
    await automations.cancel(id, actor)
    const removed = before.next === undefined ? 0 : 1
    return operation('The task is canceled for good.', { task_id: id, removed_work_items: removed })
  })
}

type AutomationBook = AutomationService['automations']

/** What is another's is not there. */
export async function readTask(automations: AutomationBook, id: string, actor: Actor): Promise<AutomationRecord> {
  try {
    return await automations.read(id, actor)
  } catch (error) {
    throw isImpresarioError(error, 'NOT_FOUND') ? new ImpresarioError('NOT_FOUND', 'Task not found') : error
  }
}

async function createTask(options: TaskRoutesOptions, actor: Actor, task: TaskFields): Promise<Task> {
  const { created_by: named, payload, ...fields } = task
  const { owner, scopes } = await ownerNamed(options.agents, actor, named ?? undefined, 'created_by')
  const { body, extra } = definitionOf(fields, storedCopy(payload as JsonObject))
  const key = fields.dedupe_key ?? undefined
  const put = key === undefined ? undefined : await uniqueKey(options, owner, key)
  // The tools must be allowed to whom the task belongs.
  const author: Actor = scopes === undefined ? actor : { ...actor, scopes }
  const beside = { owner, extra, ...(put === undefined ? {} : { put }) }
  return taskOf(await options.automations.automations.create(body, author, beside))
}

/** Two active tasks of one agent never have the same dedupe key. */
async function uniqueKey(
  { storage, clock, automations }: TaskRoutesOptions,
  owner: string,
  key: string,
): Promise<(taskId: string) => readonly Put[]> {
  // Ids of clients' own keys never begin with "%task".
  const id = `%task/${sha256(JSON.stringify([owner, key]))}`
  const stored = await storage.read('key', id)
  if (stored !== undefined) {
    const other = await automations.automations.find(stored.value.jobId)
    if (other?.status === 'active') {
      throw new ImpresarioError(
        'CONFLICT',
        `The active task ${other.id} has this dedupe_key. Cancel or pause it first.`,
      )
    }
  }
  const version = (stored?.version ?? 0) + 1
  return (jobId) => [{ kind: 'key', id, version, value: { jobId, fingerprint: '', createdAt: wallTime(clock) } }]
}

async function updateTask(
  { automations: { automations } }: TaskRoutesOptions,
  actor: Actor,
  id: string,
  { status, payload, ...changes }: z.output<typeof taskUpdate>,
): Promise<Task> {
  let record = await readTask(automations, id, actor)
  if (payload !== undefined || Object.keys(changes).length > 0) {
    const given = payload === undefined ? undefined : storedCopy(payload as JsonObject)
    const { body, extra } = changedDefinition(record, changes, given)
    record = await automations.update(id, body, actor, extra)
  }
  if (status === 'paused') record = await automations.pause(id, actor)
  if (status === 'active') record = await automations.resume(id, actor)
  if (status === 'canceled') record = await automations.cancel(id, actor)
  return taskOf(record)
}

function mustBeActive({ id, status }: AutomationRecord): void {
  if (status === 'active') return
  throw new ImpresarioError('CONFLICT', `The task ${id} is ${status}, and not active.`)
}

function launchedAnswer(id: string, launched: Exclude<Launched, { type: 'lost' }>): Operation {
  const { type, runId } = launched
  const message = type === 'skipped' ? `No new run: ${launched.reason}.` : 'The task is queued to run now.'
  const work = { due_work_id: runId === undefined ? null : workNumber(runId), run_id: runId ?? null }
  return operation(message, { task_id: id, ...work })
}

/** Clients of the old system expect a number. It grows with time; the run itself is found by `run_id`. */
function workNumber(runId: string): number {
  const digits = runId.replaceAll('-', '')
  return Number.parseInt(digits.slice(0, 12), 16) * 16 + Number.parseInt(digits.slice(13, 14) || '0', 16)
}
