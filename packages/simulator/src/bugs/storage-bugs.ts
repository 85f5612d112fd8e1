import { overrideStorage } from '@impresario/core'
import type { Batch, Claimed, LeaseRef, Storage, Undo } from '@impresario/core'
import { JobBook } from '../brought-jobs.ts'
import type { BugKind } from './bug.ts'
import { withBirths } from './process-bugs.ts'

/**
 * Bugs that a storage could have. Each is limited to one call of the storage below it, because a real storage would be
 * atomic.
 */
export const STORAGE_BUGS = {
  'born-in-no-hands': {
    says: 'puts a task that is born claimed into its queue, where another worker claims it too',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, { commit: (batch) => storage.commit(withBirths(batch, () => undefined)) }),
    }),
  },
  'no-fencing': {
    says: 'lets a claim be settled by whoever held it once',
    setup: 'cluster',
    plant: () => ({
      below: (storage) => {
        const tokens = new TokenBook()
        return tokens.watching(storage, {
          commit: (batch) => storage.commit(withSettle(batch, (settle) => tokens.newest(settle) ?? settle)),
        })
      },
    }),
  },
  'token-restart': {
    says: 'begins its tokens again when a process starts',
    setup: 'cluster',
    plant: () => {
      let offset = 0
      let newest = 0
      const shown = (token: number): number => token - offset
      const real = (ref: LeaseRef): LeaseRef => ({ ...ref, token: ref.token + offset })
      return {
        onBoot: () => {
          offset = newest
        },
        below: (storage) => {
          const show = ({ leases, nextInMs }: Claimed): Claimed => {
            for (const { token } of leases) newest = Math.max(newest, token)
            return { nextInMs, leases: leases.map((lease) => ({ ...lease, token: shown(lease.token) })) }
          }
          return overrideStorage(storage, {
            claim: async (queue, options) => show(await storage.claim(queue, options)),
            claimExpired: async (queue, options) => show(await storage.claimExpired(queue, options)),
            renew: (leases, leaseMs) => storage.renew(leases.map(real), leaseMs),
            commit: (batch) => storage.commit(withSettle(batch, real)),
          })
        },
      }
    },
  },
  'expired-keeps-lease': {
    says: 'leaves an expired item to its old holder as well',
    setup: 'both',
    plant: () => ({
      below: (storage) => {
        const overruled = new Map<string, LeaseRef>()
        const current = (ref: LeaseRef): LeaseRef => overruled.get(`${ref.id}#${ref.token}`) ?? ref
        const tokens = new TokenBook()
        return tokens.watching(storage, {
          claimExpired: async (queue, options) => {
            const before = new Map(tokens.entries())
            const claimed = await storage.claimExpired(queue, options)
            for (const lease of claimed.leases) {
              const old = before.get(`${queue}/${lease.id}`)
              if (old !== undefined) overruled.set(`${lease.id}#${old}`, { queue, id: lease.id, token: lease.token })
            }
            return claimed
          },
          renew: (leases, leaseMs) => storage.renew(leases.map(current), leaseMs),
          commit: (batch) => storage.commit(withSettle(batch, current)),
        })
      },
    }),
  },
  'lost-sleep': {
    says: 'forgets now and then the timer that ends a sleep',
    setup: 'both',
    plant: () => ({
      below: (storage) => {
        let sleeps = 0
        return overrideStorage(storage, {
          commit: (batch) => {
            const enqueue = (batch.enqueue ?? []).filter(({ queue, id }) => {
              if (queue !== 'timers' || !id.endsWith('.sleep')) return true
              sleeps += 1
              return sleeps % 3 !== 0
            })
            return storage.commit({ ...batch, enqueue })
          },
        })
      },
    }),
  },
  'unheard-event': {
    says: 'forgets now and then that a job waits for an event by key',
    setup: 'both',
    plant: () => ({
      below: (storage) => {
        let letters = 0
        return overrideStorage(storage, {
          commit: (batch) => {
            const enqueue = (batch.enqueue ?? []).filter(({ queue, id }) => {
              if (queue !== 'mail' || !id.includes('.listen.')) return true
              letters += 1
              return letters % 2 === 0
            })
            return storage.commit({ ...batch, enqueue })
          },
        })
      },
    }),
  },
  'early-event-lost': {
    says: 'drops events that come before their job waits for them',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          commit: (batch) => {
            const put = (batch.put ?? []).map((one) => {
              if (one.kind !== 'job' || one.value.events === undefined) return one
              return { ...one, value: { ...one.value, events: { ...one.value.events, kept: [] } } }
            })
            return storage.commit({ ...batch, put })
          },
        }),
    }),
  },
  'undo-skipped': {
    says: 'forgets the last thing to undo',
    setup: 'both',
    plant: () => ({ below: (storage) => undoing(storage, (left) => left.slice(0, 2)) }),
  },
  'undo-twice': {
    says: 'undoes the first thing twice',
    setup: 'both',
    plant: () => ({
      below: (storage) => undoing(storage, ([first, ...rest]) => (first ? [first, first, ...rest] : [])),
    }),
  },
  'lost-message': {
    says: 'forgets now and then what shall be sent to the outside',
    setup: 'both',
    plant: () => ({
      below: (storage) => {
        let messages = 0
        return overrideStorage(storage, {
          commit: (batch) => {
            const enqueue = (batch.enqueue ?? []).filter(({ queue }) => {
              if (queue !== 'outbox') return true
              messages += 1
              return messages % 3 !== 0
            })
            return storage.commit({ ...batch, enqueue })
          },
        })
      },
    }),
  },
  'version-blind': {
    says: 'writes a record whatever version is stored',
    setup: 'cluster',
    plant: () => ({
      below: (storage) => {
        const versions = new Map<string, number>()
        return overrideStorage(storage, {
          commit: async (batch) => {
            const put = (batch.put ?? []).map((one) => ({
              ...one,
              version: (versions.get(`${one.kind}/${one.id}`) ?? 0) + 1,
            }))
            const outcome = await storage.commit({ ...batch, put })
            if (outcome === 'committed') for (const one of put) versions.set(`${one.kind}/${one.id}`, one.version)
            return outcome
          },
        })
      },
    }),
  },
  'turns-uncounted': {
    says: 'does not count how often a turn was claimed',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          claim: async (queue, options) => {
            const { leases, nextInMs } = await storage.claim(queue, options)
            return queue === 'turns'
              ? { nextInMs, leases: leases.map((lease) => ({ ...lease, deliveries: 1 })) }
              : { leases, nextInMs }
          },
        }),
    }),
  },
  'old-job-brought': {
    says: 'brings a job with a claim as it was before, under its newest version',
    setup: 'cluster',
    plant: () => ({
      below: (storage) => {
        const book = new JobBook()
        return book.watching(storage, async (queue, options) => {
          const claimed = await storage.claim(queue, options)
          const leases = claimed.leases.map((lease) => {
            const value = lease.job === undefined ? undefined : book.before(lease.job.value.id)?.value
            const version = lease.job === undefined ? undefined : book.newest(lease.job.value.id)?.version
            return value === undefined || version === undefined ? lease : { ...lease, job: { value, version } }
          })
          return { ...claimed, leases }
        })
      },
    }),
  },
  'lost-timer': {
    says: 'loses timers',
    setup: 'both',
    plant: () => ({ below: (storage) => losing(storage, 'timers') }),
  },
  'forgotten-mail': {
    says: 'loses mail between jobs',
    setup: 'both',
    plant: () => ({ below: (storage) => losing(storage, 'mail') }),
  },
  'aborted-poll-keeps': {
    says: 'does not take back what an aborted poll returns',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          renew: (leases, leaseMs) =>
            leaseMs === 0 ? Promise.resolve(leases.map(() => true)) : storage.renew(leases, leaseMs),
        }),
    }),
  },
  'heartbeat-forgets': {
    says: 'says that leases are renewed and does not renew them',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          renew: (leases, leaseMs) =>
            leaseMs > 0 ? Promise.resolve(leases.map(() => true)) : storage.renew(leases, leaseMs),
        }),
    }),
  },
  'endless-lease': {
    says: 'never ends a lease',
    setup: 'cluster',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          claim: (queue, options) => storage.claim(queue, { ...options, leaseMs: 1_000_000_000 }),
        }),
    }),
  },
  'kept-on-cancel': {
    says: 'keeps the tasks of a job that was cancelled',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          commit: (batch) => {
            const isCancelling = batch.put?.some(({ kind, value }) => kind === 'job' && value.status === 'cancelled')
            return storage.commit(isCancelling === true ? { ...batch, remove: [] } : batch)
          },
        }),
    }),
  },
  'settled-stays': {
    says: 'leaves the item of a settled claim in its queue',
    setup: 'both',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            const { settle, ...rest } = batch
            if (settle === undefined || (await storage.renew([settle], 1_000))[0] !== true) return storage.commit(batch)
            return storage.commit(rest)
          },
        }),
    }),
  },
  'replaced-keeps-lease': {
    says: 'lets the holder of a replaced item settle the new one',
    setup: 'cluster',
    plant: () => ({
      below: (storage) =>
        overrideStorage(storage, {
          commit: async (batch) => {
            const outcome = await storage.commit(batch)
            if (outcome === 'committed' || batch.settle === undefined) return outcome
            const { settle, ...rest } = batch
            const [view] = await storage.peek(settle.queue, [settle.id])
            return view === undefined ? outcome : storage.commit({ ...rest, remove: [...(rest.remove ?? []), settle] })
          },
        }),
    }),
  },
} satisfies Record<string, BugKind>

/** Knows the newest token of every item. */
class TokenBook {
  readonly #tokens = new Map<string, number>()

  entries(): Iterable<[string, number]> {
    return this.#tokens
  }

  newest(ref: LeaseRef): LeaseRef | undefined {
    const token = this.#tokens.get(`${ref.queue}/${ref.id}`)
    return token === undefined ? undefined : { ...ref, token }
  }

  watching(storage: Storage, changed: Partial<Storage>): Storage {
    const note = (claimed: Claimed): Claimed => {
      for (const { queue, id, token } of claimed.leases) this.#tokens.set(`${queue}/${id}`, token)
      return claimed
    }
    const claimExpired = changed.claimExpired ?? ((queue, options) => storage.claimExpired(queue, options))
    return overrideStorage(storage, {
      ...changed,
      claim: async (queue, options) => note(await storage.claim(queue, options)),
      claimExpired: async (queue, options) => note(await claimExpired(queue, options)),
    })
  }
}

function withSettle(batch: Batch, change: (settle: LeaseRef) => LeaseRef): Batch {
  return batch.settle === undefined ? batch : { ...batch, settle: change(batch.settle) }
}

/** Every third item of this queue never arrives. */
function losing(storage: Storage, queue: 'timers' | 'mail'): Storage {
  let count = 0
  return overrideStorage(storage, {
    commit: (batch) => {
      const enqueue = (batch.enqueue ?? []).filter((item) => {
        if (item.queue !== queue) return true
        count += 1
        return count % 3 !== 0
      })
      return storage.commit({ ...batch, enqueue })
    },
  })
}

/** Alters what a job has left to undo when it begins to. */
function undoing(storage: Storage, alter: (left: readonly Undo[]) => readonly Undo[]): Storage {
  return overrideStorage(storage, {
    commit: (batch) => {
      const put = (batch.put ?? []).map((one) => {
        const compensation = one.kind === 'job' ? one.value.compensation : undefined
        if (one.kind !== 'job' || compensation === undefined || compensation.undone.length > 0) return one
        if (one.value.trail.at(-1)?.event !== 'undo_started') return one
        return { ...one, value: { ...one.value, compensation: { ...compensation, left: alter(compensation.left) } } }
      })
      return storage.commit({ ...batch, put })
    },
  })
}
