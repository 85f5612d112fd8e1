import { Client, JobFailedError, WaitTimeoutError } from '@impresario/client'
import type { Job, JobHandle } from '@impresario/client'
import { durationMs } from '@impresario/core'
import type { Log, RunnableBlueprint, Storage, Strategy } from '@impresario/core'
import { ENDED_STATUSES, isTaskContract, pause } from '@impresario/protocol'
import type { AnyTaskContract, Duration } from '@impresario/protocol'
import { createOrchestrator } from '@impresario/server/embedded'
import type { LocalClientOptions, Orchestrator, OrchestratorOptions } from '@impresario/server/embedded'
import { createMemoryStorage } from '@impresario/storage-embedded'
import type { ContractGroup, HandlerFor, HandlersFor, Worker, WorkerTransport } from '@impresario/worker'
import { Activity } from './activity.ts'
import { Chance, seededRandom } from './chance.ts'
import { DueTimes } from './due-times.ts'
import { FaultSource } from './faults.ts'
import type { Faults } from './faults.ts'
import { Life } from './life.ts'
import { nextTick } from './next-tick.ts'
import { repeating } from './repeating.ts'
import { TestWorker } from './test-worker.ts'
import type { TestWorkerOptions } from './test-worker.ts'
import { VirtualClock } from './virtual-clock.ts'

export interface TestKitOptions {
  readonly blueprints: readonly RunnableBlueprint[]
  /** As for an orchestrator. Data is always kept in memory. */
  readonly settings?: OrchestratorOptions['settings']
  readonly strategies?: readonly Strategy[]
  /** The time at the start. Default: 2026-01-01T00:00:00Z. */
  readonly startAt?: Date | string
  /** Faults, ids and waits between retries are the same for the same seed. Default: 1. */
  readonly seed?: number
  readonly faults?: Faults
  /** How long handlers may run, by the clock of the machine. Longer is an error of the test. Default: 10 seconds. */
  readonly handlerTimeoutMs?: number
  /** Default: nothing is logged. */
  readonly log?: Log
}

export interface RunOptions {
  /** Virtual time that may pass. Default: 30 days. */
  readonly within?: Duration
}

/** This many ticks of the event loop without anything new: all that needs no time has happened. */
const QUIET_TICKS = 20
const HANDLER_TIMEOUT_MS = 10_000
/** The orchestrator looks for due work at least this often, so it is served at most this long after its time. */
const LOOK_MS = 1_000
/** By the clock of the machine. */
const STOP_MS = 500
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }
/** Not a secret: nothing leaves the process. */
const SECRET_KEY = 'test-kit-test-kit-test-kit-test-kit-test-kit'

/** Starts an orchestrator in memory on a virtual clock. */
export async function startTestKit(options: TestKitOptions): Promise<TestKit> {
  const kit = new TestKit(options)
  await kit.restart()
  return kit
}

/**
 * An orchestrator, its workers and their clock, for tests of blueprints. It is the production code on the memory storage;
 * only the clock, the random numbers and the connections of workers belong to the kit.
 *
 * Time stands still until a method of the kit moves it. It then skips from one moment at which something is due to the next,
 * and stops at each until everything that needs no time has happened. So days pass in milliseconds, and tests do not depend on
 * the speed of the machine.
 */
export class TestKit {
  readonly #options: TestKitOptions
  readonly #clock: VirtualClock
  readonly #dueTimes: DueTimes
  readonly #activity = new Activity()
  readonly #chance: Chance
  readonly #faults: FaultSource
  readonly #storage: Storage
  readonly #workers: TestWorker[] = []
  #life: Life | undefined
  #orchestrator: Orchestrator | undefined
  #reviving: Promise<void> | undefined
  #sleeping = 0
  #keys = 0
  #lastStop = Number.NEGATIVE_INFINITY

  constructor(options: TestKitOptions) {
    this.#options = options
    const startAt = new Date(options.startAt ?? '2026-01-01T00:00:00Z').getTime()
    if (Number.isNaN(startAt)) throw new TypeError('startAt is not a time. Give a Date or an ISO 8601 time.')
    this.#clock = new VirtualClock(startAt)
    this.#dueTimes = new DueTimes(this.#clock.now)
    this.#chance = new Chance(options.seed ?? 1)
    this.#faults = new FaultSource(options.faults ?? {}, this.#chance)
    this.#storage = createMemoryStorage({ now: this.#clock.now })
  }

  /** The virtual time. */
  get now(): Date {
    return new Date(this.#clock.now())
  }

  /** A client, as `orchestrator.client()` gives one. When the orchestrator crashes during a call, the call is repeated. */
  client(options?: LocalClientOptions): Client {
    return new Client(repeating(() => this.#running.clientTransport(options), this.#reach, this.#key))
  }

  /** Adds a worker: its handlers are functions of the test, checked by the contract. Resolves once it waits for tasks. */
  addWorker<T extends AnyTaskContract>(
    task: T,
    handler: HandlerFor<NoInfer<T>>,
    options?: TestWorkerOptions,
  ): Promise<TestWorker>
  addWorker<C extends ContractGroup>(
    contract: C,
    handlers: NoInfer<HandlersFor<C>>,
    options?: TestWorkerOptions,
  ): Promise<TestWorker>
  addWorker(
    contract: AnyTaskContract | ContractGroup,
    given: HandlerFor<never> | HandlersFor<ContractGroup>,
    options?: TestWorkerOptions,
  ): Promise<TestWorker> {
    return this.addWorkerWith((worker) => handleAll(worker, contract, given), options)
  }

  /** The same for workers with several contracts, with tasks without a contract, or with middleware. */
  async addWorkerWith(prepare: (worker: Worker) => unknown, options: TestWorkerOptions = {}): Promise<TestWorker> {
    const id = options.id ?? `worker-${this.#workers.length + 1}`
    const parts = { faults: this.#faults, now: this.#clock.now, call: this.#call }
    const added = new TestWorker({ ...options, id }, parts)
    await prepare(added.worker)
    this.#workers.push(added)
    await added.worker.start()
    await this.settle()
    return added
  }

  /** For handlers of workers: virtual time that their work takes. */
  async sleep(span: Duration): Promise<void> {
    const ms = durationMs(span, 'sleep')
    this.#dueTimes.add(ms)
    this.#sleeping += 1
    try {
      await this.#clock.sleep(ms)
    } finally {
      this.#sleeping -= 1
    }
  }

  /** Resolves when everything has happened that needs no time to pass. */
  async settle(): Promise<void> {
    const { handlerTimeoutMs = HANDLER_TIMEOUT_MS } = this.#options
    const startedAt = performance.now()
    for (let quiet = 0, ticks = 0; quiet < QUIET_TICKS; ticks += 1) {
      if (this.#life?.isOver === true) await this.#revive()
      const { begun } = this.#activity
      await (ticks < 1_000 ? nextTick() : pause(1))
      quiet = this.#isQuiet && this.#activity.begun === begun ? quiet + 1 : 0
      if (quiet === 0 && performance.now() - startedAt > handlerTimeoutMs) throw new Error(this.#stuckMessage())
    }
  }

  /** Lets this much time pass. */
  async advance(span: Duration): Promise<void> {
    const until = this.#clock.now() + durationMs(span, 'advance')
    await this.settle()
    for (let at = this.#nextStop(until); at !== undefined; at = this.#nextStop(until)) await this.#jump(at)
    if (this.#clock.now() < until) await this.#jump(until)
  }

  /** Lets time pass until the job has ended or is in quarantine. */
  run<Output, State extends string>(job: JobHandle<Output, State>, options?: RunOptions): Promise<Job<Output, State>> {
    return this.runUntil(job, ({ status }) => isSettled(status), options)
  }

  /** The result of the job, after `run`; rejects with `JobFailedError` if it did not finish. */
  async result<Output, State extends string>(job: JobHandle<Output, State>, options?: RunOptions): Promise<Output> {
    const ended = await this.run(job, options)
    if (ended.status !== 'finished') throw new JobFailedError(ended)
    return resultOf(ended)
  }

  /** Lets time pass until the job is as wanted: in a state, or whatever the function says. */
  async runUntil<Output, State extends string>(
    job: JobHandle<Output, State>,
    wanted: NoInfer<State> | ((job: Job<Output, State>) => boolean),
    { within = '30d' }: RunOptions = {},
  ): Promise<Job<Output, State>> {
    const until = this.#clock.now() + durationMs(within, 'within')
    for (;;) {
      await this.settle()
      const seen = await this.#look<Output, State>(job.id)
      if (typeof wanted === 'function' ? wanted(seen) : seen.currentState === wanted) return seen
      if (isSettled(seen.status)) {
        throw new WaitTimeoutError(`Job ${job.id} is "${seen.status}" in "${seen.currentState}" and will not change.`)
      }
      const at = this.#nextStop(until)
      if (at === undefined) throw new WaitTimeoutError(await this.#waitMessage(job.id, seen, within))
      await this.#jump(at)
    }
  }

  /** The orchestrator dies at once, and another one starts on the same data. */
  async crash(): Promise<void> {
    this.#life?.end()
    await this.settle()
  }

  /** The orchestrator stops as it does for a deployment, and another one starts on the same data. */
  async restart(): Promise<void> {
    await this.#stop()
    await this.#begin()
    await this.settle()
  }

  /** Stops everything. */
  async close(): Promise<void> {
    const alive = this.#workers.filter(({ line }) => !line.isCut)
    await this.#stopped(Promise.all(alive.map((worker) => worker.stop())))
    await this.#stop()
    await this.#storage.close()
  }

  get #running(): Orchestrator {
    if (this.#orchestrator === undefined) throw new Error('The test kit is closed.')
    return this.#orchestrator
  }

  get #isQuiet(): boolean {
    const held = this.#workers.reduce((count, { line }) => count + line.held.length, 0)
    return this.#activity.isQuiet && held <= this.#sleeping && this.#workers.every(({ isReady }) => isReady)
  }

  readonly #key = (): string => `test-kit-${(this.#keys += 1)}`

  readonly #call = <T>(run: (transport: WorkerTransport) => Promise<T>): Promise<T> =>
    this.#reach(() => run(this.#running.localTransport()))

  /** A call of the orchestrator, which is restarted first if it has crashed. Rejects when it crashes meanwhile. */
  readonly #reach = async <T>(run: () => Promise<T>): Promise<T> => {
    if (this.#life?.isOver === true) await this.#revive()
    const life = this.#life
    return life === undefined ? run() : life.reach(run())
  }

  #revive(): Promise<void> {
    this.#reviving ??= this.#begin().finally(() => {
      this.#reviving = undefined
    })
    return this.#reviving
  }

  /** It may crash again while it starts. */
  async #begin(): Promise<void> {
    for (let isOver = true; isOver;) {
      const dead = this.#orchestrator
      const { life, orchestrator } = this.#compose()
      this.#life = life
      this.#orchestrator = orchestrator
      // The timers of the one before end. Its calls of the storage do not return.
      void dead?.stop()
      await life.reach(orchestrator.start()).catch(rejectUnlessOver(life))
      isOver = life.isOver
    }
  }

  #compose(): { readonly life: Life; readonly orchestrator: Orchestrator } {
    const { blueprints, settings, strategies, log = SILENT } = this.#options
    const life = new Life({
      storage: this.#storage,
      activity: this.#activity,
      dueTimes: this.#dueTimes,
      faults: this.#faults,
    })
    const clock = { now: this.#clock.now, sleep: (ms: number, signal: AbortSignal) => this.#clock.sleep(ms, signal) }
    const orchestrator = createOrchestrator({
      blueprints: blueprints.map((one) => life.observed(one)),
      settings: { secretKey: SECRET_KEY, ...settings, storageUrl: 'memory:', shutdownTimeoutSeconds: 1 },
      ...(strategies === undefined ? {} : { strategies }),
      storage: life.storage,
      clock,
      random: seededRandom(this.#chance, this.#clock.now),
      log,
    })
    return { life, orchestrator }
  }

  async #stop(): Promise<void> {
    const orchestrator = this.#orchestrator
    if (orchestrator === undefined) return
    await this.#stopped(orchestrator.stop())
    this.#life?.end()
    this.#orchestrator = undefined
    this.#life = undefined
  }

  /** Waits for a stop, which may sleep. Time passes only if it takes longer than a stop that does not. */
  async #stopped(stopping: Promise<unknown>): Promise<void> {
    const begunAt = performance.now()
    const progress = { isDone: false }
    const done = stopping.finally(() => {
      progress.isDone = true
    })
    done.catch(ignore)
    while (!progress.isDone) {
      await (performance.now() - begunAt < STOP_MS ? nextTick() : pause(1))
      const at = this.#clock.nextAt
      if (progress.isDone || performance.now() - begunAt < STOP_MS || at === undefined) continue
      this.#clock.set(at)
      this.#clock.wakeDue()
    }
    await done
  }

  /** The next moment that matters, if there is one until then. After each, the orchestrator gets its next look too. */
  #nextStop(until: number): number | undefined {
    const wake = this.#clock.nextAt ?? Number.POSITIVE_INFINITY
    const due = this.#dueTimes.next() ?? Number.POSITIVE_INFINITY
    if (wake < due && wake <= this.#lastStop + LOOK_MS) return wake <= until ? wake : undefined
    if (due > until) return undefined
    this.#lastStop = due
    return due
  }

  /** Workers tell first that they are alive: no time has passed for them, so none of them can be late. */
  async #jump(at: number): Promise<void> {
    this.#clock.set(at)
    const alive = this.#workers.filter(({ line }) => !line.isCut)
    await Promise.all(alive.map(({ id, line }) => line.heartbeat(id, { current_tasks: line.held }).catch(ignore)))
    this.#clock.wakeDue()
    await this.settle()
  }

  /** Type boundary: the handle has said what the job's blueprint is. */
  async #look<Output, State extends string>(id: string): Promise<Job<Output, State>> {
    return (await this.client({ role: 'admin' }).get(id)) as Job<Output, State>
  }

  async #waitMessage(id: string, { status, currentState }: Job, within: Duration): Promise<string> {
    const { summary } = await this.client({ role: 'admin' }).job(id).explain()
    const reason = summary === null ? '' : ` ${summary}`
    return `Job ${id} is still "${status}" in "${currentState}", and nothing happens to it within ${within}.${reason}`
  }

  #stuckMessage(): string {
    const tasks = this.#workers.flatMap(({ id, line }) => line.held.map((taskId) => `${taskId} at ${id}`))
    const where = tasks.length === 0 ? 'a handler of a blueprint' : `a handler of a worker (${tasks.join(', ')})`
    return `The test kit does not come to rest: ${where} is still running. Handlers that wait must wait with kit.sleep.`
  }
}

function isSettled(status: string): boolean {
  return status === 'quarantined' || ENDED_STATUSES.includes(status)
}

/** Type boundary: the orchestrator has checked the result by the blueprint's schema. */
function resultOf<Output>(job: Job<Output>): Output {
  return job.result as Output
}

function rejectUnlessOver(life: Life): (error: unknown) => void {
  return (error) => {
    if (!life.isOver) throw error
  }
}

/** Type boundary: the overloads of `addWorker` are those of `handle`. */
function handleAll(
  worker: Worker,
  contract: AnyTaskContract | ContractGroup,
  given: HandlerFor<never> | HandlersFor<ContractGroup>,
): Worker {
  return isTaskContract(contract)
    ? worker.handle(contract, given as HandlerFor<AnyTaskContract>)
    : worker.handle(contract as ContractGroup, given as HandlersFor<ContractGroup>)
}

function ignore(): void {}
