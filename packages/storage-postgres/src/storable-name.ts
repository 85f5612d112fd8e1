import type { ListQuery } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

/** PostgreSQL's text type cannot hold U+0000: a record with such a name cannot exist, so the server is not queried. */
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

/** The query in a form that the server accepts; `undefined` if no record can match. */
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

/** For storable names the boundary is the same: no storable name lies between these two. */
function border(id: string): string {
  return id.replace(/\0.*$/s, '\u0001')
}
