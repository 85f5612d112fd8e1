import type { LeaseRef, WorkerRecord } from '@impresario/core'
import { LIMITS, PassingMap } from '@impresario/protocol'
import { Recent } from '../service/recent.ts'

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
/** Answers that are remembered, over all workers. A heartbeat crosses a result by milliseconds; the job's record knows the rest. */
const ANSWERS_MAX = 20_000

/**
 * What is in each worker's hands, as far as this instance knows; what it is about to take; what was taken back from it and it
 * has not been told of yet; and which results it has brought lately.
 */
export class Holdings {
  /** By worker, then by the task's id in its queue: a task is in one pair of hands. */
  readonly #held = new PassingMap<string, PassingMap<string, Holding>>()
  readonly #reserved = new PassingMap<string, number>()
  readonly #recalled = new Map<string, Set<string>>()
  /** Who was given each task last, of those who hold it. */
  readonly #holders = new PassingMap<string, string>()
  /** By worker and delivery. */
  readonly #answered = new Recent<true>(ANSWERS_MAX)

  of(workerId: string): ReadonlyMap<string, Holding> {
    return this.#held.get(workerId) ?? NONE
  }

  /** Tasks in the hands of all workers. */
  get size(): number {
    return this.#holders.size
  }

  add(workerId: string, holding: Holding): void {
    const held = this.#held.get(workerId) ?? new PassingMap<string, Holding>()
    this.#held.set(workerId, held)
    held.set(holding.lease.id, holding)
    this.#holders.set(holding.lease.id, workerId)
  }

  /** Who holds this task, by its id in its queue, and as what. */
  holderOf(id: string): { readonly workerId: string; readonly holding: Holding } | undefined {
    const workerId = this.#holders.get(id)
    const holding = workerId === undefined ? undefined : this.of(workerId).get(id)
    return workerId === undefined || holding === undefined ? undefined : { workerId, holding }
  }

  /** Takes this very delivery out of the worker's hands. False when it is not there. */
  take(workerId: string, { id, token }: Pick<LeaseRef, 'id' | 'token'>): boolean {
    const held = this.#held.get(workerId)
    if (held?.get(id)?.lease.token !== token) return false
    held.delete(id)
    if (held.size === 0) this.#held.delete(workerId)
    if (this.#holders.get(id) === workerId) this.#holders.delete(id)
    return true
  }

  /** The worker has brought the result of this delivery: it is not told to stop it any more. */
  answer(workerId: string, deliveryId: string): void {
    this.#answered.set(answerKey(workerId, deliveryId), true)
  }

  /** The result could not be taken, and will be brought again. */
  forgetAnswer(workerId: string, deliveryId: string): void {
    this.#answered.delete(answerKey(workerId, deliveryId))
  }

  hasAnswered(workerId: string, deliveryId: string): boolean {
    return this.#answered.get(answerKey(workerId, deliveryId)) === true
  }

  /** Forgets everything about a worker. */
  clear(workerId: string): void {
    for (const id of this.of(workerId).keys()) if (this.#holders.get(id) === workerId) this.#holders.delete(id)
    this.#held.delete(workerId)
    this.#recalled.delete(workerId)
  }

  /** Tasks in the worker's hands, and those that it is about to get. */
  count(workerId: string): number {
    return this.of(workerId).size + (this.#reserved.get(workerId) ?? 0)
  }

  /** How many more tasks fit into its hands. Who did not say how many it takes polls only while it has room. */
  roomOf({ id, concurrencyMax, isOpenEnded }: WorkerRecord): number {
    return (isOpenEnded === true ? LIMITS.workerTasksMax : concurrencyMax) - this.count(id)
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

  /** A task was taken back. Returns the worker to tell, if one holds it. */
  recall(workerId: string, id: string): Recall | undefined {
    const holding = this.of(workerId).get(id)
    if (holding === undefined) return undefined
    this.take(workerId, holding.lease)
    const { deliveryId: taskId, jobId } = holding
    const recall: Recall = { workerId, taskId, jobId }
    this.addRecall(recall)
    return recall
  }

  /** The worker is to be told, whichever instance had handed the task to it. */
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

function answerKey(workerId: string, deliveryId: string): string {
  return `${workerId} ${deliveryId}`
}

const NONE: ReadonlyMap<string, Holding> = new Map()
