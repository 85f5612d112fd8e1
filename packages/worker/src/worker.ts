import { resolve as resolvePath } from 'node:path'
import { pause } from '@impresario/protocol'
import type { AnyTaskContract, HeartbeatRequest, Schema } from '@impresario/protocol'
import { Connection } from './orchestrator/connection.ts'
import { registration, skillsHash } from './settings/description.ts'
import {
  handlersOf,
  makeSkill,
  typedSkill,
  type ContractGroup,
  type HandlerFor,
  type HandlersFor,
  type HandlerWith,
  type SkillOptions,
  type UntypedHandler,
} from './tasks/handler.ts'
import { HealthPage } from './orchestrator/health.ts'
import { HttpTransport } from './transport/http-transport.ts'
import { messageOf } from './runtime/log.ts'
import type { Middleware } from './tasks/middleware.ts'
import { Bell, nextTick } from './runtime/pause.ts'
import { nextLookMs, PollRotation } from './orchestrator/poll-rotation.ts'
import type { TaskOrigin } from './tasks/running.ts'
import { loadTaskTracing } from './tasks/task-tracing.ts'
import { TaskRunner } from './tasks/runner.ts'
import { modulesIn } from './tasks/skill-directory.ts'
import { settingsOf, type WorkerOptions, type WorkerSettings } from './settings/settings.ts'
import { Gauge, Telemetry } from './tasks/telemetry.ts'
import type { Command, WorkerTransport } from './transport/transport.ts'

/** Finished work that could not be delivered holds back new work beyond this. */
const UNDELIVERED_MAX = 10_000
/** How long until capacity is checked again, where it is not announced. */
const FULL_PAUSE_MS = 500
/** How long the last words may take when the orchestrator does not answer. */
const FAREWELL_MS = 5_000
/** What a line of the log names. */
const SHOWN_TASKS = 10
const CANCEL = 'cancel_task'
const END_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Does what an orchestrator tells over the socket. */
export type CommandHandler = (command: Command) => unknown

/**
 * Takes tasks from orchestrators, runs their handlers, and brings the results back.
 *
 * New, then started (registering with every orchestrator, polling one of them at a time), then draining (no polls;
 * running tasks have `shutdownMs` left), then stopped. It never goes back: make a new one instead.
 */
export class Worker {
  readonly #settings: WorkerSettings
  readonly #connections: readonly Connection[]
  readonly #rotation: PollRotation
  readonly #runner: TaskRunner
  readonly #commands = new Map<string, CommandHandler>()
  readonly #health = new HealthPage(() => this.#condition())
  readonly #telemetry: Telemetry | undefined
  readonly #bell = new Bell()
  readonly #draining = new AbortController()
  #polling: Promise<void> | undefined
  #listening: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #offline = false
  #wasFree = true
  #lastAvailable: string | undefined
  readonly #hasLimits: boolean

  constructor(options: WorkerOptions = {}) {
    this.#settings = settingsOf(options, process.env)
    const { concurrency, taskLimits, capacityChecker, skillDependencies, strictEvents, payloadDir, log } =
      this.#settings
    const { telemetry, orchestratorMode, pollMs } = this.#settings
    this.#hasLimits = Object.keys(taskLimits).length > 0 || capacityChecker !== undefined
    const limits = { concurrency, taskLimits, capacityChecker, skillDependencies, strictEvents }
    const onChange = (): void => this.#changed()
    const onHot = (): void => this.#announce()
    this.#runner = new TaskRunner({ ...limits, payloadDir, log, onChange, onHot })
    this.#connections = transports(options, this.#settings).map(({ transport, weight }) =>
      this.#connect(transport, weight),
    )
    this.#rotation = new PollRotation(this.#connections, orchestratorMode, pollMs)
    if (telemetry === undefined) return
    const gauge = new Gauge()
    this.#telemetry = new Telemetry({ ...telemetry, read: () => gauge.read(), now: () => performance.now() })
  }

  get id(): string {
    return this.#settings.id
  }

  /** Task ids that are running here now. */
  get running(): readonly string[] {
    return this.#connections.flatMap((connection) => this.#runner.taskIds(connection))
  }

  /** Where `GET /health` is answered, if anywhere. */
  get healthPort(): number | undefined {
    return this.#health.port
  }

  /**
   * The handler of one task, or those of every task of a contract. What they get and return is checked by the contract's
   * schemas. A worker may serve a part of a contract: it takes only the tasks that it has handlers for.
   */
  handle<T extends AnyTaskContract>(task: T, handler: HandlerFor<NoInfer<T>>): this
  handle<C extends ContractGroup>(contract: C, handlers: NoInfer<HandlersFor<C>>): this
  handle(contract: AnyTaskContract | ContractGroup, given: HandlerFor<never> | HandlersFor<ContractGroup>): this {
    for (const [task, handler] of handlersOf(contract, given)) {
      this.#runner.add(typedSkill(task, handler, this.#settings.validateResults))
    }
    return this
  }

  /** A handler for a task type without a contract, with as much of one as the options hold. */
  task(type: string, handler: UntypedHandler): this
  task<const Input extends Schema>(
    type: string,
    options: SkillOptions<Input> & { readonly input: Input },
    handler: HandlerWith<NoInfer<Input>>,
  ): this
  task(type: string, options: SkillOptions, handler: UntypedHandler): this
  task(type: string, ...rest: readonly [UntypedHandler] | readonly [SkillOptions, UntypedHandler]): this {
    const [options, handler] = rest.length === 1 ? [{}, rest[0]] : rest
    this.#runner.add(makeSkill(type, options, handler, this.#settings.validateResults))
    return this
  }

  /** Runs around every handler; the one that is added first is the outermost. */
  use(middleware: Middleware): this {
    this.#runner.use(middleware)
    return this
  }

  /** For commands of your own over the socket. `cancel_task` is not among them: it aborts the task's signal. */
  onCommand(name: string, handler: CommandHandler): this {
    if (name === CANCEL) throw new TypeError(`"${CANCEL}" aborts the signal of the task; it has no handler of its own.`)
    this.#commands.set(name, handler)
    return this
  }

  /** Adds the skills of a directory (`WORKER_SKILLS_DIR`): every module exports a function that is given the worker. */
  async loadSkills(directory: string | undefined = this.#settings.skillsDir): Promise<this> {
    if (directory === undefined) return this
    for (const add of await modulesIn(resolvePath(directory))) await add(this)
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
      const { healthPort } = this.#settings
      if (healthPort !== undefined) this.#listening ??= this.#health.listen(healthPort)
      await this.#listening
      const tracing = await loadTaskTracing()
      if (tracing !== undefined) this.#runner.trace(tracing)
    }
    if (this.#stopped === undefined && this.#polling === undefined) {
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

  /**
   * Starts, and stops when the process is told to end, or when `stop` is called. Resolves when all is done; a second signal
   * ends the process at once.
   */
  async run(): Promise<void> {
    let tell = (): void => undefined
    const told = new Promise<void>((resolve) => {
      tell = resolve
    })
    for (const signal of END_SIGNALS) process.once(signal, tell)
    const { signal: draining } = this.#draining
    draining.addEventListener('abort', tell, { once: true })
    if (draining.aborted) tell()
    await Promise.race([this.start(), told])
    await told
    for (const signal of END_SIGNALS) process.off(signal, tell)
    await this.stop()
  }

  #connect(transport: WorkerTransport, weight: number): Connection {
    return new Connection({
      settings: this.#settings,
      transport,
      weight,
      log: this.#settings.log,
      registration: () => registration(this.#settings, this.#runner.skills),
      state: (origin) => this.#state(origin),
      running: (origin) => this.#runner.taskIds(origin),
      onCancel: (taskIds) => {
        for (const taskId of taskIds) this.#runner.abort(taskId, 'cancelled')
      },
      onCommand: (command) => this.#obey(command),
      onReady: () => this.#bell.ring(),
    })
  }

  #obey(command: Command): void {
    const { log } = this.#settings
    if (command.name === CANCEL) {
      if (command.taskId !== undefined) this.#runner.abort(command.taskId, 'cancelled')
      return
    }
    const handler = this.#commands.get(command.name)
    if (handler === undefined) return log.warn('An unknown command came over the socket.', { command: command.name })
    const failed = (error: unknown): void => {
      log.error('A command failed.', { command: command.name, error: messageOf(error) })
    }
    try {
      Promise.resolve(handler(command)).catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  #condition() {
    return {
      status: this.#status(),
      worker_id: this.id,
      running: this.#runner.size,
      orchestrators: this.#connections.map(({ name, isRegistered }) => ({ name, registered: isRegistered })),
    }
  }

  #state(origin: TaskOrigin): HeartbeatRequest {
    const hot = this.#runner.hot()
    const available = this.#runner.available
    const { skillDependencies } = this.#settings
    const usage = this.#telemetry?.next(origin)
    return {
      worker_id: this.id,
      status: this.#status(),
      load: this.#runner.size,
      current_tasks: this.#runner.taskIds(origin),
      available_skills: available ?? this.#runner.skills.map((skill) => skill.name),
      hot_skills: hot.skills,
      hot_cache: hot.models,
      skills_hash: skillsHash(this.#settings, this.#runner.skills),
      ...(Object.keys(skillDependencies).length === 0 ? {} : { skill_dependencies: skillDependencies }),
      ...(usage === undefined ? {} : { usage }),
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
      await nextTick()
      const limit = this.#limit()
      const next = limit > 0 ? this.#rotation.next() : undefined
      if (next === undefined) {
        await this.#bell.wait(this.#nextReadyMs())
        continue
      }
      const { connection, timeoutMs } = next
      const availableSkills = this.#runner.available
      const request = { limit, timeoutMs, ...(availableSkills === undefined ? {} : { availableSkills }) }
      const tasks = await connection.poll(request, signal)
      for (const task of tasks) this.#runner.accept(task, connection)
      this.#rotation.done(connection, tasks.length)
      this.#changed()
      if (tasks.length === 0 && connection.readyInMs === 0) await pause(this.#settings.idlePollMs, signal)
    }
  }

  #limit(): number {
    if (this.#runner.available?.length === 0) return 0
    const undelivered = this.#connections.reduce((sum, connection) => sum + connection.results.size, 0)
    return undelivered > UNDELIVERED_MAX ? 0 : this.#runner.free
  }

  /** When to look again although nothing was announced. */
  #nextReadyMs(): number | undefined {
    const hasRoom = this.#runner.free > 0
    return nextLookMs(
      this.#connections.map(({ readyInMs }) => readyInMs),
      { canTake: this.#limit() > 0, heldBackMs: hasRoom ? FULL_PAUSE_MS : undefined },
    )
  }

  async #shutDown(): Promise<void> {
    const { shutdownMs, log } = this.#settings
    this.#draining.abort()
    this.#bell.ring()
    await this.#health.close()
    if (this.#polling === undefined) return
    await this.#polling
    await this.#tell()
    if (this.#runner.size > 0) {
      const wait = { task_ids: this.running.slice(0, SHOWN_TASKS), wait_ms: shutdownMs }
      log.info(`Stopping: ${this.#runner.size} running tasks are waited for. A second signal ends at once.`, wait)
    }
    await within(shutdownMs, this.#runner.whenEmpty())
    if (this.#runner.size > 0) {
      log.warn('Running tasks are handed back: the worker cannot wait longer.', { task_ids: this.running })
      this.#runner.handBack()
    }
    const undelivered = this.#connections.flatMap((connection) => connection.results.pendingIds())
    if (undelivered.length > 0) {
      const wait = { task_ids: undelivered.slice(0, SHOWN_TASKS), wait_ms: FAREWELL_MS }
      log.info(`Stopping: ${undelivered.length} results are still to be delivered.`, wait)
    }
    await within(FAREWELL_MS, Promise.all(this.#connections.map((connection) => connection.results.whenEmpty())))
    const lost = this.#connections.flatMap((connection) => connection.results.pendingIds())
    if (lost.length > 0) log.error('The worker stops with results that were not delivered.', { task_ids: lost })
    this.#offline = true
    await this.#tell()
    await Promise.all(this.#connections.map((connection) => connection.close()))
    log.info('Stopped.')
  }

  async #tell(): Promise<void> {
    const there = this.#connections.filter((connection) => connection.readyInMs !== undefined)
    await within(FAREWELL_MS, Promise.all(there.map((connection) => connection.beat())))
  }
}

/** Waits for the promise, but not longer than that. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([promise, pause(ms, done.signal)])
  done.abort()
}

interface WeightedTransport {
  readonly transport: WorkerTransport
  readonly weight: number
}

function transports(options: WorkerOptions, settings: WorkerSettings): readonly WeightedTransport[] {
  if (options.transport !== undefined) return [{ transport: options.transport, weight: 1 }]
  const { id: workerId, mode, sts, signing, tls, log } = settings
  return settings.orchestrators.map(({ url, weight, token }) => ({
    transport: new HttpTransport({ url, token, workerId, mode, sts, signing, tls, log }),
    weight,
  }))
}

export function createWorker(options: WorkerOptions = {}): Worker {
  return new Worker(options)
}
