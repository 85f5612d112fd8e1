import type { LeaseRef } from '@impresario/core'

/** A task in a worker's hands. */
export interface Holding {
  /** The id under which the worker knows it. */
  readonly deliveryId: string
  readonly jobId: string
  readonly lease: LeaseRef
  readonly takenAt: number
}

/** What was taken back from a worker while it held it. */
export interface Recall {
  readonly workerId: string
  readonly taskId: string
  readonly jobId: string
}

/** A worker that never asks what was recalled must not fill the memory. */
const RECALLS_MAX = 1_000

/**
 * What is in each worker's hands, as far as this instance knows; what it is about to take; and what was taken back from it
 * and it has not been told of yet.
 */
export class Holdings {
  /** By worker, then by the task's id in its queue: a task is in one pair of hands. */
  readonly #held = new Map<string, Map<string, Holding>>()
  readonly #reserved = new Map<string, number>()
  readonly #recalled = new Map<string, Set<string>>()

  of(workerId: string): ReadonlyMap<string, Holding> {
    return this.#held.get(workerId) ?? NONE
  }

  add(workerId: string, holding: Holding): void {
    const held = this.#held.get(workerId) ?? new Map<string, Holding>()
    this.#held.set(workerId, held)
    held.set(holding.lease.id, holding)
  }

  /** Takes this very delivery out of the worker's hands. False when it is not there. */
  take(workerId: string, { id, token }: Pick<LeaseRef, 'id' | 'token'>): boolean {
    const held = this.#held.get(workerId)
    if (held?.get(id)?.lease.token !== token) return false
    held.delete(id)
    if (held.size === 0) this.#held.delete(workerId)
    return true
  }

  /** Forgets everything about a worker. */
  clear(workerId: string): void {
    this.#held.delete(workerId)
    this.#recalled.delete(workerId)
  }

  /** Tasks in the worker's hands, and those that it is about to get. */
  count(workerId: string): number {
    return this.of(workerId).size + (this.#reserved.get(workerId) ?? 0)
  }

  /** Two polls of one worker at the same time must not both count on its last free place. */
  reserve(workerId: string, places: number): () => void {
    const change = (by: number): void => {
      const left = (this.#reserved.get(workerId) ?? 0) + by
      if (left > 0) this.#reserved.set(workerId, left)
      else this.#reserved.delete(workerId)
    }
    change(places)
    return () => change(-places)
  }

  /** A task was taken back. Gives whom to tell, if somebody holds it. */
  recall(workerId: string, id: string): Recall | undefined {
    const holding = this.of(workerId).get(id)
    if (holding === undefined) return undefined
    this.take(workerId, holding.lease)
    const { deliveryId: taskId, jobId } = holding
    const recall: Recall = { workerId, taskId, jobId }
    this.addRecall(recall)
    return recall
  }

  /** The worker is to be told, whoever had handed the task to it. */
  addRecall({ workerId, taskId }: Recall): void {
    const recalled = this.#recalled.get(workerId) ?? new Set<string>()
    this.#recalled.set(workerId, recalled)
    recalled.add(taskId)
    if (recalled.size > RECALLS_MAX) for (const oldest of recalled) if (recalled.delete(oldest)) break
  }

  hasRecalls(workerId: string): boolean {
    return this.#recalled.has(workerId)
  }

  /** What the worker has not been told of yet. It is told once: heartbeats that name their tasks learn it again anyway. */
  tellRecalls(workerId: string): readonly string[] {
    const recalled = this.#recalled.get(workerId)
    if (recalled === undefined) return []
    this.#recalled.delete(workerId)
    return [...recalled]
  }

  /** The worker has ended it by itself. */
  forgetRecall(workerId: string, taskId: string): void {
    const recalled = this.#recalled.get(workerId)
    if (recalled?.delete(taskId) === true && recalled.size === 0) this.#recalled.delete(workerId)
  }
}

const NONE: ReadonlyMap<string, Holding> = new Map()
