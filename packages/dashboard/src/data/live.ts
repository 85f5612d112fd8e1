import { useSyncExternalStore } from 'react'

/** While the server tells of changes, lists are read again this often all the same: a hint may be lost. */
const CALM_MS = 30_000
/** Without a stream, changes are found by asking. */
const POLL_MS = 2_000

type Listener = () => void

/** Whether changes come by themselves. */
class Liveness {
  #isLive = false
  readonly #listeners = new Set<Listener>()

  get isLive(): boolean {
    return this.#isLive
  }

  set(isLive: boolean): void {
    if (isLive === this.#isLive) return
    this.#isLive = isLive
    for (const listener of this.#listeners) listener()
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

const liveness = new Liveness()

export function useIsLive(): boolean {
  return useSyncExternalStore(
    (listener) => liveness.subscribe(listener),
    () => liveness.isLive,
  )
}

/** How often to ask again. */
export function useRefreshMs(): number {
  return useIsLive() ? CALM_MS : POLL_MS
}
