import type { TaskCall } from '../job/job.ts'
import type { WorkerRecord, WorkerStatus } from '../worker/worker.ts'

/** The part of a task that decides which workers can do it at all. */
export type Demand = Pick<TaskCall, 'type' | 'requirements' | 'maxCost'>

/** A worker and how many tasks it has been given and not yet ended. */
export interface Candidate {
  readonly worker: WorkerRecord
  readonly load: number
  /** How many it would have if it got all that it asked for last. */
  readonly asked?: number
}

/** What a worker asks per second for this type of task; `undefined` when it names no price. */
export function costOf(worker: WorkerRecord, type: string): number | undefined {
  const cost: unknown = worker.costPerSkill[type]
  // The map comes from a worker, and a type may be called `constructor`: only a number is a price.
  return typeof cost === 'number' ? cost : worker.costPerSecond
}

/**
 * Tasks may be pushed to it. A worker that calls itself full is still live, and gets tasks when it polls again. `busy` says that
 * there is room as long as the worker has named how much of it there is.
 */
export function isAccepting({ status, isOpenEnded }: Pick<WorkerRecord, 'status' | 'isOpenEnded'>): boolean {
  return status === 'idle' || (status === 'busy' && isOpenEnded !== true)
}

/** It works now and will take tasks again: everything but a worker that is leaving or has left. */
export function isStaying(status: WorkerStatus): boolean {
  return status !== 'draining' && status !== 'offline'
}

export function hasFreeSlot(candidate: Candidate): boolean {
  return candidate.load < slotsOf(candidate)
}

/** Who did not say how many tasks it takes has room for what it last asked for, and for one as long as it has none. */
export function slotsOf({ worker, asked = 0 }: Candidate): number {
  return worker.isOpenEnded === true ? Math.max(worker.concurrencyMax, asked) : worker.concurrencyMax
}
