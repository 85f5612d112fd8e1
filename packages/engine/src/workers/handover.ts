import { taskId, WOKEN } from '@impresario/core'
import type {
  BornClaim,
  Clock,
  Decision,
  DeliveryRef,
  Effect,
  Job,
  LeaseRef,
  Log,
  Random,
  Storage,
  TaskCall,
  WorkerRecord,
} from '@impresario/core'
import { jsonWeight, LIMITS, PassingMap } from '@impresario/protocol'
import type { Signals } from '../service/signals.ts'
import { leaseOf } from './custody.ts'
import type { Holdings } from './holdings.ts'
import type { Parking } from './parking.ts'
import { isCountedOverAll } from './shared-capacity.ts'

export interface HandoverOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signals: Signals
  readonly holdings: Holdings
  /** The polls that wait here. */
  readonly parking: Parking
  /** How long a worker keeps its tasks without a heartbeat. */
  readonly leaseMs: number
}

/** A task that is written together with its first claim, and whose commit is under way. */
interface Promised {
  readonly workerId: string
  readonly isLocal: boolean
  readonly token: number
  /** Gives the worker's place back. */
  readonly free: () => void
}

/** A worker that polls here, or is about to. */
interface Listener {
  /** Polls that are under way. */
  polls: number
  /** What its newest poll takes. */
  limit: number
  isLocal: boolean
  /** When its last poll was answered with tasks: the next one is on its way. */
  answeredAt: number
  /** Tasks that are promised to it or lie in its tray. */
  expected: number
}

/** A task that waits for the next look of its worker's poll. */
export interface Handed {
  readonly ref: DeliveryRef
  readonly job: Job
  readonly call: TaskCall
  readonly workerId: string
  readonly isLocal: boolean
  /** When it expires, on the engine's clock, if the worker keeps it. */
  readonly deadlineAt: number | undefined
  readonly handedAt: number
  readonly free: () => void
}

type TaskEffect = Extract<Effect, { type: 'task' }>

/** A poll that was answered with tasks is followed by the next one at once, if the worker has room. */
const RETURN_MS = 100
/** What a worker has not fetched for so long goes back: it is gone, or polls for less than it says it can hold. */
const TRAY_MS = 1_000
/** A storage that does not answer is asked again after this, then twice that, and so on. */
const RETRY_MS = 250

/**
 * Gives a task to a worker that polls here in the commit that makes the task: it is born claimed. That saves the claim,
 * which on a shared storage is a third of all calls for a short job.
 *
 * `reserve` promises a place while the batch is being made. The commit puts the task into the worker's tray (`onDecided`)
 * or takes the promise back (`onRefused`). The worker's polls empty the tray. What nobody fetches in time goes back into
 * its queue. After a crash in between, the lease ends, as with any claim whose answer never reached its worker.
 */
export class Handover {
  readonly #options: HandoverOptions
  readonly #promised = new PassingMap<string, Promised>()
  /** By the task's id in its queue. */
  readonly #handed = new PassingMap<string, Handed>()
  /** The ids of each worker's tasks among them. */
  readonly #trays = new Map<string, Set<string>>()
  readonly #listeners = new Map<string, Listener>()
  readonly #givingBack = new Set<Promise<void>>()
  #closing = new AbortController()
  #isSweeping = false
  #isOpen = true

  constructor(options: HandoverOptions) {
    this.#options = options
  }

  /** A poll of the worker begins. `accepts`: how many tasks it takes; none from a worker that is leaving. */
  listen(workerId: string, accepts: number, isLocal: boolean): void {
    const known = this.#listeners.get(workerId)
    if (known === undefined) {
      this.#listeners.set(workerId, { polls: 1, limit: accepts, isLocal, answeredAt: -Infinity, expected: 0 })
      return
    }
    known.polls += 1
    known.limit = accepts
    known.isLocal = isLocal
  }

  /** It has ended, with tasks or without. */
  leave(workerId: string, hasTasks: boolean): void {
    const listener = this.#listeners.get(workerId)
    if (listener === undefined) return
    listener.polls -= 1
    if (hasTasks) listener.answeredAt = this.#options.clock.now()
    else this.#forget(workerId, listener)
  }

  /** The claim that the task is born with, if the worker listens here and has room. */
  reserve(worker: WorkerRecord, id: string): BornClaim | undefined {
    const { holdings, signals, random, leaseMs } = this.#options
    const listener = this.#listeners.get(worker.id)
    if (!this.#isOpen || listener === undefined || !this.#isListening(worker.id, listener)) return undefined
    const { isLocal } = listener
    if (listener.expected >= listener.limit || holdings.roomOf(worker) <= 0) return undefined
    if (!isLocal && signals.hasPeers && isCountedOverAll(worker)) return undefined
    const token = 1 + Math.floor(random.next() * TOKENS)
    const giveUp = holdings.reserve(worker.id, 1)
    listener.expected += 1
    const free = (): void => {
      giveUp()
      listener.expected -= 1
    }
    this.#promised.set(id, { workerId: worker.id, isLocal, token, free })
    return isLocal ? { token, leaseMs } : { token, leaseMs, holder: worker.id }
  }

  /** The worker is not known any more. */
  forget(workerId: string): void {
    const listener = this.#listeners.get(workerId)
    if (listener !== undefined) this.#forget(workerId, listener)
  }

  #isListening(workerId: string, listener: Listener): boolean {
    if (listener.polls > 0 || this.#options.clock.now() - listener.answeredAt <= RETURN_MS) return true
    this.#forget(workerId, listener)
    return false
  }

  #forget(workerId: string, listener: Listener): void {
    if (listener.polls <= 0 && this.#listeners.get(workerId) === listener) this.#listeners.delete(workerId)
  }

  /** A decision was written: what it promised is in the trays, and what it took back is in none. */
  onDecided({ job, effects }: Decision): void {
    if (this.#promised.size === 0 && this.#handed.size === 0) return
    for (const effect of effects) {
      if (effect.type === 'dropTask') this.#drop(taskId(job.id, effect.visit, effect.branch), effect.attempt)
      else if (effect.type === 'task') this.#confirm(effect, job)
    }
  }

  #confirm({ visit, branch, attempt, call, resultMs = Infinity }: TaskEffect, job: Job): void {
    const id = taskId(job.id, visit, branch)
    const promised = this.#promised.get(id)
    if (promised === undefined) return
    this.#promised.delete(id)
    const { token, workerId, isLocal, free } = promised
    const handedAt = this.#options.clock.now()
    const ms = Math.min(resultMs, call.runTimeoutMs ?? Infinity)
    const deadlineAt = ms === Infinity ? undefined : handedAt + ms
    const ref = { jobId: job.id, visit, branch, attempt, token }
    this.#put(id, { ref, job, call, workerId, isLocal, deadlineAt, handedAt, free })
  }

  /** A decision was not written, or nobody knows: then its tasks may be there, in the hands of nobody. */
  onRefused({ job, effects }: Decision, isUnknown: boolean): void {
    for (const effect of effects) {
      if (effect.type !== 'task') continue
      const { visit, branch, attempt } = effect
      const id = taskId(job.id, visit, branch)
      const promised = this.#promised.get(id)
      if (promised === undefined) continue
      this.#promised.delete(id)
      promised.free()
      if (isUnknown) this.#giveBack([{ jobId: job.id, visit, branch, attempt, token: promised.token }])
    }
  }

  /** What lies in the worker's tray, as much as one answer holds. The caller counts it as held. */
  take(workerId: string, limit: number, isLocal: boolean): readonly Handed[] {
    const taken: Handed[] = []
    let bytes = 0
    for (const id of this.#trays.get(workerId) ?? NONE) {
      const handed = this.#handed.get(id)
      if (handed?.isLocal !== isLocal) continue
      bytes += jsonWeight(handed.call.params)
      if (taken.length >= limit || (taken.length > 0 && bytes > LIMITS.handoutBytesMax)) break
      this.#remove(id, handed)
      taken.push(handed)
    }
    return taken
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#closing = new AbortController()
  }

  /** Promises nothing more, and gives back what lies in the trays. */
  close(): void {
    this.#isOpen = false
    this.#closing.abort(WOKEN)
    this.#giveBackOlder(Infinity)
  }

  /** Resolves when everything that was given back is in its queue. */
  async settled(): Promise<void> {
    await Promise.all(this.#givingBack)
  }

  #put(id: string, handed: Handed): void {
    const { workerId } = handed
    if (!this.#isOpen) {
      this.#giveBack([this.#freed(handed)])
      return
    }
    this.#handed.set(id, handed)
    const tray = this.#trays.get(workerId)
    if (tray === undefined) this.#trays.set(workerId, new Set([id]))
    else tray.add(id)
    // If the poll has ended meanwhile, the next one looks into the tray first.
    this.#options.parking.wake(workerId)
    if (!this.#isSweeping) void this.#sweepWhileFull()
  }

  #remove(id: string, { workerId }: Handed): void {
    this.#handed.delete(id)
    const tray = this.#trays.get(workerId)
    tray?.delete(id)
    if (tray?.size === 0) this.#trays.delete(workerId)
  }

  /** One timer for all trays, while there is something in any. */
  async #sweepWhileFull(): Promise<void> {
    const { clock } = this.#options
    this.#isSweeping = true
    while (this.#handed.size > 0) {
      await clock.sleep(TRAY_MS, this.#closing.signal)
      this.#giveBackOlder(clock.now() - TRAY_MS)
    }
    this.#isSweeping = false
  }

  #giveBackOlder(at: number): void {
    const refs: DeliveryRef[] = []
    for (const [id, handed] of this.#handed) {
      if (handed.handedAt > at) break
      this.#remove(id, handed)
      refs.push(this.#freed(handed))
    }
    this.#giveBack(refs)
  }

  #drop(id: string, attempt: number): void {
    const handed = this.#handed.get(id)
    if (handed === undefined || handed.ref.attempt !== attempt) return
    this.#remove(id, handed)
    handed.free()
  }

  #freed({ ref, free }: Handed): DeliveryRef {
    free()
    return ref
  }

  #giveBack(refs: readonly DeliveryRef[]): void {
    if (refs.length === 0) return
    const givenBack = this.#insist(refs.map(leaseOf)).finally(() => this.#givingBack.delete(givenBack))
    this.#givingBack.add(givenBack)
  }

  /** A storage that is out of reach comes back mostly. When it stays away for longer, the leases end by themselves. */
  async #insist(leases: readonly LeaseRef[]): Promise<void> {
    const { storage, log, clock, leaseMs } = this.#options
    const until = clock.now() + leaseMs
    for (let pauseMs = RETRY_MS; ; pauseMs *= 2) {
      try {
        await storage.renew(leases, 0)
        return
      } catch (error) {
        log.debug('tasks that nobody fetched could not be given back yet', { error: String(error) })
        if (!this.#isOpen || clock.now() + pauseMs > until) return
      }
      await clock.sleep(pauseMs, this.#closing.signal)
    }
  }
}

/** As many as there are random numbers between 0 and 1. */
const TOKENS = 2 ** 52
const NONE: ReadonlySet<string> = new Set()
