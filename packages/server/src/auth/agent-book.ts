import { randomBytes } from 'node:crypto'
import { authorOf, nearId, putAudit } from '@impresario/automations'
import type { Actor, Budget } from '@impresario/automations'
import { isoInstant, jsonObjectCopy, nextPage, wallTime } from '@impresario/core'
import type { Batch, Clock, Item, Put, Random, Storage, Stored } from '@impresario/core'
import { ImpresarioError, readScopes, SCOPES } from '@impresario/protocol'
import type { DataObject, Scope } from '@impresario/protocol'
import { hashToken } from '../runtime/secret.ts'
import { isSecretOf, saltedHash } from './agent-password.ts'
import {
  AGENT_ID,
  asAgent,
  goneId,
  isAgentKey,
  LISTED,
  nameId,
  isOutside,
  putAgent,
  putGone,
  putName,
  putSeen,
  scopesSeenIn,
  seenId,
  tokenText,
} from './agent-record.ts'
import type { AgentRecord, AgentToken } from './agent-record.ts'

export interface AgentBookOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
}

/** What may be said of an agent. */
export interface AgentFields {
  readonly name: string
  readonly description?: string | undefined
  readonly scopes: readonly string[]
  readonly onBehalfOf?: string | undefined
  readonly budget?: Budget | undefined
  readonly webhookUrl?: string | undefined
  readonly oldScopes?: readonly string[] | undefined
}

export type AgentChange = { readonly [K in keyof AgentFields]?: AgentFields[K] | undefined } & {
  /** It acts for nobody from now on. */
  readonly isForNobody?: boolean
}

export interface NewToken {
  readonly name: string
  /** `null`: it is valid until it is revoked. */
  readonly expiresInSeconds?: number | null | undefined
  readonly onBehalfOf?: string | undefined
  /** Takes the place of the token that has this name. */
  readonly isReplacing?: boolean
  /** Instead of a secret of ours. */
  readonly password?: string | undefined
}

interface AgentQuery {
  readonly search?: string | undefined
  readonly before?: string | undefined
  readonly limit: number
}

interface Change {
  readonly record: AgentRecord
  readonly action: string
  readonly details: DataObject
}

const CONFLICTS_MAX = 20
const AGENTS_MAX = 10_000
/** More tokens of one agent are a leak, or a program that makes one at each start. */
const TOKENS_MAX = 20
/** Long enough for a quarter, short enough that forgotten tokens end. */
const TOKEN_SECONDS_DEFAULT = 90 * 86_400

/** The agents of this orchestrator, and their tokens. Every change is one commit with its audit entry. */
export class AgentBook {
  readonly #options: AgentBookOptions
  readonly #listeners = new Set<(agentId: string) => void>()

  constructor(options: AgentBookOptions) {
    this.#options = options
  }

  /** Is told after every change that this instance made. */
  onChange(listener: (agentId: string) => void): void {
    this.#listeners.add(listener)
  }

  async create(fields: AgentFields, actor: Actor): Promise<AgentRecord> {
    const { storage, random } = this.#options
    const now = this.#now()
    const { active = 0 } = await storage.counts('agent', {})
    if (active >= AGENTS_MAX) throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${AGENTS_MAX} agents.`)
    const who = { createdAt: now, createdBy: actor.id, updatedAt: now, updatedBy: actor.id }
    const record: AgentRecord = { id: random.id(), ...knownFields(fields), tokens: [], ...who }
    const details = { name: record.name, scopes: [...record.scopes] }
    const batch = this.#batch({ record, action: 'agent.created', details }, actor, 1)
    if ((await storage.commit({ ...batch, put: [...(batch.put ?? []), putName(record)] })) === 'conflict') {
      throw nameTaken(record.name)
    }
    return this.#done(record)
  }

  async read(id: string): Promise<AgentRecord> {
    return (await this.#read(id)).value
  }

  /** The agent, or nothing. */
  async find(id: string): Promise<AgentRecord | undefined> {
    const stored = await this.#options.storage.read('agent', id)
    return stored === undefined || !isAgentKey(id) ? undefined : asAgent(stored).value
  }

  /**
   * What the owner of something may do now: nothing once the agent was deleted, and `undefined` for clients, who are no agents.
   * Ids of agents look like ours, so that for most clients nothing is read.
   */
  scopesOf(id: string): readonly Scope[] | undefined | Promise<readonly Scope[] | undefined> {
    if (isOutside(id)) return this.#scopesSeen(id)
    return AGENT_ID.test(id) ? this.#scopesOf(id) : undefined
  }

  /** Keeps what a caller of another issuer may do: its automations run without a token of it. */
  async rememberOutside(id: string, scopes: readonly Scope[]): Promise<void> {
    const { storage } = this.#options
    for (let round = 0; round < CONFLICTS_MAX; round++) {
      const stored = await storage.read('agent', seenId(id))
      const put = putSeen(id, scopes, (stored?.version ?? 0) + 1)
      if ((await storage.commit({ put: [put] })) === 'conflict') continue
      await storage.sync()
      return
    }
    throw new ImpresarioError('CONFLICT', 'The rights of the caller change at this moment. Try again.')
  }

  async #scopesSeen(id: string): Promise<readonly Scope[]> {
    const stored = await this.#options.storage.read('agent', seenId(id))
    return stored === undefined ? [] : scopesSeenIn(stored)
  }

  async #scopesOf(id: string): Promise<readonly Scope[] | undefined> {
    const record = await this.find(id)
    if (record !== undefined) return record.scopes
    return (await this.#options.storage.read('agent', goneId(id))) === undefined ? undefined : []
  }

  /** Newest first. */
  async list({
    search,
    before,
    limit,
  }: AgentQuery): Promise<{ items: readonly AgentRecord[]; next: string | undefined }> {
    const found = await this.#options.storage.list('agent', {
      ...LISTED,
      limit,
      ...(search === undefined ? {} : { search }),
      ...(before === undefined ? {} : { before }),
    })
    return { items: found.map((one) => asAgent(one).value), next: nextPage(found, limit) }
  }

  /** What is not named stays as it is. Other scopes count from the next request on. */
  async update(id: string, fields: AgentChange, actor: Actor): Promise<AgentRecord> {
    return this.#change(id, actor, (before) => {
      const known = knownFields({
        name: fields.name ?? before.name,
        scopes: fields.scopes ?? before.scopes,
        description: fields.description ?? before.description,
        onBehalfOf: fields.isForNobody === true ? undefined : (fields.onBehalfOf ?? before.onBehalfOf),
        budget: fields.budget ?? before.budget,
        webhookUrl: fields.webhookUrl ?? before.webhookUrl,
        oldScopes: fields.scopes === undefined ? before.oldScopes : fields.oldScopes,
      })
      const { id: same, tokens, createdAt, createdBy, updatedAt, updatedBy } = before
      const record = { id: same, ...known, tokens, createdAt, createdBy, updatedAt, updatedBy }
      const details = {
        ...(record.name === before.name ? {} : { name: record.name, old_name: before.name }),
        ...(record.scopes.join(' ') === before.scopes.join(' ')
          ? {}
          : { scopes: [...record.scopes], old_scopes: [...before.scopes] }),
        ...(record.onBehalfOf === before.onBehalfOf
          ? {}
          : { on_behalf_of: record.onBehalfOf ?? null, old_on_behalf_of: before.onBehalfOf ?? null }),
        ...(fields.budget === undefined ? {} : { budget: jsonObjectCopy(fields.budget, 'The budget') }),
      }
      return { record, action: 'agent.updated', details }
    })
  }

  /** Its tokens end with it. What it owned stays, and only admins see it. */
  async remove(id: string, actor: Actor): Promise<void> {
    const { storage } = this.#options
    if (id === actor.id) throw new ImpresarioError('CONFLICT', 'An agent cannot delete itself.')
    const { value: record } = await this.#read(id)
    const drop = [
      { kind: 'agent', id },
      { kind: 'agent', id: nameId(record.name) },
    ] as const
    const put = [this.#audit({ record, action: 'agent.deleted', details: { name: record.name } }, actor), putGone(id)]
    await storage.commit({ put, drop, enqueue: [agentSignal(id)] })
    await this.#done(record)
  }

  /** A new token. Its text is in this answer and nowhere else. */
  async addToken(id: string, given: NewToken, actor: Actor): Promise<{ token: AgentToken; secret: string }> {
    const secret = given.password ?? tokenText(id, randomBytes(32).toString('base64url'))
    const hashed = given.password === undefined ? { hash: hashToken(secret).toString('hex') } : await saltedHash(secret)
    const now = this.#now()
    const seconds = given.expiresInSeconds === undefined ? TOKEN_SECONDS_DEFAULT : given.expiresInSeconds
    const token: AgentToken = {
      id: this.#options.random.id(),
      name: given.name,
      ...hashed,
      createdAt: now,
      createdBy: actor.id,
      ...(seconds === null ? {} : { expiresAt: now + seconds * 1_000 }),
      ...(given.onBehalfOf === undefined ? {} : { onBehalfOf: given.onBehalfOf }),
    }
    await this.#change(id, actor, (before) => {
      const { isReplacing = false } = given
      const valid = before.tokens.filter((one) => !isExpired(one, now) && !(isReplacing && one.name === given.name))
      if (valid.some(({ name }) => name === given.name)) {
        throw new ImpresarioError(
          'CONFLICT',
          `The agent has a token "${given.name}". Revoke it, or choose another name.`,
        )
      }
      if (valid.length >= TOKENS_MAX) {
        throw new ImpresarioError('LIMIT_EXCEEDED', `An agent can have ${TOKENS_MAX} tokens. Revoke one first.`)
      }
      const { expiresAt } = token
      const details = { token: given.name, ...(expiresAt === undefined ? {} : { expires_at: isoInstant(expiresAt) }) }
      return { record: { ...before, tokens: [...valid, token] }, action: 'agent.token_created', details }
    })
    return { token, secret }
  }

  /** The agent and the token that a secret belongs to; nothing for a wrong one. */
  async signIn(id: string, secret: string): Promise<{ record: AgentRecord; token: AgentToken } | undefined> {
    const record = await this.find(id)
    const now = this.#now()
    for (const token of record?.tokens ?? []) {
      if (record === undefined || isExpired(token, now) || !(await isSecretOf(token, secret))) continue
      return { record, token }
    }
    return undefined
  }

  /** From the next request on it is worth nothing, on every instance within seconds. */
  async revokeToken(id: string, named: string, actor: Actor): Promise<void> {
    await this.#change(id, actor, (before) => {
      const revoked = before.tokens.find(({ id: each }) => each === named)
      if (revoked === undefined) throw new ImpresarioError('NOT_FOUND', 'Token not found')
      const tokens = before.tokens.filter(({ id: each }) => each !== named)
      return { record: { ...before, tokens }, action: 'agent.token_revoked', details: { token: revoked.name } }
    })
  }

  async #read(id: string): Promise<Stored<AgentRecord>> {
    const stored = isAgentKey(id) ? await this.#options.storage.read('agent', id) : undefined
    if (stored === undefined) throw new ImpresarioError('NOT_FOUND', 'Agent not found')
    return asAgent(stored)
  }

  async #change(id: string, actor: Actor, decide: (before: AgentRecord) => Change): Promise<AgentRecord> {
    const { storage } = this.#options
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { value: before, version } = await this.#read(id)
      const change = decide(before)
      const record = { ...change.record, updatedAt: this.#now(), updatedBy: actor.id }
      const isRenamed = record.name !== before.name
      if (isRenamed && (await storage.read('agent', nameId(record.name))) !== undefined) throw nameTaken(record.name)
      const batch = this.#batch({ ...change, record }, actor, version + 1)
      const naming: Batch = isRenamed
        ? { put: [...(batch.put ?? []), putName(record)], drop: [{ kind: 'agent', id: nameId(before.name) }] }
        : {}
      if ((await storage.commit({ ...batch, ...naming })) === 'conflict') continue
      return this.#done(record)
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The agent could not be written: others changed it all the time.')
  }

  #batch(change: Change, actor: Actor, version: number): Batch {
    return {
      put: [putAgent(change.record, version), this.#audit(change, actor)],
      enqueue: [agentSignal(change.record.id)],
    }
  }

  #audit({ record, action, details }: Change, actor: Actor): Put {
    const { id } = record
    const entry = { id: nearId(this.#options.random.id(), id), at: this.#now(), ...authorOf(actor) }
    return putAudit({ ...entry, action, subject: id, owner: id, details })
  }

  async #done(record: AgentRecord): Promise<AgentRecord> {
    await this.#options.storage.sync()
    for (const listener of this.#listeners) listener(record.id)
    return record
  }

  #now(): number {
    return wallTime(this.#options.clock)
  }
}

const SIGNAL = 'agent.'

/** Nobody claims it: that it comes tells every instance to look at this agent again. */
function agentSignal(agentId: string): Item {
  const name = `${SIGNAL}${agentId}`
  return { queue: 'signals', id: name, lane: name, priority: 0, delayMs: 0, payload: null }
}

/** The agent that a signal is about. */
export function agentOfSignal(lane: string): string | undefined {
  return lane.startsWith(SIGNAL) ? lane.slice(SIGNAL.length) : undefined
}

export function isExpired({ expiresAt }: AgentToken, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now
}

function knownFields({ name, description, scopes: given, onBehalfOf, budget, webhookUrl, oldScopes }: AgentFields): {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly description?: string
  readonly onBehalfOf?: string
  readonly budget?: Budget
  readonly webhookUrl?: string
  readonly oldScopes?: readonly string[]
} {
  const { scopes, unknown } = readScopes(given)
  const [first] = unknown
  if (first !== undefined) {
    throw new ImpresarioError('INPUT_REFUSED', `There is no scope "${first}". There are ${SCOPES.join(', ')}.`)
  }
  return {
    name,
    scopes,
    ...(description === undefined ? {} : { description }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(budget === undefined ? {} : { budget }),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    ...(oldScopes === undefined ? {} : { oldScopes }),
  }
}

function nameTaken(name: string): ImpresarioError {
  return new ImpresarioError('CONFLICT', `There is an agent "${name}". Choose another name.`)
}
