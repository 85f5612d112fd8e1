import type { Clock, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

export interface BacklogBounds {
  /** Jobs of one client that have begun and not ended. */
  readonly perClientMax: number
  /** The same over all clients. */
  readonly totalMax: number
}

export interface BacklogOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly bounds: BacklogBounds
}

interface Count {
  open: number
  lookedAt: number
}

/** Between two looks at the storage every creation here counts as one more open job, so that the bound holds. */
const LOOK_MS = 1_000
const RETRY_AFTER_S = 5
/** Clients that are remembered. Whoever is forgotten is looked up again. */
const CLIENTS_MAX = 10_000
const SETTLED: ReadonlySet<string> = new Set(['finished', 'failed', 'cancelled', 'error', 'quarantined'])

/** Refuses new jobs where too many are open already: a queue without a bound only hides that nobody keeps up with it. */
export class Backlog {
  readonly #options: BacklogOptions
  readonly #clients = new Map<string, Count>()
  readonly #all: Count = { open: 0, lookedAt: Number.NEGATIVE_INFINITY }

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** Counts one more for the client, or says why it cannot have it. */
  async admit(clientId: string): Promise<ImpresarioError | undefined> {
    const { perClientMax, totalMax } = this.#options.bounds
    const own = this.#clients.get(clientId) ?? this.#remember(clientId)
    await this.#look(own, clientId)
    await this.#look(this.#all, undefined)
    if (own.open >= perClientMax) {
      return refusal(`You have ${own.open} open jobs, and ${perClientMax} are allowed.`)
    }
    if (this.#all.open >= totalMax) return refusal('There are too many open jobs.')
    own.open += 1
    this.#all.open += 1
    return undefined
  }

  #remember(clientId: string): Count {
    if (this.#clients.size >= CLIENTS_MAX) this.#clients.clear()
    const count: Count = { open: 0, lookedAt: Number.NEGATIVE_INFINITY }
    this.#clients.set(clientId, count)
    return count
  }

  async #look(count: Count, owner: string | undefined): Promise<void> {
    const { storage, clock } = this.#options
    const now = clock.now()
    if (now - count.lookedAt < LOOK_MS) return
    // Before the answer is there, so that the creations of one moment ask once.
    count.lookedAt = now
    const counts = await storage.counts('job', owner === undefined ? {} : { owner })
    let open = 0
    for (const [status, jobs] of Object.entries(counts)) if (!SETTLED.has(status)) open += jobs
    count.open = open
  }
}

function refusal(why: string): ImpresarioError {
  return new ImpresarioError('TOO_MANY_REQUESTS', `${why} Wait until some have ended.`, {
    details: { retry_after_s: RETRY_AFTER_S },
  })
}
