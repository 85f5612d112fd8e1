import type { Clock, Item, LeaseRef, Log, Service, Storage } from '@impresario/core'
import { WOKEN } from '@impresario/core'
import { earlier, Pump } from './pump.ts'

/** One instance's time at the head of one process. */
export interface Term {
  /** Part of every commit of this term: a leader that has lost the lead without noticing writes nothing. */
  readonly guard: LeaseRef
  /** Whether it is over, or could be by the clock: nothing more is begun then. */
  readonly isOver: () => boolean
}

/** A process of which one runs in the whole cluster. */
export interface LedService {
  readonly name: string
  /** Longest sleep between two rounds. */
  readonly idleMs: number
  /** Whether there is anything to lead here: an instance without work for it leaves the lead to others. */
  readonly isWanted: () => boolean
  /** Before the first round of a term: what another instance did meanwhile is not remembered. */
  readonly begin: (term: Term) => Promise<void>
  readonly round: (term: Term) => Promise<{ readonly worked: number; readonly nextInMs: number | undefined }>
}

export interface LeadershipOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  readonly services: readonly LedService[]
  /** How long a lead lasts without being renewed. */
  readonly leaseMs: number
}

/** A term with what only the leadership itself needs to know of it. */
interface OpenTerm extends Term {
  /** When the lease could end, by the clock of this process: counted from before the storage was asked. */
  heldUntil: number
  renewAt: number
  isBegun: boolean
  isEnded: boolean
}

interface Seat {
  readonly service: LedService
  readonly pump: Pump
  term: OpenTerm | undefined
}

/** A lead is renewed when a third of it has passed, so that two renewals may fail. */
const RENEWALS_PER_LEASE = 3

/**
 * Lets each of its services run on one instance at a time.
 *
 * For each service there is one item in the queue `leaders`. *Following*: another instance holds the item, or none has
 * claimed it yet; this instance tries to. *Leading*: it is ours, is renewed at a third of its time, and the service runs.
 * A term ends at once when a renewal says that the lease is lost, when the clock says that it could be, when the service
 * has nothing to lead any more, and with `stop`, which hands the lead back so that the next instance need not wait.
 *
 * A process that was paused may still believe in its term. What it commits then carries a token that is no longer valid,
 * and nothing of it happens.
 */
export class Leadership implements Service {
  readonly name = 'leadership'
  readonly #options: LeadershipOptions
  readonly #seats: readonly Seat[]
  readonly #pump: Pump
  /** Rounds of ended terms that have not come to their end. */
  readonly #endings = new Set<Promise<void>>()
  #isRunning = false
  #unwatch: (() => void) | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    const { clock, log, leaseMs } = options
    const idleMs = leaseMs / RENEWALS_PER_LEASE
    this.#pump = new Pump({ name: this.name, clock, log, idleMs, round: () => this.#elect() })
    this.#seats = options.services.map((service) => {
      const round = (): ReturnType<LedService['round']> => this.#roundOf(seat)
      const pump = new Pump({ name: service.name, clock, log, idleMs: service.idleMs, round })
      const seat: Seat = { service, pump, term: undefined }
      return seat
    })
  }

  async start(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#unwatch = this.#options.storage.watch('leaders', () => {
      if (this.#seats.some(({ term }) => term === undefined)) this.#pump.wake()
    })
    for (const { pump, term } of this.#seats) if (term !== undefined) await pump.start()
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
    await this.#resign(this.#seats)
    await Promise.all(this.#endings)
  }

  /** One round of the election, then one of each service that is led from here. */
  async tick(): Promise<{ readonly worked: number }> {
    await this.#elect()
    let worked = 0
    for (const { pump, term } of this.#seats) {
      if (term !== undefined) worked += (await pump.tick()).worked
    }
    return { worked }
  }

  isLeading(name: string): boolean {
    return this.#seats.some(({ service, term }) => service.name === name && term !== undefined && !term.isOver())
  }

  /** Everything that is led from here. */
  get led(): readonly string[] {
    return this.#seats.map(({ service }) => service.name).filter((name) => this.isLeading(name))
  }

  /** There is something new for this service: it looks at once, wherever it is led from here. */
  wake(name: string): void {
    for (const { service, pump, term } of this.#seats) {
      if (service.name !== name) continue
      if (term === undefined) this.#pump.wake()
      else pump.wake()
    }
  }

  async #roundOf(seat: Seat): Promise<{ readonly worked: number; readonly nextInMs: number | undefined }> {
    const { service, term } = seat
    if (term === undefined || term.isOver()) return { worked: 0, nextInMs: undefined }
    if (!term.isBegun) {
      await service.begin(term)
      term.isBegun = true
    }
    return service.round(term)
  }

  async #elect(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { clock } = this.#options
    for (const seat of this.#seats) if (seat.term?.isOver() === true) this.#end(seat, 'its time is up')
    await this.#resign(this.#seats.filter(({ service }) => !service.isWanted()))
    await this.#renew(this.#seats.filter(({ term }) => term !== undefined && term.renewAt <= clock.now()))
    const vacantInMs = await this.#claim(this.#seats.filter(({ service, term }) => !term && service.isWanted()))
    const now = clock.now()
    const renewInMs = this.#seats.reduce<number | undefined>(
      (soonest, { term }) => earlier(soonest, term && Math.max(0, term.renewAt - now)),
      undefined,
    )
    return { worked: 0, nextInMs: earlier(renewInMs, vacantInMs) }
  }

  async #renew(seats: readonly Seat[]): Promise<void> {
    if (seats.length === 0) return
    const { storage, clock, leaseMs } = this.#options
    const terms = seats.map(({ term }) => term).filter((term) => term !== undefined)
    const asked = clock.now()
    const patience = new AbortController()
    // A storage that does not answer must not keep a service running beyond its time.
    const timeIsUp = clock.sleep(Math.min(...terms.map(({ heldUntil }) => heldUntil)) - asked, patience.signal)
    const guards = terms.map(({ guard }) => guard)
    const kept = await Promise.race([storage.renew(guards, leaseMs), timeIsUp.then(() => [])]).finally(() => {
      patience.abort(WOKEN)
    })
    for (const [index, seat] of seats.entries()) {
      if (kept[index] === true && seat.term !== undefined) this.#extend(seat.term, asked)
      else this.#end(seat, 'it was not renewed')
    }
  }

  #extend(term: OpenTerm, asked: number): void {
    term.heldUntil = asked + this.#options.leaseMs
    term.renewAt = asked + this.#options.leaseMs / RENEWALS_PER_LEASE
  }

  /** Takes what is vacant. Says how long until more may be, if that is known. */
  async #claim(seats: readonly Seat[]): Promise<number | undefined> {
    if (seats.length === 0) return undefined
    const { storage, clock, leaseMs } = this.#options
    const names = seats.map(({ service }) => service.name)
    await this.#create(names)
    const asked = clock.now()
    const { leases, nextInMs } = await storage.claim('leaders', { lanes: names, limit: names.length, leaseMs })
    for (const { queue, id, token } of leases) {
      const seat = seats.find(({ service }) => service.name === id)
      if (seat !== undefined) await this.#begin(seat, { queue, id, token }, asked)
    }
    return leases.length === names.length ? undefined : nextInMs
  }

  /**
   * Two instances that meet at the very first start may both find no item. The second one then replaces what the first
   * has claimed, and the first loses its term like any other that is not renewed.
   */
  async #create(names: readonly string[]): Promise<void> {
    const { storage } = this.#options
    const views = await storage.peek('leaders', names)
    const missing = names.filter((_name, index) => views[index] === undefined)
    if (missing.length === 0) return
    const enqueue = missing.map((name): Item => ({
      queue: 'leaders',
      id: name,
      lane: name,
      priority: 0,
      delayMs: 0,
      payload: null,
    }))
    await storage.commit({ enqueue })
  }

  async #begin(seat: Seat, guard: LeaseRef, asked: number): Promise<void> {
    const { clock, log } = this.#options
    const term: OpenTerm = {
      guard,
      isOver: () => term.isEnded || clock.now() >= term.heldUntil,
      heldUntil: 0,
      renewAt: 0,
      isBegun: false,
      isEnded: false,
    }
    this.#extend(term, asked)
    seat.term = term
    log.debug('took the lead', { process: seat.service.name })
    if (this.#isRunning) await seat.pump.start()
  }

  #end(seat: Seat, reason: string): void {
    if (seat.term === undefined) return
    seat.term.isEnded = true
    seat.term = undefined
    this.#options.log.warn('lost the lead', { process: seat.service.name, reason })
    void this.#rest(seat)
  }

  /** The round under way is not waited for: it may hang on the very storage that has cost us the lead. */
  #rest({ pump }: Seat): Promise<void> {
    const ending = pump.stop().finally(() => this.#endings.delete(ending))
    this.#endings.add(ending)
    return ending
  }

  /** Leaves in good order: the services come to rest first, then the lead is free for others. */
  async #resign(seats: readonly Seat[]): Promise<void> {
    const guards: LeaseRef[] = []
    for (const seat of seats) {
      if (seat.term === undefined) continue
      seat.term.isEnded = true
      guards.push(seat.term.guard)
      seat.term = undefined
      await this.#rest(seat)
    }
    if (guards.length === 0) return
    await this.#options.storage.renew(guards, 0).catch((error: unknown) => {
      this.#options.log.warn('a lead could not be handed back and ends by itself', { error: String(error) })
    })
  }
}
