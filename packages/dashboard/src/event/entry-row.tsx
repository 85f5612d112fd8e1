import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useKeys } from '../ui/keys.tsx'

/** What opens an entry: a link over the whole row, so that the address has it. Other links of the row lie above it. */
export function EntryLink({
  id,
  className = '',
  children,
}: {
  readonly id: string
  readonly className?: string
  readonly children: ReactNode
}): ReactNode {
  return (
    <Link
      to="."
      search={(before: object) => ({ ...before, entry: id })}
      resetScroll={false}
      preload={false}
      data-entry={id}
      aria-haspopup="dialog"
      className={`font-medium after:absolute after:inset-0 hover:underline focus-visible:-outline-offset-2 ${className}`}
    >
      {children}
    </Link>
  )
}

/** `j` and `k` go from row to row; Enter opens the one that has the focus, as it does every link. */
export function useEntryKeys(): void {
  useKeys(KEYS)
}

const KEYS = { j: () => step(1), k: () => step(-1) }

function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-entry]')]
  const { activeElement: focused } = document
  const place = focused instanceof HTMLElement ? rows.indexOf(focused) : -1
  rows[Math.max(0, Math.min(rows.length - 1, place + by))]?.focus()
}

/** The row that an entry was opened from has the focus again once it is closed. */
export function focusEntry(id: string): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-entry]')]
  rows.find((row) => row.dataset['entry'] === id)?.focus()
}
