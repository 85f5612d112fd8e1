import type { Storage } from './storage.ts'

/** The same storage with some of its methods replaced. */
export function overrideStorage(storage: Storage, changed: Partial<Storage>): Storage {
  return {
    now: () => storage.now(),
    read: (kind, id) => storage.read(kind, id),
    list: (kind, query) => storage.list(kind, query),
    counts: (kind, facets) => storage.counts(kind, facets),
    peek: (queue, ids) => storage.peek(queue, ids),
    held: (queue) => storage.held(queue),
    lanes: (queue) => storage.lanes(queue),
    oldest: (queue, lane) => storage.oldest(queue, lane),
    claim: (queue, options) => storage.claim(queue, options),
    claimExpired: (queue, options) => storage.claimExpired(queue, options),
    renew: (leases, leaseMs) => storage.renew(leases, leaseMs),
    commit: (batch) => storage.commit(batch),
    sync: () => storage.sync(),
    watch: (queue, listener) => storage.watch(queue, listener),
    close: () => storage.close(),
    ...changed,
  }
}
