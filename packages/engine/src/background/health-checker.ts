import { nextPage, workerLane } from '@impresario/core'
import type { Clock, Listing, Log, Storage, Stored, WorkerRecord } from '@impresario/core'
import type { LedService, Term } from '../service/leadership.ts'

export interface HealthCheckerOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  /** The record of a worker that has been silent for so long is removed. */
  readonly forgetMs: number
  readonly onForgotten: (worker: WorkerRecord) => void
}

const CHECK_MS = 60_000
const PAGE = 500
/** Workers may describe themselves at length. */
const PAGE_BYTES = 2_097_152

/**
 * Removes the records of workers that have been silent for long.
 *
 * Tasks are safe without it: a silent worker is given none, and those in its own lane are open to all workers that fit as soon as
 * they have waited for their pickup time. What is left there is only counted and told.
 */
export class HealthChecker implements LedService {
  readonly name = 'health-checker'
  readonly idleMs = CHECK_MS
  readonly #options: HealthCheckerOptions
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(options: HealthCheckerOptions) {
    this.#options = options
  }

  readonly isWanted = (): boolean => true

  readonly begin = async (): Promise<void> => {
    this.#nextAt = Number.NEGATIVE_INFINITY
  }

  readonly round = async (term: Term): Promise<{ worked: number; nextInMs: number | undefined }> => {
    const { storage, clock, forgetMs } = this.#options
    const now = clock.now()
    if (now < this.#nextAt) return { worked: 0, nextInMs: this.#nextAt - now }
    let worked = 0
    let before: string | undefined
    do {
      const query = { limit: PAGE, bytesMax: PAGE_BYTES }
      const page: Listing<'worker'> = await storage.list('worker', before === undefined ? query : { ...query, before })
      for (const stored of page) {
        if (term.isOver()) return { worked, nextInMs: undefined }
        if (now - stored.value.seenAt > forgetMs && (await this.#forget(stored, term))) worked += 1
      }
      before = nextPage(page, PAGE)
    } while (before !== undefined)
    this.#nextAt = now + CHECK_MS
    return { worked, nextInMs: CHECK_MS }
  }

  /** By a last version that expires at once, not by dropping it: a sign of life that comes in between then wins. */
  async #forget({ value, version }: Stored<WorkerRecord>, term: Term): Promise<boolean> {
    const { storage, log, onForgotten } = this.#options
    const facets = { status: value.status, name: value.type }
    const put = { kind: 'worker', id: value.id, value, version: version + 1, facets, expiresMs: 1 } as const
    if ((await storage.commit({ put: [put], guard: term.guard })) !== 'committed') return false
    onForgotten(value)
    const own = (await storage.lanes('tasks')).find(({ lane }) => lane === workerLane(value.id))
    log.info('a worker was silent for long and is forgotten', {
      worker_id: value.id,
      seen_at: value.seenAt,
      tasks_left_to_others: own?.ready ?? 0,
    })
    return true
  }
}
