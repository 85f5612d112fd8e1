import type { ResultRequest, WireTask } from '@impresario/protocol'
import { TaskAborted, taskErrorOf, type AbortCause } from './failure.ts'
import type { Ending, Skill, Task } from './handler.ts'

/** Where a task came from, and where news of it go. */
export interface TaskOrigin {
  readonly workerId: string
  result(result: ResultRequest): void
  progress(task: WireTask, fraction: number, message: string | undefined): void
  /** The task has ended: no progress after that. */
  ended(taskId: string): void
}

export interface RunningOptions {
  readonly wire: WireTask
  readonly skill: Skill
  readonly origin: TaskOrigin
  readonly setHot: (name: string, hot: boolean) => void
}

const NO_TRACING = {}

/** One task at this worker, as its handler sees it. The signal is made when somebody asks for it: most never do. */
export class RunningTask implements Task {
  readonly wire: WireTask
  readonly skill: Skill
  readonly origin: TaskOrigin
  readonly #setHot: (name: string, hot: boolean) => void
  #controller: AbortController | undefined
  #aborted: AbortCause | undefined
  #ended = false

  constructor(options: RunningOptions) {
    this.wire = options.wire
    this.skill = options.skill
    this.origin = options.origin
    this.#setHot = options.setHot
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

  get tracing(): Readonly<Record<string, string>> {
    return this.wire.tracing_context ?? NO_TRACING
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(new TaskAborted(this.#aborted))
    }
    return this.#controller.signal
  }

  get ended(): boolean {
    return this.#ended
  }

  progress(fraction: number, message?: string): void {
    if (this.#ended || !Number.isFinite(fraction)) return
    this.origin.progress(this.wire, Math.min(1, Math.max(0, fraction)), message)
  }

  setHot(name: string): void {
    this.#setHot(name, true)
  }

  unsetHot(name: string): void {
    this.#setHot(name, false)
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
    if (this.#aborted === undefined) return this.#end({ ...ids, status: 'failure', error: taskErrorOf(error) })
    const code = this.#aborted === 'deadline' ? 'TIMEOUT_ERROR' : 'TRANSIENT_ERROR'
    this.#end({ ...ids, status: 'failure', error: { code, message: new TaskAborted(this.#aborted).message } })
  }

  #end(result: ResultRequest): void {
    if (this.#ended) return
    this.#ended = true
    this.origin.ended(this.wire.task_id)
    this.origin.result(result)
  }
}

/** The boundary at which a handler's value is taken for JSON; the transport finds out when it writes it. */
function jsonOf(value: unknown): NonNullable<ResultRequest['data']> {
  return value as NonNullable<ResultRequest['data']>
}
