import { jsonObjectCopy, storedCopy } from '@impresario/core'
import type { Put } from '@impresario/core'
import type { DataObject, JsonObject, Scope } from '@impresario/protocol'

/** Who does something: a client or an agent. */
export interface Actor {
  readonly id: string
  /** Sees and changes what belongs to others too. */
  readonly isAdmin: boolean
  /** What an agent may do; absent for clients, who may use every tool. */
  readonly scopes?: readonly Scope[]
  /** The person for whom an agent acts. */
  readonly onBehalfOf?: string
}

/** Who did it, as audit entries say. */
export function authorOf({ id, onBehalfOf }: Actor): Pick<AuditEntry, 'actor' | 'onBehalfOf'> {
  return { actor: id, ...(onBehalfOf === undefined ? {} : { onBehalfOf }) }
}

/** The orchestrator itself, in audit entries. */
export const SYSTEM_ACTOR = 'impresario'

/** One entry of the audit log. It is written in the commit of what it tells, and never changed. */
export interface AuditEntry {
  readonly id: string
  readonly at: number
  readonly actor: string
  /** The person for whom an agent did it. */
  readonly onBehalfOf?: string
  /** Such as `automation.created` or `run.skipped`. */
  readonly action: string
  /** The automation that it is about; the event's id for events. */
  readonly subject: string
  readonly owner: string
  readonly details: DataObject
}

/** Entries about single runs are kept for so long; those about changes as long as the storage keeps entries. */
const RUN_ENTRY_MS = 90 * 86_400_000

export function putAudit(entry: AuditEntry): Put {
  const { id, owner, subject, action } = entry
  const value = jsonObjectCopy(entry, 'The audit entry')
  const facets = { owner, name: subject, status: action }
  const isOfRun = action.startsWith('run.') || action.startsWith('event.')
  return { kind: 'audit', id, value, version: 1, facets, ...(isOfRun ? { expiresMs: RUN_ENTRY_MS } : {}) }
}

/** Boundary: only `putAudit` has written it. */
export function asAudit(value: JsonObject): AuditEntry {
  return storedCopy(value) as unknown as AuditEntry
}
