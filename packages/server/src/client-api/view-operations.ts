import { jsonObjectCopy, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { SavedViewBody } from '@impresario/protocol'
import type { Caller } from '../http/access.ts'

export interface ViewOperationsOptions {
  readonly storage: Storage
  readonly clock: Clock
}

const CONFLICTS_MAX = 20

/** The saved views of a caller, by name. One record holds all of them, so that their bounds hold for all writers. */
export async function listViews(
  { storage }: Pick<ViewOperationsOptions, 'storage'>,
  caller: Caller,
): Promise<readonly SavedViewBody[]> {
  return viewsIn(await storage.read('view', idOf(caller)))
}

export async function saveView(
  options: ViewOperationsOptions,
  caller: Caller,
  name: string,
  search: Readonly<Record<string, string>>,
): Promise<SavedViewBody> {
  if (name.trim() === '' || name.length > LIMITS.viewNameCharsMax) {
    throw new ImpresarioError('INVALID_REQUEST', `The name of a view has 1 to ${LIMITS.viewNameCharsMax} characters.`)
  }
  if (Object.keys(search).length > LIMITS.viewFiltersMax) {
    throw new ImpresarioError('LIMIT_EXCEEDED', `A view may have ${LIMITS.viewFiltersMax} filters.`)
  }
  const view = { name, search, updated_at: wallTime(options.clock) / 1_000 }
  await change(options, caller, (views) => {
    const others = views.filter((one) => one.name !== name)
    if (others.length >= LIMITS.viewsMax) {
      throw new ImpresarioError(
        'LIMIT_EXCEEDED',
        `You can save ${LIMITS.viewsMax} views. Delete one that you do not need.`,
      )
    }
    return [...others, view].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  })
  return view
}

export async function deleteView(options: ViewOperationsOptions, caller: Caller, name: string): Promise<void> {
  await change(options, caller, (views) => {
    if (!views.some((one) => one.name === name)) throw new ImpresarioError('NOT_FOUND', 'View not found')
    return views.filter((one) => one.name !== name)
  })
}

async function change(
  { storage }: ViewOperationsOptions,
  caller: Caller,
  changed: (views: readonly SavedViewBody[]) => readonly SavedViewBody[],
): Promise<void> {
  const id = idOf(caller)
  for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
    const stored = await storage.read('view', id)
    const value = jsonObjectCopy({ views: changed(viewsIn(stored)) }, 'The saved views')
    const bytes = Buffer.byteLength(JSON.stringify(value))
    if (bytes > LIMITS.viewsBytesMax) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `Your saved views may have ${LIMITS.viewsBytesMax} bytes together.`)
    }
    const put = [{ kind: 'view' as const, id, value, version: (stored?.version ?? 0) + 1 }]
    if ((await storage.commit({ put })) === 'conflict') continue
    await storage.sync()
    return
  }
  throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The view could not be written: others changed it.')
}

/** Agents and clients have names of their own, which may be the same. */
function idOf({ client, scopes }: Caller): string {
  return `${scopes === undefined ? 'client' : 'agent'}/${encodeURIComponent(client.id)}`
}

/** Boundary: only `change` has written it. */
function viewsIn(stored: { readonly value: object } | undefined): readonly SavedViewBody[] {
  if (stored === undefined) return []
  const { views } = storedCopy(jsonObjectCopy(stored.value, 'The saved views'))
  return views as unknown as readonly SavedViewBody[]
}
