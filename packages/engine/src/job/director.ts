import { asksForTurnNow, decide, followedBy, isEnded } from '@impresario/core'
import type {
  Batch,
  Clock,
  Decision,
  IgnoredReason,
  Job,
  JobEvent,
  LeaseRef,
  Log,
  Put,
  Storage,
  Stored,
  TrailEntry,
} from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { ScriptRegistry } from './script-registry.ts'
import { batchOf, deliveryNotes } from './batch.ts'
import type { PlacementOf, Retention } from './batch.ts'
import { JobMemory } from './job-memory.ts'

/** The outcome of an event. `lost`: another holder has claimed the item meanwhile. */
export type Applied =
  | { readonly type: 'applied'; readonly job: Job; readonly before: Job | undefined; readonly version: number }
  | { readonly type: 'ignored'; readonly reason: IgnoredReason; readonly job: Job | undefined }
  | { readonly type: 'lost' }

/** The same for what a person asks for. `repeated`: the job has done so before, when the same person asked for the same. */
export type Commanded = Applied | { readonly type: 'repeated'; readonly job: Job }

/** Hears of a decision after its commit. */
export type DecisionListener = (decision: Decision, before: Job | undefined, version: number, event: JobEvent) => void

export interface DirectorOptions {
  readonly storage: Storage
  readonly registry: ScriptRegistry
  readonly clock: Clock
  readonly log: Log
  readonly place: PlacementOf
  /** Takes back the places that a batch reserved and that a conflict made void. `isUnknown`: it may have been written. */
  readonly onRefused: (decision: Decision, isUnknown: boolean) => void
  readonly retention?: Retention
  /** Takes the turn that a decision asks for, if that can be done at once. */
  readonly takeTurn: (job: Job) => Promise<JobEvent | undefined>
  /** Gets the notable moments of jobs, after the commit, and those of events that came too late. */
  readonly onEntries?: ((jobId: string, entries: readonly TrailEntry[], job: Job | undefined) => void) | undefined
}

/** What a commit depends on beside the job, and what is written with it. */
export interface Conditions {
  /** The claim that the event answers; it ends with the commit. */
  readonly settle?: LeaseRef | undefined
  /** Records that are written with the job. */
  readonly extra?: readonly Put[] | undefined
  /** Items and records that come and go with it. */
  readonly beside?: Pick<Batch, 'enqueue' | 'remove' | 'drop'> | undefined
  /** The lease under which the event is applied; it must hold, and stays. */
  readonly guard?: LeaseRef | undefined
}

const NO_CONDITIONS: Conditions = {}

/** Turns that are taken in one commit. A job that goes round and round lets others have theirs. */
const TURNS_MAX = 10

/** After this many conflicts in a row something is wrong with the storage, not with the timing. */
const CONFLICTS_MAX = 100

/**
 * The only door into a job: load, decide, commit — all of it or nothing.
 *
 * A commit that loses against another writer is decided again on what that writer left. A commit
 * that loses because its claim was taken away changes nothing and is told so.
 *
 * Events of one job that come at the same time wait for each other: 500 results of one fan-out would
 * otherwise be 125,000 decisions, and more conflicts than are borne. Only other instances conflict.
 */
export class Director {
  readonly #options: DirectorOptions
  /** The jobs that an event is being applied to here, each with those who wait for their turn. */
  readonly #busy = new Map<string, (() => void)[] | undefined>()
  /** Jobs as they were last seen here. Another instance may have written them since; then the commit is refused. */
  readonly #memory = new JobMemory()

  readonly #listeners: DecisionListener[] = []

  constructor(options: DirectorOptions) {
    this.#options = options
  }

  /** Calls `listener` after every commit, in the order in which listeners came. */
  onDecided(listener: DecisionListener): void {
    this.#listeners.push(listener)
  }

  async apply(jobId: string, event: JobEvent, conditions: Conditions = NO_CONDITIONS): Promise<Applied> {
    if (this.#busy.has(jobId)) {
      const waiting = this.#busy.get(jobId) ?? []
      this.#busy.set(jobId, waiting)
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
      })
    } else this.#busy.set(jobId, undefined)
    try {
      return await this.#apply(jobId, event, conditions)
    } finally {
      const next = this.#busy.get(jobId)?.shift()
      if (next === undefined) this.#busy.delete(jobId)
      else next()
    }
  }

  /** The job as it was last seen here, if it is remembered. */
  remembered(jobId: string): Job | undefined {
    return this.#memory.get(jobId)?.value
  }

  /** The cached job if there is one, else the stored one: the caller is about to write the job, which detects a stale version. */
  async cached(jobId: string, isEnough: (job: Job) => boolean): Promise<Stored<Job> | undefined> {
    const known = this.#memory.get(jobId)
    if (known !== undefined && isEnough(known.value)) return known
    const stored = await this.#options.storage.read('job', jobId)
    if (stored !== undefined) this.learn(stored)
    return stored
  }

  /** Remembers a job as it was read, unless something newer has been written here meanwhile. */
  learn({ value, version }: Stored<Job>): void {
    if (version > (this.#memory.get(value.id)?.version ?? 0)) this.#memory.keep(value, version)
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
    const { storage, registry } = this.#options
    const { settle } = conditions
    let versionSeen = -1
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const isGuess = conflicts === 0 && (event.type === 'created' || this.#memory.get(jobId) !== undefined)
      const stored = isGuess ? this.#memory.get(jobId) : await storage.read('job', jobId)
      const version = stored?.version ?? 0
      if (version === versionSeen) return { type: 'lost' }
      const before = stored?.value
      const decision = decide(registry.scriptFor(before, event), before, event)
      if (decision.type === 'ignored') {
        if (isGuess) continue
        if (settle !== undefined && decision.reason !== 'too_large') await storage.commit({ settle })
        this.remark(jobId, before, decision.entries)
        return { type: 'ignored', reason: decision.reason, job: before }
      }
      versionSeen = version
      const written = await this.#write(decision, version + 1, conditions)
      if (written !== undefined) {
        for (const listener of this.#listeners) listener(written, before, version + 1, event)
        this.remark(jobId, written.job, written.entries)
        return { type: 'applied', job: written.job, before, version: version + 1 }
      }
      this.#memory.forget(jobId)
      if (conditions.extra !== undefined) return { type: 'lost' }
    }
    throw new ImpresarioError(
      'STORAGE_UNAVAILABLE',
      `Job ${jobId} could not be written after ${CONFLICTS_MAX} conflicts.`,
    )
  }

  /** Writes what was decided, with the turns that follow from it at once. Gives back all of it; nothing after a conflict. */
  async #write(decision: Decision, version: number, conditions: Conditions): Promise<Decision | undefined> {
    const whole = await this.#withTurns(decision)
    try {
      return await this.#commit(whole, version, conditions)
    } catch (error) {
      // A handler asked for what cannot be done. The executor runs it again, and knows what to do about it.
      if (whole === decision || !isHandlersFault(error)) throw error
      return this.#commit(decision, version, conditions)
    }
  }

  async #withTurns(decision: Decision): Promise<Decision> {
    const { registry, takeTurn } = this.#options
    let whole = decision
    for (let turns = 0; turns < TURNS_MAX && asksForTurnNow(whole); turns += 1) {
      const event = await takeTurn(whole.job)
      if (event === undefined) return whole
      const next = decide(registry.scriptFor(whole.job, event), whole.job, event)
      if (next.type === 'ignored') return whole
      whole = followedBy(whole, next)
    }
    return whole
  }

  /** Whatever keeps the batch from being written, a strategy that does not exist or a broken disk: no place stays taken. */
  async #commit(
    decision: Decision,
    version: number,
    { settle, extra, beside, guard }: Conditions,
  ): Promise<Decision | undefined> {
    const { storage, place, onRefused, retention } = this.#options
    let outcome: 'committed' | 'conflict' | 'unknown' | undefined
    try {
      const batch = withItems(batchOf(decision, version, settle, { place, retention }), beside)
      const whole = withRecords(batch, extra, guard)
      const notes = deliveryNotes(batch)
      outcome = 'unknown'
      outcome = await storage.commit(notes.length === 0 ? whole : { ...whole, put: [...whole.put, ...notes] })
      // The notes of a name that was used before are in the way, or another writer was first: that shows itself again.
      if (outcome === 'conflict' && notes.length > 0) outcome = await storage.commit(whole)
      if (outcome === 'conflict') return undefined
      const { job } = decision
      if (isEnded(job)) this.#memory.forget(job.id)
      else this.#memory.keep(job, version)
      return decision
    } finally {
      if (outcome !== 'committed') onRefused(decision, outcome === 'unknown')
    }
  }
}

function withItems(batch: ReturnType<typeof batchOf>, beside: Conditions['beside']): typeof batch {
  if (beside === undefined) return batch
  const { enqueue = [], remove = [], drop = [] } = beside
  return {
    ...batch,
    enqueue: [...(batch.enqueue ?? []), ...enqueue],
    remove: [...(batch.remove ?? []), ...remove],
    ...(drop.length === 0 ? {} : { drop }),
  }
}

function withRecords(
  batch: ReturnType<typeof batchOf>,
  extra: readonly Put[] | undefined,
  guard: LeaseRef | undefined,
): typeof batch {
  if (extra === undefined && guard === undefined) return batch
  const put = extra === undefined ? batch.put : [...batch.put, ...extra]
  return guard === undefined ? { ...batch, put } : { ...batch, put, guard }
}

/** What a handler asked for cannot be done, for example by a strategy that does not exist. */
export function isHandlersFault(error: unknown): boolean {
  return isImpresarioError(error, 'INVALID_BLUEPRINT') || isImpresarioError(error, 'LIMIT_EXCEEDED')
}
