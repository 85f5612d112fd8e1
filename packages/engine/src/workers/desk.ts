import { deliveryId, isStaying, parseDeliveryId, taskId } from '@impresario/core'
import type {
  Call,
  Clock,
  Decision,
  JobEvent,
  Job,
  WorkerPatch,
  Lease,
  Log,
  Put,
  Random,
  Storage,
  WorkerRecord,
} from '@impresario/core'
import { jsonWeight, LIMITS } from '@impresario/protocol'
import { byWeight } from '../job/by-weight.ts'
import type { Director } from '../job/director.ts'
import type { Dispatcher } from './dispatcher.ts'
import type {
  Delivery,
  Handout,
  Lost,
  MeterBook,
  Metering,
  PollOptions,
  Receipt,
  Report,
  WorkerEvent,
  WorkerEventNews,
} from './desk-messages.ts'
import { Custody } from './custody.ts'
import { SharedCapacity } from './shared-capacity.ts'
import { Holdings } from './holdings.ts'
import type { Recall } from './holdings.ts'
import { readTask } from '../job/payload.ts'
import type { Held } from './recovery.ts'
import type { Parking } from './parking.ts'
import { Recalls } from './recalls.ts'
import { Reception } from './reception.ts'
import { Renewal } from './renewal.ts'
import { Roster } from './roster.ts'
import type { WorkerMoment } from './roster.ts'
import type { Signals } from '../service/signals.ts'

export interface DeskOptions {
  readonly storage: Storage
  readonly director: Director
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signals: Signals
  readonly parking: Parking
  /** How long a worker keeps its tasks without a heartbeat. */
  readonly leaseMs: number
  /** What the records of all workers may take of the memory. */
  readonly workerBytesMax: number
  /** A worker fell silent over a task, and another one has it now. */
  readonly onAbandoned: (workerId: string) => void
  /** Gets what happens to workers, for the history. */
  readonly onMoment?: ((moment: WorkerMoment) => void) | undefined
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
  readonly #reception: Reception
  #book: MeterBook | undefined
  readonly #roster: Roster
  readonly #holdings = new Holdings()
  readonly #renewal: Renewal
  readonly #sharedCapacity: SharedCapacity
  readonly #recalls: Recalls
  readonly #custody: Custody
  /** Workers that have registered since the start. */
  readonly #anew = new Set<string>()
  #isOpen = true

  constructor(options: DeskOptions) {
    this.#options = options
    const { storage, director, dispatcher, clock, random, log, signals, parking, onMoment } = options
    this.#parking = parking
    const holdings = this.#holdings
    const custody = new Custody({ clock, holdings, parking })
    this.#custody = custody
    this.#reception = new Reception({ storage, director, clock, random, log, custody })
    this.#roster = new Roster({ storage, dispatcher, clock, log, bytesMax: options.workerBytesMax, onMoment })
    const shared = { storage, holdings, custody, dispatcher }
    const renewal = new Renewal({ ...shared, reception: this.#reception, clock, leaseMs: options.leaseMs })
    this.#renewal = renewal
    this.#sharedCapacity = new SharedCapacity({ ...shared, signals, log })
    this.#recalls = new Recalls({ ...shared, renewal, signals, log })
  }

  get parked(): number {
    return this.#parking.size
  }

  isParked(workerId: string): boolean {
    return this.#parking.has(workerId)
  }

  /** Lets the parked polls of a worker look again. */
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

  /** Durable when this resolves. A worker that registers starts over: what an earlier life of it held is not kept for it. */
  async register(worker: WorkerRecord): Promise<WorkerRecord> {
    this.#anew.add(worker.id)
    this.#holdings.clear(worker.id)
    this.#options.signals.send(['anew', worker.id])
    return this.#roster.register(worker)
  }

  async isRegistered(workerId: string): Promise<boolean> {
    return (await this.#options.storage.read('worker', workerId)) !== undefined
  }

  /**
   * A sign of life. Keeps the worker's tasks in its hands, and says which of those that it names were taken back from it.
   */
  async heartbeat(
    workerId: string,
    patch: WorkerPatch | undefined,
    currentTasks: readonly string[] | undefined,
    load?: number,
  ): Promise<{ readonly worker: WorkerRecord; readonly cancelled: readonly string[] }> {
    const { worker, heardBefore } = await this.#roster.hear(workerId, patch)
    // The oldest workers do not name their tasks, but say how many they have.
    const named = currentTasks ?? (load === 0 ? [] : undefined)
    const lost = await this.#renewal.renew(workerId, named, heardBefore)
    return { worker, cancelled: await this.#tell(workerId, lost) }
  }

  /** What the worker shall stop: what was taken back, except for what it has ended by itself meanwhile. Durable before it is told. */
  async #tell(workerId: string, lost: readonly string[]): Promise<readonly string[]> {
    const told = new Set([...this.#holdings.tellRecalls(workerId), ...lost])
    if (told.size === 0) return []
    await this.#options.storage.sync()
    return [...told].filter((id) => !this.#holdings.hasAnswered(workerId, id))
  }

  /** Hands out tasks, waiting for one if there is none. Empty when the time is up. */
  async poll(workerId: string, options: PollOptions): Promise<Handout> {
    const { clock, dispatcher } = this.#options
    const until = clock.now() + options.waitMs
    for (;;) {
      if (!this.#isOpen || options.signal.aborted) return NOTHING
      // Who had fallen silent and asks for work is heard of by that: parked unknown to dispatch, nothing would wake it.
      const known = dispatcher.worker(workerId) ?? (await this.#roster.hear(workerId, undefined)).worker
      const worker = this.#hear(known, options)
      const ticket = this.#parking.enter(workerId)
      try {
        const handout = await this.#claim(worker, options)
        const cancelled = options.wantsCancelled === true ? await this.#tellWith(handout, workerId) : []
        if (handout.deliveries.length > 0 || cancelled.length > 0) return { ...handout, cancelled }
        if (options.signal.aborted) return handout
        const leftMs = until - clock.now()
        if (leftMs <= 0) return NOTHING
        await ticket.wait(Math.min(leftMs, this.#relookMs(workerId)), options.signal)
      } finally {
        ticket.leave()
      }
      // Let the commits of this moment come in first: the poll then takes them all at once.
      await clock.sleep(0, options.signal)
    }
  }

  /** What cannot be told keeps nothing in the worker's hands that it does not get. */
  async #tellWith({ giveBack }: Handout, workerId: string): Promise<readonly string[]> {
    try {
      return await this.#tell(workerId, [])
    } catch (error) {
      await giveBack()
      throw error
    }
  }

  /** A result that a worker brings to another instance frees capacity, and this instance is not told. */
  #relookMs(workerId: string): number {
    return this.#custody.isWaitingForRoom(workerId) && this.#options.signals.hasPeers
      ? FULL_RELOOK_MS
      : Number.POSITIVE_INFINITY
  }

  /** What a poll says of the worker's skills counts at once; it is written down with the next heartbeat. */
  #hear(worker: WorkerRecord, { availableSkills, hotSkills, limit }: PollOptions): WorkerRecord {
    if (worker.isOpenEnded === true) {
      this.#options.dispatcher.asks(worker.id, this.#holdings.count(worker.id) + limit)
    }
    if (availableSkills === undefined && hotSkills === undefined) return worker
    const heard: WorkerRecord = {
      ...worker,
      ...(availableSkills === undefined ? {} : { availableSkills }),
      ...(hotSkills === undefined ? {} : { hotSkills }),
    }
    if (this.#options.dispatcher.worker(worker.id) !== undefined) this.#options.dispatcher.put(heard)
    return heard
  }

  /** As much as fits into the worker's hands, whatever it asks for; nothing for one that is leaving. */
  async #claim(worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    if (!isStaying(worker.status)) return NOTHING
    if (this.#roomOf(worker) <= 0) await this.#lookAtHands(worker.id)
    const limit = Math.min(options.limit, LIMITS.batchItemsMax, this.#roomOf(worker))
    if (limit <= 0) {
      this.#custody.waitsForRoom(worker.id)
      return NOTHING
    }
    const done = this.#holdings.reserve(worker.id, limit)
    try {
      return await this.#claimUpTo(limit, worker, options)
    } finally {
      done()
      this.#custody.wakeIfFull(worker.id)
    }
  }

  /** Who did not say how many tasks it takes polls only while it has room. */
  #roomOf({ id, concurrencyMax, isOpenEnded }: WorkerRecord): number {
    return (isOpenEnded === true ? LIMITS.workerTasksMax : concurrencyMax) - this.#holdings.count(id)
  }

  /** Whose leases have ended holds nothing any more, though it never said so. */
  async #lookAtHands(workerId: string): Promise<void> {
    const held = [...this.#holdings.of(workerId).values()]
    const views = await this.#options.storage.peek(
      'tasks',
      held.map(({ lease }) => lease.id),
    )
    for (const [index, { lease }] of held.entries()) {
      if (views[index]?.lease?.token !== lease.token) this.#custody.release(workerId, lease)
    }
  }

  async #claimUpTo(limit: number, worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    const { storage, dispatcher, clock, leaseMs } = this.#options
    const lanes = await dispatcher.lanesFor(worker)
    const holder = options.isLocal === true ? {} : { holder: worker.id }
    const claimed = await storage.claim('tasks', { lanes, limit, leaseMs, ...holder })
    const leases = options.isLocal === true ? claimed.leases : await this.#sharedCapacity.fit(worker, claimed.leases)
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
    return deliveries.length === 0 ? this.#claimUpTo(limit, worker, options) : { deliveries, cancelled: [], giveBack }
  }

  /** Durable when this resolves: a worker must not be told of what a crash could undo. */
  async #deliverAll(workerId: string, leases: readonly Lease[], claimedAt: number): Promise<readonly Delivery[]> {
    const deliver = (lease: Lease): Promise<Delivery | undefined> => this.#deliver(workerId, lease, claimedAt)
    const weigh = ({ call }: Delivery): number => jsonWeight(call.params)
    const { answers, left } = await byWeight(leases, LIMITS.handoutBytesMax, deliver, weigh)
    if (left.length > 0) await this.#giveBack(workerId, left)
    await this.#options.storage.sync()
    return answers
  }

  async #deliver(workerId: string, lease: Lease, claimedAt: number): Promise<Delivery | undefined> {
    const { storage, dispatcher, director, clock } = this.#options
    const { jobId, visit, branch, attempt } = readTask(lease.payload)
    if (lease.deliveries > LIMITS.taskDeliveriesMax) {
      const deliveries = lease.deliveries - 1
      await director.apply(
        jobId,
        { type: 'taskAbandoned', at: clock.now(), visit, branch, attempt, deliveries },
        { settle: lease },
      )
      return undefined
    }
    const callOf = (found: Job | undefined): Call | undefined =>
      found?.visit === visit ? found.branches[branch]?.call : undefined
    const job = (await director.cached(jobId, (known) => callOf(known) !== undefined))?.value
    const call = callOf(job)
    if (job === undefined || call?.kind !== 'task') {
      await storage.commit({ settle: lease })
      return undefined
    }
    const before = dispatcher.workerOf(lease.id)
    if (lease.deliveries > 1 && before !== undefined && before !== workerId) this.#options.onAbandoned(before)
    dispatcher.assign(lease.id, workerId)
    this.#options.signals.send(['took', lease.id, workerId])
    const ref = { jobId, visit, branch, attempt, token: lease.token }
    this.#custody.hold(workerId, ref)
    return {
      taskId: deliveryId(ref),
      jobId,
      blueprint: job.blueprint,
      idempotencyKey: lease.id,
      attempt,
      delivery: lease.deliveries,
      call,
      tracing: job.tracing ?? {},
      deadlineAt: lease.expiresInMs === undefined ? undefined : claimedAt + lease.expiresInMs,
    }
  }

  /** Heartbeats stop keeping the leases alive first: should the storage refuse, they end by themselves. */
  async #giveBack(workerId: string, leases: readonly Lease[]): Promise<void> {
    for (const lease of leases) this.#custody.release(workerId, lease)
    await this.#options.storage.renew(leases, 0)
  }

  /** Takes results. Each counts once; all of them are durable when this resolves. */
  results(workerId: string, reports: readonly Report[]): Promise<readonly Receipt[]> {
    return this.#reception.results(workerId, reports)
  }

  progress(workerId: string, id: string, fraction: number, message: string | undefined): Promise<Receipt> {
    return this.#reception.progress(workerId, id, fraction, message)
  }

  /** Takes what a task has used, with whatever `meterWith` wants to be written beside it. */
  async meter(workerId: string, id: string, metering: Metering): Promise<Receipt> {
    if (this.#book !== undefined) return this.#book(workerId, id, metering)
    const receipt = await this.recordUsage(workerId, id, metering)
    return receipt.type === 'lost' ? { type: 'ignored', reason: 'stale_task', job: undefined } : receipt
  }

  /** From now on `book` takes what tasks have used. It hands it to `recordUsage`. */
  meterWith(book: MeterBook): void {
    this.#book = book
  }

  /** See `Reception.meter`. */
  recordUsage(workerId: string, id: string, metering: Metering, extra?: readonly Put[]): Promise<Receipt | Lost> {
    return this.#reception.meter(workerId, id, metering, extra)
  }

  /** Takes an event of a task that the worker holds: durable when this resolves. See `Reception.event`. */
  event(workerId: string, id: string, event: WorkerEvent): Promise<Receipt> {
    return this.#reception.event(workerId, id, event)
  }

  onEvent(listener: (news: WorkerEventNews) => void): () => void {
    return this.#reception.onEvent(listener)
  }

  /** The worker that holds this delivery, if one does. */
  async holderOf(id: string): Promise<string | undefined> {
    const ref = parseDeliveryId(id)
    if (ref === undefined) return undefined
    const [view] = await this.#options.storage.peek('tasks', [taskId(ref.jobId, ref.visit, ref.branch)])
    return view?.lease?.token === ref.token ? view.lease.holder : undefined
  }

  /** Calls `listener` with every task that is taken back from a worker that holds it, once that is durable. */
  onRecall(listener: (recall: Recall) => void): () => void {
    return this.#recalls.listen(listener)
  }

  /** A decision took tasks back: the workers that hold them are told. A task that ended by its result is no longer held. */
  onDecided(decision: Decision, event: JobEvent): void {
    this.#recalls.onDecided(decision, event)
  }

  /** A task was found in the worker's hands after a start. Who has registered since holds nothing of before. */
  resume({ holder, ref }: Held): void {
    if (this.#anew.has(holder)) return
    this.#custody.hold(holder, ref)
    this.#options.dispatcher.assign(taskId(ref.jobId, ref.visit, ref.branch), holder)
  }
}

const FULL_RELOOK_MS = 1_000
const NOTHING: Handout = { deliveries: [], cancelled: [], giveBack: () => Promise.resolve() }
