import { asksForTurnNow, decide, followedBy, isEnded, jobOfItem } from '@impresario/core'
import type {
  Batch,
  Clock,
  Decision,
  IgnoredReason,
  Job,
  JobEvent,
  Lease,
  LeaseRef,
  Log,
  Put,
  Storage,
  Stored,
  TrailEntry,
} from '@impresario/core'
import { ImpresarioError, isImpresarioError, PassingMap } from '@impresario/protocol'
import type { Soon } from '@impresario/protocol'
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
  readonly takeTurn: (job: Job) => Soon<JobEvent | undefined>
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
  readonly #busy = new PassingMap<string, (() => void)[] | undefined>()
  /** Jobs as they were last seen here. Another instance may have written them since; then the commit is refused. */
  readonly #memory = new JobMemory()
  #isForgetful = false

  readonly #listeners: DecisionListener[] = []

  constructor(options: DirectorOptions) {
    this.#options = options
  }

  /** Calls `listener` after every commit, in the order in which listeners came. */
  onDecided(listener: DecisionListener): void {
    this.#listeners.push(listener)
  }

  /** Answers at once where nothing has to be waited for: the job is remembered, its handler has chosen, and the storage is in this process. */
  apply(jobId: string, event: JobEvent, conditions: Conditions = NO_CONDITIONS): Soon<Applied> {
    if (this.#busy.has(jobId)) return this.#applyInTurn(jobId, event, conditions)
    this.#busy.set(jobId, undefined)
    let applied: Soon<Applied> | undefined
    try {
      applied = this.#apply(jobId, event, conditions)
    } finally {
      if (!(applied instanceof Promise)) this.#leave(jobId)
    }
    return applied instanceof Promise ? this.#leaving(jobId, applied) : applied
  }

  async #applyInTurn(jobId: string, event: JobEvent, conditions: Conditions): Promise<Applied> {
    const waiting = this.#busy.get(jobId) ?? []
    this.#busy.set(jobId, waiting)
    await new Promise<void>((resolve) => {
      waiting.push(resolve)
    })
    try {
      return await this.#apply(jobId, event, conditions)
    } finally {
      this.#leave(jobId)
    }
  }

  async #leaving(jobId: string, applied: Promise<Applied>): Promise<Applied> {
    try {
      return await applied
    } finally {
      this.#leave(jobId)
    }
  }

  #leave(jobId: string): void {
    const next = this.#busy.get(jobId)?.shift()
    if (next === undefined) this.#busy.delete(jobId)
    else next()
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

  /** Remembers what a claim has brought along. */
  learnOf(leases: readonly Lease[]): void {
    const forgotten = leases.filter(({ id }) => this.remembered(jobOfItem(id)) === undefined)
    if (leases.length > 0) this.#isForgetful = 2 * forgotten.length > leases.length
    for (const { job } of leases) if (job !== undefined) this.learn(job)
  }

  /** Most jobs of the last claim were not remembered here: a long queue is worked off. */
  get isForgetful(): boolean {
    return this.#isForgetful
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

  /** First on the job as it is remembered. If that was not the last word, on what the storage has. */
  #apply(jobId: string, event: JobEvent, conditions: Conditions): Soon<Applied> {
    const known = this.#memory.get(jobId)
    if (known === undefined && event.type !== 'created') return this.#applyToStored(jobId, event, conditions, -1)
    const before = known?.value
    const decision = decide(this.#options.registry.scriptFor(before, event), before, event)
    if (decision.type === 'ignored') return this.#applyToStored(jobId, event, conditions, -1)
    const version = known?.version ?? 0
    const written = this.#write(decision, version + 1, conditions)
    const end = (whole: Decision | undefined): Soon<Applied> => {
      if (whole !== undefined) return this.#tell(whole, before, version + 1, event)
      this.#memory.forget(jobId)
      return conditions.extra === undefined ? this.#applyToStored(jobId, event, conditions, version) : { type: 'lost' }
    }
    return written instanceof Promise ? written.then(end) : end(written)
  }

  /** `versionSeen`: a job of this version has been tried in vain. */
  async #applyToStored(jobId: string, event: JobEvent, conditions: Conditions, versionSeen: number): Promise<Applied> {
    const { storage, registry } = this.#options
    const { settle } = conditions
    let lastSeen = versionSeen
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('job', jobId)
      const version = stored?.version ?? 0
      if (version === lastSeen) return { type: 'lost' }
      const before = stored?.value
      const decision = decide(registry.scriptFor(before, event), before, event)
      if (decision.type === 'ignored') {
        if (settle !== undefined && decision.reason !== 'too_large') await storage.commit({ settle })
        this.remark(jobId, before, decision.entries)
        return { type: 'ignored', reason: decision.reason, job: before }
      }
      lastSeen = version
      const written = await this.#write(decision, version + 1, conditions)
      if (written !== undefined) return this.#tell(written, before, version + 1, event)
      this.#memory.forget(jobId)
      if (conditions.extra !== undefined) return { type: 'lost' }
    }
    throw new ImpresarioError(
      'STORAGE_UNAVAILABLE',
      `Job ${jobId} could not be written after ${CONFLICTS_MAX} conflicts.`,
    )
  }

  #tell(written: Decision, before: Job | undefined, version: number, event: JobEvent): Applied {
    for (const listener of this.#listeners) listener(written, before, version, event)
    this.remark(written.job.id, written.job, written.entries)
    return { type: 'applied', job: written.job, before, version }
  }

  /** Writes what was decided, with the turns that follow from it at once. Gives back all of it; nothing after a conflict. */
  #write(decision: Decision, version: number, conditions: Conditions): Soon<Decision | undefined> {
    if (!asksForTurnNow(decision)) return this.#commit(decision, version, conditions)
    const whole = this.#withTurns(decision, 0)
    return whole instanceof Promise
      ? whole.then((known) => this.#writeWhole(decision, known, version, conditions))
      : this.#writeWhole(decision, whole, version, conditions)
  }

  #writeWhole(
    decision: Decision,
    whole: Decision,
    version: number,
    conditions: Conditions,
  ): Soon<Decision | undefined> {
    // A handler asked for what cannot be done. The executor runs it again, and knows what to do about it.
    const without = (error: unknown): Soon<Decision | undefined> => {
      if (whole === decision || !isHandlersFault(error)) throw error
      return this.#commit(decision, version, conditions)
    }
    try {
      const written = this.#commit(whole, version, conditions)
      return written instanceof Promise ? written.catch(without) : written
    } catch (error) {
      return without(error)
    }
  }

  #withTurns(decision: Decision, taken: number): Soon<Decision> {
    let whole = decision
    for (let turns = taken; turns < TURNS_MAX && asksForTurnNow(whole); turns += 1) {
      const event = this.#options.takeTurn(whole.job)
      if (event instanceof Promise) {
        const [before, next] = [whole, turns + 1]
        return event.then((chosen) => {
          const after = this.#followed(before, chosen)
          return after === undefined ? before : this.#withTurns(after, next)
        })
      }
      const after = this.#followed(whole, event)
      if (after === undefined) return whole
      whole = after
    }
    return whole
  }

  #followed(whole: Decision, event: JobEvent | undefined): Decision | undefined {
    if (event === undefined) return undefined
    const next = decide(this.#options.registry.scriptFor(whole.job, event), whole.job, event)
    return next.type === 'ignored' ? undefined : followedBy(whole, next)
  }

  /** Whatever keeps the batch from being written, a strategy that does not exist or a broken disk: no place stays taken. */
  #commit(
    decision: Decision,
    version: number,
    { settle, extra, beside, guard }: Conditions,
  ): Soon<Decision | undefined> {
    const { storage, place, onRefused, retention } = this.#options
    let batch: ReturnType<typeof batchOf>
    let notes: readonly Put[]
    try {
      batch = withRecords(withItems(batchOf(decision, version, settle, { place, retention }), beside), extra, guard)
      notes = deliveryNotes(batch)
    } catch (error) {
      onRefused(decision, false)
      throw error
    }
    if (notes.length > 0) return this.#commitWithNotes(decision, version, batch, notes)
    const failed = (error: unknown): never => {
      onRefused(decision, true)
      throw error
    }
    try {
      const outcome = storage.commit(batch)
      return outcome instanceof Promise
        ? outcome.then((known) => this.#committed(decision, version, known), failed)
        : this.#committed(decision, version, outcome)
    } catch (error) {
      return failed(error)
    }
  }

  async #commitWithNotes(
    decision: Decision,
    version: number,
    batch: ReturnType<typeof batchOf>,
    notes: readonly Put[],
  ): Promise<Decision | undefined> {
    const { storage, onRefused } = this.#options
    try {
      const outcome = await storage.commit({ ...batch, put: [...batch.put, ...notes] })
      // The notes of a name that was used before are in the way, or another writer was first: that shows itself again.
      return this.#committed(decision, version, outcome === 'conflict' ? await storage.commit(batch) : outcome)
    } catch (error) {
      onRefused(decision, true)
      throw error
    }
  }

  #committed(decision: Decision, version: number, outcome: 'committed' | 'conflict'): Decision | undefined {
    if (outcome === 'conflict') {
      this.#options.onRefused(decision, false)
      return undefined
    }
    const { job } = decision
    if (isEnded(job)) this.#memory.forget(job.id)
    else this.#memory.keep(job, version)
    return decision
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
