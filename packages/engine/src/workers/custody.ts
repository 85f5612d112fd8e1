import { deliveryId, taskId } from '@impresario/core'
import type { Clock, DeliveryRef, LeaseRef } from '@impresario/core'
import type { Holdings } from './holdings.ts'
import type { Parking } from './parking.ts'

export interface CustodyOptions {
  readonly clock: Clock
  readonly holdings: Holdings
  readonly parking: Parking
}

/**
 * Gives tasks to workers and takes them away again, as far as this instance counts them. A poll that waits because its worker
 * holds as much as it can is woken when something is taken away.
 */
export class Custody {
  readonly #options: CustodyOptions
  /** Workers whose poll waits because they hold as much as they can. */
  readonly #full = new Set<string>()

  constructor(options: CustodyOptions) {
    this.#options = options
  }

  /** Counts a delivery as the worker's. */
  hold(workerId: string, ref: DeliveryRef): void {
    const { holdings, clock } = this.#options
    const takenAt = clock.now()
    holdings.add(workerId, { deliveryId: deliveryId(ref), jobId: ref.jobId, lease: leaseOf(ref), takenAt })
  }

  /** The worker holds this delivery no more. False when it did not. */
  release(workerId: string, lease: LeaseRef): boolean {
    const isHeld = this.#options.holdings.take(workerId, lease)
    if (isHeld) this.wakeIfFull(workerId)
    return isHeld
  }

  /** The result of the delivery with this id is here: whatever becomes of it, the worker has room again. False when it was not known to hold it. */
  answer(workerId: string, id: string, lease: LeaseRef): boolean {
    const { holdings } = this.#options
    holdings.answer(workerId, id)
    holdings.forgetRecall(workerId, id)
    return holdings.of(workerId).get(lease.id)?.deliveryId === id && this.release(workerId, lease)
  }

  /** The result could not be taken: the worker has the task as before, if it had it. */
  restore(workerId: string, id: string, ref: DeliveryRef, wasHeld: boolean): void {
    this.#options.holdings.forgetAnswer(workerId, id)
    if (wasHeld) this.hold(workerId, ref)
  }

  /** The worker's poll waits until it has room. */
  waitsForRoom(workerId: string): void {
    this.#full.add(workerId)
  }

  isWaitingForRoom(workerId: string): boolean {
    return this.#full.has(workerId)
  }

  wakeIfFull(workerId: string): void {
    if (this.#full.delete(workerId)) this.#options.parking.wake(workerId)
  }

  /** Ends the parked polls of a worker here. False when it has none. */
  wake(workerId: string): boolean {
    this.#full.delete(workerId)
    return this.#options.parking.wake(workerId)
  }
}

/** The lease that a delivery is. */
export function leaseOf({ jobId, visit, branch, token }: DeliveryRef): LeaseRef {
  return { queue: 'tasks', id: taskId(jobId, visit, branch), token }
}
