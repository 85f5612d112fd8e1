import type { SavedViewBody } from '@impresario/protocol'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { Search } from '../router.tsx'
import { get, send } from './api.ts'

const KEY = ['views']
/** Where earlier versions kept them, in the browser. */
const STORED = 'impresario.views'

/** Filters under a name, kept by the server for whoever is signed in. The address of a view can be shared. */
export function useSavedViews(): {
  readonly views: readonly SavedViewBody[]
  readonly save: (name: string, search: Search) => Promise<void>
  readonly remove: (name: string) => Promise<void>
} {
  const queries = useQueryClient()
  const { data = [] } = useQuery({ queryKey: KEY, queryFn: read, staleTime: 60_000 })
  const path = (name: string): string => `views/${encodeURIComponent(name)}`
  const reread = (): Promise<void> => queries.invalidateQueries({ queryKey: KEY })
  return {
    views: data,
    save: async (name, search) => {
      await send('PUT', path(name), { search })
      await reread()
    },
    remove: async (name) => {
      await send('DELETE', path(name))
      await reread()
    },
  }
}

async function read({ signal }: { readonly signal: AbortSignal }): Promise<readonly SavedViewBody[]> {
  await moveStored()
  return get<readonly SavedViewBody[]>('views', {}, signal)
}

/** Takes what this browser still has to the server, once. */
async function moveStored(): Promise<void> {
  const text = localStorage.getItem(STORED)
  if (text === null) return
  localStorage.removeItem(STORED)
  try {
    const found = JSON.parse(text) as readonly { readonly name: string; readonly search: Search }[]
    for (const { name, search } of found) await send('PUT', `views/${encodeURIComponent(name)}`, { search })
  } catch {
    // They were of an older version, or there are too many; what was saved is saved.
  }
}
