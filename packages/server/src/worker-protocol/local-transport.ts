import type { Engine } from '@impresario/engine'
import { parseExact, readJson, stringifyExact, writeJson } from '@impresario/protocol'
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
} from '@impresario/protocol'
import type { WorkerCalls } from './worker-calls.ts'
import { taskBody } from './wire-worker.ts'

interface LocalPoll {
  readonly limit: number
  readonly timeoutMs: number
  readonly availableSkills?: readonly string[]
}

/** Fits the transport of the worker SDK, without knowing it: the server stands below the SDKs. */
export interface LocalTransport {
  readonly name: string
  register(request: RegisterRequest): Promise<RegisterReply>
  heartbeat(workerId: string, request: HeartbeatRequest): Promise<HeartbeatReply>
  poll(workerId: string, request: LocalPoll, signal: AbortSignal): Promise<TaskBatchReply>
  results(workerId: string, results: readonly ResultRequest[]): Promise<readonly (ResultReply | ItemError)[]>
  event(event: EventRequest): Promise<void>
  close(): Promise<void>
}

/** Lets workers of the same process reach the engine without a network. */
export function createLocalTransport(engine: Engine, calls: WorkerCalls): LocalTransport {
  const { desk, dispatcher } = engine
  return {
    name: 'this process',
    register: (request) => calls.register(request),
    heartbeat: async (workerId, request) => (await calls.heartbeat(workerId, request)).reply,
    poll: async (workerId, { limit, timeoutMs, availableSkills }, signal) => {
      const options = { limit, waitMs: timeoutMs, signal, availableSkills, isLocal: true, wantsCancelled: true }
      const { deliveries, cancelled, giveBack } = await desk.poll(workerId, options)
      if (signal.aborted && deliveries.length > 0) {
        await giveBack()
        return { tasks: [] }
      }
      const worker = dispatcher.worker(workerId)
      return {
        tasks: deliveries.map((delivery) => asSeen(taskBody(delivery, worker))),
        ...(cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }),
      }
    },
    results: (workerId, results) => calls.results(workerId, results.map(written)),
    event: async (event) => {
      await calls.event(event.worker_id ?? undefined, asKept(event))
    },
    close: async () => {},
  }
}

/** What cannot be written as JSON is a mistake in the handler, and no result: it would never be one. */
function written(result: ResultRequest): ResultRequest {
  try {
    return asKept(result)
  } catch (error) {
    const { job_id, task_id } = result
    const message = `The handler returned something that cannot be written as JSON: ${String(error)}`
    return { job_id, task_id, status: 'failure', error: { code: 'PERMANENT_ERROR', message } }
  }
}

/*
 * What crosses here must not be shared: a handler that changed its parameters would change the job's record. On its way it is
 * read and written as over the network, so that numbers are what they are there.
 */

/** Boundary: a message to the worker. */
function asSeen<T>(value: T): T {
  return parseExact(writeJson(value)) as T
}

/** Boundary: a message from the worker. */
function asKept<T>(value: T): T {
  return readJson(stringifyExact(value)) as T
}
