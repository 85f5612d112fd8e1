import { jobOfItem, overrideStorage } from '@impresario/core'
import type { Batch, Lease, Storage } from '@impresario/core'
import type { Chance } from './chance.ts'

type Brought = NonNullable<Lease['job']>

/** Knows the newest version of every job, and the one before it. */
export class JobBook {
  readonly #jobs = new Map<string, { readonly newest: Brought; readonly before: Brought | undefined }>()

  #note({ put = [], drop = [] }: Batch): void {
    for (const { kind, id } of drop) if (kind === 'job') this.#jobs.delete(id)
    for (const one of put) {
      if (one.kind !== 'job') continue
      const newest = { value: one.value, version: one.version }
      this.#jobs.set(one.id, { newest, before: this.#jobs.get(one.id)?.newest })
    }
  }

  /** The same storage with claims of its own; what is committed is noted. */
  watching(storage: Storage, claim: Storage['claim']): Storage {
    return overrideStorage(storage, {
      claim,
      commit: async (batch) => {
        const outcome = await storage.commit(batch)
        if (outcome === 'committed') this.#note(batch)
        return outcome
      },
    })
  }

  newest(id: string): Brought | undefined {
    return this.#jobs.get(id)?.newest
  }

  before(id: string): Brought | undefined {
    return this.#jobs.get(id)?.before
  }
}

/**
 * The same storage, whose claims bring jobs along as those of shared storages do: for some items none, and for some the job as it
 * was before its last change.
 */
export function bringing(storage: Storage, chance: Chance): Storage {
  const book = new JobBook()
  const broughtFor = ({ id }: Lease): Brought | undefined => {
    if (chance.happens(0.2)) return undefined
    const jobId = jobOfItem(id)
    return chance.happens(0.2) ? book.before(jobId) : book.newest(jobId)
  }
  return book.watching(storage, async (queue, options) => {
    const claimed = await storage.claim(queue, options)
    if (options.brings === undefined) return claimed
    const leases = claimed.leases.map((lease) => {
      const job = broughtFor(lease)
      return job === undefined ? lease : { ...lease, job }
    })
    return { ...claimed, leases }
  })
}
