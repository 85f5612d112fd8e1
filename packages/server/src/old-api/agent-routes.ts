import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { z } from 'zod'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AgentRecord } from '../auth/agent-record.ts'
import { weaknessOf } from '../auth/weak-token.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { removeAgent } from '../client-api/agent-operations.ts'
import { actorOf } from '../client-api/actor.ts'
import { operation, stamp } from './answer.ts'
import { invalid, readBody, readFilter } from './input.ts'
import { oldPage, oldRoute, pageFields } from './old-route.ts'
import { knownScopes, shownScopes } from './old-scopes.ts'

export interface AgentRoutesOptions {
  readonly agents: AgentBook
  readonly automations: AutomationService
}

const scopes = z.array(z.string().min(1).max(100)).max(50)
const name = z.string().min(1).max(100)
const webhookUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_000)
  .nullish()
const agentRequest = z.object({ name, scopes, webhook_url: webhookUrl })
const agentChange = z.object({ name: name.optional(), scopes: scopes.optional(), webhook_url: webhookUrl })
const credentialsRequest = z.object({ password: z.string().min(12).max(200).nullish() })
const listQuery = z.object({
  name_filter: z.string().min(1).max(100).optional(),
  scope_filter: z.string().min(1).max(100).optional(),
  ...pageFields,
})

const PAGE = 200
const ADMIN = oldRoute('admin', { access: 'admin' })
const LIST = oldRoute('admin', { access: 'admin', isList: true })
/** The token that `agent_secret` is. */
const CREDENTIALS = 'credentials'

interface Named {
  readonly Params: { readonly agent_id: string }
}

/** Agents of the old system, which are ours. */
export function registerAgentRoutes(app: FastifyInstance, options: AgentRoutesOptions): void {
  const { agents } = options

  app.post('/agents', ADMIN, async (request, reply) => {
    const { webhook_url: url, ...given } = readBody(agentRequest, request.body)
    const fields = { name: given.name, ...scopesOf(given.scopes), webhookUrl: url ?? undefined }
    const record = await agents.create(fields, actorOf(request))
    void reply.code(201)
    return wireAgent(record)
  })

  app.get('/agents', LIST, async (request) => {
    const { name_filter: part, scope_filter: scope, limit, offset } = readFilter(listQuery, request.query)
    const isMeant = (record: AgentRecord): boolean =>
      (part === undefined || record.name.toLowerCase().includes(part.toLowerCase())) &&
      (scope === undefined || shownScopes(record).includes(scope))
    const read = async (before: string | undefined) => {
      const found = await agents.list({ search: part, before, limit: PAGE })
      return { ...found, items: found.items.filter(isMeant) }
    }
    return (await oldPage({ read, write: wireAgent }, { limit, offset })).items
  })

  app.get<Named>('/agents/:agent_id', ADMIN, async (request) => wireAgent(await agents.read(request.params.agent_id)))

  app.put<Named>('/agents/:agent_id', ADMIN, async (request) => {
    const { webhook_url: url, name: named, scopes: given } = readBody(agentChange, request.body)
    const fields = {
      name: named,
      ...(given === undefined ? {} : scopesOf(given)),
      webhookUrl: url ?? undefined,
    }
    return wireAgent(await agents.update(request.params.agent_id, fields, actorOf(request)))
  })

  app.delete<Named>('/agents/:agent_id', ADMIN, async (request) => {
    const { agent_id: id } = request.params
    await removeAgent(options, id, actorOf(request))
    return operation('The agent is deleted, and its tasks are canceled.', { agent_id: id })
  })

  app.post<Named>('/agents/:agent_id/credentials', ADMIN, async (request, reply) => {
    const { agent_id: id } = request.params
    const { password } = readBody(credentialsRequest, request.body)
    const weakness = password === undefined || password === null ? undefined : weaknessOf(password)
    if (weakness !== undefined) throw invalid(['body', 'password'], `It ${weakness}. Leave it out to get a random one.`)
    const given = { name: CREDENTIALS, expiresInSeconds: null, isReplacing: true, password: password ?? undefined }
    const { secret } = await agents.addToken(id, given, actorOf(request))
    void reply.header('cache-control', 'no-store')
    const message = 'Keep the secret: it is shown once. Credentials that the agent had before are not valid any more.'
    return { agent_id: id, agent_secret: secret, message }
  })
}

function scopesOf(given: readonly string[]): {
  readonly scopes: readonly string[]
  readonly oldScopes: readonly string[]
} {
  return { scopes: knownScopes(given), oldScopes: [...given] }
}

function wireAgent(record: AgentRecord): object {
  const { id, name: called, webhookUrl: url, createdAt } = record
  return { id, name: called, scopes: shownScopes(record), webhook_url: url ?? null, created_at: stamp(createdAt) }
}

/** What a wrong secret and an unknown agent have in common. */
export function notSignedIn(): ImpresarioError {
  return new ImpresarioError('UNAUTHENTICATED', 'The agent, or its secret, is not known. Ask an admin for credentials.')
}
