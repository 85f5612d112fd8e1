import { asksForTurnNow, turnId } from '@impresario/core'
import type { Clock, Decision, ItemView, JobEvent, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { readTurn } from './payload.ts'

export interface TurnQueueOptions {
  readonly storage: Storage
  readonly clock: Clock
  /** A client whose new jobs wait longer for their first turn starts no more until they do not. */
  readonly waitMsMax: number
}

/** A turn that is observed until it is claimed, as a sample for all turns behind it. */
interface Sample {
  readonly turn: string
  readonly visit: number
  readonly since: number
  lookedAt: number
  /** The last look found it waiting. */
  isWaiting: boolean
}

/** A younger turn says nothing about the wait, and the queue is not sampled more often than this. */
const LOOK_MS = 1_000
/** Clients that are observed. A forgotten client is observed again with its next job. */
const CLIENTS_MAX = 10_000
const RETRY_AFTER_S = 5

/**
 * How long the turns of each client's new jobs wait, told by one of them at a time. Handlers that cannot keep up with the jobs
 * that come are noticed by that, whatever the number of those that wait; clients whose turns are taken in time notice nothing.
 *
 * Asks the storage, because another instance may take the turn.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions
  readonly #samples = new Map<string, Sample>()

  constructor(options: TurnQueueOptions) {
    this.#options = options
  }

  /** Follows the turn of a job that has just been created, if no other one of its client is followed. */
  onDecided(decision: Decision, event: JobEvent): void {
    if (event.type !== 'created') return
    const { id, client, visit } = decision.job
    if (this.#samples.has(client.id) || !asksForTurnNow(decision)) return
    if (this.#samples.size >= CLIENTS_MAX) this.#samples.clear()
    const now = this.#options.clock.now()
    this.#samples.set(client.id, { turn: turnId(id), visit, since: now, lookedAt: now, isWaiting: false })
  }

  /** Whether nothing has to be looked at to know that the client can start another job. */
  isQuiet(clientId: string): boolean {
    const sample = this.#samples.get(clientId)
    return sample === undefined || this.#options.clock.now() - sample.since < LOOK_MS
  }

  /** Why the client cannot start another job now. */
  async refusal(clientId: string): Promise<ImpresarioError | undefined> {
    const { storage, clock, waitMsMax } = this.#options
    const sample = this.#samples.get(clientId)
    const now = clock.now()
    if (sample === undefined || now - sample.since < LOOK_MS) return undefined
    if (now - sample.lookedAt >= LOOK_MS) {
      sample.lookedAt = now
      const [view] = await storage.peek('turns', [sample.turn])
      if (view === undefined || !isUntouched(view, sample.visit)) {
        if (this.#samples.get(clientId) === sample) this.#samples.delete(clientId)
        return undefined
      }
      sample.isWaiting = true
    }
    // While the first look at an old turn is under way, nothing is known of it.
    return sample.isWaiting && now - sample.since > waitMsMax ? tooLong(now - sample.since) : undefined
  }
}

/** A later turn of the job, or the same one after a failure, has the same id. */
function isUntouched({ payload, lease, deliveries, dueInMs }: ItemView, visit: number): boolean {
  return readTurn(payload) === visit && lease === undefined && deliveries === 0 && dueInMs === 0
}

function tooLong(waitedMs: number): ImpresarioError {
  return new ImpresarioError(
    'OVERLOADED',
    `Your jobs have been waiting ${Math.floor(waitedMs / 1_000)} s for their first turn. Wait until they have had it.`,
    { details: { retry_after_s: RETRY_AFTER_S } },
  )
}
