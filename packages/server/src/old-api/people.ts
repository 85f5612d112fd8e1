import type { Actor } from '@impresario/automations'
import { sha256 } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { Scope } from '@impresario/protocol'
import type { AgentBook } from '../auth/agent-book.ts'
import { AGENT_ID } from '../auth/agent-record.ts'

/** The id of the agent that every installation of the old system had. It has no rights here, and only stands for an admin. */
const SYSTEM_ID = '00000000-0000-0000-0000-000000000001'

/** Whose something is. Clients of the old system read ids of agents as UUIDs; clients of the configuration have names. */
export function shownOwner(owner: string): string {
  if (AGENT_ID.test(owner)) return owner
  const hash = sha256(`client ${owner}`)
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`]
  return `${parts.join('-')}-${hash.slice(20, 32)}`
}

function isSelf(named: string, { id, isAdmin }: Actor): boolean {
  return named === id || named === shownOwner(id) || (isAdmin && named === SYSTEM_ID)
}

/** The owner that a list is narrowed down to: an admin may name any, others themselves. */
export function listedOwner(actor: Actor, named: string | undefined): string | undefined {
  if (named === undefined) return actor.isAdmin ? undefined : actor.id
  if (isSelf(named, actor)) return actor.id
  if (actor.isAdmin) return named
  throw notForOthers()
}

/** In whose name something new is made: only an admin may name another agent, which must be there. */
export async function ownerNamed(
  agents: AgentBook,
  actor: Actor,
  named: string | undefined,
  field: string,
): Promise<{ readonly owner: string; readonly scopes: readonly Scope[] | undefined }> {
  if (named === undefined || isSelf(named, actor)) return { owner: actor.id, scopes: actor.scopes }
  if (!actor.isAdmin) throw notForOthers()
  const agent = AGENT_ID.test(named) ? await agents.find(named) : undefined
  if (agent === undefined) throw new ImpresarioError('CONFLICT', `${field}: there is no such agent.`)
  return { owner: agent.id, scopes: agent.scopes }
}

function notForOthers(): ImpresarioError {
  return new ImpresarioError('FORBIDDEN', 'An agent acts in its own name. Only the scope admin may name another one.')
}
