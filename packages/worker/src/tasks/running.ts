import { readUsage, traceContextOf } from '@impresario/protocol'
import type { JsonObject, ResultRequest, UsageReport, WireTask, WireTaskError } from '@impresario/protocol'
import { isUnexpected, TaskAborted, TaskFailure, taskErrorOf, type AbortCause } from './failure.ts'
import { check, type Ending, type Skill, type Task } from './handler.ts'
import type { Log } from '../runtime/log.ts'
import type { FileTransport } from '../transport/transport.ts'
import { TaskLog } from './task-log.ts'
import { LocalFiles } from './worker-files.ts'

/** Where a task came from, and where news of it go. */
export interface TaskOrigin {
  readonly workerId: string
  readonly files: FileTransport | undefined
  /** `after`: what has to reach the orchestrator first. Must not reject. */
  result(result: ResultRequest, after?: Promise<unknown>): void
  progress(task: WireTask, fraction: number, message: string | undefined): void
  /** Resolves when the event has arrived; rejects when it was refused. */
  event(task: WireTask, type: string, payload: JsonObject): Promise<void>
  /** The task has ended: no progress after that. */
  ended(taskId: string): void
}

export interface RunningOptions {
  readonly wire: WireTask
  readonly skill: Skill
  readonly origin: TaskOrigin
  readonly setHot: (name: string, hot: boolean) => void
  readonly strictEvents: boolean
  /** Where the directories of tasks are. */
  readonly payloadDir: string
  readonly log: Log
}

const NO_TRACING = {}

/** One task at this worker, as its handler sees it. The signal is created on first access: most handlers never use it. */
export class RunningTask implements Task {
  readonly wire: WireTask
  readonly skill: Skill
  readonly origin: TaskOrigin
  readonly #options: RunningOptions
  #startedAt: number | undefined
  /** Events that have not arrived yet. */
  #events: Promise<unknown>[] | undefined
  #controller: AbortController | undefined
  #aborted: AbortCause | undefined
  #ended = false
  #files: LocalFiles | undefined
  #lines: TaskLog | undefined

  constructor(options: RunningOptions) {
    this.wire = options.wire
    this.skill = options.skill
    this.origin = options.origin
    this.#options = options
  }

  get jobId(): string {
    return this.wire.job_id
  }

  get taskId(): string {
    return this.wire.task_id
  }

  get type(): string {
    return this.wire.type
  }

  get attempt(): number {
    return this.wire.attempt ?? 1
  }

  get idempotencyKey(): string {
    return this.wire.idempotency_key ?? this.wire.task_id
  }

  get priority(): number {
    return this.wire.priority ?? 0
  }

  get deadline(): number | undefined {
    const { deadline } = this.wire
    return deadline === undefined || deadline === null ? undefined : deadline * 1_000
  }

  /** When this worker gives up on it, whatever the orchestrator says; counts from its start. */
  get timeoutAt(): number {
    const { timeoutMs } = this.skill
    if (timeoutMs === undefined || this.#startedAt === undefined) return Number.POSITIVE_INFINITY
    return this.#startedAt + timeoutMs
  }

  get tracingContext(): Readonly<Record<string, string>> {
    return this.wire.tracing_context ?? NO_TRACING
  }

  get tracing(): Readonly<Record<string, string>> {
    return this.tracingContext
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(new TaskAborted(this.#aborted))
    }
    return this.#controller.signal
  }

  get files(): LocalFiles {
    this.#files ??= new LocalFiles({
      taskId: this.wire.task_id,
      payloadDir: this.#options.payloadDir,
      transport: this.origin.files,
      signal: () => this.signal,
    })
    return this.#files
  }

  get log(): Log {
    this.#lines ??= new TaskLog(this.#options.log, this.#names)
    return this.#lines
  }

  /** Whether there are local files of it. */
  get hasFiles(): boolean {
    return this.#files?.isUsed === true
  }

  /** Deletes its local files, whatever became of it. */
  async releaseFiles(): Promise<void> {
    const { log } = this.#options
    await this.#files?.release().catch((error: unknown) => {
      log.warn('Local files of a task could not be deleted.', { task_id: this.taskId, error: String(error) })
    })
  }

  get ended(): boolean {
    return this.#ended
  }

  progress(fraction: number, message?: string): void {
    if (this.#ended || !Number.isFinite(fraction)) return
    this.origin.progress(this.wire, Math.min(1, Math.max(0, fraction)), message)
  }

  sendEvent(type: string, payload: JsonObject = {}): Promise<void> {
    if (this.#ended) return Promise.reject(new TypeError('The task has ended; its events mean nothing any more.'))
    return this.#beforeResult(this.#checkedEvent(type, payload))
  }

  meter(report: UsageReport): Promise<void> {
    if (this.#ended) return Promise.reject(new TypeError('The task has ended; what it used can be counted no more.'))
    const usage = readUsage(report)
    if (typeof usage === 'string') return Promise.reject(new TypeError(`The usage cannot be counted: ${usage}`))
    return this.#beforeResult(this.origin.event(this.wire, 'meter', { ...usage }))
  }

  /** The result waits for it, and a handler that does not await it must not fail by an unhandled rejection. */
  #beforeResult(sent: Promise<void>): Promise<void> {
    this.#events ??= []
    this.#events.push(sent.catch(() => undefined))
    return sent
  }

  async #checkedEvent(type: string, payload: JsonObject): Promise<void> {
    const { skill, strictEvents, log } = this.#options
    const refuse = (problems: string): TaskFailure =>
      new TaskFailure(
        'CONTRACT_VIOLATION_ERROR',
        `The event "${type}" of "${skill.name}" is not as agreed: ${problems}`,
      )
    if (skill.events !== undefined) {
      try {
        const schema = Object.hasOwn(skill.events, type) ? skill.events[type] : undefined
        if (schema === undefined) throw refuse('there is none of that name')
        await check(schema, payload, refuse)
      } catch (error) {
        if (strictEvents) throw error
        log.warn('An event is sent although it is not as agreed.', { type, task_id: this.taskId, error: String(error) })
      }
    }
    await this.origin.event(this.wire, type, payload)
  }

  setHot(name: string): void {
    this.#options.setHot(name, true)
  }

  unsetHot(name: string): void {
    this.#options.setHot(name, false)
  }

  started(): void {
    this.#startedAt = Date.now()
  }

  /** Only the first reason counts. */
  abort(cause: AbortCause): void {
    if (this.#ended || this.#aborted !== undefined) return
    this.#aborted = cause
    this.#controller?.abort(new TaskAborted(cause))
  }

  succeed(ending: Ending): void {
    const { job_id, task_id } = this.wire
    const { status, data } = ending
    const ids = { job_id, task_id, worker_id: this.origin.workerId }
    this.#end(data === undefined ? { ...ids, status } : { ...ids, status, data: jsonOf(data) })
  }

  fail(error: unknown): void {
    const { job_id, task_id } = this.wire
    const ids = { job_id, task_id, worker_id: this.origin.workerId }
    if (this.#aborted === 'cancelled') return this.#end({ ...ids, status: 'cancelled' })
    if (this.#aborted === undefined) return this.#end({ ...ids, status: 'failure', error: this.#said(error) })
    const code = this.#aborted === 'deadline' || this.#aborted === 'timeout' ? 'TIMEOUT_ERROR' : 'TRANSIENT_ERROR'
    this.#end({ ...ids, status: 'failure', error: { code, message: new TaskAborted(this.#aborted).message } })
  }

  /** What lines of the worker's log say of the task. */
  get #names(): Readonly<Record<string, string>> {
    const { job_id, task_id, type } = this.wire
    const traceId = traceContextOf(this.tracingContext)?.traceparent.split('-')[1]
    return { job_id, task_id, type, ...(traceId === undefined ? {} : { trace_id: traceId }) }
  }

  /** What the orchestrator hears of a failure, and the worker's own log first. */
  #said(error: unknown): WireTaskError {
    const said = taskErrorOf(error)
    const { code, message, stack } = said
    const fields = { ...this.#names, code, error: message, ...(stack === undefined ? {} : { stack }) }
    if (this.#ended) return said
    if (isUnexpected(error)) this.#options.log.error('A handler failed.', fields)
    else this.#options.log.warn('A task failed.', fields)
    return said
  }

  #end(result: ResultRequest): void {
    if (this.#ended) return
    this.#ended = true
    this.origin.ended(this.wire.task_id)
    const told = this.#lines === undefined ? result : { ...result, log: this.#lines.lines }
    if (this.#events === undefined) this.origin.result(told)
    else this.origin.result(told, Promise.all(this.#events))
  }
}

/** The boundary at which a handler's value is taken for JSON; the transport finds out when it writes it. */
function jsonOf(value: unknown): NonNullable<ResultRequest['data']> {
  return value as NonNullable<ResultRequest['data']>
}
