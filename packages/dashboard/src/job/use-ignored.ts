import { useCallback, useMemo, useSyncExternalStore } from 'react'
import { useSession } from '../data/session.ts'
import { readIgnored, withIgnored } from './ignored.ts'

const STORED = 'impresario.ignored'
const listeners = new Set<() => void>()

function listen(changed: () => void): () => void {
  listeners.add(changed)
  // Of other tabs.
  globalThis.addEventListener('storage', changed)
  return () => {
    listeners.delete(changed)
    globalThis.removeEventListener('storage', changed)
  }
}

/** What this person ignores, in this browser. */
export function useIgnored(): {
  readonly isIgnored: (key: string) => boolean
  readonly ignore: (key: string) => void
  readonly restore: (key: string) => void
} {
  const place = `${STORED}.${useSession().session?.client_id ?? ''}`
  const text = useSyncExternalStore(listen, () => localStorage.getItem(place))
  const keys = useMemo(() => new Set(readIgnored(text)), [text])
  const write = useCallback(
    (change: (before: readonly string[]) => readonly string[]) => {
      localStorage.setItem(place, JSON.stringify(change(readIgnored(localStorage.getItem(place)))))
      for (const changed of listeners) changed()
    },
    [place],
  )
  return {
    isIgnored: (key) => keys.has(key),
    ignore: (key) => write((before) => withIgnored(before, key)),
    restore: (key) => write((before) => before.filter((one) => one !== key)),
  }
}
