import { deliveryId, isStaying, parseDeliveryId, taskId } from '@impresario/core'
import type {
  Call,
  Clock,
  Decision,
  DeliveryRef,
  JobEvent,
  Job,
  WorkerPatch,
  Lease,
  LeaseRef,
  Log,
  Random,
  Storage,
  WorkerRecord,
} from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { Director } from './director.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Delivery, Handout, PollOptions, Receipt, Report, WorkerEvent, WorkerEventNews } from './desk-messages.ts'
import { Hands } from './hands.ts'
import { Holdings } from './holdings.ts'
import type { Recall } from './holdings.ts'
import { readTask } from './payload.ts'
import type { Held } from './recovery.ts'
import { Parking } from './parking.ts'
import { Recalls } from './recalls.ts'
import { Reception, leaseOf } from './reception.ts'
import { Roster } from './roster.ts'
import type { WorkerMoment } from './roster.ts'
import type { Signals } from './signals.ts'

export interface DeskOptions {
  readonly storage: Storage
  readonly director: Director
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signals: Signals
  /** How long a worker keeps its tasks without a sign of life. */
  readonly leaseMs: number
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
  readonly #roster: Roster
  readonly #holdings = new Holdings()
  readonly #hands: Hands
  readonly #recalls: Recalls
  /** Workers whose poll waits because their hands are full. */
  readonly #full = new Set<string>()
  /** Workers that have registered since the start. */
  readonly #anew = new Set<string>()
  #isOpen = true

  constructor(options: DeskOptions) {
    this.#options = options
    this.#parking = new Parking(options.clock)
    const { storage, director, dispatcher, clock, random, log, signals, onMoment } = options
    const release = (workerId: string, id: string, lease: LeaseRef): boolean => this.#takeFromHands(workerId, id, lease)
    this.#reception = new Reception({ storage, director, clock, random, log, release })
    this.#roster = new Roster({ storage, dispatcher, clock, log, onMoment })
    const wake = (workerId: string): boolean => {
      this.#full.delete(workerId)
      return this.#parking.wake(workerId)
    }
    const hold = (workerId: string, ref: DeliveryRef): void => this.#hold(workerId, ref)
    const free = (workerId: string, lease: LeaseRef): boolean => this.#release(workerId, lease)
    const holdings = this.#holdings
    this.#hands = new Hands({ storage, holdings, dispatcher, signals, log, hold, release: free })
    this.#recalls = new Recalls({ storage, dispatcher, holdings: this.#holdings, signals, log, wake })
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
    this.#anew.add(worker.id)
    this.#holdings.clear(worker.id)
    this.#options.signals.send(['anew', worker.id])
    return this.#roster.register(worker)
  }

  /**
   * A sign of life. Keeps the worker's tasks in its hands, and says which of those that it names are
   * no longer its own.
   */
  async heartbeat(
    workerId: string,
    patch: WorkerPatch | undefined,
    currentTasks: readonly string[] | undefined,
    load?: number,
  ): Promise<{ readonly worker: WorkerRecord; readonly cancelled: readonly string[] }> {
    const { worker, heardBefore } = await this.#roster.hear(workerId, patch)
    if (currentTasks === undefined && load === 0) this.#forgetUntil(heardBefore, workerId)
    const lost = await this.#renew(workerId, currentTasks)
    return { worker, cancelled: [...new Set([...this.#holdings.tellRecalls(workerId), ...lost])] }
  }

  /**
   * The oldest workers do not name their tasks, but say how many they have. One that has none never got what it was given
   * before its last sign of life: that lease shall end.
   */
  #forgetUntil(before: number, workerId: string): void {
    for (const { lease, takenAt } of this.#holdings.of(workerId).values()) {
      if (takenAt < before) this.#release(workerId, lease)
    }
  }

  /**
   * Extends the leases that the worker names, or all that it holds if it names none; what is lost was
   * cancelled, has expired or went to another. What it does not name it may never have got, because the
   * answer to its poll was lost or it has started anew: that lease shall end.
   */
  async #renew(workerId: string, currentTasks: readonly string[] | undefined): Promise<readonly string[]> {
    const { storage, leaseMs, dispatcher } = this.#options
    const holdings = this.#holdings
    const named = new Set(currentTasks)
    const cancelled: string[] = []
    for (const id of named) {
      const ref = parseDeliveryId(id)
      if (ref === undefined) {
        cancelled.push(id)
        continue
      }
      const lease = leaseOf(ref)
      if (holdings.of(workerId).get(lease.id)?.deliveryId === id) continue
      if ((await this.#reception.standing(workerId, ref)) === 'own') this.#hold(workerId, ref)
      else cancelled.push(id)
    }
    if (currentTasks !== undefined) {
      for (const { deliveryId: id, lease } of holdings.of(workerId).values()) {
        if (!named.has(id)) this.#release(workerId, lease)
      }
    }
    const held = [...holdings.of(workerId).values()]
    if (held.length === 0) return cancelled
    const kept = await storage.renew(
      held.map(({ lease }) => lease),
      leaseMs,
    )
    for (const [index, { lease, deliveryId: id }] of held.entries()) {
      if (kept[index] === true) {
        dispatcher.assign(lease.id, workerId)
        continue
      }
      this.#release(workerId, lease)
      cancelled.push(id)
    }
    return cancelled
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
        const cancelled = options.wantsCancelled === true ? this.#holdings.tellRecalls(workerId) : []
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

  /** What a worker brings to another instance frees its hands, and nobody says so here. */
  #relookMs(workerId: string): number {
    return this.#full.has(workerId) && this.#options.signals.hasPeers ? FULL_RELOOK_MS : Number.POSITIVE_INFINITY
  }

  /** What a poll says of the worker's skills counts at once; it is written down with the next heartbeat. */
  #hear(worker: WorkerRecord, { availableSkills, hotSkills }: PollOptions): WorkerRecord {
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
      this.#full.add(worker.id)
      return NOTHING
    }
    const done = this.#holdings.reserve(worker.id, limit)
    try {
      return await this.#claimUpTo(limit, worker, options)
    } finally {
      done()
      this.#wakeIfFull(worker.id)
    }
  }

  #roomOf(worker: WorkerRecord): number {
    return worker.concurrencyMax - this.#holdings.count(worker.id)
  }

  /** Whose leases have ended holds nothing any more, though it never said so. */
  async #lookAtHands(workerId: string): Promise<void> {
    const held = [...this.#holdings.of(workerId).values()]
    const views = await this.#options.storage.peek(
      'tasks',
      held.map(({ lease }) => lease.id),
    )
    for (const [index, { lease }] of held.entries()) {
      if (views[index]?.lease?.token !== lease.token) this.#release(workerId, lease)
    }
  }

  #hold(workerId: string, ref: DeliveryRef): void {
    const takenAt = this.#options.clock.now()
    this.#holdings.add(workerId, { deliveryId: deliveryId(ref), jobId: ref.jobId, lease: leaseOf(ref), takenAt })
  }

  #release(workerId: string, lease: LeaseRef): boolean {
    const isHeld = this.#holdings.take(workerId, lease)
    if (isHeld) this.#wakeIfFull(workerId)
    return isHeld
  }

  #wakeIfFull(workerId: string): void {
    if (this.#full.delete(workerId)) this.#parking.wake(workerId)
  }

  async #claimUpTo(limit: number, worker: WorkerRecord, options: PollOptions): Promise<Handout> {
    const { storage, dispatcher, clock, leaseMs } = this.#options
    const lanes = await dispatcher.lanesFor(worker)
    const holder = options.isLocal === true ? {} : { holder: worker.id }
    const claimed = await storage.claim('tasks', { lanes, limit, leaseMs, ...holder })
    const leases = options.isLocal === true ? claimed.leases : await this.#hands.fit(worker, claimed.leases)
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
    const callOf = (found: Job | undefined): Call | undefined =>
      found?.visit === visit ? found.branches[branch]?.call : undefined
    const job = (await director.recall(jobId, (known) => callOf(known) !== undefined))?.value
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
    this.#hold(workerId, ref)
    return {
      taskId: deliveryId(ref),
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
    for (const lease of leases) this.#release(workerId, lease)
    await this.#options.storage.renew(leases, 0)
  }

  /** Takes results. Each counts once; all of them are durable when this resolves. */
  results(workerId: string, reports: readonly Report[]): Promise<readonly Receipt[]> {
    return this.#reception.results(workerId, reports)
  }

  progress(workerId: string, id: string, fraction: number, message: string | undefined): Promise<void> {
    return this.#reception.progress(workerId, id, fraction, message)
  }

  /** Takes an event of a task that the worker holds: durable when this resolves. See `Reception.event`. */
  event(workerId: string, id: string, event: WorkerEvent): Promise<Receipt> {
    return this.#reception.event(workerId, id, event)
  }

  onEvent(listener: (news: WorkerEventNews) => void): () => void {
    return this.#reception.onEvent(listener)
  }

  /** The result of a delivery is here: whatever became of it, the worker has its hands free. */
  #takeFromHands(workerId: string, id: string, lease: LeaseRef): boolean {
    this.#holdings.forgetRecall(workerId, id)
    const isHeld = this.#holdings.of(workerId).get(lease.id)?.deliveryId === id
    return isHeld && this.#release(workerId, lease)
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

  /** A decision took tasks back: whoever holds one of them is told. A task that ended by its result is in no hands any more. */
  onDecided(decision: Decision, event: JobEvent): void {
    this.#recalls.onDecided(decision, event)
  }

  /** A task was found in the worker's hands after a start. Who has registered since holds nothing of before. */
  resume({ holder, ref }: Held): void {
    if (this.#anew.has(holder)) return
    this.#hold(holder, ref)
    this.#options.dispatcher.assign(taskId(ref.jobId, ref.visit, ref.branch), holder)
  }
}

const FULL_RELOOK_MS = 1_000
const NOTHING: Handout = { deliveries: [], cancelled: [], giveBack: () => Promise.resolve() }
