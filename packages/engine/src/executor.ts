import { WOKEN } from '@impresario/core'
import type {
  Clock,
  EventOf,
  Job,
  JobError,
  Lease,
  Log,
  Random,
  RunnableBlueprint,
  Service,
  Storage,
  Stored,
} from '@impresario/core'
import { LIMITS, isImpresarioError } from '@impresario/protocol'
import type { BlueprintShelf } from './blueprint-shelf.ts'
import type { Director } from './director.ts'
import { excerpt } from './excerpt.ts'
import { earlier, Pump } from './pump.ts'
import { readTurn } from './payload.ts'

export interface ExecutorOptions {
  readonly storage: Storage
  readonly shelf: BlueprintShelf
  readonly director: Director
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Turns that run at the same time. */
  readonly concurrencyMax: number
  /** Longest run of one handler; then it counts as failed. */
  readonly handlerMs: number
}

/** A turn's lease outlives its handler's time by this much, so that nobody runs it a second time meanwhile. */
const LEASE_MARGIN_MS = 15_000
/** Turns begun in one go; more would keep the event loop from the requests and the flush that wait. */
const ROUND_MAX = 32
/** Without a hint the queue is looked at this often. */
const IDLE_MS = 1_000

/** A turn from its claim to the end of its commit. It takes up a place all that time. */
interface RunningTurn {
  readonly jobId: string
  readonly signal: LateSignal
  endsAt: number
  /** Ends the handler's time. Nothing to end before the handler runs. */
  expire: () => void
}

/** An AbortSignal that is made when somebody asks for it. Most handlers do not, and thousands run in a second. */
class LateSignal {
  #controller: AbortController | undefined = undefined
  #isAborted = false

  get(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isAborted) this.#controller.abort(WOKEN)
    return this.#controller.signal
  }

  abort(): void {
    this.#isAborted = true
    this.#controller?.abort(WOKEN)
  }
}

/**
 * Takes turns: claims ready jobs, runs the handler of their state, commits what it chose.
 *
 * Claims go over the clients in turn, so that one with a million jobs does not keep the others
 * waiting. A turn that is lost with its process is claimed again by another after the lease.
 */
export class Executor implements Service {
  readonly name = 'executor'
  readonly #options: ExecutorOptions
  readonly #pump: Pump
  readonly #running = new Map<number, RunningTurn>()
  #unwatch: (() => void) | undefined
  readonly #idle: (() => void)[] = []

  constructor(options: ExecutorOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  get running(): number {
    return this.#running.size
  }

  async start(): Promise<void> {
    this.#unwatch ??= this.#options.storage.watch('turns', () => this.#pump.wake())
    await this.#pump.start()
  }

  /** Claims nothing more and waits for the handlers that run. They are bounded by `handlerMs`. */
  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
    await this.#drained()
  }

  /** The job is over: whoever still works for it may stop. What its handler answers is ignored in any case. */
  interrupt(jobId: string): void {
    for (const turn of this.#running.values()) {
      if (turn.jobId === jobId) turn.signal.abort()
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
    const { storage, concurrencyMax, handlerMs } = this.#options
    const sweepInMs = this.#sweep()
    const limit = Math.min(concurrencyMax - this.#running.size, ROUND_MAX)
    if (limit <= 0) return { worked: 0, nextInMs: sweepInMs }
    const claimed = await storage.claim('turns', { limit, leaseMs: handlerMs + LEASE_MARGIN_MS })
    for (const lease of claimed.leases) this.#begin(lease)
    const nextInMs = earlier(claimed.nextInMs, sweepInMs)
    return { worked: claimed.leases.length, nextInMs }
  }

  /** Ends the turns whose time is up; says when the next one is due. */
  #sweep(): number | undefined {
    const now = this.#options.clock.now()
    let nextInMs: number | undefined
    for (const turn of this.#running.values()) {
      if (turn.endsAt <= now) turn.expire()
      else nextInMs = earlier(nextInMs, turn.endsAt - now)
    }
    return nextInMs
  }

  #begin(lease: Lease): void {
    const endsAt = this.#options.clock.now() + this.#options.handlerMs
    const turn: RunningTurn = { jobId: lease.id, signal: new LateSignal(), endsAt, expire: () => {} }
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
    const wasFull = this.#running.size >= this.#options.concurrencyMax
    this.#running.delete(token)
    if (wasFull) this.#pump.wake()
    if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #turn(lease: Lease, turn: RunningTurn): Promise<void> {
    const { storage, shelf, director, clock } = this.#options
    const visit = readTurn(lease.payload)
    const jobId = lease.id
    const stored = await storage.read('job', jobId)
    if (stored === undefined || stored.value.visit !== visit) {
      await storage.commit({ settle: lease })
      return
    }
    const blueprint = shelf.of(stored.value)
    if (blueprint === undefined) {
      await director.apply(jobId, this.#strand(stored), lease)
      return
    }
    const choice = await this.#perform(blueprint, stored.value, turn)
    const event =
      'error' in choice
        ? this.#failure(visit, choice.error)
        : ({ type: 'turnTaken', at: clock.now(), visit, ...choice } as const)
    try {
      await director.apply(jobId, event, lease)
    } catch (error) {
      // What the handler asked for cannot be done, for example by a strategy that does not exist: its mistake, not ours.
      if (!isImpresarioError(error, 'INVALID_BLUEPRINT') && !isImpresarioError(error, 'LIMIT_EXCEEDED')) throw error
      await director.apply(jobId, this.#failure(visit, error), lease)
    }
  }

  #failure(visit: number, error: unknown): EventOf<'turnFailed'> {
    return {
      type: 'turnFailed',
      at: this.#options.clock.now(),
      visit,
      message: messageOf(error),
      stack: stackOf(error),
      chance: this.#options.random.next(),
    }
  }

  /** Runs user code, which may throw anything, answer late or never answer. */
  async #perform(
    blueprint: RunnableBlueprint,
    job: Job,
    turn: RunningTurn,
  ): Promise<Awaited<ReturnType<RunnableBlueprint['perform']>> | { readonly error: unknown }> {
    const { clock, handlerMs } = this.#options
    const { signal } = turn
    return new Promise((resolve) => {
      turn.endsAt = clock.now() + handlerMs
      turn.expire = () => {
        signal.abort()
        resolve({ error: new Error(`The handler of "${job.state}" did not answer within ${handlerMs / 1000} s.`) })
      }
      const input = {
        job,
        get signal() {
          return signal.get()
        },
      }
      blueprint.perform(input).then(resolve, (error: unknown) => resolve({ error }))
    })
  }

  /** The version that the job began under is gone: go on under the newest, if it knows how, else ask a person. */
  #strand(stored: Stored<Job>): Parameters<Director['apply']>[1] {
    const { shelf, clock, log } = this.#options
    const job = stored.value
    const at = clock.now()
    const newest = shelf.find(job.blueprint)
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

/** User code may throw anything, also what cannot even be turned into text. */
function messageOf(error: unknown): string {
  const message: unknown = error instanceof Error ? error.message : error
  try {
    const text =
      error instanceof Error ? String(message) : `Something that is not an Error was thrown: ${String(message)}`
    return excerpt(text, LIMITS.handlerErrorCharsMax)
  } catch {
    return 'Something that is not an Error was thrown, and it cannot be shown as text.'
  }
}

function stackOf(error: unknown): string | undefined {
  const stack: unknown = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string' ? excerpt(stack, LIMITS.handlerStackCharsMax) : undefined
}
