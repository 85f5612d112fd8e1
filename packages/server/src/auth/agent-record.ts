import type { Budget } from '@impresario/automations'
import { jsonObjectCopy, storedCopy } from '@impresario/core'
import type { Put, Stored } from '@impresario/core'
import { SCOPES } from '@impresario/protocol'
import type { JsonObject, Scope } from '@impresario/protocol'

/** A token of an agent. The secret itself is shown once and never kept. */
export interface AgentToken {
  readonly id: string
  readonly name: string
  /** SHA-256 of the whole token, in hex; of a password with a salt its scrypt. */
  readonly hash: string
  /** Only of a password, which a person chose. It is worth nothing but a session. */
  readonly salt?: string
  readonly createdAt: number
  readonly createdBy: string
  /** Absent: until it is revoked. */
  readonly expiresAt?: number
  /** The person for whom its bearer acts, instead of the one that the agent names. */
  readonly onBehalfOf?: string
}

/** A client that is a program with rights of its own. Times are milliseconds since 1970. */
export interface AgentRecord {
  readonly id: string
  readonly name: string
  readonly description?: string
  readonly scopes: readonly Scope[]
  readonly onBehalfOf?: string
  /** As a client of the old interface wrote them. Those that are not ours are shown to it, and give nothing. */
  readonly oldScopes?: readonly string[]
  /** What all its automations together may use in a day. */
  readonly budget?: Budget
  /** Kept for clients of the old interface; nothing is sent there. */
  readonly webhookUrl?: string
  readonly tokens: readonly AgentToken[]
  readonly createdAt: number
  readonly createdBy: string
  readonly updatedAt: number
  readonly updatedBy: string
}

const ACTIVE = 'active'
/** Only agents have a status; the records of their names are never listed. */
export const LISTED = { status: ACTIVE } as const

/** Boundary: only `putAgent` has written it. */
export function asAgent({ value, version }: Stored<JsonObject>): Stored<AgentRecord> {
  const record = storedCopy(value) as unknown as AgentRecord
  // A scope that this release does not know gives nothing.
  return { value: { ...record, scopes: SCOPES.filter((scope) => record.scopes.includes(scope)) }, version }
}

export function putAgent(record: AgentRecord, version: number): Put {
  const { id, name } = record
  const facets = { owner: id, name, status: ACTIVE, text: `${id} ${name}` }
  return { kind: 'agent', id, value: jsonObjectCopy(record, 'The agent'), version, facets }
}

/** No two agents have one name: whoever comes second finds this record. */
export function putName({ id, name }: Pick<AgentRecord, 'id' | 'name'>): Put {
  return { kind: 'agent', id: nameId(name), value: { agentId: id }, version: 1 }
}

export function nameId(name: string): string {
  return `name/${name}`
}

/** What an agent leaves behind: its runs may still be open, and must not be taken for those of a client. */
export function putGone(id: string): Put {
  return { kind: 'agent', id: goneId(id), value: { agentId: id }, version: 1 }
}

export function goneId(id: string): string {
  return `gone/${id}`
}

/** The id of a caller that another issuer knows. */
export function outsideId(digest: string): string {
  return `oauth.${digest.slice(0, 32)}`
}

export function isOutside(id: string): boolean {
  return /^oauth\.[\da-f]{32}$/.test(id)
}

/** What such a caller could do when it came last. Not listed: it is no agent. */
export function putSeen(id: string, scopes: readonly Scope[], version: number): Put {
  return { kind: 'agent', id: seenId(id), value: { agentId: id, scopes: [...scopes] }, version }
}

export function seenId(id: string): string {
  return `seen/${id}`
}

export function scopesSeenIn({ value }: Stored<JsonObject>): readonly Scope[] {
  const { scopes } = value
  return SCOPES.filter((scope) => Array.isArray(scopes) && scopes.includes(scope))
}

/** Whether a record of an agent can lie under this id, and not one of a name. */
export function isAgentKey(id: string): boolean {
  return !id.includes('/')
}

export const AGENT_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

const TOKEN = /^agt_(?<id>[\da-f]{32})_(?<secret>[\w-]{43})$/

/** A token names its agent, so that it is found without a list of tokens; the secret behind it is what counts. */
export function tokenText(agentId: string, secret: string): string {
  return `agt_${agentId.replaceAll('-', '')}_${secret}`
}

/** The agent that a token claims to be of; nothing for what is no token of an agent. */
export function agentIdIn(token: string): string | undefined {
  const id = TOKEN.exec(token)?.groups?.['id']
  if (id === undefined) return undefined
  const parts = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)]
  return parts.join('-')
}
