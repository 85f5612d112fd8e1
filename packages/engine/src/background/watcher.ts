import type { Clock, JobEvent, Lease, Log, Random, Service, Storage } from '@impresario/core'
import type { Director } from '../job/director.ts'
import { readTask, readTimer } from '../job/payload.ts'
import { earlier, Pump } from '../service/pump.ts'

export interface WatcherOptions {
  readonly storage: Storage
  readonly director: Director
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Who has the task, as far as it is known here. */
  readonly workerOf: (taskId: string) => string | undefined
}

const LEASE_MS = 15_000
const BATCH = 200
/** Timers of other instances are not hinted at, so each one looks this often. */
const IDLE_MS = 1_000

/** Finds what has run out of time, from the storage's ordered index, and lets the rules decide about it. */
export class Watcher implements Service {
  readonly name = 'watcher'
  readonly #options: WatcherOptions
  readonly #pump: Pump

  constructor(options: WatcherOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  start(): Promise<void> {
    return this.#pump.start()
  }

  stop(): Promise<void> {
    return this.#pump.stop()
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { storage } = this.#options
    const due = await storage.claim('timers', { limit: BATCH, leaseMs: LEASE_MS })
    const expired = await storage.claimExpired('tasks', { limit: BATCH, leaseMs: LEASE_MS })
    await Promise.all([
      ...due.leases.map((lease) => this.#apply(readTimer(lease.payload).jobId, this.#timerEvent(lease), lease)),
      ...expired.leases.map((lease) => this.#apply(readTask(lease.payload).jobId, this.#expiryEvent(lease), lease)),
    ])
    return { worked: due.leases.length + expired.leases.length, nextInMs: earlier(due.nextInMs, expired.nextInMs) }
  }

  #timerEvent(lease: Lease): JobEvent {
    const { timer, visit } = readTimer(lease.payload)
    const at = this.#options.clock.now()
    switch (timer) {
      case 'life':
        return { type: 'timeRanOut', at }
      case 'approval':
        return { type: 'approvalExpired', at, visit }
      case 'reminder':
        return { type: 'reminderDue', at, visit }
      case 'event':
        return { type: 'eventWaitExpired', at, visit }
      case 'sleep':
        return { type: 'sleepEnded', at, visit }
    }
  }

  #expiryEvent(lease: Lease): JobEvent {
    const { visit, branch, attempt } = readTask(lease.payload)
    const { clock, random, workerOf } = this.#options
    const isTaken = lease.deliveries > 0
    return {
      type: 'taskExpired',
      at: clock.now(),
      visit,
      branch,
      attempt,
      wasTaken: isTaken,
      // The next attempt should go to another worker.
      workerId: isTaken ? workerOf(lease.id) : undefined,
      chance: random.next(),
    }
  }

  async #apply(jobId: string, event: JobEvent, lease: Lease): Promise<void> {
    try {
      await this.#options.director.apply(jobId, event, { settle: lease })
    } catch (error) {
      this.#options.log.error('a timeout could not be applied', { job_id: jobId, error: String(error) })
    }
  }
}
