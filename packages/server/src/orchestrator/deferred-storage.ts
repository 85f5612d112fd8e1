import type { Storage } from '@impresario/core'

/**
 * A storage that is still being opened: every call waits for it, and is refused with its reason if it cannot be opened.
 * Parts that only need a storage to talk to can be composed without waiting for a network.
 */
export function deferredStorage(opening: Promise<Storage>): Storage {
  // Callers get the failure; the promise itself must not end the process before the first call.
  opening.catch(() => undefined)
  return {
    now: async () => (await opening).now(),
    read: async (kind, id) => (await opening).read(kind, id),
    list: async (kind, query) => (await opening).list(kind, query),
    counts: async (kind, facets) => (await opening).counts(kind, facets),
    peek: async (queue, ids) => (await opening).peek(queue, ids),
    held: async (queue) => (await opening).held(queue),
    lanes: async (queue) => (await opening).lanes(queue),
    oldest: async (queue, lane) => (await opening).oldest(queue, lane),
    claim: async (queue, options) => (await opening).claim(queue, options),
    claimExpired: async (queue, options) => (await opening).claimExpired(queue, options),
    renew: async (leases, leaseMs) => (await opening).renew(leases, leaseMs),
    commit: async (batch) => (await opening).commit(batch),
    sync: async () => (await opening).sync(),
    watch(queue, listener) {
      let stop: (() => void) | undefined
      let isStopped = false
      opening.then(
        (storage) => {
          if (!isStopped) stop = storage.watch(queue, listener)
        },
        () => undefined,
      )
      return () => {
        isStopped = true
        stop?.()
      }
    },
    async close() {
      const storage = await opening.catch(() => undefined)
      await storage?.close()
    },
  }
}
