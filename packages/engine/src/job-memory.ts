import type { Job, Stored } from '@impresario/core'

const JOBS_MAX = 2_000
/** Values and characters; larger jobs are read when they are needed. */
const SIZE_MAX = 16_000

/**
 * The open jobs that this process had in hand last, so that the next step of each need not read it again. Bounded in number and
 * in size, so that it is some megabytes at most; the ones that were not touched for longest go first.
 */
export class JobMemory {
  readonly #jobs = new Map<string, Stored<Job>>()

  get(id: string): Stored<Job> | undefined {
    return this.#jobs.get(id)
  }

  keep(job: Job, version: number): void {
    this.#jobs.delete(job.id)
    if (!isSmall(job)) return
    this.#jobs.set(job.id, { value: job, version })
    const [oldest] = this.#jobs.keys()
    if (oldest !== undefined && this.#jobs.size > JOBS_MAX) this.#jobs.delete(oldest)
  }

  forget(id: string): void {
    this.#jobs.delete(id)
  }
}

function isSmall({ initialData, stateHistory, branches, aggregationResults, metadata, tracing }: Job): boolean {
  let left = SIZE_MAX
  for (const part of [initialData, stateHistory, branches, aggregationResults, metadata, tracing]) {
    left = room(part, left)
    if (left <= 0) return false
  }
  return true
}

/** What is left of `left` after the value; stops at the moment when nothing is. */
function room(value: unknown, left: number): number {
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left - 1
  let rest = left - 1
  for (const [key, part] of Object.entries(value)) {
    if (rest <= 0) return rest
    rest = room(part, rest - key.length)
  }
  return rest
}
