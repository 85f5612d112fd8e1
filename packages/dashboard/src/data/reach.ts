import { useSyncExternalStore } from 'react'

let isReached = true
const listeners = new Set<() => void>()

/** Every request says whether it has reached the server. */
export function noteReach(now: boolean): void {
  if (now === isReached) return
  isReached = now
  for (const listener of listeners) listener()
}

/** Whether the last request has reached the server. */
export function useIsReached(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => isReached,
  )
}

const AGAIN_MS = 2_000

/** Loads a part of the program; while the server is away it waits, so that nobody loses the page that is open. */
export async function loadWhenReached<T>(load: () => Promise<T>, isThere: () => Promise<boolean>): Promise<T> {
  for (;;) {
    try {
      return await load()
    } catch (error) {
      // The server is there, and this part is not: a newer version has others.
      if (await isThere()) throw error
      await new Promise((resolve) => {
        setTimeout(resolve, AGAIN_MS)
      })
    }
  }
}
