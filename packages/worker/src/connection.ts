import type { HeartbeatReply, HeartbeatRequest, RegisterRequest, TaskBatchReply, WireTask } from '@impresario/protocol'
import { messageOf, type Log } from './log.ts'
import { Backoff, Bell, sleep } from './pause.ts'
import { ProgressSender } from './progress.ts'
import { ResultSender } from './results.ts'
import type { TaskOrigin } from './running.ts'
import { TransportError, transportFailure, type PollRequest, type WorkerTransport } from './transport.ts'

interface ConnectionOptions {
  readonly workerId: string
  readonly transport: WorkerTransport
  readonly weight: number
  readonly heartbeatMs: number
  readonly resultRetriesMax: number
  readonly resultRetryMs: number
  readonly log: Log
  readonly registration: () => RegisterRequest
  readonly state: (origin: TaskOrigin) => HeartbeatRequest
  readonly onCancel: (taskIds: readonly string[]) => void
  /** It can be asked for work now. */
  readonly onReady: () => void
}

const DEBOUNCE_MS = 100

/**
 * One orchestrator, as the worker knows it.
 *
 * Unregistered at first, and again whenever the orchestrator says that it does not know this worker; it then registers
 * until it succeeds, however long that takes. Registered, it sends heartbeats. A failed heartbeat or poll changes
 * nothing but the time of the next: an orchestrator that comes back in time still knows its workers.
 */
export class Connection implements TaskOrigin {
  readonly #options: ConnectionOptions
  readonly results: ResultSender
  readonly #progress: ProgressSender
  readonly #bell = new Bell()
  readonly #stop = new AbortController()
  readonly #pollBackoff = new Backoff()
  #registered = false
  #batched = false
  #tasksMax = 1
  #readyAt = 0
  readonly #waitingForRegistration: (() => void)[] = []
  #loop: Promise<void> | undefined
  /** For the round-robin choice. */
  credit = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { workerId, transport, log } = options
    this.#progress = new ProgressSender(workerId, transport, log)
    this.results = new ResultSender({
      workerId,
      transport,
      log,
      retriesMax: options.resultRetriesMax,
      retryMs: options.resultRetryMs,
      onUnknownWorker: () => this.#registerAgain(),
    })
  }

  get workerId(): string {
    return this.#options.workerId
  }

  get weight(): number {
    return this.#options.weight
  }

  get batched(): boolean {
    return this.#batched
  }

  /** Milliseconds until it may be asked for work; `undefined` while it is not registered. */
  get readyInMs(): number | undefined {
    return this.#registered ? Math.max(0, this.#readyAt - performance.now()) : undefined
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

  result(result: Parameters<TaskOrigin['result']>[0]): void {
    this.results.add(result)
  }

  progress(task: WireTask, fraction: number, message: string | undefined): void {
    this.#progress.say(task, fraction, message)
  }

  ended(taskId: string): void {
    this.#progress.forget(taskId)
  }

  /** Never rejects: no tasks and a later `readyInMs` when the orchestrator could not be asked. */
  async poll(request: PollRequest, signal: AbortSignal): Promise<readonly WireTask[]> {
    if (signal.aborted) return []
    const { transport, workerId, log } = this.#options
    const limit = Math.min(request.limit, this.#tasksMax)
    let reply: TaskBatchReply
    try {
      reply = await transport.poll(workerId, { ...request, limit }, signal)
    } catch (error) {
      if (signal.aborted) return []
      if (transportFailure(error) === 'unknown_worker') this.#forgotten()
      const retryAfterMs = (error instanceof TransportError ? error.retryAfterMs : undefined) ?? 0
      const waitMs = Math.max(this.#pollBackoff.next(), retryAfterMs)
      this.#readyAt = performance.now() + waitMs
      log.warn('The orchestrator could not be asked for work.', {
        error: messageOf(error),
        wait_ms: Math.round(waitMs),
      })
      return []
    }
    this.#pollBackoff.reset()
    this.#options.onCancel(reply.cancel_task_ids ?? [])
    return reply.tasks
  }

  /** One heartbeat now. Never rejects. */
  async beat(): Promise<boolean> {
    const { transport, workerId, log } = this.#options
    try {
      this.#heed(await transport.heartbeat(workerId, this.#state()))
      return true
    } catch (error) {
      if (transportFailure(error) === 'unknown_worker') this.#forgotten()
      log.warn('A heartbeat failed.', { orchestrator: transport.name, error: messageOf(error) })
      return false
    }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#bell.ring()
    this.results.stop()
    this.#progress.stop()
    this.#registrationDone()
    await this.#options.transport.close()
    await this.#loop
  }

  #state(): HeartbeatRequest {
    const state = this.#options.state(this)
    const undelivered = this.results.pendingIds()
    return undelivered.length === 0
      ? state
      : { ...state, current_tasks: [...(state.current_tasks ?? []), ...undelivered] }
  }

  async #run(): Promise<void> {
    const backoff = new Backoff()
    let waitMs = this.#options.heartbeatMs
    while (!this.#stop.signal.aborted) {
      if (!this.#registered) {
        if (await this.#register()) backoff.reset()
        else await sleep(backoff.next(), this.#stop.signal)
        continue
      }
      const called = await this.#bell.wait(waitMs)
      // What changes within a moment is told together.
      if (called) await sleep(DEBOUNCE_MS, this.#stop.signal)
      if (this.#stop.signal.aborted || !this.#registered) continue
      const reached = await this.beat()
      if (reached) backoff.reset()
      waitMs = Math.min(this.#options.heartbeatMs, reached ? Number.POSITIVE_INFINITY : backoff.next())
    }
  }

  async #register(): Promise<boolean> {
    const { transport, log } = this.#options
    try {
      const reply = await transport.register(this.#options.registration())
      this.#batched = reply.batch !== undefined
      this.#tasksMax = Math.max(1, reply.batch?.tasks_max ?? 1)
      this.results.batchMax = this.#tasksMax
      this.#registered = true
      this.#readyAt = 0
      log.info('Registered.', { orchestrator: transport.name, worker_id: this.workerId, batched: this.#batched })
      if (reply.warning !== undefined && reply.warning !== null) log.warn(reply.warning)
      this.#registrationDone()
      this.#options.onReady()
      return true
    } catch (error) {
      log.warn('Registration failed; it will be tried again.', {
        orchestrator: transport.name,
        error: messageOf(error),
      })
      return false
    }
  }

  #registrationDone(): void {
    for (const resolve of this.#waitingForRegistration.splice(0)) resolve()
  }

  #forgotten(): void {
    if (!this.#registered) return
    this.#registered = false
    this.#bell.ring()
  }

  #registerAgain(): Promise<void> {
    this.#forgotten()
    return this.whenRegistered()
  }

  #heed(reply: HeartbeatReply): void {
    this.#options.onCancel(reply.cancel_task_ids ?? [])
    if (reply.require_full_sync === true) this.#forgotten()
  }
}
