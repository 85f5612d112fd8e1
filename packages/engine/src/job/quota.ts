import type { Put, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { OneByOne } from '../service/one-by-one.ts'

/** How many jobs a client may start in the present period. */
export interface Quota {
  readonly limit: number
  /** Names the period, such as `2026-11`. Later ones sort after earlier ones. */
  readonly period: string
  /** How long until the next one begins. */
  readonly renewsInMs: number
}

export interface QuotaUse {
  readonly period: string
  readonly used: number
}

/**
 * Counts the jobs that clients start. The count is written in the very commit that creates the job: who is refused, or
 * asks for a job that is there already, pays nothing, and no two jobs are paid for as one.
 *
 * Creations of one client wait for each other here, since each changes the same record; 500 of one batch would otherwise
 * be 125,000 tries. Other instances conflict, and the loser counts again on what the winner left.
 */
export class QuotaBook {
  readonly #storage: Storage
  readonly #queue = new OneByOne()

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** One after the other for each client, in the order of the calls. */
  oneByOne<T>(clientId: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(clientId, work)
  }

  /** The record with one more in it. Refuses when there is no more to be had. */
  async next(clientId: string, quota: Quota): Promise<Put> {
    const stored = await this.#storage.read('quota', clientId)
    const { period, used } = useIn(stored?.value, quota)
    if (used >= quota.limit) throw usedUp(quota)
    return { kind: 'quota', id: clientId, version: (stored?.version ?? 0) + 1, value: { period, used: used + 1 } }
  }

  async use(clientId: string, quota: Quota): Promise<QuotaUse> {
    return useIn((await this.#storage.read('quota', clientId))?.value, quota)
  }
}

/** An instance whose clock is a little behind must not bring the old period back: the newest one counts for all. */
function useIn(known: QuotaUse | undefined, { period }: Quota): QuotaUse {
  return known === undefined || known.period < period ? { period, used: 0 } : known
}

function usedUp({ limit, renewsInMs }: Quota): ImpresarioError {
  return new ImpresarioError('QUOTA_EXCEEDED', `Quota exceeded: all ${limit} jobs of this month have been started.`, {
    details: { retry_after_s: Math.max(1, Math.ceil(renewsInMs / 1_000)) },
  })
}
