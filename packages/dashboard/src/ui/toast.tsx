import { createContext, useCallback, useContext, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { refusalWords } from '../text/refusal-words.ts'
import { useText } from '../text/text.tsx'
import { Icon } from './icon.tsx'

interface Toast {
  readonly id: number
  readonly text: unknown
  readonly isBad: boolean
}

/** Words, or what was thrown. */
type Say = (text: unknown, isBad?: boolean) => void

const Context = createContext<Say>(() => {})
const SHOWN_MS = 6_000

/** Short words about what was done; read out to those who do not see them. */
export function ToastProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [toasts, setToasts] = useState<readonly Toast[]>([])
  const say = useCallback<Say>((text, isBad = false) => {
    const toast = { id: Date.now() + Math.random(), text, isBad }
    setToasts((all) => [...all.slice(-3), toast])
    setTimeout(() => setToasts((all) => all.filter(({ id }) => id !== toast.id)), SHOWN_MS)
  }, [])
  const shown = useMemo(() => toasts, [toasts])
  return (
    <Context.Provider value={say}>
      {children}
      <div
        aria-live="polite"
        className="pointer-events-none fixed inset-x-4 bottom-18 z-50 flex flex-col items-center gap-2 md:inset-x-auto md:right-5 md:bottom-5 md:items-end"
      >
        {shown.map(({ id, text, isBad }) => (
          <div
            key={id}
            className={`flex max-w-md items-center gap-2 rounded-lg border border-line bg-panel px-3.5 py-2.5 shadow-lg ${isBad ? 'text-bad' : 'text-ink'}`}
          >
            <Icon name={isBad ? 'alert' : 'check'} className={isBad ? 'size-4' : 'size-4 text-ok'} />
            <Said what={text} />
          </div>
        ))}
      </div>
    </Context.Provider>
  )
}

/** A refusal in the language of the page, with what the server said beneath. */
export function Said({ what, className = '' }: { readonly what: unknown; readonly className?: string }): ReactNode {
  const { t } = useText()
  const { title, detail } = refusalWords(t, what)
  return (
    <span className={`min-w-0 [overflow-wrap:anywhere] ${className}`}>
      {title}
      {detail === undefined ? null : (
        <bdi lang="en" className="block text-xs opacity-90">
          {detail}
        </bdi>
      )}
    </span>
  )
}

export function useSay(): Say {
  return useContext(Context)
}
