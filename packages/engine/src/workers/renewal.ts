import { deliveryId, fateOf, parseDeliveryId } from '@impresario/core'
import type { Clock, DeliveryRef, Job, Storage } from '@impresario/core'
import type { Dispatcher } from './dispatcher.ts'
import type { Holdings } from './holdings.ts'
import { leaseOf } from './custody.ts'
import type { Custody } from './custody.ts'
import type { Reception } from './reception.ts'

export interface RenewalOptions {
  readonly storage: Storage
  readonly holdings: Holdings
  readonly custody: Custody
  readonly reception: Reception
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly leaseMs: number
}

/**
 * What was handed over so lately may still be on its way: the heartbeat that does not name it can have left before. Far more
 * than a network takes, and less than the time between two heartbeats of most workers.
 */
const HANDOVER_MS = 5_000

/**
 * What a heartbeat does for the worker's tasks: it extends their leases, and learns which of them are the worker's no more.
 *
 * A heartbeat may cross a poll's answer, so that it does not name what the worker is about to get; and a result, so that it
 * names what has just ended. Neither may take a task out of the worker's hands, nor make it stop one. So it is told to stop
 * only what was really taken back: decided by what the queue shows, else by the job's record, and not at all when neither
 * says so. A worker of several orchestrators names to each of them the tasks of all: what is not ours is none of our business.
 */
export class Renewal {
  readonly #options: RenewalOptions

  constructor(options: RenewalOptions) {
    this.#options = options
  }

  /**
   * Extends the leases that the worker names, or all that it holds if it names none. Gives what was taken back from it.
   * `heardBefore`: when it was heard of before this heartbeat.
   */
  async renew(workerId: string, named: readonly string[] | undefined, heardBefore: number): Promise<readonly string[]> {
    const { holdings, storage, dispatcher, custody, leaseMs } = this.#options
    const lost = named === undefined ? [] : await this.#look(workerId, new Set(named), heardBefore)
    const held = [...holdings.of(workerId).values()]
    if (held.length === 0) return lost
    const kept = await storage.renew(
      held.map(({ lease }) => lease),
      leaseMs,
    )
    const gone: DeliveryRef[] = []
    for (const [index, { lease, deliveryId: id }] of held.entries()) {
      if (kept[index] === true) {
        // Its result may have come meanwhile.
        if (holdings.of(workerId).get(lease.id)?.deliveryId === id) dispatcher.assign(lease.id, workerId)
        continue
      }
      custody.release(workerId, lease)
      const ref = parseDeliveryId(id)
      if (ref !== undefined) gone.push(ref)
    }
    return [...lost, ...(await this.takenBack(workerId, gone)).map(deliveryId)]
  }

  /** Takes up what the worker names and is its own; lets go of what it does not name. Gives what was taken back from it. */
  async #look(workerId: string, named: ReadonlySet<string>, heardBefore: number): Promise<readonly string[]> {
    const { holdings, reception, custody } = this.#options
    const unknown: DeliveryRef[] = []
    for (const id of named) {
      const ref = parseDeliveryId(id)
      if (ref === undefined || holdings.hasAnswered(workerId, id)) continue
      if (holdings.of(workerId).get(leaseOf(ref).id)?.deliveryId !== id) unknown.push(ref)
    }
    const ownerships = await reception.ownerships(workerId, unknown)
    const lost: DeliveryRef[] = []
    for (const [index, ref] of unknown.entries()) {
      if (ownerships[index] !== 'own') lost.push(ref)
      // Its result may have come while we looked.
      else if (!holdings.hasAnswered(workerId, deliveryId(ref))) custody.hold(workerId, ref)
    }
    this.#forget(workerId, named, heardBefore)
    return (await this.takenBack(workerId, lost)).map(deliveryId)
  }

  /** What the worker does not name it never got, or has forgotten: that lease shall end. */
  #forget(workerId: string, named: ReadonlySet<string>, heardBefore: number): void {
    const { holdings, clock, custody } = this.#options
    const since = Math.min(heardBefore - 1, clock.now() - HANDOVER_MS)
    for (const { deliveryId: id, lease, takenAt } of holdings.of(workerId).values()) {
      if (!named.has(id) && takenAt <= since) custody.release(workerId, lease)
    }
  }

  /** Of deliveries that are not in the worker's hands: those that others have, or that ended without its result. */
  async takenBack(workerId: string, refs: readonly DeliveryRef[]): Promise<readonly DeliveryRef[]> {
    const { holdings, reception, storage } = this.#options
    const open = refs.filter((ref) => !holdings.hasAnswered(workerId, deliveryId(ref)))
    const ownerships = await reception.ownerships(workerId, open)
    const jobs = new Map<string, Job | undefined>()
    const taken: DeliveryRef[] = []
    for (const [index, ref] of open.entries()) {
      const ownership = ownerships[index]
      if (ownership === 'own') continue
      if (ownership === 'gone' || ownership === 'next try') {
        if (!jobs.has(ref.jobId)) jobs.set(ref.jobId, (await storage.read('job', ref.jobId))?.value)
        if (fateOf(jobs.get(ref.jobId), ref) === 'taken back') taken.push(ref)
      } else taken.push(ref)
    }
    return taken
  }
}
