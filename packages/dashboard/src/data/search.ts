import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import type { Search } from '../router.tsx'

/** What the address keeps of this page; changing it is a step in the history of the browser, or replaces the last one. */
export function useAddress(): readonly [
  search: Search,
  change: (change: Readonly<Record<string, string | undefined>>, replaces?: boolean) => void,
] {
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  const change = useCallback(
    (given: Readonly<Record<string, string | undefined>>, replaces = false) => {
      void navigate({
        to: '.',
        replace: replaces,
        resetScroll: false,
        search: (before: Search) => withoutEmpty({ ...before, ...given }),
      } as never)
    },
    [navigate],
  )
  return [search, change]
}

export function withoutEmpty(given: Readonly<Record<string, string | undefined>>): Search {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  )
}

/** A part of the path, such as the id of a job. */
export function useParam(name: 'id' | 'name'): string {
  const params: Readonly<Record<string, string | undefined>> = useParams({ strict: false })
  return params[name] ?? ''
}
