import type { ListQuery } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

/** U+0000 has no place in PostgreSQL's text: whatever is called so cannot be there, and nobody need ask the server. */
export function isStorable(...names: readonly (string | undefined)[]): boolean {
  return !names.some((name) => name?.includes('\0'))
}

export function mustBeStorableName(...names: readonly (string | undefined)[]): void {
  const wrong = names.find((name) => !isStorable(name))
  if (wrong === undefined) return
  throw new ImpresarioError(
    'INVALID_REQUEST',
    `The name ${JSON.stringify(wrong)} contains the character U+0000, which PostgreSQL cannot store. Leave it out.`,
  )
}

/** What can be asked of the server; nothing if no record fits. */
export function storableQuery(query: ListQuery): ListQuery | undefined {
  const { owner, name, status, before, from, statuses } = query
  if (!isStorable(owner, name, status)) return undefined
  return {
    ...query,
    ...(before === undefined ? {} : { before: border(before) }),
    ...(from === undefined ? {} : { from: border(from) }),
    ...(statuses === undefined ? {} : { statuses: statuses.filter((one) => isStorable(one)) }),
  }
}

/** Between what can be stored the border is the same: nothing lies between these two. */
function border(id: string): string {
  return id.replace(/\0.*$/s, '\u0001')
}
