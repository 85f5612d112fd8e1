import { useState } from 'react'
import type { Search } from '../router.tsx'

export interface SavedView {
  readonly name: string
  readonly search: Search
}

const STORED = 'impresario.views'
const VIEWS_MAX = 30

/** Filters under a name, in this browser. The address of a view can be shared. */
export function useSavedViews(): {
  readonly views: readonly SavedView[]
  readonly save: (view: SavedView) => void
  readonly remove: (name: string) => void
} {
  const [views, setViews] = useState<readonly SavedView[]>(read)
  const write = (next: readonly SavedView[]): void => {
    localStorage.setItem(STORED, JSON.stringify(next))
    setViews(next)
  }
  return {
    views,
    save: (view) => write([...views.filter(({ name }) => name !== view.name), view].slice(-VIEWS_MAX)),
    remove: (gone) => write(views.filter(({ name }) => name !== gone)),
  }
}

function read(): readonly SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORED) ?? '[]')
    return Array.isArray(found) ? (found as readonly SavedView[]) : []
  } catch {
    return []
  }
}
