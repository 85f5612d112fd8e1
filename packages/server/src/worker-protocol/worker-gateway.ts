import { newWorkerRecord, parseDeliveryId } from '@impresario/core'
import type { Clock, WorkerRecord } from '@impresario/core'
import type { Delivery, Engine, PollOptions, Receipt, Report } from '@impresario/engine'
import { ImpresarioError, isImpresarioError, isJsonObject, LIMITS, WIRE_VERSION } from '@impresario/protocol'
import type {
  EventReply,
  EventRequest,
  HeartbeatReply,
  HeartbeatRequest,
  ItemError,
  JsonObject,
  RegisterReply,
  RegisterRequest,
  ResultReply,
  WireTask,
} from '@impresario/protocol'
import { EventSchemas } from './event-schemas.ts'
import { HeartbeatPace } from './heartbeat-pace.ts'
import { takeUsage } from './usage.ts'
import {
  isEmptyBody,
  readHeartbeat,
  readProgress,
  readRegistration,
  readReport,
  receiptBody,
  taskBody,
  whyIgnored,
  workerBody,
} from './wire-worker.ts'

export interface WorkerGatewayOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** What an event that came through here is marked with. */
  readonly instanceId: string
  /** Takes what workers wrote about their tasks. */
  readonly jobLines?: LinesOfWorkers
  /** Without it they are told what the job came with. */
  readonly traces?: Traces | undefined
  /** Hears of every task that is handed to a worker. */
  readonly onDelivered?: ((delivery: Delivery, worker: WorkerRecord) => void) | undefined
}

/** Says what workers are told of the trace that a task belongs to. */
interface Traces {
  contextFor(delivery: Delivery): Delivery['tracing']
}

interface LinesOfWorkers {
  addFromWorker(jobId: string, names: { readonly taskId: string; readonly workerId: string }, lines: unknown): void
}

/** Tasks for a worker, as it sees them. */
export interface WireHandout {
  readonly tasks: readonly WireTask[]
  /** Tasks that the worker shall stop. Only for a poll that asked for them. */
  readonly cancelled: readonly string[]
  /** Takes everything back into the queue: it could not be handed over. */
  readonly giveBack: () => Promise<void>
}

/**
 * The one gateway between workers and the engine: what a worker can ask, from its message to the answer. HTTP, sockets and the
 * transport inside the process all use it, so that workers cannot tell the difference.
 */
export class WorkerGateway {
  readonly #options: WorkerGatewayOptions
  readonly #pace: HeartbeatPace
  readonly #eventSchemas = new EventSchemas()

  constructor(options: WorkerGatewayOptions) {
    this.#options = options
    this.#pace = new HeartbeatPace(options.clock)
  }

  async register(request: RegisterRequest): Promise<RegisterReply> {
    const { engine, clock } = this.#options
    await engine.desk.register(newWorkerRecord(readRegistration(request), clock.now()))
    return this.registered()
  }

  /** What a worker hears that is known. */
  registered(): RegisterReply {
    return { status: 'registered', version: WIRE_VERSION, batch: { tasks_max: LIMITS.batchItemsMax } }
  }

  /** Whether the worker has registered here, or at another instance. */
  isRegistered(workerId: string): Promise<boolean> {
    return this.#options.engine.desk.isRegistered(workerId)
  }

  async heartbeat(
    workerId: string,
    request: HeartbeatRequest | null | undefined,
  ): Promise<{ readonly reply: HeartbeatReply; readonly worker: WorkerRecord }> {
    const { desk, dispatcher } = this.#options.engine
    const said = request === null || request === undefined || isEmptyBody(request) ? undefined : request
    const known = dispatcher.worker(workerId)
    const patch = said === undefined ? undefined : readHeartbeat(said, known?.metadata)
    const { worker, cancelled } = await desk.heartbeat(
      workerId,
      patch,
      said?.current_tasks ?? undefined,
      said?.load ?? undefined,
    )
    const jitter = this.#pace.jitterFor(workerId)
    const reply: HeartbeatReply = {
      status: said === undefined ? 'ttl_refreshed' : 'ok',
      ...(cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }),
      ...(isOutOfStep(worker, said) ? { require_full_sync: true } : {}),
      ...(jitter === undefined ? {} : { next_heartbeat_jitter_ms: jitter }),
    }
    return { reply, worker }
  }

  /** Waits for tasks, as long as the options say. */
  async poll(workerId: string, options: PollOptions): Promise<WireHandout> {
    const { desk, dispatcher } = this.#options.engine
    const { deliveries, cancelled, giveBack } = await desk.poll(workerId, options)
    const worker = dispatcher.worker(workerId)
    const { traces, onDelivered } = this.#options
    if (worker !== undefined) for (const delivery of deliveries) onDelivered?.(delivery, worker)
    const tasks = deliveries.map((delivery) =>
      taskBody(delivery, worker, traces === undefined ? delivery.tracing : traces.contextFor(delivery)),
    )
    return { tasks, cancelled, giveBack }
  }

  /** The worker as it is shown to workers of the oldest generation. */
  shown(worker: WorkerRecord): JsonObject {
    return workerBody(worker, this.#options.engine.dispatcher.loadOf(worker.id))
  }

  /** The answer to one result. Throws when it is malformed, or larger than its job can hold. */
  async result(workerId: string, item: unknown): Promise<ResultReply> {
    const [reply] = await this.results(workerId, [item])
    if (reply === undefined) throw new Error('A result was not answered.')
    if ('status' in reply) return reply
    throw new ImpresarioError(reply.code === 'LIMIT_EXCEEDED' ? 'LIMIT_EXCEEDED' : 'INVALID_REQUEST', reply.error)
  }

  /** One answer for each item, in its place; a malformed one spoils only its own. */
  async results(workerId: string, items: readonly unknown[]): Promise<readonly (ResultReply | ItemError)[]> {
    const read = items.map(readReport)
    const reports = read.filter((item): item is Report => 'taskId' in item)
    const receipts = await this.#options.engine.desk.results(workerId, reports)
    let next = 0
    const replies: (ResultReply | ItemError)[] = []
    for (const [index, item] of read.entries()) {
      if (!('taskId' in item)) {
        replies.push(item)
        continue
      }
      const receipt = receipts[next]
      next += 1
      if (receipt?.type === 'accepted') this.#keepLines(workerId, item.taskId, items[index])
      replies.push(
        receipt === undefined ||
          (receipt.type === 'ignored' && receipt.job === undefined && !(await this.#hasJob(items[index])))
          ? receiptBody({ type: 'ignored', reason: 'job_not_found', job: undefined }, item.status)
          : receiptBody(receipt, item.status),
      )
    }
    return replies
  }

  #keepLines(workerId: string, taskId: string, item: unknown): void {
    const ref = isJsonObject(item) && item['log'] !== undefined ? parseDeliveryId(taskId) : undefined
    if (ref === undefined || !isJsonObject(item)) return
    this.#options.jobLines?.addFromWorker(ref.jobId, { taskId, workerId }, item['log'])
  }

  /** A result may name a task of ours that never was, of a job that never was. */
  async #hasJob(item: unknown): Promise<boolean> {
    const jobId = isJsonObject(item) ? item['job_id'] : undefined
    return typeof jobId === 'string' && (await this.#options.engine.readJob(jobId)) !== undefined
  }

  /** Progress moves the job's own; every other event is the job's to judge. What is wrong with it is said, not thrown. */
  async event(workerId: string | undefined, event: EventRequest): Promise<EventReply> {
    if (workerId === undefined) return refusal('An event needs the id of its worker in worker_id.')
    const { desk, dispatcher } = this.#options.engine
    const payload = event.payload ?? {}
    const verdict = this.#eventSchemas.check(dispatcher.worker(workerId), event.event_type, payload)
    if (!verdict.isValid) return { status: 'error', code: 'CONTRACT_VIOLATION_ERROR', message: verdict.problem }
    const taskId = event.target_task_id ?? event.origin_task_id
    if (event.event_type === 'progress') {
      const progress = readProgress(payload)
      if (progress === undefined || typeof taskId !== 'string') {
        return refusal('Progress needs the task in target_task_id and a number from 0 to 1 in payload.progress.')
      }
      return eventReply(await desk.progress(workerId, taskId, progress.fraction, progress.message))
    }
    if (event.event_type === 'meter') {
      const taken = await takeUsage(desk, workerId, event)
      return typeof taken === 'string' ? refusal(taken) : eventReply(taken)
    }
    // About no task: there is no job that it could concern.
    return typeof taskId === 'string' ? this.#raise(workerId, taskId, event, payload) : ACCEPTED
  }

  async #raise(workerId: string, taskId: string, event: EventRequest, payload: JsonObject): Promise<EventReply> {
    const { engine, instanceId } = this.#options
    const chain = event.bubbling_chain ?? []
    if (chain.includes(instanceId)) return refusal('The event has come through this orchestrator before.')
    const eventId = event.event_id ?? undefined
    let receipt: Receipt
    try {
      receipt = await engine.desk.event(workerId, taskId, { type: event.event_type, payload, eventId })
    } catch (error) {
      if (isImpresarioError(error, 'INVALID_REQUEST')) return refusal(error.message)
      throw error
    }
    const reply = eventReply(receipt)
    return reply.status === 'error' || chain.length === 0 ? reply : { ...reply, bubbling_chain: [...chain, instanceId] }
  }
}

const ACCEPTED = { status: 'event_accepted' } as const

function eventReply(receipt: Receipt): EventReply {
  if (receipt.type === 'refused') return { status: 'error', code: 'LIMIT_EXCEEDED', message: receipt.message }
  // Who sends it again got no answer to the first one.
  if (receipt.type === 'accepted' || receipt.reason === 'repeated_event') return ACCEPTED
  const { reason, message } = whyIgnored(receipt)
  return { status: 'error', code: reason.toUpperCase(), message }
}

function refusal(message: string): EventReply {
  return { status: 'error', code: 'INVALID_REQUEST', message }
}

/** It names its skills by a hash that is not ours, and did not send them: it shall send them all. */
function isOutOfStep(worker: WorkerRecord, said: HeartbeatRequest | undefined): boolean {
  const hash = said?.skills_hash
  return typeof hash === 'string' && !Array.isArray(said?.supported_skills) && worker.metadata?.['skills_hash'] !== hash
}
