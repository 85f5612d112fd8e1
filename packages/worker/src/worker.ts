import type { HeartbeatRequest } from '@impresario/protocol'
import { Connection } from './connection.ts'
import { typedSkill, untypedSkill, type ContractGroup, type HandlersFor, type UntypedHandler } from './handler.ts'
import { HttpTransport } from './http-transport.ts'
import { Bell, nextTurn, sleep } from './pause.ts'
import type { TaskOrigin } from './running.ts'
import { TaskRunner } from './runner.ts'
import { registration, settingsOf, type WorkerOptions, type WorkerSettings } from './settings.ts'
import type { WorkerTransport } from './transport.ts'

/** With more than one orchestrator to ask in turn, an idle one must not hold the poll for long. */
const TURN_POLL_MS = 2_000
/** Finished work that could not be delivered holds back new work beyond this. */
const UNDELIVERED_MAX = 10_000
const UNDELIVERED_PAUSE_MS = 500
/** How long the last words may take when the orchestrator does not answer. */
const FAREWELL_MS = 5_000
const END_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Takes tasks from orchestrators, runs their handlers, and brings the results back.
 *
 * New, then started (registering with every orchestrator, polling one of them at a time), then draining (no polls;
 * running tasks have `shutdownMs` left), then stopped. It never goes back: make a new one instead.
 */
export class Worker {
  readonly #settings: WorkerSettings
  readonly #connections: readonly Connection[]
  readonly #runner: TaskRunner
  readonly #bell = new Bell()
  readonly #draining = new AbortController()
  #polling: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #offline = false
  #wasFree = true
  #lastAvailable: string | undefined
  readonly #hasLimits: boolean

  constructor(options: WorkerOptions = {}) {
    this.#settings = settingsOf(options, process.env)
    const { concurrency, taskLimits, log } = this.#settings
    this.#hasLimits = Object.keys(taskLimits).length > 0
    const onChange = (): void => this.#changed()
    const onHot = (): void => this.#announce()
    this.#runner = new TaskRunner({ concurrency, taskLimits, log, onChange, onHot })
    this.#connections = transports(options, this.#settings).map(({ transport, weight }) =>
      this.#connect(transport, weight),
    )
  }

  get id(): string {
    return this.#settings.id
  }

  /** Task ids that are running here now. */
  get running(): readonly string[] {
    return this.#connections.flatMap((connection) => this.#runner.taskIds(connection))
  }

  /** Handlers for every task of a contract. What they get and return is checked by the contract's schemas. */
  handle<C extends ContractGroup>(contract: C, handlers: NoInfer<HandlersFor<C>>): this {
    for (const key of Object.keys(contract)) {
      const entry = contract[key]
      const handler = handlers[key]
      if (entry === undefined || handler === undefined) throw new TypeError(`There is no handler for "${key}".`)
      this.#runner.add(typedSkill(entry, handler))
    }
    return this
  }

  /** A handler for a task type without a contract. */
  task(type: string, handler: UntypedHandler): this {
    this.#runner.add(untypedSkill(type, handler))
    return this
  }

  setHot(name: string): void {
    this.#runner.setHot(name, true)
  }

  unsetHot(name: string): void {
    this.#runner.setHot(name, false)
  }

  /** Resolves once the worker is registered with an orchestrator. Safe to call twice. */
  async start(): Promise<void> {
    if (this.#stopped !== undefined) return
    if (this.#polling === undefined) {
      for (const connection of this.#connections) connection.start()
      this.#polling = this.#poll()
    }
    await Promise.race(this.#connections.map((connection) => connection.whenRegistered()))
  }

  /** Finishes what is running, or hands it back when that takes longer than `shutdownMs`. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#shutDown()
    return this.#stopped
  }

  /** Starts, and stops when the process is told to end. Resolves when all is done; a second signal ends at once. */
  async run(): Promise<void> {
    let tell = (): void => undefined
    const told = new Promise<void>((resolve) => {
      tell = resolve
    })
    for (const signal of END_SIGNALS) process.once(signal, tell)
    await Promise.race([this.start(), told])
    await told
    for (const signal of END_SIGNALS) process.off(signal, tell)
    await this.stop()
  }

  #connect(transport: WorkerTransport, weight: number): Connection {
    const { id, heartbeatMs, resultRetriesMax, resultRetryMs, log } = this.#settings
    return new Connection({
      workerId: id,
      transport,
      weight,
      heartbeatMs,
      resultRetriesMax,
      resultRetryMs,
      log,
      registration: () => registration(this.#settings, this.#runner.skills),
      state: (origin) => this.#state(origin),
      onCancel: (taskIds) => {
        for (const taskId of taskIds) this.#runner.abort(taskId, 'cancelled')
      },
      onReady: () => this.#bell.ring(),
    })
  }

  #state(origin: TaskOrigin): HeartbeatRequest {
    const hot = this.#runner.hot()
    const available = this.#runner.available
    return {
      worker_id: this.id,
      status: this.#status(),
      load: this.#runner.size,
      current_tasks: this.#runner.taskIds(origin),
      available_skills: available ?? this.#runner.skills.map((skill) => skill.name),
      hot_skills: hot.skills,
      hot_cache: hot.models,
    }
  }

  /** A worker with a free slot is `idle`: that is how orchestrators of every generation read it. */
  #status(): 'idle' | 'busy' | 'draining' | 'offline' {
    if (this.#offline) return 'offline'
    if (this.#draining.signal.aborted) return 'draining'
    return this.#runner.free > 0 ? 'idle' : 'busy'
  }

  /** In batches a poll says that there is room; otherwise, and when a type is at its limit, only a heartbeat can. */
  #changed(): void {
    const isFree = this.#runner.free > 0
    if (isFree) this.#bell.ring()
    const available = this.#hasLimits ? this.#runner.available?.join(',') : undefined
    const isOther = available !== this.#lastAvailable
    if (isFree === this.#wasFree && !isOther) return
    this.#wasFree = isFree
    this.#lastAvailable = available
    for (const connection of this.#connections) if (isOther || !connection.batched) connection.announce()
  }

  #announce(): void {
    for (const connection of this.#connections) connection.announce()
  }

  /** One poll at a time: what becomes free meanwhile is asked for together by the next. */
  async #poll(): Promise<void> {
    const { signal } = this.#draining
    while (!signal.aborted) {
      await nextTurn()
      const limit = this.#limit()
      const connection = limit > 0 ? this.#choose() : undefined
      if (connection === undefined) {
        await this.#bell.wait(this.#nextReadyMs())
        continue
      }
      const availableSkills = this.#runner.available
      const timeoutMs = this.#takesTurns() ? Math.min(TURN_POLL_MS, this.#settings.pollMs) : this.#settings.pollMs
      const request = { limit, timeoutMs, ...(availableSkills === undefined ? {} : { availableSkills }) }
      for (const task of await connection.poll(request, signal)) this.#runner.accept(task, connection)
      this.#changed()
    }
  }

  #limit(): number {
    if (this.#runner.available?.length === 0) return 0
    const undelivered = this.#connections.reduce((sum, connection) => sum + connection.results.size, 0)
    return undelivered > UNDELIVERED_MAX ? 0 : this.#runner.free
  }

  #takesTurns(): boolean {
    return this.#settings.orchestratorMode === 'round_robin' && this.#connections.length > 1
  }

  #choose(): Connection | undefined {
    const ready = this.#connections.filter((connection) => connection.readyInMs === 0)
    if (this.#settings.orchestratorMode === 'failover') return ready[0]
    // Everybody gains its weight, the richest is asked and pays for all: turns come evenly spread.
    let best: Connection | undefined
    let total = 0
    for (const connection of ready) {
      connection.credit += connection.weight
      total += connection.weight
      if (best === undefined || connection.credit > best.credit) best = connection
    }
    if (best !== undefined) best.credit -= total
    return best
  }

  /** When to look again although nothing was announced. */
  #nextReadyMs(): number | undefined {
    const waits = this.#connections.map((connection) => connection.readyInMs ?? 0).filter((ms) => ms > 0)
    if (waits.length > 0) return Math.min(...waits)
    return this.#runner.free > 0 && this.#limit() === 0 ? UNDELIVERED_PAUSE_MS : undefined
  }

  async #shutDown(): Promise<void> {
    const { shutdownMs, log } = this.#settings
    this.#draining.abort()
    this.#bell.ring()
    if (this.#polling === undefined) return
    await this.#polling
    await this.#tell()
    await within(shutdownMs, this.#runner.whenEmpty())
    if (this.#runner.size > 0) {
      log.warn('Running tasks are handed back: the worker cannot wait longer.', { task_ids: this.running })
      this.#runner.handBack()
    }
    await within(FAREWELL_MS, Promise.all(this.#connections.map((connection) => connection.results.whenEmpty())))
    const lost = this.#connections.flatMap((connection) => connection.results.pendingIds())
    if (lost.length > 0) log.error('The worker stops with results that nobody received.', { task_ids: lost })
    this.#offline = true
    await this.#tell()
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }

  async #tell(): Promise<void> {
    const registered = this.#connections.filter((connection) => connection.readyInMs !== undefined)
    await within(FAREWELL_MS, Promise.all(registered.map((connection) => connection.beat())))
  }
}

/** Waits for the promise, but not longer than that. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([promise, sleep(ms, done.signal)])
  done.abort()
}

interface WeightedTransport {
  readonly transport: WorkerTransport
  readonly weight: number
}

function transports(options: WorkerOptions, settings: WorkerSettings): readonly WeightedTransport[] {
  if (options.transport !== undefined) return [{ transport: options.transport, weight: 1 }]
  return settings.orchestrators.map(({ url, weight }, index) => {
    const token = settings.tokens[index]
    const base = { url, workerId: settings.id, mode: settings.mode }
    return { transport: new HttpTransport(token === undefined ? base : { ...base, token }), weight }
  })
}

export function createWorker(options: WorkerOptions = {}): Worker {
  return new Worker(options)
}
