/** What the token of an agent may do. `admin` stands for all of them, and lets it see what belongs to others. */
export const SCOPES = [
  'automations:read',
  'automations:write',
  'automations:run',
  'events:publish',
  'runs:read',
  'runs:cancel',
  'jobs:read',
  'jobs:write',
  'approvals:decide',
  'documents:search',
  'admin',
] as const
export type Scope = (typeof SCOPES)[number]

/** Scopes as people write them: each by its name, or all of a kind as `jobs:*`. Gives those that are not known. */
export function readScopes(given: readonly string[]): {
  readonly scopes: readonly Scope[]
  readonly unknown: string[]
} {
  const found = new Set<Scope>()
  const unknown: string[] = []
  for (const text of given) {
    const kind = text.endsWith(':*') ? text.slice(0, -1) : undefined
    const named = SCOPES.filter((scope) => (kind === undefined ? scope === text : scope.startsWith(kind)))
    if (named.length === 0) unknown.push(text)
    for (const scope of named) found.add(scope)
  }
  return { scopes: SCOPES.filter((scope) => found.has(scope)), unknown }
}

/** Whether these scopes allow what needs that one. */
export function hasScope(scopes: readonly Scope[], needed: Scope): boolean {
  return scopes.includes(needed) || scopes.includes('admin')
}
