import { deliveryId, isStaying, parseDeliveryId, taskId } from '@impresario/core'
import type {
  Clock,
  Decision,
  DeliveryRef,
  JobEvent,
  Job,
  WorkerPatch,
  Lease,
  LeaseRef,
  Log,
  Put,
  Random,
  Storage,
  TaskCall,
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
import { Custody, leaseOf } from './custody.ts'
import { SharedCapacity } from './shared-capacity.ts'
import type { Handed, Handover } from './handover.ts'
import type { Holdings, Recall } from './holdings.ts'
import { callOf, readTask } from '../job/payload.ts'
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
  readonly holdings: Holdings
  readonly handover: Handover
  /** How long a worker keeps its tasks without a heartbeat. */
  readonly leaseMs: number
  /** What the records of all workers may take of the memory. */
  readonly workerBytesMax: number
  /** A worker of which nothing is written down for so long counts as silent. */
  readonly silentMs: number
  /** A worker fell silent over a task, and another one has it now. */
  readonly onAbandoned: (workerId: string) => void
  /** A task of this type is in the hands of a worker. */
  readonly onTaken: (type: string) => void
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
  readonly #holdings: Holdings
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
    const { holdings } = options
    this.#holdings = holdings
    const custody = new Custody({ clock, holdings, parking })
    this.#custody = custody
    this.#reception = new Reception({ storage, director, clock, random, log, custody, load: dispatcher })
    const { workerBytesMax: bytesMax, silentMs } = options
    this.#roster = new Roster({ storage, dispatcher, clock, log, bytesMax, silentMs, onMoment })
    const shared = { storage, holdings, custody, dispatcher }
    const renewal = new Renewal({ ...shared, reception: this.#reception, clock, leaseMs: options.leaseMs })
    this.#renewal = renewal
    this.#sharedCapacity = new SharedCapacity({ ...shared, signals, log })
    this.#recalls = new Recalls({ ...shared, renewal, signals, log })
  }

  get parked(): number {
    return this.#parking.size
  }

  /** Tasks that workers hold and that this instance handed out or took over. */
  get heldTasks(): number {
    return this.#holdings.size
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
    this.#options.handover.close()
  }

  openPolls(): void {
    this.#isOpen = true
    this.#options.handover.open()
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
    const { clock, dispatcher, handover } = this.#options
    const until = clock.now() + options.waitMs
    for (;;) {
      if (!this.#isOpen || options.signal.aborted) return NOTHING
      // Who had fallen silent and asks for work is heard of by that: parked unknown to dispatch, nothing would wake it.
      const known = dispatcher.worker(workerId) ?? (await this.#roster.hear(workerId, undefined)).worker
      const worker = this.#hear(known, options)
      const ticket = this.#parking.enter(workerId)
      let hasTasks = false
      const accepts = isStaying(worker.status) ? Math.min(options.limit, LIMITS.batchItemsMax) : 0
      handover.listen(workerId, accepts, options.isLocal === true)
      try {
        const handout = await this.#collect(worker, options)
        const cancelled = options.wantsCancelled === true ? await this.#tellWith(handout, workerId) : []
        hasTasks = handout.deliveries.length > 0
        if (hasTasks || cancelled.length > 0) return { ...handout, cancelled }
        if (options.signal.aborted) return handout
        const leftMs = until - clock.now()
        if (leftMs <= 0) return NOTHING
        await ticket.wait(Math.min(leftMs, this.#relookMs(workerId)), options.signal)
      } finally {
        ticket.leave()
        handover.leave(workerId, hasTasks)
      }
      // Let the commits of this moment come in first: the poll then takes them all at once.
      await clock.sleep(0, NEVER)
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

  /** What lies in the worker's tray, and what else it can take from its lanes. */
  async #collect(worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    const fetched = this.#fetch(worker.id, options)
    if (fetched.length === 0) return this.#claim(worker, options)
    const limit = options.limit - fetched.length
    const leases = fetched.map(({ ref }) => leaseOf(ref))
    const giveBack = (): Promise<void> => this.#giveBack(worker.id, leases)
    try {
      const more = limit > 0 ? await this.#claim(worker, { ...options, limit }) : NOTHING
      await this.#options.storage.sync()
      if (options.signal.aborted) {
        await giveBack()
        return more
      }
      const deliveries = [...fetched.map(({ delivery }) => delivery), ...more.deliveries]
      const giveBackAll = async (): Promise<void> => {
        await Promise.all([giveBack(), more.giveBack()])
      }
      return { deliveries, cancelled: [], giveBack: giveBackAll }
    } catch (error) {
      await giveBack()
      throw error
    }
  }

  #fetch(
    workerId: string,
    { limit, isLocal = false }: PollOptions,
  ): readonly { readonly ref: DeliveryRef; readonly delivery: Delivery }[] {
    const handed = this.#options.handover.take(workerId, Math.min(limit, LIMITS.batchItemsMax), isLocal)
    return handed.map((one) => ({ ref: one.ref, delivery: this.#handOver(workerId, one) }))
  }

  #handOver(workerId: string, { ref, job, call, deadlineAt, free }: Handed): Delivery {
    free()
    return this.#hold(workerId, ref, { job, call, delivery: 1, deadlineAt })
  }

  /** The task is in the worker's hands. */
  #hold(
    workerId: string,
    ref: DeliveryRef,
    content: Pick<Delivery, 'call' | 'delivery' | 'deadlineAt'> & { readonly job: Job },
  ): Delivery {
    const { jobId, visit, branch, attempt } = ref
    const { job, call, delivery, deadlineAt } = content
    const idempotencyKey = taskId(jobId, visit, branch)
    this.#options.signals.send(['took', idempotencyKey, workerId])
    this.#custody.hold(workerId, ref)
    this.#options.onTaken(call.type)
    const { blueprint, tracing } = job
    return { taskId: deliveryId(ref), jobId, blueprint, idempotencyKey, attempt, delivery, call, tracing, deadlineAt }
  }

  /** As much as fits into the worker's hands, whatever it asks for; nothing for one that is leaving. */
  async #claim(worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    if (!isStaying(worker.status)) return NOTHING
    if (this.#holdings.roomOf(worker) <= 0) await this.#lookAtHands(worker.id)
    const lanes = await this.#options.dispatcher.lanesFor(worker)
    if (lanes.length === 0 && this.#holdings.roomOf(worker) > 0) return NOTHING
    const limit = Math.min(options.limit, LIMITS.batchItemsMax, this.#holdings.roomOf(worker))
    if (limit <= 0) {
      this.#custody.waitsForRoom(worker.id)
      return NOTHING
    }
    const done = this.#holdings.reserve(worker.id, limit)
    try {
      return await this.#claimUpTo(limit, lanes, worker, options)
    } finally {
      done()
      this.#custody.wakeIfFull(worker.id)
    }
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

  async #claimUpTo(
    limit: number,
    lanes: readonly string[],
    worker: WorkerRecord,
    options: PollOptions,
  ): Promise<Handout> {
    const { storage, director, dispatcher, clock, leaseMs } = this.#options
    const foundEmpty = dispatcher.lookAt(worker.id)
    const holder = options.isLocal === true ? {} : { holder: worker.id }
    // What other instances decided is not remembered here, nor what was decided too long ago.
    const brings = this.#options.signals.hasPeers || director.isForgetful ? ({ brings: 'job' } as const) : {}
    const claimed = await storage.claim('tasks', { lanes, limit, leaseMs, ...holder, ...brings })
    director.learnOf(claimed.leases)
    if (claimed.leases.length < limit) foundEmpty()
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
    return deliveries.length === 0
      ? this.#claimUpTo(limit, lanes, worker, options)
      : { deliveries, cancelled: [], giveBack }
  }

  /** Durable when this resolves: a worker must not be told of what a crash could undo. */
  async #deliverAll(workerId: string, leases: readonly Lease[], claimedAt: number): Promise<readonly Delivery[]> {
    const deliver = (lease: Lease): Promise<Delivery | undefined> | Delivery =>
      this.#deliverAtOnce(workerId, lease, claimedAt) ?? this.#deliver(workerId, lease, claimedAt)
    const weigh = ({ call }: Delivery): number => jsonWeight(call.params)
    const { answers, left } = await byWeight(leases, LIMITS.handoutBytesMax, deliver, weigh)
    if (left.length > 0) await this.#giveBack(workerId, left)
    await this.#options.storage.sync()
    return answers
  }

  async #deliver(workerId: string, lease: Lease, claimedAt: number): Promise<Delivery | undefined> {
    const { storage, director, clock } = this.#options
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
    const isThere = (found: Job): boolean => callOf(found, visit, branch) !== undefined
    const job = (await director.cached(jobId, isThere))?.value
    const call = job && callOf(job, visit, branch)
    if (job === undefined || call?.kind !== 'task') {
      await storage.commit({ settle: lease })
      return undefined
    }
    return this.#delivered(workerId, lease, claimedAt, { job, call })
  }

  /** The delivery, if its job is remembered here. */
  #deliverAtOnce(workerId: string, lease: Lease, claimedAt: number): Delivery | undefined {
    if (lease.deliveries > LIMITS.taskDeliveriesMax) return undefined
    const { jobId, visit, branch } = readTask(lease.payload)
    const job = this.#options.director.remembered(jobId)
    const call = job && callOf(job, visit, branch)
    return job === undefined || call?.kind !== 'task'
      ? undefined
      : this.#delivered(workerId, lease, claimedAt, { job, call })
  }

  #delivered(
    workerId: string,
    lease: Lease,
    claimedAt: number,
    { job, call }: { readonly job: Job; readonly call: TaskCall },
  ): Delivery {
    const { dispatcher } = this.#options
    const { jobId, visit, branch, attempt } = readTask(lease.payload)
    const before = dispatcher.workerOf(lease.id)
    if (lease.deliveries > 1 && before !== undefined && before !== workerId) this.#options.onAbandoned(before)
    dispatcher.assign(lease.id, workerId)
    const deadlineAt = lease.expiresInMs === undefined ? undefined : claimedAt + lease.expiresInMs
    const ref = { jobId, visit, branch, attempt, token: lease.token }
    return this.#hold(workerId, ref, { job, call, delivery: lease.deliveries, deadlineAt })
  }

  /** Heartbeats stop keeping the leases alive first: should the storage refuse, they end by themselves. */
  async #giveBack(workerId: string, leases: readonly LeaseRef[]): Promise<void> {
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
const NEVER = new AbortController().signal
const NOTHING: Handout = { deliveries: [], cancelled: [], giveBack: () => Promise.resolve() }
