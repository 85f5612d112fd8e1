import { overrideStorage } from '@impresario/core'
import type { Batch, BornClaim, Item, Storage } from '@impresario/core'
import type { BugKind } from './bug.ts'

/** Bugs in how an engine could use its storage. */
export const PROCESS_BUGS = {
  'two-writes': {
    says: 'saves the job first and its items in a second call',
    setup: 'both',
    plant: () => ({
      above: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            if (batch.put === undefined || (batch.enqueue ?? []).length === 0) return storage.commit(batch)
            const { enqueue = [], ...rest } = batch
            const outcome = await storage.commit(rest)
            return outcome === 'conflict' ? outcome : storage.commit({ enqueue })
          },
        }),
    }),
  },
  'ack-first': {
    says: 'settles the claim before it writes what followed from it',
    setup: 'both',
    plant: () => ({
      above: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            const { settle, ...rest } = batch
            if (settle === undefined || batch.put === undefined) return storage.commit(batch)
            const outcome = await storage.commit({ settle })
            return outcome === 'conflict' ? outcome : storage.commit(rest)
          },
        }),
    }),
  },
  'key-apart': {
    says: 'writes the idempotency key after the job, in a call of its own',
    setup: 'both',
    plant: () => ({
      above: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            const keys = (batch.put ?? []).filter(({ kind }) => kind === 'key')
            if (keys.length === 0) return storage.commit(batch)
            const outcome = await storage.commit({
              ...batch,
              put: batch.put?.filter(({ kind }) => kind !== 'key') ?? [],
            })
            return outcome === 'conflict' ? outcome : storage.commit({ put: keys })
          },
        }),
    }),
  },
  'answer-before-sync': {
    says: 'acknowledges a new job before it is durable',
    setup: 'embedded',
    plant: () => ({ above: (storage) => unsynced(storage, isCreation) }),
  },
  'born-for-ever': {
    says: 'never ends the lease that a task was born with, so that it is lost with the message to its worker',
    setup: 'both',
    plant: () => ({
      above: (storage) =>
        overrideStorage(storage, {
          commit: (batch) => storage.commit(withBirths(batch, (claimed) => ({ ...claimed, leaseMs: 1e12 }))),
        }),
    }),
  },
  'deliver-before-sync': {
    says: 'hands tasks out before they are durable',
    setup: 'embedded',
    plant: () => ({
      above: (storage) => {
        let hasClaimed = false
        return overrideStorage(storage, {
          claim: async (queue, options) => {
            const claimed = await storage.claim(queue, options)
            if (queue === 'tasks' && claimed.leases.length > 0) hasClaimed = true
            return claimed
          },
          commit: async (batch) => {
            const outcome = await storage.commit(batch)
            if (batch.enqueue?.some(({ claimed }) => claimed !== undefined) === true) hasClaimed = true
            return outcome
          },
          sync: async () => {
            if (!hasClaimed) await storage.sync()
            hasClaimed = false
          },
        })
      },
    }),
  },
  'result-before-sync': {
    says: 'acknowledges results before they are durable',
    setup: 'embedded',
    plant: () => ({ above: (storage) => unsynced(storage, ({ settle }) => settle?.queue === 'tasks') }),
  },
  'retries-blindly': {
    says: 'writes again when no answer came, under the next version',
    setup: 'cluster',
    plant: () => ({
      above: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            try {
              return await storage.commit(batch)
            } catch {
              const { settle: _, ...rest } = batch
              return storage.commit({
                ...rest,
                put: (batch.put ?? []).map((put) => ({ ...put, version: put.version + 1 })),
              })
            }
          },
        }),
    }),
  },
} satisfies Record<string, BugKind>

function isCreation({ put = [] }: Batch): boolean {
  return put.some(({ kind, version }) => kind === 'job' && version === 1)
}

/** Skips the next sync after a commit of this sort. */
function unsynced(storage: Storage, isSort: (batch: Batch) => boolean): Storage {
  let isSkipped = false
  return overrideStorage(storage, {
    commit: async (batch) => {
      const outcome = await storage.commit(batch)
      if (outcome === 'committed' && isSort(batch)) isSkipped = true
      return outcome
    },
    sync: async () => {
      if (!isSkipped) await storage.sync()
      isSkipped = false
    },
  })
}

/** The batch with other claims for the items that are born with one. */
export function withBirths(batch: Batch, change: (claimed: BornClaim) => BornClaim | undefined): Batch {
  const { enqueue } = batch
  if (enqueue === undefined) return batch
  const changed = enqueue.map(({ claimed, ...item }): Item => {
    const next = claimed && change(claimed)
    return next === undefined ? item : { ...item, claimed: next }
  })
  return { ...batch, enqueue: changed }
}
