import type { Agent, AuditEntry, AuditQuery, PublishedEvent } from '@impresario/client'
import { stringifyExact, toWire } from '@impresario/client'
import { readData } from './arguments.ts'
import { COMMAND, EXIT, Failure } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, until } from './time.ts'

export interface LimitOptions extends GlobalOptions {
  readonly limit: number
}

const PAGE = 100

export function listAgents(options: LimitOptions & { readonly search?: string }): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { search, limit } = options
    const agents = await client.agents.list({ search, limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, agents)
    else screen.out(agents.length === 0 ? 'There are no agents.' : agentTable(screen, agents))
    return EXIT.ok
  })
}

function agentTable(screen: Screen, agents: readonly Agent[]): string {
  return table(screen, agents, [
    { title: 'agent', cell: (agent) => agent.id },
    { title: 'name', cell: (agent) => agent.name },
    { title: 'scopes', cell: (agent) => agent.scopes.join(' ') },
    { title: 'for', cell: (agent) => agent.onBehalfOf ?? '' },
    { title: 'tokens', cell: (agent) => String(agent.tokens.length), align: 'right' },
  ])
}

export function showAgent(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => shown(screen, await client.agents.get(id)))
}

function shown(screen: Screen, agent: Agent): number {
  if (screen.isJson) printJson(screen, agent)
  else screen.out(agentText(screen, agent))
  return EXIT.ok
}

function agentText(screen: Screen, agent: Agent): string {
  const now = nowSeconds()
  const head = facts(screen, [
    ['agent', agent.id],
    ['name', agent.name],
    ['description', agent.description ?? undefined],
    ['scopes', agent.scopes.join(', ')],
    ['acts for', agent.onBehalfOf ?? undefined],
    ['budget', agent.budget === null ? undefined : limitsText(agent.budget)],
    ['created', `${ago(agent.createdAt, now)} by ${agent.createdBy}`],
  ])
  if (agent.tokens.length === 0) return head
  const tokens = table(screen, agent.tokens, [
    { title: 'token', cell: (token) => token.id },
    { title: 'name', cell: (token) => token.name },
    { title: 'ends', cell: (token) => (token.expiresAt === null ? 'never' : until(token.expiresAt, now)) },
  ])
  return `${head}\n\n${tokens}`
}

function limitsText(budget: NonNullable<Agent['budget']>): string {
  const limits = Object.entries(toWireObject(budget)).map(([name, limit]) => `${name} ${String(limit)}`)
  return limits.length === 0 ? 'without limits' : limits.join(', ')
}

export interface AgentOptions extends GlobalOptions {
  readonly scope: readonly string[]
  readonly description?: string
  readonly onBehalfOf?: string
  readonly name?: string
  readonly budget?: string
  readonly forNobody?: boolean
}

/** Boundary: the server knows the scopes. */
function scopesOf({ scope }: AgentOptions): readonly `${string}:*`[] {
  return scope as readonly `${string}:*`[]
}

async function moreOf({ description, onBehalfOf, budget }: AgentOptions) {
  return {
    ...(description === undefined ? {} : { description }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(budget === undefined ? {} : { budget: await readData('--budget', budget) }),
  }
}

export function createAgent(name: string, options: AgentOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const agent = await client.agents.create({ name, scopes: scopesOf(options), ...(await moreOf(options)) })
    if (screen.isJson) return shown(screen, agent)
    done(screen, `Created agent ${name}: ${agent.id}`)
    screen.out(screen.paint('dim', `Give it a token: ${COMMAND} agents token ${agent.id} <name>`))
    return EXIT.ok
  })
}

export function editAgent(id: string, options: AgentOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const scopes = options.scope.length === 0 ? {} : { scopes: scopesOf(options) }
    const name = options.name === undefined ? {} : { name: options.name }
    const nobody = options.forNobody === true ? { onBehalfOf: null } : {}
    const fields = { ...name, ...scopes, ...(await moreOf(options)), ...nobody }
    return shown(screen, await client.agents.update(id, fields))
  })
}

export function deleteAgent(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    await client.agents.delete(id)
    return done(screen, `${id} is deleted, and its automations are canceled.`, { id, status: 'deleted' })
  })
}

export interface TokenOptions extends GlobalOptions {
  /** Milliseconds. */
  readonly expires?: number
  readonly forever?: boolean
  readonly onBehalfOf?: string
}

export function createToken(id: string, name: string, options: TokenOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { expires, forever, onBehalfOf } = options
    const end =
      forever === true ? { expiresInSeconds: null } : expires === undefined ? {} : { expiresInSeconds: expires / 1_000 }
    const made = await client.agents.createToken(id, {
      name,
      ...end,
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    })
    if (screen.isJson) printJson(screen, made)
    else {
      screen.err('This token is shown once. Keep it where only the agent can read it.')
      screen.out(made.token)
    }
    return EXIT.ok
  })
}

export function revokeToken(id: string, token: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    await client.agents.revokeToken(id, token)
    return done(screen, `The token ${token} is revoked.`, { id: token, status: 'revoked' })
  })
}

export function listTools(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const tools = await client.tools.list()
    if (screen.isJson) printJson(screen, tools)
    else {
      screen.out(
        table(screen, tools, [
          { title: 'tool', cell: (tool) => tool.name },
          { title: 'kind', cell: (tool) => tool.kind.replaceAll('_', ' ') },
          { title: 'what it does', cell: (tool) => tool.description },
        ]),
      )
    }
    return EXIT.ok
  })
}

export function showTool(name: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const tool = await client.tools.get(name)
    if (tool === undefined) {
      throw new Failure('NOT_FOUND', `There is no tool "${name}".`, { hint: `See "${COMMAND} tools list".` })
    }
    if (screen.isJson) printJson(screen, tool)
    else {
      screen.out(
        facts(screen, [
          ['tool', tool.name],
          ['kind', tool.kind],
          ['what it does', tool.description],
        ]),
      )
      screen.out(`\ninput\n${stringifyExact(tool.inputSchema, 2)}\n\noutput\n${stringifyExact(tool.outputSchema, 2)}`)
    }
    return EXIT.ok
  })
}

export interface AuditOptions extends LimitOptions {
  readonly subject?: string
  readonly action?: string
  readonly actor?: string
  readonly owner?: string
  readonly since?: Date
  readonly until?: Date
}

function auditQueryOf({ subject, action, actor, owner, ...times }: AuditOptions): AuditQuery {
  return { subject, action, actor, owner, createdAfter: times.since, createdBefore: times.until }
}

export function listAudit(options: AuditOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { limit } = options
    const entries = await client.audit.list({ ...auditQueryOf(options), limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, entries)
    else screen.out(entries.length === 0 ? 'There are no such entries.' : auditTable(screen, entries))
    return EXIT.ok
  })
}

function auditTable(screen: Screen, entries: readonly AuditEntry[]): string {
  return table(screen, entries, [
    { title: 'when', cell: (entry) => localTime(entry.at) },
    {
      title: 'who',
      cell: (entry) => (entry.onBehalfOf === null ? entry.actor : `${entry.actor} for ${entry.onBehalfOf}`),
    },
    { title: 'what', cell: (entry) => entry.action },
    { title: 'of', cell: (entry) => entry.subject },
    { title: 'details', cell: (entry) => stringifyExact(entry.details) },
  ])
}

/** All entries, one JSON object on each line. */
export function exportAudit(options: AuditOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    for await (const entry of client.audit.list({ ...auditQueryOf(options), limit: PAGE })) {
      screen.out(stringifyExact(toWire(entry)))
    }
    return EXIT.ok
  })
}

export interface PublishOptions extends GlobalOptions {
  readonly data?: string
  readonly key?: string
}

export function publishEvent(topic: string, options: PublishOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const payload = options.data === undefined ? {} : await readData('--data', options.data)
    const event = await client.events.publish(topic, payload, { idempotencyKey: options.key })
    return done(screen, `"${topic}" is published: ${event.id}`, toWireObject(event))
  })
}

function toWireObject(value: object): object {
  return toWire(value) as object
}

export function listPublished(
  options: LimitOptions & { readonly topic?: string; readonly owner?: string },
): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { topic, owner, limit } = options
    const query = { ...(topic === undefined ? {} : { topic }), ...(owner === undefined ? {} : { owner }) }
    const events = await client.events.published({ ...query, limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, events)
    else screen.out(events.length === 0 ? 'There are no such events.' : publishedTable(screen, events))
    return EXIT.ok
  })
}

function publishedTable(screen: Screen, events: readonly PublishedEvent[]): string {
  const now = nowSeconds()
  return table(screen, events, [
    { title: 'event', cell: (event) => event.id },
    { title: 'topic', cell: (event) => event.topic },
    { title: 'published', cell: (event) => ago(event.publishedAt, now) },
    { title: 'runs', cell: (event) => (event.runs === null ? '…' : String(event.runs.length)), align: 'right' },
  ])
}

export function showPublished(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const event = await client.events.get(id)
    if (screen.isJson) printJson(screen, event)
    else {
      screen.out(
        facts(screen, [
          ['event', event.id],
          ['topic', event.topic],
          ['published', localTime(event.publishedAt)],
        ]),
      )
      screen.out(stringifyExact(event.payload, 2))
      for (const run of event.runs ?? []) screen.out(`${run.automationId}  ${run.outcome}  ${run.runId ?? ''}`)
    }
    return EXIT.ok
  })
}
