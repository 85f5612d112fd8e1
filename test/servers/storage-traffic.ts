import type { Storage } from '@impresario/core'

/** The number of storage calls in progress in this thread, for tests that wait until all work is done. */
class StorageTraffic {
  #begun = 0
  #underWay = 0
  readonly #waiting: (() => void)[] = []

  /** Increases with each call. */
  get begun(): number {
    return this.#begun
  }

  get isQuiet(): boolean {
    return this.#underWay === 0
  }

  /** Resolves once no call is in progress. */
  quiet(): Promise<void> {
    return this.isQuiet ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve))
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    this.#begun += 1
    this.#underWay += 1
    try {
      return await work()
    } finally {
      this.#underWay -= 1
      if (this.isQuiet) for (const resume of this.#waiting.splice(0)) resume()
    }
  }
}

export const storageTraffic = new StorageTraffic()

type Pass = <T>(work: (storage: Storage) => Promise<T>) => Promise<T>

/** A storage that is still being opened, and whose calls all go through `pass`. */
export function passedThrough(opening: Promise<Storage>, pass: Pass): Storage {
  return {
    now: () => pass((storage) => storage.now()),
    read: (kind, id) => pass((storage) => storage.read(kind, id)),
    list: (kind, query) => pass((storage) => storage.list(kind, query)),
    counts: (kind, facets) => pass((storage) => storage.counts(kind, facets)),
    peek: (queue, ids) => pass((storage) => storage.peek(queue, ids)),
    held: (queue) => pass((storage) => storage.held(queue)),
    lanes: (queue) => pass((storage) => storage.lanes(queue)),
    oldest: (queue, lane) => pass((storage) => storage.oldest(queue, lane)),
    claim: (queue, options) => pass((storage) => storage.claim(queue, options)),
    claimExpired: (queue, options) => pass((storage) => storage.claimExpired(queue, options)),
    renew: (leases, leaseMs) => pass((storage) => storage.renew(leases, leaseMs)),
    commit: (batch) => pass(async (storage) => storage.commit(batch)),
    sync: () => pass(async (storage) => storage.sync()),
    watch(queue, listener) {
      let stop: (() => void) | undefined
      let isStopped = false
      void opening.then((storage) => {
        if (!isStopped) stop = storage.watch(queue, listener)
      })
      return () => {
        isStopped = true
        stop?.()
      }
    },
    close: async () => (await opening).close(),
  }
}
