import { readScopes, SCOPES } from '@impresario/protocol'
import type { Scope } from '@impresario/protocol'
import type { AgentRecord } from '../auth/agent-record.ts'

/** What the scopes of the old system allow here. */
const MEANINGS: Readonly<Record<string, readonly Scope[]>> = {
  'tasks:create': ['automations:write'],
  'tasks:read': ['automations:read'],
  'tasks:update': ['automations:write', 'automations:run'],
  'tasks:delete': ['automations:write'],
  'tasks:cancel': ['automations:write'],
  'tasks:run': ['automations:run'],
  'tasks:*': ['automations:read', 'automations:write', 'automations:run'],
  'events:read': ['automations:read'],
}

/** Our scopes for those that are given, old or ours. What is not known gives nothing. */
export function knownScopes(given: readonly string[]): readonly Scope[] {
  const found = new Set(given.flatMap((one) => MEANINGS[one] ?? readScopes([one]).scopes))
  return SCOPES.filter((scope) => found.has(scope))
}

/** As they were written, where a client of the old system wrote them. */
export function shownScopes({ scopes, oldScopes }: AgentRecord): readonly string[] {
  return oldScopes ?? scopes
}
