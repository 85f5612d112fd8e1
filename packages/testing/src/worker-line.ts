import type {
  EventRequest,
  HeartbeatReply,
  HeartbeatRequest,
  ItemError,
  RegisterReply,
  RegisterRequest,
  ResultReply,
  ResultRequest,
  TaskBatchReply,
  WireTask,
} from '@impresario/protocol'
import { TransportError } from '@impresario/worker'
import type { PollRequest, WorkerTransport } from '@impresario/worker'
import type { FaultSource } from './faults.ts'

/** A task that a worker has got. */
export interface Delivery {
  readonly jobId: string
  readonly taskId: string
  readonly type: string
  readonly params: WireTask['params']
  /** From 1; more after a failure. */
  readonly attempt: number
  /** From 1; more after a worker that vanished. */
  readonly delivery: number
}

export interface LineParts {
  readonly faults: FaultSource
  readonly now: () => number
  /** Calls the orchestrator that runs now. */
  readonly call: <T>(run: (transport: WorkerTransport) => Promise<T>) => Promise<T>
}

type Files = NonNullable<WorkerTransport['files']>

function filesOf({ files }: WorkerTransport): Files {
  if (files === undefined) throw new TransportError('refused', 'There are no files here.')
  return files
}

/** The connection of one worker. Knows what the worker holds, and fails when it is told to. */
export class WorkerLine implements WorkerTransport {
  readonly name = 'the test kit'
  readonly deliveries: Delivery[] = []
  readonly files: Files = {
    read: (...given) => this.#call((transport) => filesOf(transport).read(...given)),
    write: (...given) => this.#call((transport) => filesOf(transport).write(...given)),
    list: (...given) => this.#call((transport) => filesOf(transport).list(...given)),
  }
  readonly #parts: LineParts
  /** By id: tasks that were handed over and whose results have not been accepted. */
  readonly #held = new Set<string>()
  #polls = 0
  #isCut = false

  constructor(parts: LineParts) {
    this.#parts = parts
  }

  get held(): readonly string[] {
    return [...this.#held]
  }

  get isCut(): boolean {
    return this.#isCut
  }

  /** Whether it asks for work now. A worker that neither asks nor works is between two calls. */
  get isPolling(): boolean {
    return this.#polls > 0
  }

  /** From now on nothing gets through, in either direction. */
  cut(): void {
    this.#isCut = true
    this.#held.clear()
  }

  register(request: RegisterRequest): Promise<RegisterReply> {
    return this.#call((transport) => transport.register(request))
  }

  async heartbeat(workerId: string, request: HeartbeatRequest): Promise<HeartbeatReply> {
    const reply = await this.#call((transport) => transport.heartbeat(workerId, request))
    for (const taskId of reply.cancel_task_ids ?? []) this.#held.delete(taskId)
    return reply
  }

  async poll(workerId: string, request: PollRequest, signal: AbortSignal): Promise<TaskBatchReply> {
    this.#polls += 1
    try {
      const reply = await this.#call((transport) => transport.poll(workerId, request, signal))
      const kept = reply.tasks.filter(() => !this.#parts.faults.happens('lostTask'))
      for (const task of kept) this.#take(task)
      for (const taskId of reply.cancel_task_ids ?? []) this.#held.delete(taskId)
      return { ...reply, tasks: kept.map((task) => this.#inRealTime(task)) }
    } finally {
      this.#polls -= 1
    }
  }

  async results(workerId: string, results: readonly ResultRequest[]): Promise<readonly (ResultReply | ItemError)[]> {
    const replies = await this.#call((transport) => transport.results(workerId, results))
    if (this.#parts.faults.happens('lostReply')) throw new TransportError('unavailable', 'The reply was lost.')
    for (const { task_id: taskId } of results) this.#held.delete(taskId)
    return replies
  }

  event(event: EventRequest): Promise<void> {
    return this.#call((transport) => transport.event(event))
  }

  async close(): Promise<void> {}

  async #call<T>(run: (transport: WorkerTransport) => Promise<T>): Promise<T> {
    if (this.#isCut) throw new TransportError('unavailable', 'This worker has crashed.')
    const reply = await this.#parts.call(run)
    if (this.#isCut) throw new TransportError('unavailable', 'This worker has crashed.')
    return reply
  }

  #take({ job_id: jobId, task_id: taskId, type, params, attempt = 1, delivery = 1 }: WireTask): void {
    this.#held.add(taskId)
    this.deliveries.push({ jobId, taskId, type, params, attempt, delivery })
  }

  /** The worker compares deadlines with the clock of the machine. */
  #inRealTime(task: WireTask): WireTask {
    const { deadline } = task
    if (deadline === undefined || deadline === null) return task
    return { ...task, deadline: deadline + (Date.now() - this.#parts.now()) / 1_000 }
  }
}
