import { deliveryId, mergeHeartbeat, parseDeliveryId, taskId } from '@impresario/core'
import type {
  Clock,
  DeliveryRef,
  WorkerPatch,
  IgnoredReason,
  Job,
  Lease,
  LeaseRef,
  Log,
  Put,
  Random,
  Storage,
  TaskCall,
  WorkerRecord,
} from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { Json, TaskError } from '@impresario/protocol'
import type { Applied, Director } from './director.ts'
import type { Dispatcher } from './dispatcher.ts'
import { excerpt } from './excerpt.ts'
import { readTask } from './payload.ts'
import { Parking } from './parking.ts'

export interface DeskOptions {
  readonly storage: Storage
  readonly director: Director
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** How long a worker keeps its tasks without a sign of life. */
  readonly leaseMs: number
}

/** One task as it is handed to a worker. */
export interface Delivery {
  readonly taskId: string
  readonly jobId: string
  readonly idempotencyKey: string
  readonly attempt: number
  readonly delivery: number
  readonly call: TaskCall
  readonly tracing: Readonly<Record<string, string>>
  /** When it expires, on the engine's clock, if the worker keeps it. */
  readonly deadlineAt: number | undefined
}

export interface Handout {
  readonly deliveries: readonly Delivery[]
  /** Takes everything back into the queue: it could not be handed over. */
  readonly giveBack: () => Promise<void>
}

export interface Report {
  readonly taskId: string
  readonly status: string
  readonly data?: Json | undefined
  readonly error?: TaskError | undefined
}

/** What a worker hears about a result. */
export type Receipt =
  | { readonly type: 'accepted'; readonly job: Job; readonly before: Job | undefined }
  | { readonly type: 'ignored'; readonly reason: IgnoredReason | 'worker_mismatch'; readonly job: Job | undefined }

export interface PollOptions {
  readonly limit: number
  readonly waitMs: number
  readonly signal: AbortSignal
  /** The worker lives in this process: what it holds is free again when the process ends. */
  readonly isLocal?: boolean
}

/**
 * The desk where workers come for tasks and bring results. Knows no transport.
 *
 * A poll that finds nothing is parked: it costs a map entry until a task for it is committed or its
 * time is up. A task is in the worker's hands only when its handout has been delivered; a poll that
 * was aborted meanwhile gives its tasks back at once.
 */
export class Desk {
  readonly #options: DeskOptions
  readonly #parking: Parking
  /** The deliveries that are in each worker's hands, as far as this instance knows. */
  readonly #held = new Map<string, Map<string, LeaseRef>>()
  #isOpen = true

  constructor(options: DeskOptions) {
    this.#options = options
    this.#parking = new Parking(options.clock)
  }

  get parked(): number {
    return this.#parking.size
  }

  isParked(workerId: string): boolean {
    return this.#parking.has(workerId)
  }

  wakeWorker(workerId: string): boolean {
    return this.#parking.wake(workerId)
  }

  /** Ends the parked polls; later ones get nothing. Results are taken to the last. */
  closePolls(): void {
    this.#isOpen = false
    this.#parking.wakeAll()
  }

  openPolls(): void {
    this.#isOpen = true
  }

  /** Durable when this resolves. Whoever registers begins anew: nobody keeps for it what an earlier life of it held. */
  async register(worker: WorkerRecord): Promise<WorkerRecord> {
    const { storage, dispatcher, log } = this.#options
    this.#held.delete(worker.id)
    const record = await this.#save(worker.id, (known) =>
      known === undefined ? worker : { ...worker, reputation: known.reputation },
    )
    if (record === undefined) return worker
    dispatcher.put(record)
    await storage.sync()
    log.info('worker registered', { worker_id: worker.id, skills: worker.skills })
    return record
  }

  /**
   * A sign of life. Keeps the worker's tasks in its hands, and says which of those that it names are
   * no longer its own.
   */
  async heartbeat(
    workerId: string,
    patch: WorkerPatch | undefined,
    currentTasks: readonly string[] | undefined,
  ): Promise<{ readonly worker: WorkerRecord; readonly cancelled: readonly string[] }> {
    const { clock, dispatcher } = this.#options
    const worker = await this.#save(workerId, (known) => known && mergeHeartbeat(known, patch ?? {}, clock.now()))
    if (worker === undefined) {
      throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found', { details: { worker_id: workerId } })
    }
    dispatcher.put(worker)
    return { worker, cancelled: await this.#renew(workerId, currentTasks) }
  }

  /** Changes a worker's record from what is stored, not from what is remembered: another instance may have heard more. */
  async #save(
    id: string,
    change: (known: WorkerRecord | undefined) => WorkerRecord | undefined,
  ): Promise<WorkerRecord | undefined> {
    const { storage, log } = this.#options
    for (let conflicts = 0; ; conflicts += 1) {
      const stored = await storage.read('worker', id)
      const value = change(stored?.value)
      if (value === undefined) return undefined
      const facets = { status: value.status, name: value.type }
      const put: Put = { kind: 'worker', id, value, version: (stored?.version ?? 0) + 1, facets }
      if ((await storage.commit({ put: [put] })) === 'committed') return value
      if (conflicts < SAVES_MAX) continue
      log.warn('a worker record is contended and was not written', { worker_id: id })
      return value
    }
  }

  /**
   * Extends the leases that the worker names, or all that it holds if it names none; what is lost was
   * cancelled, has expired or went to another. What it does not name it may never have got, because the
   * answer to its poll was lost or it has started anew: that lease shall end.
   */
  async #renew(workerId: string, currentTasks: readonly string[] | undefined): Promise<readonly string[]> {
    const { storage, leaseMs, dispatcher } = this.#options
    const held = this.#heldBy(workerId)
    const named = new Set(currentTasks)
    const cancelled: string[] = []
    for (const id of named) {
      if (held.has(id)) continue
      const ref = parseDeliveryId(id)
      if (ref !== undefined && (await this.#standing(workerId, ref)) === 'own') held.set(id, leaseOf(ref))
      else cancelled.push(id)
    }
    if (currentTasks !== undefined) {
      for (const id of held.keys()) if (!named.has(id)) held.delete(id)
    }
    const ids = [...held.keys()]
    if (ids.length === 0) return cancelled
    const kept = await storage.renew([...held.values()], leaseMs)
    for (const [index, id] of ids.entries()) {
      const ref = held.get(id)
      if (kept[index] === true && ref !== undefined) {
        dispatcher.assign(ref.id, workerId)
        continue
      }
      held.delete(id)
      cancelled.push(id)
    }
    return cancelled
  }

  /** Hands out tasks, waiting for one if there is none. Empty when the time is up. */
  async poll(workerId: string, options: PollOptions): Promise<Handout> {
    const { clock, dispatcher, storage } = this.#options
    const until = clock.now() + options.waitMs
    for (;;) {
      if (!this.#isOpen || options.signal.aborted) return NOTHING
      const worker = dispatcher.worker(workerId) ?? (await storage.read('worker', workerId))?.value
      if (worker === undefined) {
        throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found', { details: { worker_id: workerId } })
      }
      const ticket = this.#parking.enter(workerId)
      try {
        const handout = await this.#claim(worker, options)
        if (handout.deliveries.length > 0 || options.signal.aborted) return handout
        const leftMs = until - clock.now()
        if (leftMs <= 0) return NOTHING
        await ticket.wait(leftMs, options.signal)
      } finally {
        ticket.leave()
      }
      // Let the commits of this moment come in first: the poll then takes them all at once.
      await clock.sleep(0, options.signal)
    }
  }

  async #claim(worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    const { storage, dispatcher, clock, leaseMs } = this.#options
    const limit = Math.min(options.limit, LIMITS.batchItemsMax)
    if (limit <= 0) return NOTHING
    const lanes = await dispatcher.lanesFor(worker)
    const holder = options.isLocal === true ? {} : { holder: worker.id }
    const { leases } = await storage.claim('tasks', { lanes, limit, leaseMs, ...holder })
    if (leases.length === 0) return NOTHING
    const giveBack = (): Promise<void> => this.#giveBack(worker.id, leases)
    const deliveries = await this.#deliverAll(worker.id, leases, clock.now()).catch(async (error: unknown) => {
      await giveBack()
      throw error
    })
    if (options.signal.aborted) {
      await giveBack()
      return NOTHING
    }
    // All of it was stale and is cleared away. More may lie behind it, and its hint has perhaps come already.
    return deliveries.length === 0 ? this.#claim(worker, options) : { deliveries, giveBack }
  }

  /** Durable when this resolves: a worker must not be told of what a crash could undo. */
  async #deliverAll(workerId: string, leases: readonly Lease[], claimedAt: number): Promise<readonly Delivery[]> {
    const found = await Promise.all(leases.map((lease) => this.#deliver(workerId, lease, claimedAt)))
    await this.#options.storage.sync()
    return found.filter((delivery) => delivery !== undefined)
  }

  async #deliver(workerId: string, lease: Lease, claimedAt: number): Promise<Delivery | undefined> {
    const { storage, dispatcher, director, clock } = this.#options
    const { jobId, visit, branch, attempt } = readTask(lease.payload)
    if (lease.deliveries > LIMITS.taskDeliveriesMax) {
      const deliveries = lease.deliveries - 1
      await director.apply(jobId, { type: 'taskAbandoned', at: clock.now(), visit, branch, attempt, deliveries }, lease)
      return undefined
    }
    const job = (await storage.read('job', jobId))?.value
    const call = job?.visit === visit ? job.branches[branch]?.call : undefined
    if (job === undefined || call?.kind !== 'task') {
      await storage.commit({ settle: lease })
      return undefined
    }
    dispatcher.assign(lease.id, workerId)
    const id = deliveryId({ jobId, visit, branch, attempt, token: lease.token })
    this.#heldBy(workerId).set(id, { queue: 'tasks', id: lease.id, token: lease.token })
    return {
      taskId: id,
      jobId,
      idempotencyKey: lease.id,
      attempt,
      delivery: lease.deliveries,
      call,
      tracing: job.tracing ?? {},
      deadlineAt: lease.expiresInMs === undefined ? undefined : claimedAt + lease.expiresInMs,
    }
  }

  /** First of all nobody keeps the leases alive any longer: should the storage refuse, they end by themselves. */
  async #giveBack(workerId: string, leases: readonly Lease[]): Promise<void> {
    const held = this.#heldBy(workerId)
    const tokens = new Set(leases.map(({ token }) => token))
    for (const [id, { token }] of held) {
      if (tokens.has(token)) held.delete(id)
    }
    await this.#options.storage.renew(leases, 0)
  }

  /** Takes results. Each counts once; all of them are durable when this resolves. */
  async results(workerId: string, reports: readonly Report[]): Promise<readonly Receipt[]> {
    const receipts = await Promise.all(reports.map((report) => this.#result(workerId, report)))
    await this.#options.storage.sync()
    return receipts
  }

  async #result(workerId: string, report: Report): Promise<Receipt> {
    const { director, clock, random } = this.#options
    const ref = parseDeliveryId(report.taskId)
    if (ref === undefined) return { type: 'ignored', reason: 'stale_task', job: undefined }
    const held = this.#heldBy(workerId)
    if (!held.delete(report.taskId)) {
      const standing = await this.#standing(workerId, ref)
      if (standing === 'other') return { type: 'ignored', reason: 'worker_mismatch', job: undefined }
      if (standing === 'stale') return this.#late(ref)
    }
    const { visit, branch, attempt } = ref
    const applied = await director.apply(
      ref.jobId,
      {
        type: 'taskEnded',
        at: clock.now(),
        visit,
        branch,
        attempt,
        workerId,
        status: report.status,
        data: report.data,
        error: report.error && shortened(report.error),
        chance: random.next(),
      },
      leaseOf(ref),
    )
    return applied.type === 'lost' ? this.#late(ref) : receiptOf(applied)
  }

  async #late(ref: DeliveryRef): Promise<Receipt> {
    return { type: 'ignored', reason: 'stale_task', job: (await this.#options.storage.read('job', ref.jobId))?.value }
  }

  /**
   * After a restart the desk does not know who holds what; the storage does. `own` also for what nobody
   * holds now: the rules decide about it. `stale` for a delivery or a try that another one has followed,
   * and for an id that we never gave out: nothing may be settled by it.
   */
  async #standing(workerId: string, ref: DeliveryRef): Promise<'own' | 'other' | 'stale'> {
    const [view] = await this.#options.storage.peek('tasks', [taskId(ref.jobId, ref.visit, ref.branch)])
    if (view === undefined) return 'own'
    const { lease } = view
    if (lease !== undefined && lease.token !== ref.token) return 'stale'
    if (lease?.holder !== undefined && lease.holder !== workerId) return 'other'
    return readTask(view.payload).attempt === ref.attempt ? 'own' : 'stale'
  }

  async progress(workerId: string, id: string, fraction: number, message: string | undefined): Promise<void> {
    const ref = parseDeliveryId(id)
    if (ref === undefined || (await this.#standing(workerId, ref)) !== 'own') return
    const { visit, branch, attempt } = ref
    const at = this.#options.clock.now()
    await this.#options.director.apply(ref.jobId, { type: 'progressed', at, visit, branch, attempt, fraction, message })
  }

  #heldBy(workerId: string): Map<string, LeaseRef> {
    let held = this.#held.get(workerId)
    if (held === undefined) {
      held = new Map()
      this.#held.set(workerId, held)
    }
    return held
  }
}

/** Heartbeats of one worker are seconds apart; more conflicts than this are not a matter of timing. */
const SAVES_MAX = 5

const NOTHING: Handout = { deliveries: [], giveBack: () => Promise.resolve() }

function leaseOf(ref: DeliveryRef): LeaseRef {
  return { queue: 'tasks', id: taskId(ref.jobId, ref.visit, ref.branch), token: ref.token }
}

function shortened({ code, message }: TaskError): TaskError {
  return { code, message: excerpt(message, LIMITS.taskErrorCharsMax) }
}

function receiptOf(applied: Exclude<Applied, { type: 'lost' }>): Receipt {
  return applied.type === 'applied'
    ? { type: 'accepted', job: applied.job, before: applied.before }
    : { type: 'ignored', reason: applied.reason, job: applied.job }
}
