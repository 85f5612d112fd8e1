import {
  LaneReader,
  WorkerIndex,
  assess,
  Explainer,
  isStrategyName,
  laneMatchesWorker,
  matches,
  nextPage,
  questionOf,
  rank,
  requirementLane,
  strategyNamed,
  taskId,
  workerLane,
  workerOfLane,
} from '@impresario/core'
import type {
  Clock,
  Decision,
  Effect,
  Explanation,
  Job,
  JobEvent,
  Log,
  Service,
  Storage,
  Strategies,
  Strategy,
  TaskCall,
  WorkerRecord,
} from '@impresario/core'
import { PassingMap } from '@impresario/protocol'
import type { Placement } from '../job/batch.ts'
import { Pump } from '../service/pump.ts'
import type { Handover } from './handover.ts'
import type { Parking } from './parking.ts'
import { isResultOf } from './recalls.ts'
import type { Signals } from '../service/signals.ts'

export interface DispatcherOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  readonly signals: Signals
  /** A task that its worker has not picked up for so long is open to others. */
  readonly pickupMs: number
  /** A worker that has been silent for so long is not given tasks. */
  readonly workerTtlMs: number
  /** Other instances share the storage: learn of their workers from it. */
  readonly isShared: boolean
  /** Every way to choose that tasks may ask for. */
  readonly strategies: Strategies
  /** The polls that wait here. */
  readonly parking: Parking
  /** Gives tasks to these polls as they are written. */
  readonly handover: Handover
}

const IDLE_MS = 1_000
/** How often a shared storage is asked for workers that registered elsewhere. */
const REFRESH_MS = 2_000
/** How long a lane that was found empty is not looked at again, unless a hint tells of something new. */
const EMPTY_MS = 1_000
const PAGE = 500
/** Workers that are looked at for an explanation before other work runs: some ten milliseconds. */
const EXPLAINED_AT_ONCE = 2_000
const NEVER = new AbortController().signal
/** Workers may describe themselves at length. */
const PAGE_BYTES = 2_097_152

type TaskEffect = Extract<Effect, { type: 'task' }>

/**
 * Chooses who does what.
 *
 * A task goes straight to the queue of the worker that the strategy picks. When no worker fits or has
 * room, it waits in a lane named by what it asks for, and a worker that fits and has room takes it from
 * there. What a chosen worker does not pick up in time is open to that lane as well.
 *
 * The load of a worker counts the tasks that were placed with it and have not ended. It is kept in
 * memory and corrected by what workers report, so it may be off for a moment; it steers the choice
 * and never the truth.
 */
export class Dispatcher implements Service {
  readonly name = 'dispatcher'
  readonly #options: DispatcherOptions
  readonly #index: WorkerIndex
  readonly #lanes = new LaneReader()
  /** Which worker each placed task counts for. */
  readonly #placed = new PassingMap<string, string>()
  readonly #pump: Pump
  /** Placed tasks that were not there at the last look. */
  readonly #missing = new Set<string>()
  /** Waiting lanes that had something when they were last heard of. */
  #waiting: ReadonlySet<string> = new Set()
  /** Workers whose own lane was empty when it was last looked at, and until when that is believed. */
  readonly #emptyUntil = new Map<string, number>()
  /** How often there was something new in the own lane of a worker that polls here. */
  readonly #hints = new Map<string, number>()
  #refreshedAt = Number.NEGATIVE_INFINITY
  #recountedAt = Number.NEGATIVE_INFINITY
  /** Whether the last call was a start: a stop may overtake one that is still reading. */
  #isWanted = false
  #unwatch: (() => void) | undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    const { clock, log, strategies, signals } = options
    this.#index = new WorkerIndex(strategies, (type, workerId) => signals.send(['turn', type, workerId]))
    signals.on('turn', (type = '', workerId = '') => this.#index.rotatedElsewhere(type, workerId))
    signals.on('worker', (workerId = '') => {
      this.#lookUp(workerId).catch((error: unknown) => {
        log.debug('a worker of another instance is not known yet', { worker_id: workerId, error: String(error) })
      })
    })
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  async start(): Promise<void> {
    this.#isWanted = true
    await this.#refresh()
    if (!this.#isWanted) return
    this.#unwatch ??= this.#options.storage.watch('tasks', (lane) => this.#onHint(lane))
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  worker(id: string): WorkerRecord | undefined {
    return this.#index.get(id)
  }

  workers(): readonly WorkerRecord[] {
    return [...this.#index.all()].map(({ worker }) => worker)
  }

  get workerCount(): number {
    return this.#index.size
  }

  /** What the records of the workers take of the memory. */
  get workerBytes(): number {
    return this.#index.bytes
  }

  loadOf(id: string): number {
    return this.#index.load(id)
  }

  put(worker: WorkerRecord): void {
    this.#index.put(worker)
  }

  /** The worker asks for tasks: it would have so many if it got them all. */
  asks(id: string, tasks: number): void {
    this.#index.setAsked(id, tasks)
  }

  /** As `put`, for what all instances should know at once: otherwise they find out when they next look at all workers. */
  introduce(worker: WorkerRecord): void {
    this.put(worker)
    this.#options.signals.send(['worker', worker.id])
  }

  remove(id: string): void {
    this.#emptyUntil.delete(id)
    this.#hints.delete(id)
    this.#options.handover.forget(id)
    this.#index.remove(id)
  }

  /** Where a new try of a task goes. Reserves a place with the worker; `forget` takes it back. */
  place(task: TaskEffect, job: Job): Placement {
    const id = taskId(job.id, task.visit, task.branch)
    // Who had the try before this one has it no longer.
    this.release(id)
    const exclude = this.#index.exclusion(task.call, task.failedWorkers)
    const waiting = requirementLane(task.call, exclude)
    // A later try is placed when it is due: who is best then cannot be known now.
    if (task.delayMs > 0) return { lane: waiting }
    const worker = this.#index.choose(task.call, exclude)?.worker
    if (worker === undefined) {
      this.#remember(waiting)
      return { lane: waiting }
    }
    this.assign(id, worker.id)
    const claimed = this.#options.handover.reserve(worker, id)
    const fallback = { lane: waiting, afterMs: this.#options.pickupMs }
    const lane = workerLane(worker.id)
    return claimed === undefined ? { lane, fallback } : { lane, fallback, claimed }
  }

  /** The worker that a task counts for. */
  workerOf(id: string): string | undefined {
    return this.#placed.get(id)
  }

  /** Counts a task for a worker, and no longer for the one that had it before. */
  assign(id: string, workerId: string): void {
    const before = this.#placed.get(id)
    if (before === workerId) return
    if (before !== undefined) this.#index.addLoad(before, -1)
    this.#placed.set(id, workerId)
    this.#index.addLoad(workerId, 1)
  }

  release(id: string): void {
    const workerId = this.#placed.get(id)
    if (workerId === undefined) return
    this.#placed.delete(id)
    this.#missing.delete(id)
    this.#index.addLoad(workerId, -1)
  }

  /** Frees the places of tasks that a decision ended or took back. One that it sent out again has its place already. */
  onDecided(decision: Decision, before: Job | undefined, event: JobEvent): void {
    if (before === undefined) return
    const sent = decision.effects.filter((effect) => effect.type === 'task')
    for (const effect of decision.effects) {
      if (effect.type !== 'dropTask') continue
      if (sent.some(({ visit, branch }) => visit === effect.visit && branch === effect.branch)) continue
      const id = taskId(before.id, effect.visit, effect.branch)
      this.release(id)
      // What is taken back is told by the desk, which tells the worker as well.
      if (isResultOf(event, effect)) this.#options.signals.send(['ended', id])
    }
    // There is no hint for what becomes due later: a sleeping poll must learn until when.
    if (sent.some(({ delayMs }) => delayMs > 0)) this.#pump.wake()
  }

  onRefused(decision: Decision): void {
    for (const effect of decision.effects) {
      if (effect.type === 'task') this.release(taskId(decision.job.id, effect.visit, effect.branch))
    }
  }

  /**
   * The lanes that this worker may take from: its own, then those whose tasks it fits. None if a look into them would find
   * nothing, as far as hints tell.
   */
  async lanesFor(worker: WorkerRecord): Promise<string[]> {
    const own = workerLane(worker.id)
    const { isShared, storage } = this.#options
    if (!isShared) {
      // A storage in this process knows best.
      const lanes = (await storage.lanes('tasks')).map(({ lane }) => lane)
      return lanes.filter((lane) => lane === own || this.#mayTake(lane, worker))
    }
    // One that others share is not asked for every poll: hints tell of new lanes in the moment when they get something,
    // and every round looks what there is.
    const found = this.#isEmpty(worker.id) ? [] : [own]
    for (const lane of this.#waiting) if (this.#mayTake(lane, worker)) found.push(lane)
    return found
  }

  /** To be called before a look into the worker's own lane. Gives what to call when the look has found it empty. */
  lookAt(workerId: string): () => void {
    const before = this.#hints.get(workerId) ?? 0
    return () => {
      if (!this.#options.isShared || (this.#hints.get(workerId) ?? 0) !== before) return
      this.#emptyUntil.set(workerId, this.#options.clock.now() + EMPTY_MS)
    }
  }

  /** Hints can be lost, so what was found empty is believed for a moment only. */
  #isEmpty(workerId: string): boolean {
    return this.#options.clock.now() < (this.#emptyUntil.get(workerId) ?? Number.NEGATIVE_INFINITY)
  }

  #remember(lane: string): void {
    if (!this.#waiting.has(lane)) this.#waiting = new Set([...this.#waiting, lane])
  }

  /** Excluded workers are passed over only while another live worker could take the task. */
  #mayTake(lane: string, worker: WorkerRecord): boolean {
    const waiting = this.#lanes.read(lane)
    if (waiting === undefined) return false
    if (laneMatchesWorker(waiting, worker)) return true
    return (
      waiting.exclude.includes(worker.id) &&
      laneMatchesWorker({ ...waiting, exclude: [] }, worker) &&
      this.#index.exclusion(waiting, waiting.exclude).length === 0
    )
  }

  async explain(call: TaskCall, failedWorkers: readonly string[]): Promise<Explanation> {
    const exclude = this.#index.exclusion(call, failedWorkers)
    const { strategies, clock } = this.#options
    const explainer = new Explainer(call, { exclude, last: this.#index.last(call.type), strategies })
    let looks = 0
    for (const candidate of this.#index.all()) {
      explainer.look(candidate)
      looks += 1
      if (looks % EXPLAINED_AT_ONCE === 0) await clock.sleep(0, NEVER)
    }
    return explainer.end()
  }

  #onHint(lane: string): void {
    const workerId = workerOfLane(lane)
    if (workerId !== undefined) {
      this.#emptyUntil.delete(workerId)
      if (this.#options.isShared && this.#options.parking.has(workerId)) {
        this.#hints.set(workerId, (this.#hints.get(workerId) ?? 0) + 1)
      }
      this.#options.parking.wake(workerId)
      return
    }
    this.#remember(lane)
    this.#pump.wake()
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { storage, clock, workerTtlMs, isShared } = this.#options
    const now = clock.now()
    if (isShared && now - this.#refreshedAt >= REFRESH_MS) await this.#refresh()
    if (now - this.#recountedAt >= REFRESH_MS) await this.#recount()
    for (const worker of this.workers()) {
      if (assess(worker, now, workerTtlMs) === 'silent') this.remove(worker.id)
    }
    let worked = 0
    const lanes = await storage.lanes('tasks')
    this.#waiting = new Set(lanes.map(({ lane }) => lane).filter((lane) => workerOfLane(lane) === undefined))
    for (const { lane, ready } of lanes) worked += this.#offer(lane, ready)
    // An empty claim says when the next waiting task is due.
    const { nextInMs } = await storage.claim('tasks', { lanes: [], limit: 0, leaseMs: 0 })
    return { worked, nextInMs: nextInMs === 0 ? undefined : nextInMs }
  }

  /** Wakes as many parked workers as the waiting lane has tasks, best first. Only who is parked here can be woken. */
  #offer(lane: string, ready: number): number {
    const waiting = this.#lanes.read(lane)
    if (waiting === undefined) return 0
    const { parking } = this.#options
    const exclude = this.#index.exclusion(waiting, waiting.exclude)
    const candidates = this.#index
      .available(waiting.type)
      .filter(({ worker }) => parking.has(worker.id) && !exclude.includes(worker.id) && matches(waiting, worker))
    const question = questionOf({ type: waiting.type, params: {} }, this.#index.last(waiting.type))
    const ranked = rank(this.#strategyOf(waiting.strategy), candidates, question)
    for (const { candidate } of ranked.slice(0, ready)) parking.wake(candidate.worker.id)
    return Math.min(ready, ranked.length)
  }

  /** A lane may ask for a strategy of another program or version. Its tasks are still to be done, and so are all others. */
  #strategyOf(name: string | undefined): Strategy {
    const { strategies } = this.#options
    return strategyNamed(name !== undefined && isStrategyName(name, strategies) ? name : 'default', strategies)
  }

  /**
   * Looks at the placed tasks that were not looked at for longest. What is gone has ended elsewhere, or its end was
   * written without an answer; who holds what may differ too. A task that is missing once may be about to be written,
   * so only the second look counts.
   */
  async #recount(): Promise<void> {
    this.#recountedAt = this.#options.clock.now()
    const ids: string[] = []
    for (const id of this.#placed.keys()) if (ids.push(id) >= PAGE) break
    const views = await this.#options.storage.peek('tasks', ids)
    for (const [index, id] of ids.entries()) {
      const workerId = this.#placed.get(id)
      if (workerId === undefined) continue
      this.#placed.delete(id)
      this.#placed.set(id, workerId)
      const view = views[index]
      if (view !== undefined) {
        this.#missing.delete(id)
        this.assign(id, view.lease?.holder ?? workerId)
      } else if (this.#missing.has(id)) this.release(id)
      else this.#missing.add(id)
    }
  }

  async #lookUp(id: string): Promise<void> {
    const { storage, clock, workerTtlMs } = this.#options
    const worker = (await storage.read('worker', id))?.value
    if (worker === undefined || assess(worker, clock.now(), workerTtlMs) !== 'live') return
    this.#index.put(this.#withOwnSign(worker))
  }

  /** Signs of life that say nothing new are not all written down: the newest may be known only here. */
  #withOwnSign(stored: WorkerRecord): WorkerRecord {
    const seenAt = this.#index.get(stored.id)?.seenAt
    return seenAt === undefined || seenAt <= stored.seenAt ? stored : { ...stored, seenAt }
  }

  async #refresh(): Promise<void> {
    const { storage, clock, workerTtlMs } = this.#options
    this.#refreshedAt = clock.now()
    let before: string | undefined
    for (;;) {
      const query = { limit: PAGE, bytesMax: PAGE_BYTES }
      const page = await storage.list('worker', before === undefined ? query : { ...query, before })
      for (const { value } of page) {
        if (assess(value, this.#refreshedAt, workerTtlMs) === 'live') this.#index.put(this.#withOwnSign(value))
      }
      before = nextPage(page, PAGE)
      if (before === undefined) return
    }
  }
}
