import type { Clock, Lease, Log, Service, Storage } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import type { Director } from './director.ts'
import { readMail } from './payload.ts'
import { Pump } from './pump.ts'

export interface PostmanOptions {
  readonly storage: Storage
  readonly director: Director
  readonly clock: Clock
  readonly log: Log
}

const LEASE_MS = 15_000
const BATCH = 100
const IDLE_MS = 1_000

/** Delivers mail between jobs: the receiver decides about it, and the letter is gone with that decision. */
export class Postman implements Service {
  readonly name = 'postman'
  readonly #options: PostmanOptions
  readonly #pump: Pump
  #unwatch: (() => void) | undefined

  constructor(options: PostmanOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  async start(): Promise<void> {
    this.#unwatch ??= this.#options.storage.watch('mail', () => this.#pump.wake())
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { leases, nextInMs } = await this.#options.storage.claim('mail', { limit: BATCH, leaseMs: LEASE_MS })
    await Promise.all(leases.map((lease) => this.#deliver(lease)))
    return { worked: leases.length, nextInMs }
  }

  async #deliver(lease: Lease): Promise<void> {
    const { director, clock, log, storage } = this.#options
    const { to, letter } = readMail(lease.payload)
    const at = clock.now()
    try {
      if (letter.type !== 'create') {
        await director.apply(to, { ...letter, at }, lease)
        return
      }
      const { request } = letter
      try {
        await director.apply(to, { type: 'created', at, id: to, request }, lease)
      } catch (error) {
        const { parent } = request
        if (!isImpresarioError(error, 'BLUEPRINT_NOT_FOUND') || parent === undefined) throw error
        // The child can never be: its parent hears of a failure instead of waiting for ever.
        const { visit, branch } = parent
        const reason = { code: error.code, message: error.message }
        await director.apply(parent.jobId, { type: 'childEnded', at, visit, branch, outcome: 'failed', error: reason })
        await storage.commit({ settle: lease })
      }
    } catch (error) {
      // The letter stays in its queue and is delivered again when the lease ends.
      log.error('a letter could not be delivered', { job_id: to, error: String(error) })
    }
  }
}
