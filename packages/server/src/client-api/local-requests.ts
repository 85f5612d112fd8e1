import { storedCopy, wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { RequestTransport, WireAnswer, WireQuery, WireRequest } from '@impresario/client'
import { ImpresarioError, isJsonObject, LIMITS, readJson, stringifyExact } from '@impresario/protocol'
import type { DataObject, JsonObject, RerunJobRequest } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import type { Actor, AutomationRecord } from '@impresario/automations'
import type { z } from 'zod'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import type { Caller, ClientRole } from '../http/access.ts'
import { decodeCursor, encodeCursor } from '../http/page.ts'
import { readQuery } from '../http/route.ts'
import { removeAgent } from './agent-operations.ts'
import * as agentWire from './agent-routes.ts'
import { actorFor } from './actor.ts'
import { doubts } from './automation-routes.ts'
import { budgetOf } from './budget-routes.ts'
import { ownerFilter } from './job-access.ts'
import { rerunJob } from './rerun-operations.ts'
import { auditFilter, runFilter, wireTools } from './run-routes.ts'
import { listQueues } from './queue-routes.ts'
import { clientList, systemBody } from './system-routes.ts'
import type { SystemParts } from './system-routes.ts'
import { deleteView, listViews, saveView } from './view-operations.ts'
import * as wire from './wire-automation.ts'
import { wirePreviewRun } from './wire-preview-run.ts'
import type { PreviewRunRequest } from './wire-preview-run.ts'
import { explainWorker } from './worker-explanation.ts'

export interface LocalRequestParts extends SystemParts {
  readonly automations: AutomationService
  readonly agents: AgentBook
  readonly clock: Clock
  readonly engine: Engine
  readonly storage: Storage
}

interface Question extends LocalRequestParts {
  readonly caller: Caller
  readonly actor: Actor
  /** What the path has in place of `:`. */
  readonly ids: readonly string[]
  readonly query: WireQuery
  readonly body: JsonObject
  readonly key: string | undefined
}

interface Operation {
  readonly role: ClientRole
  readonly act: (question: Question) => Promise<unknown>
}

/** A page of a list, with the id where the next one begins. */
class LocalPage {
  readonly items: readonly unknown[]
  readonly next: string | undefined

  constructor({ items, next }: { readonly items: readonly unknown[]; readonly next: string | undefined }) {
    this.items = items
    this.next = next
  }
}

/** Requests about automations and agents, answered in this process by the same parts as over HTTP. */
export class LocalRequests implements RequestTransport {
  readonly #parts: LocalRequestParts
  readonly #as: (needs: ClientRole) => Caller

  constructor(parts: LocalRequestParts, as: (needs: ClientRole) => Caller) {
    this.#parts = parts
    this.#as = as
  }

  async ask({ method, path, query = {}, body = {}, key }: WireRequest): Promise<WireAnswer> {
    const { operation, ids } = operationFor(method, path)
    const caller = this.#as(operation.role)
    const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined))
    const question = { ...this.#parts, caller, actor: actorFor(caller), ids, query: given, body: jsonOf(body), key }
    const answer = await operation.act(question)
    if (!(answer instanceof LocalPage)) return { body: seen(answer) }
    const items = seen(answer.items)
    return answer.next === undefined ? { body: items } : { body: items, next: encodeCursor(answer.next) }
  }
}

/** With what is doubtful in it. */
function written(question: Question, record: AutomationRecord): object {
  return { ...shown(question, record), ...doubts(question.automations, record) }
}

function operationFor(method: string, path: readonly string[]): { operation: Operation; ids: readonly string[] } {
  for (const [at, operation] of OPERATIONS) {
    const [wanted, pattern = ''] = at.split(' ')
    const parts = pattern.split('/')
    const fits = parts.length === path.length && parts.every((part, index) => part === ':' || part === path[index])
    if (wanted === method && fits) return { operation, ids: path.filter((_, index) => parts[index] === ':') }
  }
  throw new ImpresarioError('NOT_FOUND', `There is nothing at ${method} ${path.join('/')}.`)
}

const viewer = (act: Operation['act']): Operation => ({ role: 'viewer', act })
const client = (act: Operation['act']): Operation => ({ role: 'client', act })
const admin = (act: Operation['act']): Operation => ({ role: 'admin', act })

const first = ({ ids }: Question): string => ids[0] ?? ''
const automationsOf = ({ automations }: Question) => automations.automations
const shown = (question: Question, record: Parameters<typeof wire.wireAutomation>[0]): object =>
  wire.wireAutomation(record, automationsOf(question).zones)

interface PageQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly owner?: string | undefined
}

function pageFor({ caller }: Question, { limit, cursor, owner }: PageQuery) {
  return {
    owner: ownerFilter(caller, owner).owner,
    before: cursor === undefined ? undefined : decodeCursor(cursor),
    limit: limit ?? LIMITS.pageSizeDefault,
  }
}

/** In the order in which they are tried: fixed words before ids. */
const OPERATIONS: readonly (readonly [at: string, operation: Operation])[] = [
  [
    'POST jobs/:/rerun',
    client(async ({ engine, caller, ids, body, key }) => {
      const request = readBody(schemas.rerunJobRequest, body) as RerunJobRequest
      return rerunJob(engine, caller, ids[0] ?? '', request, { client: caller.client, idempotencyKey: key })
    }),
  ],
  [
    'GET automations',
    viewer(async (question) => {
      const { status, search, ...query } = readQuery(wire.automationListQuery, question.query)
      const found = await automationsOf(question).list({ ...pageFor(question, query), status, search })
      return new LocalPage({ ...found, items: found.items.map((record) => shown(question, record)) })
    }),
  ],
  [
    'POST automations',
    client(async (question) =>
      written(question, await automationsOf(question).create(storedCopy(question.body), question.actor)),
    ),
  ],
  [
    'POST automations/preview',
    viewer(async (question) => {
      const { count = 10 } = readQuery(wire.previewQuery, question.query)
      const automations = automationsOf(question)
      const { actor } = question
      const definition = automations.check(storedCopy(question.body), actor)
      await automations.calendars.mustKnow(definition, actor.id)
      const times = await previewOf(question, { definition, owner: actor.id }, count)
      return { ...times, ...doubts(question.automations, { definition }) }
    }),
  ],
  ['GET admin/system', admin((question) => systemBody(question))],
  ['GET admin/clients', admin(async (question) => clientList(question))],
  ['GET queues', admin((question) => listQueues(question))],
  ['GET workers/:/explain', viewer((question) => explainWorker(question, question.caller, first(question)))],
  ['GET views', viewer((question) => listViews(question, question.caller))],
  [
    'PUT views/:',
    viewer((question) => {
      const { search } = readBody(schemas.savedViewRequest, question.body)
      return saveView(question, question.caller, first(question), search)
    }),
  ],
  ['DELETE views/:', viewer((question) => deleteView(question, question.caller, first(question)))],
  [
    'POST automations/preview_run',
    viewer(async (question) => {
      const { definition, ...given } = storedCopy(question.body) as unknown as PreviewRunRequest
      const checked = automationsOf(question).check(definition, question.actor)
      return wirePreviewRun(checked, given, wallTime(question.clock))
    }),
  ],
  [
    'GET automations/events',
    viewer(async (question) => {
      const { topic, ...query } = readQuery(wire.eventListQuery, question.query)
      const found = await question.automations.events.list({ ...pageFor(question, query), topic })
      return new LocalPage({ ...found, items: found.items.map(wire.wireEvent) })
    }),
  ],
  [
    'POST automations/events',
    client(async ({ automations, actor, body, key }) => {
      const { topic, payload = null, audience } = readBody(wire.publishRequest, body)
      const said = { topic, payload: storedCopy({ payload } as JsonObject)['payload'] ?? null, audience }
      return wire.wireEvent(await automations.events.publish({ ...said, idempotencyKey: key }, actor))
    }),
  ],
  [
    'GET automations/events/:',
    viewer(async (question) => wire.wireEvent(await question.automations.events.read(first(question), question.actor))),
  ],
  [
    'GET automations/:',
    viewer(async (question) => shown(question, await automationsOf(question).read(first(question), question.actor))),
  ],
  [
    'PUT automations/:',
    client(async (question) => {
      const { body, actor, query } = question
      const { revision } = readQuery(wire.updateQuery, query)
      const update = automationsOf(question).update(first(question), storedCopy(body), actor, undefined, revision)
      return written(question, await update)
    }),
  ],
  ['DELETE automations/:', client(async (question) => automationsOf(question).remove(first(question), question.actor))],
  [
    'GET automations/:/budget',
    viewer(async (question) => budgetOf(automationsOf(question), first(question), question.actor)),
  ],
  [
    'GET automations/:/preview',
    viewer(async (question) => {
      const { count = 10 } = readQuery(wire.previewQuery, question.query)
      const record = await automationsOf(question).read(first(question), question.actor)
      return previewOf(question, record, count)
    }),
  ],
  [
    'POST automations/:/run',
    client(async (question) => {
      const { params } = readBody(wire.runNowRequest, question.body)
      const id = first(question)
      return wire.wireLaunched(await automationsOf(question).runNow(id, question.actor, dataOf(params)))
    }),
  ],
  [
    'POST automations/:/snooze',
    client(async (question) => {
      const { seconds, reason } = readBody(wire.snoozeRequest, question.body)
      return shown(question, await automationsOf(question).snooze(first(question), seconds, question.actor, reason))
    }),
  ],
  [
    'POST automations/:/pause',
    client(async (question) => shown(question, await automationsOf(question).pause(first(question), question.actor))),
  ],
  [
    'POST automations/:/resume',
    client(async (question) => shown(question, await automationsOf(question).resume(first(question), question.actor))),
  ],
  [
    'POST automations/:/cancel',
    client(async (question) => {
      const { reason } = readBody(wire.reasonRequest, question.body)
      return shown(question, await automationsOf(question).cancel(first(question), question.actor, reason))
    }),
  ],
  [
    'GET runs',
    viewer(async (question) => {
      const query = readQuery(wire.runListQuery, question.query)
      const found = await question.automations.runs.list({ ...pageFor(question, query), ...runFilter(query) })
      return new LocalPage({ ...found, items: found.items.map(wire.wireListedRun) })
    }),
  ],
  [
    'GET runs/statistics',
    viewer(async (question) => {
      const {
        automation_id: automationId,
        days = 7,
        trigger,
        owner,
      } = readQuery(wire.runStatisticsQuery, question.query)
      const now = wallTime(question.clock)
      const filter = { owner: ownerFilter(question.caller, owner).owner, automationId, trigger }
      const span = { ...filter, createdAfter: now - days * 86_400_000 }
      return wire.wireStatistics(await question.automations.runs.statistics(span, now))
    }),
  ],
  [
    'GET runs/:',
    viewer(async (question) => wire.wireRun(await question.automations.runs.read(first(question), question.actor))),
  ],
  [
    'POST runs/:/cancel',
    client(async (question) => {
      const { reason } = readBody(wire.reasonRequest, question.body)
      await question.automations.runs.cancel(first(question), question.actor, reason)
    }),
  ],
  [
    'POST runs/:/rerun',
    client(async (question) => {
      const { from, params } = readBody(wire.rerunRequest, question.body)
      const wanted = { from, params: dataOf(params) }
      return wire.wireLaunched(await question.automations.reruns.rerun(first(question), question.actor, wanted))
    }),
  ],
  [
    'GET audit',
    viewer(async (question) => {
      const query = readQuery(wire.auditQuery, question.query)
      const found = await automationsOf(question).audit({ ...pageFor(question, query), ...auditFilter(query) })
      return new LocalPage({ ...found, items: found.items.map(wire.wireAudit) })
    }),
  ],
  [
    'GET audit/:',
    viewer(async (question) =>
      wire.wireAudit(await automationsOf(question).auditEntry(first(question), question.actor)),
    ),
  ],
  [
    'GET tools',
    viewer(async ({ automations, caller }) =>
      wireTools(automations.tools.list(), automations.workerTasks(caller.scopes)),
    ),
  ],
  [
    'GET agents',
    admin(async (question) => {
      const { search, ...query } = readQuery(agentWire.agentListQuery, question.query)
      const found = await question.agents.list({ ...pageFor(question, query), search })
      const now = wallTime(question.clock)
      return new LocalPage({ ...found, items: found.items.map((record) => agentWire.wireAgent(record, now)) })
    }),
  ],
  [
    'POST agents',
    admin(async ({ agents, actor, body, clock }) => {
      const fields = agentWire.agentFieldsOf(readBody(agentWire.agentRequest, body))
      return agentWire.wireAgent(await agents.create(fields, actor), wallTime(clock))
    }),
  ],
  [
    'GET agents/:',
    admin(async (question) =>
      agentWire.wireAgent(await question.agents.read(first(question)), wallTime(question.clock)),
    ),
  ],
  [
    'PATCH agents/:',
    admin(async (question) => {
      const fields = agentWire.agentFieldsOf(readBody(agentWire.agentChange, question.body))
      const record = await question.agents.update(first(question), fields, question.actor)
      return agentWire.wireAgent(record, wallTime(question.clock))
    }),
  ],
  ['DELETE agents/:', admin(async (question) => removeAgent(question, first(question), question.actor))],
  [
    'GET agents/:/tokens',
    admin(async (question) => {
      const { tokens } = await question.agents.read(first(question))
      return tokens.map((token) => agentWire.wireToken(token, wallTime(question.clock)))
    }),
  ],
  [
    'POST agents/:/tokens',
    admin(async (question) => {
      const given = agentWire.newTokenOf(readBody(agentWire.tokenRequest, question.body))
      const { token, secret } = await question.agents.addToken(first(question), given, question.actor)
      return { ...agentWire.wireToken(token, wallTime(question.clock)), token: secret }
    }),
  ],
  [
    'DELETE agents/:/tokens/:',
    admin(async ({ agents, ids, actor }) => agents.revokeToken(ids[0] ?? '', ids[1] ?? '', actor)),
  ],
]

type Previewed = Pick<AutomationRecord, 'definition' | 'owner'>

async function previewOf(question: Question, { definition, owner }: Previewed, count: number): Promise<object> {
  const { zones, calendars } = automationsOf(question)
  const restriction = await calendars.restrictionOf(definition, owner)
  return wire.wirePreview({ definition }, zones, restriction, wallTime(question.clock), count)
}

/** What was asked for, checked as a request over HTTP is. */
function readBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const place = issue?.path.join('.') ?? ''
  throw new ImpresarioError('INVALID_REQUEST', `"${place}" in the request: ${issue?.message ?? 'is not valid'}.`)
}

function jsonOf(body: object): JsonObject {
  const kept = readJson(stringifyExact(body))
  if (isJsonObject(kept)) return kept
  throw new ImpresarioError('INPUT_REFUSED', 'The request must be an object.')
}

/** Boundary: it came out of JSON. */
function dataOf(params: Readonly<Record<string, unknown>> | undefined): DataObject | undefined {
  return params === undefined ? undefined : storedCopy(params as JsonObject)
}

/** With numbers as users see them; nothing is shared with records. */
function seen(body: unknown): unknown {
  return body === undefined ? undefined : storedCopy({ body } as JsonObject)['body']
}
