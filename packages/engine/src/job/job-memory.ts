import type { Job, Stored } from '@impresario/core'
import { jsonWeight, PassingMap } from '@impresario/protocol'

const JOBS_MAX = 2_000
/** Larger jobs are read when they are needed. */
const JOB_BYTES_MAX = 65_536
const BYTES_MAX = 16_777_216

/** A record without its data, about. */
const RECORD_BYTES = 2_000
const TRAIL_ENTRY_BYTES = 400

interface Kept extends Stored<Job> {
  readonly bytes: number
}

/**
 * The open jobs that this process had in hand last, so that the next step of each need not read it again. Bounded in number and
 * in bytes of memory; the ones that were not touched for longest go first.
 */
export class JobMemory {
  readonly #jobs = new PassingMap<string, Kept>()
  #bytes = 0

  /** What the jobs here take of the memory, about. */
  get bytes(): number {
    return this.#bytes
  }

  get(id: string): Stored<Job> | undefined {
    return this.#jobs.get(id)
  }

  keep(job: Job, version: number): void {
    this.forget(job.id)
    const bytes = jobWeight(job)
    if (bytes > JOB_BYTES_MAX) return
    this.#jobs.set(job.id, { value: job, version, bytes })
    this.#bytes += bytes
    while (this.#jobs.size > JOBS_MAX || this.#bytes > BYTES_MAX) {
      const [oldest] = this.#jobs.keys()
      if (oldest === undefined) return
      this.forget(oldest)
    }
  }

  forget(id: string): void {
    const kept = this.#jobs.get(id)
    if (kept === undefined) return
    this.#jobs.delete(id)
    this.#bytes -= kept.bytes
  }
}

/** What a job takes of the memory, about. Of the record only the parts are looked at that have no small bound. */
function jobWeight(job: Job): number {
  const { stateHistory, result } = job
  return (
    RECORD_BYTES +
    TRAIL_ENTRY_BYTES * job.trail.length +
    jsonWeight(job.initialData) +
    jsonWeight(stateHistory) +
    jsonWeight(job.branches) +
    (result === stateHistory ? 0 : jsonWeight(result)) +
    jsonWeight(job.results) +
    jsonWeight(job.aggregationResults) +
    jsonWeight(job.metadata) +
    jsonWeight(job.wait) +
    jsonWeight(job.error) +
    jsonWeight(job.failure) +
    jsonWeight(job.event) +
    jsonWeight(job.events) +
    jsonWeight(job.onward) +
    jsonWeight(job.compensation) +
    jsonWeight(job.commands) +
    jsonWeight(job.workerEvents) +
    jsonWeight(job.progress) +
    jsonWeight(job.takenBack)
  )
}
