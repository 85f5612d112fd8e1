import { setImmediate as immediate } from 'node:timers/promises'
import { blueprint, createBlueprintRegistry, newWorkerRecord } from '@impresario/core'
import type {
  BranchPolicy,
  Clock,
  Job,
  JobRequest,
  Log,
  LogFields,
  PolicyOverrides,
  Random,
  RunnableBlueprint,
  Storage,
  WorkerPatch,
} from '@impresario/core'
import type { JsonObject, Soon, TaskErrorCode, TaskOptions } from '@impresario/protocol'
import { storageTraffic } from '../../../test/servers/storage-traffic.ts'
import { testStorage } from '../../../test/servers/test-storage.ts'
import type { BlueprintSource } from './job/script-registry.ts'
import type { Delivery, Handout, Receipt } from './workers/desk-messages.ts'
import { Engine } from './engine.ts'
import type { EngineOptions, EngineSettings, HistorySink } from './engine.ts'
import type { NewJob } from './job/job-creation.ts'

/** A signal that nobody aborts. */
export const NEVER: AbortSignal = new AbortController().signal

/** Lets everything run that needs no time to pass. What is ready goes on in microtasks, or in the next tick of the event loop. */
export async function settled(): Promise<void> {
  for (;;) {
    const before = storageTraffic.begun
    // Longer than any chain of events in these tests: 300 turns take ten rounds of the executor.
    for (let turns = 0; turns < 40; turns += 1) await immediate()
    if (storageTraffic.isQuiet && storageTraffic.begun === before) return
    await storageTraffic.quiet()
  }
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** Time that stands still until it is moved on. */
export class VirtualClock implements Clock {
  #now = 1_700_000_000_000
  readonly #sleepers = new Set<Sleeper>()

  readonly now = (): number => this.#now

  get sleeping(): number {
    return this.#sleepers.size
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    if (ms <= 0) return immediate()
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { at: this.#now + ms, wake }
      this.#sleepers.add(sleeper)
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  /** Moves on, stopping at the end of every sleep on the way, so that each thing happens in its own moment. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms
    await settled()
    for (;;) {
      const at = Math.min(until, ...[...this.#sleepers].map((sleeper) => sleeper.at))
      this.#now = Math.max(this.#now, at)
      const due = [...this.#sleepers].filter((sleeper) => sleeper.at <= this.#now)
      for (const sleeper of due) sleeper.wake()
      await settled()
      if (due.length === 0) return
    }
  }
}

/** Ids that count up, and chance that is always the same unless a test says otherwise. */
class FixedRandom implements Random {
  chance = 0.5
  #count = 0

  next(): number {
    return this.chance
  }

  id(): string {
    this.#count += 1
    return `job-${String(this.#count).padStart(6, '0')}`
  }
}

interface LogLine {
  readonly level: keyof Log
  readonly message: string
  readonly fields: LogFields | undefined
}

export class ListLog implements Log {
  readonly isDebug: boolean
  readonly lines: LogLine[] = []

  constructor({ isDebug = false } = {}) {
    this.isDebug = isDebug
  }

  debug(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'debug', message, fields })
  }
  info(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'info', message, fields })
  }
  warn(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'warn', message, fields })
  }
  error(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'error', message, fields })
  }
  get errors(): readonly string[] {
    return this.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
  }
}

type Verb = keyof Storage

/** The storage with a door before and behind each of its verbs: a test can hold a caller there, or turn it away. */
export function guarded(
  storage: Storage,
  before: (verb: Verb) => Promise<void> | void,
  after: (verb: Verb) => Promise<void> | void = () => undefined,
): Storage {
  const pass = async <T>(verb: Verb, work: () => Soon<T>): Promise<T> => {
    await before(verb)
    const result = await work()
    await after(verb)
    return result
  }
  return {
    now: () => pass('now', () => storage.now()),
    read: (kind, id) => pass('read', () => storage.read(kind, id)),
    list: (kind, query) => pass('list', () => storage.list(kind, query)),
    counts: (kind, facets) => pass('counts', () => storage.counts(kind, facets)),
    peek: (queue, ids) => pass('peek', () => storage.peek(queue, ids)),
    held: (queue) => pass('held', () => storage.held(queue)),
    lanes: (queue) => pass('lanes', () => storage.lanes(queue)),
    oldest: (queue, lane) => pass('oldest', () => storage.oldest(queue, lane)),
    claim: (queue, options) => pass('claim', () => storage.claim(queue, options)),
    claimExpired: (queue, options) => pass('claimExpired', () => storage.claimExpired(queue, options)),
    renew: (leases, leaseMs) => pass('renew', () => storage.renew(leases, leaseMs)),
    commit: (batch) => pass('commit', () => storage.commit(batch)),
    sync: () => pass('sync', () => storage.sync()),
    watch: (queue, listener) => storage.watch(queue, listener),
    close: () => storage.close(),
  }
}

export interface StageOptions {
  readonly settings?: Partial<EngineSettings>
  readonly clock?: VirtualClock
  readonly storage?: (clock: VirtualClock) => Storage
  readonly source?: BlueprintSource
  readonly history?: HistorySink
  readonly log?: ListLog
  readonly identity?: EngineOptions['identity']
}

const STEP_MS = 1_000
/** Of a longer span each step is longer: what a round does is a dozen calls of a storage that may be elsewhere. */
const STEPS_MAX = 40

/** The engine on a real storage, with time in the test's hands. */
export class Stage {
  readonly clock: VirtualClock
  readonly random = new FixedRandom()
  readonly log: ListLog
  readonly storage: Storage
  readonly #source: BlueprintSource
  readonly #settings: Partial<EngineSettings>
  readonly #history: HistorySink | undefined
  readonly #identity: EngineOptions['identity']
  engine: Engine

  constructor(blueprints: readonly RunnableBlueprint[], options: StageOptions = {}) {
    this.clock = options.clock ?? new VirtualClock()
    this.log = options.log ?? new ListLog()
    this.storage = options.storage?.(this.clock) ?? testStorage({ now: this.clock.now })
    this.#source = options.source ?? registryOf(blueprints)
    this.#settings = options.settings ?? {}
    this.#history = options.history
    this.#identity = options.identity
    this.engine = this.#open()
  }

  #open(): Engine {
    const { storage, clock, random, log } = this
    const history = this.#history === undefined ? {} : { history: this.#history }
    const own = { blueprints: this.#source, settings: this.#settings, identity: this.#identity, ...history }
    return new Engine({ storage, clock, random, log, ...own })
  }

  /** Another engine on the same storage: it remembers nothing that is not written there. */
  async restart(): Promise<void> {
    await this.engine.stop()
    this.engine = this.#open()
  }

  async create(name: string, over: Partial<NewJob> = {}): Promise<string> {
    const request: NewJob = { blueprint: name, client: { id: 'client' }, initialData: {}, ...over }
    const { jobId } = await this.engine.createJob(request)
    return jobId
  }

  /** Creates a job and lets it go as far as it can. */
  async begin(name: string, over: Partial<JobRequest> = {}): Promise<string> {
    const jobId = await this.create(name, over)
    await this.run()
    return jobId
  }

  /** Rounds until nothing is left that needs neither time nor a worker. */
  async run(): Promise<void> {
    for (let rounds = 0; rounds < 1_000; rounds += 1) {
      const { worked } = await this.engine.tick()
      if (worked === 0) return
    }
    throw new Error('The engine does not come to rest.')
  }

  /** Lets time pass, and what follows from it, a second at a time, or in forty steps. */
  async after(ms: number): Promise<void> {
    const stepMs = Math.max(STEP_MS, ms / STEPS_MAX)
    for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
      await this.clock.advance(Math.min(leftMs, stepMs))
      await this.run()
    }
  }

  async job(jobId: string): Promise<Job> {
    const stored = await this.engine.readJob(jobId)
    if (stored === undefined) throw new Error(`There is no job ${jobId}.`)
    return stored.value
  }

  async statusOf(jobId: string): Promise<string> {
    return (await this.job(jobId)).status
  }

  async eventsOf(jobId: string): Promise<readonly string[]> {
    return (await this.job(jobId)).trail.map(({ event }) => event)
  }

  async worker(id: string, said: WorkerPatch = {}): Promise<StageWorker> {
    const record = newWorkerRecord({ id, skills: ['work'], ...said }, this.clock.now())
    await this.engine.desk.register(record)
    return new StageWorker(this, id)
  }
}

/** A worker as the desk sees it. */
export class StageWorker {
  readonly id: string
  readonly #stage: Stage

  constructor(stage: Stage, id: string) {
    this.#stage = stage
    this.id = id
  }

  poll(limit = 1, waitMs = 0, signal: AbortSignal = NEVER): Promise<Handout> {
    return this.#stage.engine.desk.poll(this.id, { limit, waitMs, signal })
  }

  /** What there is for it now. */
  async take(limit = 1): Promise<readonly Delivery[]> {
    const { deliveries } = await this.poll(limit)
    return deliveries
  }

  async takeOne(): Promise<Delivery> {
    const [delivery] = await this.take()
    if (delivery === undefined) throw new Error(`There is nothing for ${this.id}.`)
    return delivery
  }

  async report(
    taskId: string,
    over: { status?: string; data?: JsonObject; code?: TaskErrorCode } = {},
  ): Promise<Receipt> {
    const { status = 'success', data, code } = over
    const error = code === undefined ? undefined : { code, message: `${this.id} reports ${code}` }
    const [receipt] = await this.#stage.engine.desk.results(this.id, [{ taskId, status, data, error }])
    if (receipt === undefined) throw new Error('A result got no receipt.')
    return receipt
  }

  fail(taskId: string, code: TaskErrorCode = 'TRANSIENT_ERROR'): Promise<Receipt> {
    return this.report(taskId, { status: 'failure', code })
  }

  say(taskId: string, type: string, payload: JsonObject = {}, eventId?: string): Promise<Receipt> {
    return this.#stage.engine.desk.event(this.id, taskId, { type, payload, eventId })
  }

  /** A sign of life; says which tasks are no longer its own. */
  async heartbeat(currentTasks?: readonly string[], patch?: WorkerPatch): Promise<readonly string[]> {
    const { cancelled } = await this.#stage.engine.desk.heartbeat(this.id, patch, currentTasks)
    return cancelled
  }
}

export function registryOf(blueprints: readonly RunnableBlueprint[]): BlueprintSource {
  const registry = createBlueprintRegistry()
  for (const one of blueprints) registry.register(one)
  return registry
}

/** The smallest blueprint with a task in it. */
export function oneTask(
  options: TaskOptions & { type?: string } = {},
  shape: PolicyOverrides = {},
  name = 'one',
): RunnableBlueprint {
  return blueprint(name, { start: 'ask', ...shape }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.dispatchTask({ type: 'work', ...options, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
}

/** A fan-out over as many tasks as the job's `count` says. */
export function fanOut(policy: BranchPolicy = 'wait_all', options: TaskOptions = {}, name = 'many'): RunnableBlueprint {
  return blueprint(name, { start: 'split' }, (state) => ({
    split: state.handler((context, actions) =>
      actions.dispatchParallel(
        Array.from({ length: Number(context.initialData['count']) }, (_unused, index) => ({
          type: 'work',
          params: { index },
          ...options,
        })),
        { into: 'join', policy },
      ),
    ),
    join: state.aggregator((context, actions) => {
      const statuses = Object.values(context.aggregationResults).map(({ status }) => status)
      return actions.transitionTo('done', { statuses })
    }),
    done: state.end(),
  }))
}
