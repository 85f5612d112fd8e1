import { decide } from '@impresario/core'
import type {
  Clock,
  Decision,
  IgnoredReason,
  Job,
  JobEvent,
  LeaseRef,
  Log,
  Put,
  Storage,
  TrailEntry,
} from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { BlueprintShelf } from './blueprint-shelf.ts'
import { batchOf } from './batch.ts'
import type { Place, Retention } from './batch.ts'

/** What came of an event. `lost`: the claim that it answered is somebody else's by now. */
export type Applied =
  | { readonly type: 'applied'; readonly job: Job; readonly before: Job | undefined; readonly version: number }
  | { readonly type: 'ignored'; readonly reason: IgnoredReason; readonly job: Job | undefined }
  | { readonly type: 'lost' }

export interface DirectorOptions {
  readonly storage: Storage
  readonly shelf: BlueprintShelf
  readonly clock: Clock
  readonly log: Log
  readonly place: Place
  /** Tells the dispatcher what has become of tasks, after the commit. */
  readonly onDecided: (decision: Decision, before: Job | undefined, version: number, event: JobEvent) => void
  /** Takes back the places that a batch reserved and that a conflict made void. */
  readonly onRefused: (decision: Decision) => void
  readonly retention?: Retention
  /** Gets the notable moments of jobs, after the commit, and those of events that came too late. */
  readonly onEntries?: ((jobId: string, entries: readonly TrailEntry[], job: Job | undefined) => void) | undefined
}

/** What a commit depends on beside the job, and what is written with it. */
interface Conditions {
  readonly settle: LeaseRef | undefined
  readonly extra: readonly Put[] | undefined
  readonly guard: LeaseRef | undefined
}

/** After this many conflicts in a row something is wrong with the storage, not with the timing. */
const CONFLICTS_MAX = 100

/**
 * The only door into a job: load, decide, commit — all of it or nothing.
 *
 * A commit that loses against another writer is decided anew on what that writer left. A commit
 * that loses because its claim was taken away changes nothing and is told so.
 *
 * Events of one job that come at the same time wait for each other: 500 results of one fan-out would
 * otherwise be 125,000 decisions, and more conflicts than are borne. Only other instances conflict.
 */
export class Director {
  readonly #options: DirectorOptions
  /** The jobs that an event is being applied to here, each with those who wait for their turn. */
  readonly #busy = new Map<string, (() => void)[]>()

  constructor(options: DirectorOptions) {
    this.#options = options
  }

  /** `settle`: the claim that the event answers. `guard`: the lead under which it is applied; it stays. */
  async apply(
    jobId: string,
    event: JobEvent,
    settle?: LeaseRef,
    extra?: readonly Put[],
    guard?: LeaseRef,
  ): Promise<Applied> {
    const waiting = this.#busy.get(jobId)
    if (waiting === undefined) {
      this.#busy.set(jobId, [])
    } else {
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
      })
    }
    try {
      return await this.#apply(jobId, event, { settle, extra, guard })
    } finally {
      const next = this.#busy.get(jobId)?.shift()
      if (next === undefined) this.#busy.delete(jobId)
      else next()
    }
  }

  /** For the history. What goes wrong there is no concern of the job. */
  remark(jobId: string, job: Job | undefined, entries: readonly TrailEntry[]): void {
    if (entries.length === 0) return
    try {
      this.#options.onEntries?.(jobId, entries, job)
    } catch (error) {
      this.#options.log.error('the history could not be written', { job_id: jobId, error: String(error) })
    }
  }

  async #apply(jobId: string, event: JobEvent, conditions: Conditions): Promise<Applied> {
    const { storage, shelf } = this.#options
    const { settle } = conditions
    let versionSeen = -1
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('job', jobId)
      const version = stored?.version ?? 0
      if (version === versionSeen) return { type: 'lost' }
      versionSeen = version
      const before = stored?.value
      const decision = decide(shelf.scriptFor(before, event), before, event)
      if (decision.type === 'ignored') {
        if (settle !== undefined) await storage.commit({ settle })
        for (const { note } of decision.entries) {
          this.#options.log.info('an event came too late', { job_id: jobId, reason: decision.reason, note })
        }
        this.remark(jobId, before, decision.entries)
        return { type: 'ignored', reason: decision.reason, job: before }
      }
      const outcome = await this.#commit(decision, version + 1, conditions)
      if (outcome === 'committed') {
        this.#options.onDecided(decision, before, version + 1, event)
        this.remark(jobId, decision.job, decision.entries)
        return { type: 'applied', job: decision.job, before, version: version + 1 }
      }
      if (conditions.extra !== undefined) return { type: 'lost' }
    }
    throw new ImpresarioError(
      'STORAGE_UNAVAILABLE',
      `Job ${jobId} could not be written after ${CONFLICTS_MAX} conflicts.`,
    )
  }

  /** Whatever keeps the batch from being written, a strategy that does not exist or a broken disk: no place stays taken. */
  async #commit(
    decision: Decision,
    version: number,
    { settle, extra = [], guard }: Conditions,
  ): Promise<'committed' | 'conflict'> {
    const { storage, place, onRefused, retention } = this.#options
    let outcome: 'committed' | 'conflict' = 'conflict'
    try {
      const batch = batchOf(decision, version, settle, { place, retention })
      const put = [...batch.put, ...extra]
      outcome = await storage.commit(guard === undefined ? { ...batch, put } : { ...batch, put, guard })
      return outcome
    } finally {
      if (outcome === 'conflict') onRefused(decision)
    }
  }
}
