import type { Clock, EventOf, JobRequest, Lease, Log, Service, Storage } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import type { Director } from '../job/director.ts'
import type { JobCreation } from '../job/job-creation.ts'
import type { EventPost } from '../job/event-post.ts'
import type { ScriptRegistry } from '../job/script-registry.ts'
import { readMail } from '../job/payload.ts'
import { Pump } from '../service/pump.ts'

export interface PostmanOptions {
  readonly storage: Storage
  readonly creation: JobCreation
  readonly director: Director
  readonly events: EventPost
  readonly registry: ScriptRegistry
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
    const { director, events, clock, log } = this.#options
    const { to, letter } = readMail(lease.payload)
    try {
      if (letter.type === 'create') await this.#create(to, letter.request, lease)
      else if (letter.type === 'listen' || letter.type === 'spread') await events.deliver(to, letter, lease)
      else if (letter.type === 'eventSent') await this.#event(to, letter, lease)
      else await director.apply(to, { ...letter, at: clock.now() }, { settle: lease })
    } catch (error) {
      // The letter stays in its queue and is delivered again when the lease ends.
      if (isImpresarioError(error, 'TOO_MANY_REQUESTS')) {
        log.warn('a child waits because too many jobs are open', { job_id: to })
        return
      }
      log.error('a letter could not be delivered', { job_id: to, error: String(error) })
    }
  }

  /** An event by key. What does not fit the job's own blueprint is nothing that it waits for. */
  async #event(to: string, letter: EventOf<'eventSent'>, lease: Lease): Promise<void> {
    const { director, registry, clock, storage, log } = this.#options
    const { topic, payload } = letter.event
    const job = (await director.cached(to, ({ visit }) => visit === letter.visit))?.value
    const checked = job && (await registry.of(job)?.validateEvent?.(topic, payload))
    if (checked === undefined || 'value' in checked) {
      const event = { ...letter.event, payload: checked?.value ?? payload }
      await director.apply(to, { ...letter, event, at: clock.now() }, { settle: lease })
      return
    }
    log.warn('an event does not fit a job that waits for it', {
      job_id: to,
      topic,
      problem: checked.problems.join('; '),
    })
    await storage.commit({ settle: lease })
  }

  /** A child that can never be: its parent hears of a failure instead of waiting for ever. */
  async #create(id: string, request: JobRequest, lease: Lease): Promise<void> {
    const { creation, director, clock, storage } = this.#options
    const { parent } = request
    const started = await creation.startChild(id, request, lease)
    if (started.type !== 'refused' || parent === undefined) return
    const { visit, branch, jobId } = parent
    const { code, message } = started.refusal
    const error = { code, message }
    await director.apply(jobId, { type: 'childEnded', at: clock.now(), visit, branch, outcome: 'failed', error })
    await storage.commit({ settle: lease })
  }
}
