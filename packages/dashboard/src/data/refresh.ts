import { useQueryClient } from '@tanstack/react-query'
import type { QueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { concerns, live } from './live.ts'
import type { Hint } from './live.ts'

/** After a hint the next ones are heard together; while they keep coming, for longer and longer. */
const WINDOW_MS = 250
const WINDOW_MS_MAX = 2_000
/** More than these together mean: read everything again. */
const HINTS_MAX = 50

/**
 * Reads again what the server says has changed: the first change at once, and then as seldom as every two seconds while much
 * is going on. A page that is not seen reads nothing until it is.
 */
class Refresh {
  readonly #queries: QueryClient
  #hints: Hint[] = []
  #windowMs = WINDOW_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(queries: QueryClient) {
    this.#queries = queries
  }

  hear(hint: Hint): void {
    this.#hints = this.#hints.length >= HINTS_MAX || hint === 'everything' ? ['everything'] : [...this.#hints, hint]
    if (this.#timer === undefined) this.apply()
  }

  apply(): void {
    if (document.hidden || this.#hints.length === 0) return
    const hints = this.#hints
    this.#hints = []
    void this.#queries.invalidateQueries({
      predicate: ({ queryKey }) => hints.some((hint) => concerns(hint, queryKey)),
    })
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#windowMs = this.#hints.length === 0 ? WINDOW_MS : Math.min(this.#windowMs * 2, WINDOW_MS_MAX)
      this.apply()
    }, this.#windowMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

/** Keeps what is shown up to date while the page is signed in. */
export function useLiveRefresh(): void {
  const queries = useQueryClient()
  useEffect(() => {
    const refresh = new Refresh(queries)
    const seen = (): void => refresh.apply()
    document.addEventListener('visibilitychange', seen)
    const unhear = live.onHint((hint) => refresh.hear(hint))
    const stop = live.start()
    return () => {
      stop()
      unhear()
      refresh.stop()
      document.removeEventListener('visibilitychange', seen)
    }
  }, [queries])
}
