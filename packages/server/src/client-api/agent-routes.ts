import type { FastifyInstance } from 'fastify'
import { readBudget } from '@impresario/automations'
import type { Budget } from '@impresario/automations'
import { storedCopy, wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { LIMITS, SCOPES } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { isExpired } from '../auth/agent-book.ts'
import type { AgentBook, AgentChange, NewToken } from '../auth/agent-book.ts'
import type { AgentRecord, AgentToken } from '../auth/agent-record.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { readQuery, route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import { paged, pageOf } from './automation-routes.ts'
import { removeAgent } from './agent-operations.ts'
import { budgetFields, wireBudget } from './budget-routes.ts'
import { PAGE_HEADERS } from './job-routes.ts'

export interface AgentRoutesOptions {
  readonly agents: AgentBook
  readonly automations: AutomationService
  readonly clock: Clock
}

const moment = z.number().describe('Unix seconds.')
const person = z.string().min(1).max(200)
const name = z.string().min(1).max(100)
const scopes = z
  .array(z.string().min(1).max(50))
  .max(30)
  .describe(`Any of ${SCOPES.join(', ')}; or all of a kind, such as jobs:*.`)

const agentFields = {
  name: name.describe('Unique.'),
  description: z.string().max(2_000).optional(),
  scopes,
  on_behalf_of: person.optional().describe('The person for whom it acts. Recorded in every audit entry.'),
  budget: budgetFields.optional().describe('What all its automations together may use on a day by UTC.'),
}
export const agentRequest = z.object(agentFields)
export const agentChange = z.object({
  ...agentFields,
  name: name.optional(),
  scopes: scopes.optional(),
  on_behalf_of: person
    .nullable()
    .optional()
    .describe('The person for whom it acts. Recorded in every audit entry. null: it acts for nobody from now on.'),
})
export const tokenRequest = z.object({
  name: name.describe('What it is for, such as the machine that has it.'),
  expires_in_seconds: z
    .number()
    .min(1)
    .max(157_680_000)
    .nullable()
    .optional()
    .describe('90 days without it; null: until it is revoked.'),
  on_behalf_of: person.optional().describe('Instead of the person that the agent names.'),
})

const tokenFields = {
  id: z.string(),
  name: z.string(),
  created_at: moment,
  created_by: z.string(),
  expires_at: moment.nullable(),
  is_expired: z.boolean(),
  on_behalf_of: z.string().nullable(),
}
const tokenBody = z.object(tokenFields)
const newTokenBody = z.object({
  ...tokenFields,
  token: z.string().describe('The token itself. It is shown here and never again.'),
})
const agentBody = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  scopes: z.array(z.enum(SCOPES)),
  on_behalf_of: z.string().nullable(),
  budget: budgetFields.nullable(),
  tokens: z.array(tokenBody),
  created_at: moment,
  created_by: z.string(),
  updated_at: moment,
  updated_by: z.string(),
})

const agentParams = z.object({ agent_id: z.string().describe('Id of an agent.') })
const tokenParams = z.object({
  agent_id: z.string().describe('Id of an agent.'),
  token_id: z.string().describe('Id of a token.'),
})
export const agentListQuery = z.looseObject({
  search: z.string().min(1).max(200).optional().describe('Only those whose id or name contains this.'),
  limit: z.coerce.number().int().min(1).max(LIMITS.pageSizeMax).optional().describe('Entries on one page.'),
  cursor: z.string().optional().describe('From the header X-Next-Cursor of the page before.'),
})

const BASE = { tag: 'agents', access: 'admin', scope: 'admin' } as const
const AGENT = { 200: { description: 'The agent.', body: agentBody } }

const CREATE = route({
  ...BASE,
  id: 'createAgent',
  summary: 'Create an agent',
  description:
    'An agent is a client that is a program. It sees and changes only what it owns, within its scopes. It has no token yet.',
  body: agentRequest,
  replies: { 201: { description: 'The agent is safe.', body: agentBody } },
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED', 'CONFLICT'],
})
const LIST = route({
  ...BASE,
  isList: true,
  id: 'listAgents',
  summary: 'List agents, newest first',
  query: agentListQuery,
  replies: { 200: { description: 'One page of agents.', body: z.array(agentBody), headers: PAGE_HEADERS } },
})
const READ = route({
  ...BASE,
  id: 'getAgent',
  summary: 'Read an agent',
  params: agentParams,
  replies: AGENT,
  refusals: ['NOT_FOUND'],
})
const UPDATE = route({
  ...BASE,
  id: 'updateAgent',
  summary: 'Change an agent',
  description: 'What is left out stays as it is. Other scopes count from the next request on.',
  params: agentParams,
  body: agentChange,
  replies: AGENT,
  refusals: ['NOT_FOUND', 'INPUT_REFUSED', 'CONFLICT'],
})
const DELETE = route({
  ...BASE,
  id: 'deleteAgent',
  summary: 'Delete an agent',
  description: 'Its tokens end at once and its automations are canceled for good. Runs, jobs and audit entries stay.',
  params: agentParams,
  replies: { 204: { description: 'It is gone.' } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})
const ADD_TOKEN = route({
  ...BASE,
  id: 'createAgentToken',
  summary: 'Create a token of an agent',
  description: 'Only its hash is kept. An agent can have several, so that one can be replaced by another.',
  params: agentParams,
  body: tokenRequest,
  replies: { 201: { description: 'The token, this once.', body: newTokenBody } },
  refusals: ['NOT_FOUND', 'CONFLICT', 'LIMIT_EXCEEDED'],
})
const LIST_TOKENS = route({
  ...BASE,
  id: 'listAgentTokens',
  summary: 'List the tokens of an agent, without their secrets',
  params: agentParams,
  replies: { 200: { description: 'The oldest first.', body: z.array(tokenBody) } },
  refusals: ['NOT_FOUND'],
})
const REVOKE = route({
  ...BASE,
  id: 'revokeAgentToken',
  summary: 'Revoke a token of an agent',
  description: 'It is refused from the next request on; on other instances within five seconds.',
  params: tokenParams,
  replies: { 204: { description: 'It is worth nothing any more.' } },
  refusals: ['NOT_FOUND'],
})

interface AgentParams {
  readonly agent_id: string
}

/** Agents and their tokens. */
export function registerAgentRoutes(app: FastifyInstance, options: AgentRoutesOptions): void {
  const { agents, clock } = options
  const body = (record: AgentRecord) => wireAgent(record, wallTime(clock))

  app.post<{ Body: z.infer<typeof agentRequest> }>('/agents', CREATE, async (request, reply) =>
    reply.code(201).send(body(await agents.create(agentFieldsOf(request.body), actorOf(request)))),
  )

  app.get('/agents', LIST, async (request, reply) => {
    const { search, ...query } = readQuery(agentListQuery, request.query)
    const { items, next } = await agents.list({ ...pageOf(request, query), search })
    return paged(request, reply, next, items.map(body))
  })

  app.get<{ Params: AgentParams }>('/agents/:agent_id', READ, async (request) =>
    body(await agents.read(request.params.agent_id)),
  )

  app.patch<{ Params: AgentParams; Body: z.infer<typeof agentChange> }>('/agents/:agent_id', UPDATE, async (request) =>
    body(await agents.update(request.params.agent_id, agentFieldsOf(request.body), actorOf(request))),
  )

  app.delete<{ Params: AgentParams }>('/agents/:agent_id', DELETE, async (request, reply) => {
    await removeAgent(options, request.params.agent_id, actorOf(request))
    return reply.code(204).send()
  })
  registerTokenRoutes(app, options)
}

function registerTokenRoutes(app: FastifyInstance, { agents, clock }: AgentRoutesOptions): void {
  app.post<{ Params: AgentParams; Body: z.infer<typeof tokenRequest> }>(
    '/agents/:agent_id/tokens',
    ADD_TOKEN,
    async (request, reply) => {
      const given = newTokenOf(request.body)
      const { token, secret } = await agents.addToken(request.params.agent_id, given, actorOf(request))
      void reply.header('cache-control', 'no-store')
      return reply.code(201).send({ ...wireToken(token, wallTime(clock)), token: secret })
    },
  )

  app.get<{ Params: AgentParams }>('/agents/:agent_id/tokens', LIST_TOKENS, async (request) => {
    const { tokens } = await agents.read(request.params.agent_id)
    return tokens.map((token) => wireToken(token, wallTime(clock)))
  })

  app.delete<{ Params: AgentParams & { token_id: string } }>(
    '/agents/:agent_id/tokens/:token_id',
    REVOKE,
    async (request, reply) => {
      await agents.revokeToken(request.params.agent_id, request.params.token_id, actorOf(request))
      return reply.code(204).send()
    },
  )
}

export function newTokenOf(body: z.infer<typeof tokenRequest>): NewToken {
  const { name: given, expires_in_seconds: expiresInSeconds, on_behalf_of: onBehalfOf } = body
  return { name: given, expiresInSeconds, onBehalfOf }
}

/** Only what was said. */
export function agentFieldsOf<T extends z.infer<typeof agentChange>>({
  on_behalf_of: onBehalfOf,
  budget,
  ...fields
}: T): Omit<T, 'on_behalf_of' | 'budget'> &
  Pick<AgentChange, 'isForNobody'> & {
    readonly onBehalfOf?: string
    readonly budget?: Budget
  } {
  return {
    ...fields,
    ...(onBehalfOf === undefined ? {} : onBehalfOf === null ? { isForNobody: true } : { onBehalfOf }),
    ...(budget === undefined ? {} : { budget: readBudget(storedCopy(budget as JsonObject)) }),
  }
}

export function wireAgent(record: AgentRecord, now: number): z.infer<typeof agentBody> {
  return {
    id: record.id,
    name: record.name,
    description: record.description ?? null,
    scopes: [...record.scopes],
    on_behalf_of: record.onBehalfOf ?? null,
    budget: record.budget === undefined ? null : wireBudget(record.budget),
    tokens: record.tokens.map((token) => wireToken(token, now)),
    created_at: record.createdAt / 1_000,
    created_by: record.createdBy,
    updated_at: record.updatedAt / 1_000,
    updated_by: record.updatedBy,
  }
}

export function wireToken(token: AgentToken, now: number): z.infer<typeof tokenBody> {
  return {
    id: token.id,
    name: token.name,
    created_at: token.createdAt / 1_000,
    created_by: token.createdBy,
    expires_at: token.expiresAt === undefined ? null : token.expiresAt / 1_000,
    is_expired: isExpired(token, now),
    on_behalf_of: token.onBehalfOf ?? null,
  }
}
