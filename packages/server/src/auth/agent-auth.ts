import type { IncomingHttpHeaders } from 'node:http'
import { wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import { HEADERS } from '@impresario/protocol'
import type { OauthChoice } from '../config/oauth-keys.ts'
import type { Caller, Gate } from '../http/access.ts'
import { hashToken, sameSecret } from '../runtime/secret.ts'
import { agentOfSignal, isExpired } from './agent-book.ts'
import type { AgentBook } from './agent-book.ts'
import { agentIdIn } from './agent-record.ts'
import type { AgentRecord, AgentToken } from './agent-record.ts'
import type { AgentSessions, SessionClaims } from './agent-sessions.ts'
import { bearerOf, headerOf, unauthorised } from './auth.ts'
import { outsideIssuers } from './outside-issuers.ts'
import type { OutsideIssuers } from './outside-issuers.ts'

export interface AgentAuthOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly agents: AgentBook
  /** Who else may come. */
  readonly clients: Gate
  /** Short-lived tokens of agents. */
  readonly agentSessions: AgentSessions
  /** Issuers whose tokens are accepted too. */
  readonly oauth?: OauthChoice | undefined
}

interface Known {
  readonly record: AgentRecord
  readonly readAt: number
}

/** A signal that an agent has changed may be lost. With this, every instance knows it after five seconds. */
const KNOWN_MS = 5_000
const KNOWN_MAX = 1_000

/**
 * Who calls: an agent by its token, or a client of the configuration by its own. Agents are cached, and read again when any
 * instance has changed them.
 */
export class AgentAuth implements Gate {
  readonly #options: AgentAuthOptions
  readonly #outside: OutsideIssuers | undefined
  readonly #known = new Map<string, Known>()
  readonly #listeners = new Set<(agentId: string) => void>()
  /** Counts changes. What was read before one of them is not kept. */
  #changes = 0
  #unwatch: (() => void) | undefined

  constructor(options: AgentAuthOptions) {
    this.#options = options
    this.#outside = outsideIssuers(options)
    options.agents.onChange((id) => this.#forget(id))
  }

  start(): void {
    this.#unwatch ??= this.#options.storage.watch('signals', (lane) => {
      const id = agentOfSignal(lane)
      if (id !== undefined) this.#forget(id)
    })
  }

  stop(): void {
    this.#unwatch?.()
    this.#unwatch = undefined
  }

  /** Is told when the rights of an agent may have changed. */
  onChange(listener: (agentId: string) => void): void {
    this.#listeners.add(listener)
  }

  authenticate(headers: IncomingHttpHeaders): Caller | Promise<Caller> {
    const token = tokenOf(headers)
    if (token === undefined) return this.#options.clients.authenticate(headers)
    const agentId = agentIdIn(token)
    if (agentId !== undefined) return this.#agent(agentId, token)
    const session = this.#options.agentSessions.read(token, 'access')
    if (session !== undefined) return this.#inSession(session, token)
    return this.#outside?.callerOf(token) ?? this.#options.clients.authenticate(headers)
  }

  async #inSession(session: SessionClaims, token: string): Promise<Caller> {
    if (await this.#options.agentSessions.isRevoked(session)) throw unauthorised()
    return this.#agent(session.sub, token)
  }

  /** Tells of headers of this agent whether they would be let in now. */
  async validFor(agentId: string): Promise<(headers: IncomingHttpHeaders) => boolean> {
    const record = await this.#read(agentId)
    return (headers) => record !== undefined && this.#tokenOf(record, tokenOf(headers) ?? '') !== undefined
  }

  async #agent(agentId: string, text: string): Promise<Caller> {
    const record = await this.#read(agentId)
    const token = record === undefined ? undefined : this.#tokenOf(record, text)
    if (record === undefined || token === undefined) throw unauthorised()
    const { id, scopes } = record
    const onBehalfOf = token.onBehalfOf ?? record.onBehalfOf
    return {
      client: { id },
      role: scopes.includes('admin') ? 'admin' : 'client',
      scopes,
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    }
  }

  #tokenOf({ tokens }: AgentRecord, text: string): AgentToken | undefined {
    const session = this.#options.agentSessions.read(text, 'access')
    const hash = hashToken(text)
    const found = tokens.find((one) =>
      session === undefined
        ? one.salt === undefined && sameSecret(Buffer.from(one.hash, 'hex'), hash)
        : one.id === session.cred,
    )
    return found === undefined || isExpired(found, wallTime(this.#options.clock)) ? undefined : found
  }

  async #read(agentId: string): Promise<AgentRecord | undefined> {
    const { clock, agents } = this.#options
    const known = this.#known.get(agentId)
    const now = clock.now()
    if (known !== undefined && now - known.readAt < KNOWN_MS) return known.record
    const changes = this.#changes
    const record = await agents.find(agentId)
    this.#known.delete(agentId)
    if (record === undefined) return undefined
    if (changes === this.#changes) {
      this.#known.set(agentId, { record, readAt: now })
      const [oldest] = this.#known.keys()
      if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest)
    }
    return record
  }

  #forget(agentId: string): void {
    this.#changes += 1
    this.#known.delete(agentId)
    for (const listener of this.#listeners) listener(agentId)
  }
}

function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  return headerOf(headers, HEADERS.clientToken) ?? bearerOf(headers)
}
