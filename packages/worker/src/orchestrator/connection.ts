import { pause } from '@impresario/protocol'
import type {
  HeartbeatReply,
  HeartbeatRequest,
  JsonObject,
  RegisterRequest,
  TaskBatchReply,
  WireTask,
} from '@impresario/protocol'
import { EventSender } from '../tasks/events.ts'
import type { Log } from '../runtime/log.ts'
import { Outage } from './outage.ts'
import { Backoff, Bell } from '../runtime/pause.ts'
import { eventOf, ProgressSender } from '../tasks/progress.ts'
import { ResultSender } from '../tasks/results.ts'
import type { TaskOrigin } from '../tasks/running.ts'
import type { WorkerSettings } from '../settings/settings.ts'
import {
  isUnreached,
  peaceMs,
  transportFailure,
  type Command,
  type FileTransport,
  type PollRequest,
  type WorkerSocket,
  type WorkerTransport,
} from '../transport/transport.ts'

interface ConnectionOptions {
  readonly settings: WorkerSettings
  readonly transport: WorkerTransport
  readonly weight: number
  readonly log: Log
  readonly registration: () => RegisterRequest
  readonly state: (origin: TaskOrigin) => HeartbeatRequest
  /** Tasks of this orchestrator that are running here. */
  readonly running: (origin: TaskOrigin) => readonly string[]
  readonly onCancel: (taskIds: readonly string[]) => void
  readonly onCommand: (command: Command) => void
  /** It can be asked for work now. */
  readonly onReady: () => void
}

/** The first wait after a heartbeat that failed: a restarted orchestrator is found soon, and its leases are short. */
const BEAT_RETRY_MS = 250

/**
 * One orchestrator, as the worker knows it.
 *
 * Unregistered at first, and again whenever the orchestrator says that it does not know this worker; it then registers
 * until it succeeds, however long that takes. Registered, it sends heartbeats. A failed heartbeat or poll changes
 * nothing but the time of the next: an orchestrator that comes back in time still knows its workers. While it cannot be
 * reached, only heartbeats are tried, so that other orchestrators are asked for work meanwhile; a poll that is under way is
 * given up. The first heartbeat that is answered makes it ready again.
 */
export class Connection implements TaskOrigin {
  readonly #options: ConnectionOptions
  readonly results: ResultSender
  readonly #events: EventSender
  readonly #progress: ProgressSender
  readonly #bell = new Bell()
  readonly #stop = new AbortController()
  readonly #pollBackoff: Backoff
  readonly #outage: Outage
  #registered = false
  #batched = false
  #tasksMax = 1
  #readyAt = 0
  /** The last poll could not connect. */
  #unreached = false
  #givePollUp: (() => void) | undefined
  /** The next heartbeat holds everything, as a registration does. */
  #owesAll = false
  #jitterMs = 0
  #beatAt = Number.NEGATIVE_INFINITY
  #socket: WorkerSocket | undefined
  readonly #waitingForRegistration: (() => void)[] = []
  #loop: Promise<void> | undefined
  /** For the round-robin choice. */
  credit = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { transport, log, settings } = options
    const { id: workerId, rateLimitMs, resultRetryMs: retryMs } = settings
    const onUnknownWorker = (): Promise<void> => this.#registerAgain()
    const socket = (): WorkerSocket | undefined => this.#socket
    this.#pollBackoff = new Backoff(settings.pollRetryMs, settings.pollRetryMsMax, settings.pollRetryFactor)
    this.#outage = new Outage({ name: transport.name, log, now: () => performance.now() })
    this.#events = new EventSender({ transport, log, socket, retryMs, rateLimitMs, onUnknownWorker })
    this.#progress = new ProgressSender(workerId, this.#events, log)
    const retriesMax = settings.resultRetriesMax
    this.results = new ResultSender({ workerId, transport, log, retriesMax, retryMs, rateLimitMs, onUnknownWorker })
  }

  get name(): string {
    return this.#options.transport.name
  }

  get workerId(): string {
    return this.#options.settings.id
  }

  get files(): FileTransport | undefined {
    return this.#options.transport.files
  }

  get weight(): number {
    return this.#options.weight
  }

  get batched(): boolean {
    return this.#batched
  }

  get isRegistered(): boolean {
    return this.#registered
  }

  /** Milliseconds until it may be asked for work; `undefined` while it is not registered or not reachable. */
  get readyInMs(): number | undefined {
    return this.#registered && !this.#unreached ? Math.max(0, this.#readyAt - performance.now()) : undefined
  }

  start(): void {
    this.#loop ??= this.#run()
  }

  whenRegistered(): Promise<void> {
    if (this.#registered || this.#stop.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waitingForRegistration.push(resolve)
    })
  }

  /** Tells the orchestrator soon that something has changed. */
  announce(): void {
    this.#bell.ring()
  }

  result(...[result, after]: Parameters<TaskOrigin['result']>): void {
    this.results.add(result, after)
  }

  progress(task: WireTask, fraction: number, message: string | undefined): void {
    this.#progress.say(task, fraction, message)
  }

  event(task: WireTask, type: string, payload: JsonObject): Promise<void> {
    return this.#events.send(eventOf(type, this.workerId, task, payload), this.#stop.signal)
  }

  ended(taskId: string): void {
    this.#progress.forget(taskId)
  }

  /** Never rejects: no tasks and a later `readyInMs` when the orchestrator could not be asked. */
  async poll(request: PollRequest, signal: AbortSignal): Promise<readonly WireTask[]> {
    if (signal.aborted) return []
    const { transport } = this.#options
    const limit = Math.min(request.limit, this.#tasksMax)
    const ours = new AbortController()
    const giveUp = (): void => ours.abort()
    signal.addEventListener('abort', giveUp)
    this.#givePollUp = giveUp
    let reply: TaskBatchReply
    try {
      reply = await transport.poll(this.workerId, { ...request, limit }, ours.signal)
    } catch (error) {
      if (!signal.aborted) this.#pollFailed(error)
      return []
    } finally {
      signal.removeEventListener('abort', giveUp)
      this.#givePollUp = undefined
    }
    this.#pollBackoff.reset()
    this.#unreached = false
    this.#outage.over()
    this.#options.onCancel(reply.cancel_task_ids ?? [])
    return reply.tasks
  }

  #pollFailed(error: unknown): void {
    const { settings } = this.#options
    const isFirst = this.#pollBackoff.failures === 0
    const waitMs = Math.max(this.#pollBackoff.next(), peaceMs(error, settings.rateLimitMs))
    if (transportFailure(error) === 'unknown_worker') {
      // Registered, it is asked at once, unless it takes registrations and forgets them again and again.
      if (!isFirst) this.#readyAt = performance.now() + waitMs
      return this.#forgotten()
    }
    // One failure is no reason to wait longer than until it can be reached again.
    this.#unreached = isUnreached(error)
    this.#readyAt = this.#unreached && isFirst ? 0 : performance.now() + waitMs
    this.#outage.failed('The orchestrator could not be asked for work.', error, { wait_ms: Math.round(waitMs) })
    // A heartbeat finds out when it is there again; a poll would wait for its whole time.
    if (this.#unreached) this.#bell.ring()
  }

  /** One heartbeat now. Never rejects; says how long to wait for the next one when it failed. */
  async beat(): Promise<{ readonly reached: boolean; readonly peaceMs: number }> {
    const { transport, settings } = this.#options
    const owedAll = this.#owesAll
    this.#owesAll = false
    this.#beatAt = performance.now()
    try {
      this.#heed(await transport.heartbeat(this.workerId, this.#state(owedAll)))
      return { reached: true, peaceMs: 0 }
    } catch (error) {
      this.#owesAll ||= owedAll
      if (transportFailure(error) === 'unknown_worker') this.#forgotten()
      else if (isUnreached(error)) this.#givePollUp?.()
      if (this.#registered) this.#outage.failed('A heartbeat failed.', error)
      return { reached: false, peaceMs: peaceMs(error, settings.rateLimitMs) }
    }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#bell.ring()
    this.results.stop()
    this.#progress.stop()
    this.#registrationDone()
    await this.#socket?.close()
    await this.#options.transport.close()
    await this.#loop
  }

  #state(withAll: boolean): HeartbeatRequest {
    const state = this.#options.state(this)
    const undelivered = this.results.pendingIds()
    const running = undelivered.length === 0 ? {} : { current_tasks: [...(state.current_tasks ?? []), ...undelivered] }
    const all = withAll ? { supported_skills: this.#options.registration().supported_skills ?? [] } : {}
    return { ...state, ...running, ...all }
  }

  async #run(): Promise<void> {
    const { heartbeatMs, registrationRetryMs, registrationRetryMsMax } = this.#options.settings
    const registering = new Backoff(registrationRetryMs, registrationRetryMsMax)
    const beating = new Backoff(BEAT_RETRY_MS, heartbeatMs)
    let waitMs = heartbeatMs
    while (!this.#stop.signal.aborted) {
      if (!this.#registered) {
        const wishMs = await this.#register()
        if (wishMs === undefined) registering.reset()
        else await pause(Math.max(registering.next(), wishMs), this.#stop.signal)
        waitMs = heartbeatMs
        continue
      }
      if (await this.#bell.wait(waitMs)) await this.#settle()
      if (this.#stop.signal.aborted || !this.#registered) continue
      const { reached, peaceMs: wishMs } = await this.beat()
      if (reached) beating.reset()
      waitMs = reached ? heartbeatMs + this.#jitterMs : Math.max(Math.min(heartbeatMs, beating.next()), wishMs)
    }
  }

  /** What changes within a moment is told together, and not so often that the orchestrator has enough of it. */
  async #settle(): Promise<void> {
    if (!this.#registered || this.#unreached) return
    const { heartbeatDebounceMs, heartbeatCooldownMs } = this.#options.settings
    const cooldownMs = this.#beatAt + heartbeatCooldownMs - performance.now()
    await pause(Math.max(heartbeatDebounceMs, cooldownMs), this.#stop.signal)
  }

  /** Nothing when it succeeded, else how long the orchestrator wants to be left in peace. */
  async #register(): Promise<number | undefined> {
    const { transport, log, settings } = this.#options
    try {
      const reply = await transport.register(this.#options.registration())
      if (this.#stop.signal.aborted) return undefined
      this.#batched = reply.batch !== undefined
      this.#tasksMax = Math.max(1, reply.batch?.tasks_max ?? 1)
      this.results.batchMax = this.#tasksMax
      this.#registered = true
      this.#outage.over()
      this.#reachable()
      this.#owesAll = false
      log.info('Registered.', { orchestrator: transport.name, worker_id: this.workerId, batched: this.#batched })
      if (reply.warning !== undefined && reply.warning !== null) log.warn(reply.warning)
      if (settings.webSockets) this.#socket ??= transport.socket?.(this.workerId, this.#options.onCommand)
      // An orchestrator that forgot the worker forgot its leases: running tasks are named before other workers get them.
      if (this.#options.running(this).length + this.results.size > 0) this.#bell.ring()
      this.#registrationDone()
      this.#options.onReady()
      return undefined
    } catch (error) {
      this.#outage.failed('The worker could not register.', error)
      return peaceMs(error, settings.rateLimitMs)
    }
  }

  #registrationDone(): void {
    for (const resolve of this.#waitingForRegistration.splice(0)) resolve()
  }

  #forgotten(): void {
    if (!this.#registered) return
    this.#registered = false
    const { log, transport } = this.#options
    log.info('The orchestrator does not know this worker any more; it registers again.', {
      orchestrator: transport.name,
    })
    this.#bell.ring()
  }

  #registerAgain(): Promise<void> {
    this.#forgotten()
    return this.whenRegistered()
  }

  #heed(reply: HeartbeatReply): void {
    const { heartbeatMs } = this.#options.settings
    this.#outage.over()
    this.#options.onCancel(reply.cancel_task_ids ?? [])
    // More than a second interval of silence would cost the worker its leases.
    this.#jitterMs = Math.min(heartbeatMs, Math.max(0, reply.next_heartbeat_jitter_ms ?? 0))
    if (reply.require_full_sync === true) {
      this.#owesAll = true
      this.#bell.ring()
    }
    this.#reachable()
  }

  /** It has answered: it is reachable again, if the last poll could not connect. */
  #reachable(): void {
    if (!this.#unreached) return
    this.#unreached = false
    this.#options.onReady()
  }
}
