import { WOKEN } from '@impresario/core'
import type { Clock, Job, JobError, Lease, Log, RunnableBlueprint, Service, Storage } from '@impresario/core'
import { jsonWeight, LIMITS, PassingMap } from '@impresario/protocol'
import type { ScriptRegistry } from '../job/script-registry.ts'
import { isHandlersFault } from '../job/director.ts'
import type { Director } from '../job/director.ts'
import { earlier, Pump } from '../service/pump.ts'
import { readTurn } from '../job/payload.ts'
import { SuspectGate } from './suspects.ts'
import { TurnRoom } from './turn-room.ts'
import { messageOf } from './turn-taker.ts'
import type { Choice, LateSignal, TurnTaker } from './turn-taker.ts'

export interface ExecutorOptions {
  readonly storage: Storage
  readonly registry: ScriptRegistry
  readonly director: Director
  readonly clock: Clock
  readonly turns: TurnTaker
  readonly log: Log
  /** Turns that run at the same time. */
  readonly concurrencyMax: number
  /** What their jobs may take of the memory. */
  readonly bytesMax: number
  /** Longest run of one handler; then it counts as failed. */
  readonly handlerMs: number
}

/** A turn's lease outlives its handler's time limit by this much, so that it is not run a second time meanwhile. */
const LEASE_MARGIN_MS = 15_000
/** Longer leases are renewed instead: when this process dies, its turns shall not wait longer for another. */
const LEASE_MS_MAX = 30_000
/** Turns begun in one go; more would keep the event loop from the requests and the flush that wait. */
const ROUND_MAX = 32
/** Without a hint the queue is looked at this often. */
const IDLE_MS = 1_000
const GIVEN_UP = 'a handler was begun several times and never ended; its job is quarantined'
/** Jobs that are remembered as suspects. */
const SUSPECTS_MAX = 1_000

/** A turn from its claim to the end of its commit. It takes up a place all that time. */
interface RunningTurn {
  readonly lease: Lease
  /** Of the handler, once it runs. */
  signal: LateSignal | undefined
  /** The job is over. */
  isOver: boolean
  endsAt: number
  renewAt: number
  /** Ends the handler's time. Nothing to end before the handler runs. */
  expire: () => void
}

/**
 * Takes turns: claims ready jobs, runs the handler of their state, commits what it chose.
 *
 * Claims go over the clients in turn, so that one with a million jobs does not keep the others
 * waiting. A turn that is lost with its process is claimed again by another after the lease.
 *
 * The process may have been lost because of the turn. One that was claimed before is therefore counted in its job's record
 * before it runs, and runs apart from others like it; after a few such runs its job waits for a person. A run whose handler
 * returned hardly counts: the embedded storage says so of a turn that it had settled when the process ended, and on the others
 * the commit is the answer. Turns that are claimed for the first time, nearly all of them, cost nothing more.
 */
export class Executor implements Service {
  readonly name = 'executor'
  readonly #options: ExecutorOptions
  readonly #pump: Pump
  readonly #running = new PassingMap<number, RunningTurn>()
  readonly #gate: SuspectGate
  /**
   * Jobs of which a turn was claimed again in this process. The turn that ended the earlier one may be a later one of them,
   * which the storage had not made durable yet.
   */
  readonly #suspects = new Set<string>()
  /** Jobs of which a handler returned here in a visit, and the storage did not take what it chose. */
  readonly #returned = new Map<string, number>()
  readonly #room: TurnRoom
  #unwatch: (() => void) | undefined
  readonly #idle: (() => void)[] = []

  constructor(options: ExecutorOptions) {
    this.#options = options
    const { clock, log } = options
    this.#gate = new SuspectGate(clock)
    this.#room = new TurnRoom(options.bytesMax)
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  get running(): number {
    return this.#running.size
  }

  async start(): Promise<void> {
    this.#gate.open()
    this.#unwatch ??= this.#options.storage.watch('turns', () => this.#pump.wake())
    await this.#pump.start()
  }

  /** Claims nothing more and waits for the handlers that run. They are bounded by `handlerMs`. */
  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    this.#gate.close()
    await this.#pump.stop()
    await this.#drained()
  }

  /** The job is over: its running handler may stop. Its action is ignored in any case. */
  interrupt(jobId: string): void {
    for (const turn of this.#running.values()) {
      if (turn.lease.id !== jobId) continue
      turn.isOver = true
      turn.signal?.abort()
    }
  }

  /** Claims what is ready, runs it and waits for its end. */
  async tick(): Promise<{ readonly worked: number }> {
    let worked = 0
    let begun = ROUND_MAX
    while (begun === ROUND_MAX) {
      begun = (await this.#round()).worked
      worked += begun
    }
    await this.#drained()
    return { worked }
  }

  async #drained(): Promise<void> {
    while (this.#running.size > 0) {
      const napMs = this.#sweep() ?? IDLE_MS
      const wait = new AbortController()
      this.#idle.push(() => wait.abort(WOKEN))
      await this.#options.clock.sleep(napMs, wait.signal)
    }
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { storage, concurrencyMax } = this.#options
    const sweepInMs = this.#sweep()
    const limit = this.#room.fitting(Math.min(concurrencyMax - this.#running.size, ROUND_MAX))
    if (limit <= 0) return { worked: 0, nextInMs: sweepInMs }
    const claimed = await storage.claim('turns', { limit, leaseMs: this.#leaseMs })
    for (const lease of claimed.leases) this.#begin(lease)
    const nextInMs = earlier(claimed.nextInMs, sweepInMs)
    return { worked: claimed.leases.length, nextInMs }
  }

  get #leaseMs(): number {
    return Math.min(this.#options.handlerMs + LEASE_MARGIN_MS, LEASE_MS_MAX)
  }

  /** Ends the turns whose time is up, and keeps the others; says when the next one is due. */
  #sweep(): number | undefined {
    const now = this.#options.clock.now()
    const due: Lease[] = []
    let nextInMs: number | undefined
    for (const turn of this.#running.values()) {
      if (turn.endsAt <= now) {
        turn.expire()
        continue
      }
      if (turn.renewAt <= now) {
        due.push(turn.lease)
        turn.renewAt = now + this.#leaseMs / 3
      }
      nextInMs = earlier(nextInMs, Math.min(turn.endsAt, turn.renewAt) - now)
    }
    if (due.length > 0) void this.#renew(due)
    return nextInMs
  }

  /** What was lost meanwhile is noticed when its turn is committed. */
  async #renew(leases: readonly Lease[]): Promise<void> {
    const { storage, log } = this.#options
    await storage.renew(leases, this.#leaseMs).catch((error: unknown) => {
      log.warn('leases of turns could not be renewed', { turns: leases.length, error: String(error) })
    })
  }

  #begin(lease: Lease): void {
    const now = this.#options.clock.now()
    const [endsAt, renewAt] = [now + this.#options.handlerMs, now + this.#leaseMs / 3]
    const turn: RunningTurn = { lease, signal: undefined, isOver: false, endsAt, renewAt, expire: () => {} }
    this.#running.set(lease.token, turn)
    void this.#turn(lease, turn).then(
      () => this.#ended(lease.token),
      (error: unknown) => {
        this.#options.log.error('a turn could not be committed', { job_id: lease.id, error: String(error) })
        this.#ended(lease.token)
      },
    )
  }

  #ended(token: number): void {
    const wasFull = this.#running.size >= this.#options.concurrencyMax || this.#room.fitting(1) === 0
    this.#room.leave(token)
    this.#running.delete(token)
    if (wasFull) this.#pump.wake()
    if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #turn(lease: Lease, turn: RunningTurn): Promise<void> {
    const { storage, director } = this.#options
    const visit = readTurn(lease.payload)
    const jobId = lease.id
    const stored = await director.cached(jobId, (job) => job.visit === visit)
    if (stored === undefined || stored.value.visit !== visit) {
      await storage.commit({ settle: lease })
      return
    }
    this.#room.take(lease.token, jsonWeight(stored.value))
    // Claimed before, without a known end: it may have ended a process.
    const wasClaimed = (lease.deliveries > 1 || lease.settledBy !== undefined) && this.#returned.get(jobId) !== visit
    const isSuspect = wasClaimed || stored.value.begun !== undefined || this.#suspects.has(jobId)
    if (isSuspect) await this.#repeat(stored.value, turn)
    else await this.#take(stored.value, turn, false)
  }

  async #take(job: Job, turn: RunningTurn, isSuspect: boolean): Promise<void> {
    const { registry, director } = this.#options
    const { lease } = turn
    const { id: jobId, visit } = job
    const blueprint = registry.of(job)
    if (blueprint === undefined) {
      await director.apply(jobId, this.#strand(job), { settle: lease })
      return
    }
    const choice = await this.#perform(blueprint, job, turn, isSuspect)
    try {
      await this.#commit(job, choice, lease)
    } catch (error) {
      // The storage did not take it. The handler is not at fault, and its next run here is not counted.
      this.#returned.delete(jobId)
      this.#returned.set(jobId, visit)
      const [oldest] = this.#returned.keys()
      if (oldest !== undefined && this.#returned.size > SUSPECTS_MAX) this.#returned.delete(oldest)
      throw error
    }
    this.#returned.delete(jobId)
  }

  async #commit({ id: jobId, visit }: Job, choice: Choice, lease: Lease): Promise<void> {
    const { director, turns } = this.#options
    try {
      await director.apply(jobId, turns.eventOf(visit, choice), { settle: lease })
    } catch (error) {
      // What the handler asked for cannot be done, for example by a strategy that does not exist: its mistake, not ours.
      if (!isHandlersFault(error)) throw error
      await director.apply(jobId, turns.failure(visit, error), { settle: lease })
    }
  }

  /** Waits until it may run, writes down that it is about to, and runs. */
  async #repeat(job: Job, turn: RunningTurn): Promise<void> {
    const { turns, storage } = this.#options
    turns.beCautious()
    this.#remember(job.id)
    // Its time begins when it runs. Until then its lease is kept.
    turn.endsAt = Infinity
    const leave = await this.#gate.enter((job.begun ?? 0) > 0)
    if (leave === undefined) {
      await storage.renew([turn.lease], 0)
      return
    }
    try {
      const begun = await this.#count(job, turn.lease)
      if (begun !== undefined) await this.#take(begun, turn, true)
    } finally {
      leave()
    }
  }

  #remember(jobId: string): void {
    this.#suspects.add(jobId)
    const [oldest] = this.#suspects
    if (oldest !== undefined && this.#suspects.size > SUSPECTS_MAX) this.#suspects.delete(oldest)
  }

  /** Counts a run before it begins, durably. Gives the job if it may run. */
  async #count({ id: jobId, visit, begun = 0, lost = 0, ...job }: Job, lease: Lease): Promise<Job | undefined> {
    const { storage, director, clock, log } = this.#options
    const { token, settledBy } = lease
    const [begunMax, lostMax] = [LIMITS.turnBegunMax - 1, LIMITS.turnLostMax - 1]
    const wasSettled = settledBy !== undefined && settledBy === (job.begunBy ?? settledBy)
    const hasReturned = wasSettled || this.#returned.get(jobId) === visit
    const event = { type: 'turnBegun', at: clock.now(), visit, token, begunMax, lostMax, hasReturned } as const
    const facts = {
      job_id: jobId,
      blueprint: job.blueprint,
      state: job.state,
      times: hasReturned ? lost + 1 : begun + 1,
    }
    if (hasReturned ? lost >= lostMax : begun >= begunMax) {
      log.error(GIVEN_UP, facts)
      await director.apply(jobId, event, { settle: lease })
      return undefined
    }
    // The lease stays: it is settled with what the handler chooses.
    const applied = await director.apply(jobId, event, { guard: lease })
    // Others may have counted runs that were not known here: then that was one too many, and a person is asked.
    const isGivenUp = applied.type === 'applied' && applied.job.status === 'quarantined'
    if (isGivenUp) log.error(GIVEN_UP, { ...facts, times: (hasReturned ? lostMax : begunMax) + 1 })
    if (applied.type === 'ignored' || isGivenUp) await storage.commit({ settle: lease })
    if (applied.type !== 'applied' || isGivenUp) return undefined
    await storage.sync()
    log.warn('a handler is begun again; an earlier run of it did not end', facts)
    return applied.job
  }

  async #perform(blueprint: RunnableBlueprint, job: Job, turn: RunningTurn, isSuspect: boolean): Promise<Choice> {
    const { clock, handlerMs, turns } = this.#options
    const { lateSignal: signal, choice } = turns.perform(blueprint, job, isSuspect)
    turn.signal = signal
    if (turn.isOver) signal.abort()
    return new Promise((resolve) => {
      turn.endsAt = clock.now() + handlerMs
      turn.expire = () => {
        signal.abort()
        resolve({ error: new Error(`The handler of "${job.state}" did not answer within ${handlerMs / 1000} s.`) })
      }
      void choice.then(resolve)
    })
  }

  /** The version that the job began under is gone: go on under the newest, if it knows how, else ask a person. */
  #strand(job: Job): Parameters<Director['apply']>[1] {
    const { registry, clock, log } = this.#options
    const at = clock.now()
    const newest = registry.find(job.blueprint)
    try {
      const migration = newest?.migrate(job)
      if (newest !== undefined && migration !== undefined) {
        return { type: 'migrated', at, version: newest.version, ...migration }
      }
    } catch (error) {
      log.error('a migration failed', { job_id: job.id, error: messageOf(error) })
    }
    const has = newest === undefined ? 'no version of it is loaded' : `only version ${newest.version} is loaded`
    const error: JobError = {
      code: 'BLUEPRINT_GONE',
      message: `The job runs under version ${job.blueprintVersion} of "${job.blueprint}", but ${has}. Load that version again, or give the newest one a migrate function, then retry the job.`,
      state: job.state,
    }
    return { type: 'stranded', at, error }
  }
}
