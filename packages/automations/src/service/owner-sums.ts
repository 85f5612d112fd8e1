import type { Clock, Kind, Storage } from '@impresario/core'

/** A sum is asked for so often. Between two looks the caller adds what it writes itself. */
const LOOK_MS = 1_000
/** Owners that are remembered. Others are counted again. */
const OWNERS_MAX = 10_000

/** What there is of one owner, as far as this instance knows. */
interface OwnerSum {
  sum: number
  readonly lookedAt: number
}

interface OwnerSumsOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly kind: Kind
  /** What a record with this status adds; one, if nothing is said. */
  readonly amountOf?: (status: string) => number
}

/** Sums over the records of one kind, for each owner, from the counts that the storage keeps. */
export class OwnerSums {
  readonly #options: OwnerSumsOptions
  readonly #owners = new Map<string, OwnerSum>()

  constructor(options: OwnerSumsOptions) {
    this.#options = options
  }

  async of(owner: string): Promise<OwnerSum> {
    const { storage, clock, kind, amountOf = () => 1 } = this.#options
    const now = clock.now()
    const known = this.#owners.get(owner)
    if (known !== undefined && now - known.lookedAt < LOOK_MS) return known
    const counts = await storage.counts(kind, { owner })
    const sum = Object.entries(counts).reduce((total, [status, count]) => total + count * amountOf(status), 0)
    const fresh: OwnerSum = { sum, lookedAt: now }
    if (this.#owners.size >= OWNERS_MAX) this.#owners.clear()
    this.#owners.set(owner, fresh)
    return fresh
  }
}
