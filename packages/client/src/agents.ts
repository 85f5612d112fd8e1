import type { Scope } from '@impresario/protocol'
import { ask, askAll } from './asking.ts'
import { timeText } from './events.ts'
import type { Listing, PageQuery } from './listing.ts'
import type { RequestTransport } from './request-transport.ts'
import type { Agent, AgentToken, AuditEntry, NewAgentToken, Tool } from './views.ts'
import type * as wire from './wire-automations.ts'
import { toWire } from './wire-case.ts'

export interface AgentFields {
  readonly name: string
  readonly description?: string
  /** All of a kind are `jobs:*`. */
  readonly scopes: readonly (Scope | `${string}:*`)[]
  readonly onBehalfOf?: string
  /** What all its automations together may use on a day by UTC. */
  readonly budget?: {
    readonly runsPerDay?: number
    readonly usdPerDay?: number
    readonly tokensPerDay?: number
    readonly gpuSecondsPerDay?: number
  }
}

export interface NewToken {
  readonly name: string
  /** 90 days without it; `null`: until it is revoked. */
  readonly expiresInSeconds?: number | null
  readonly onBehalfOf?: string
}

/** What is not named stays. `onBehalfOf: null`: it acts for nobody from now on. */
export type AgentUpdate = Partial<Omit<AgentFields, 'onBehalfOf'>> & { readonly onBehalfOf?: string | null }

/** Agents and their tokens. For admins. */
export class Agents {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** Newest first. */
  list({ cursor, ...query }: PageQuery & { readonly search?: string | undefined } = {}): Listing<Agent> {
    return askAll<wire.AgentBody>(this.#transport, ['agents'], query, cursor)
  }

  create(fields: AgentFields): Promise<Agent> {
    return ask<wire.AgentBody>(this.#transport, { method: 'POST', path: ['agents'], body: wireFields(fields) })
  }

  get(id: string): Promise<Agent> {
    return ask<wire.AgentBody>(this.#transport, { method: 'GET', path: ['agents', id] })
  }

  /** What is left out stays as it is. */
  update(id: string, fields: AgentUpdate): Promise<Agent> {
    return ask<wire.AgentBody>(this.#transport, { method: 'PATCH', path: ['agents', id], body: wireFields(fields) })
  }

  /** Its tokens end at once, and its automations are canceled. */
  async delete(id: string): Promise<void> {
    await this.#transport.ask({ method: 'DELETE', path: ['agents', id] })
  }

  /** The answer has the token itself, this once. */
  createToken(id: string, token: NewToken): Promise<NewAgentToken> {
    const path = ['agents', id, 'tokens']
    return ask<wire.NewAgentTokenBody>(this.#transport, { method: 'POST', path, body: wireFields(token) })
  }

  async tokens(id: string): Promise<readonly AgentToken[]> {
    return ask<readonly wire.AgentTokenBody[]>(this.#transport, { method: 'GET', path: ['agents', id, 'tokens'] })
  }

  async revokeToken(id: string, tokenId: string): Promise<void> {
    await this.#transport.ask({ method: 'DELETE', path: ['agents', id, 'tokens', tokenId] })
  }
}

function wireFields(fields: object): object {
  return toWire(fields) as object
}

/** The tools that steps of pipelines can use. */
export class Tools {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** By name. */
  async list(): Promise<readonly Tool[]> {
    return ask<readonly wire.ToolBody[]>(this.#transport, { method: 'GET', path: ['tools'] })
  }

  async get(name: string): Promise<Tool | undefined> {
    return (await this.list()).find((tool) => tool.name === name)
  }
}

export interface AuditQuery extends PageQuery {
  /** Only entries about this automation or agent. */
  readonly subject?: string | undefined
  /** Such as `automation.paused` or `run.skipped`. */
  readonly action?: string | undefined
  /** Only what this client or agent did. */
  readonly actor?: string | undefined
  readonly owner?: string | undefined
  readonly createdAfter?: Date | string | number | undefined
  readonly createdBefore?: Date | string | number | undefined
}

/** Who changed what, and which occurrences did not run. */
export class Audit {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** Newest first. */
  list({ cursor, createdAfter, createdBefore, ...query }: AuditQuery = {}): Listing<AuditEntry> {
    const wanted = { ...query, created_after: timeText(createdAfter), created_before: timeText(createdBefore) }
    return askAll<wire.AuditEntryBody>(this.#transport, ['audit'], wanted, cursor)
  }

  async get(id: string): Promise<AuditEntry> {
    return ask<wire.AuditEntryBody>(this.#transport, { method: 'GET', path: ['audit', id] })
  }
}
