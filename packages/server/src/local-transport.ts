import type { Clock } from '@impresario/core'
import type { Desk } from '@impresario/engine'
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
import { registerWorker, takeEvent, takeHeartbeat, takeResults } from './worker-calls.ts'
import { taskBody } from './wire-worker.ts'

interface LocalPoll {
  readonly limit: number
  readonly timeoutMs: number
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
export function createLocalTransport(engine: { readonly desk: Desk }, clock: Clock): LocalTransport {
  const { desk } = engine
  return {
    name: 'this process',
    register: (request) => registerWorker(desk, clock, request),
    heartbeat: (workerId, request) => takeHeartbeat(desk, workerId, request),
    poll: async (workerId, { limit, timeoutMs }, signal) => {
      const { deliveries, giveBack } = await desk.poll(workerId, { limit, waitMs: timeoutMs, signal, isLocal: true })
      if (signal.aborted && deliveries.length > 0) {
        await giveBack()
        return { tasks: [] }
      }
      return { tasks: deliveries.map((delivery) => copied(taskBody(delivery))) }
    },
    results: (workerId, results) => takeResults(desk, workerId, copied(results)),
    event: async (event) => {
      await takeEvent(desk, event.worker_id ?? undefined, event)
    },
    close: async () => {},
  }
}

/** What crosses here must not be shared: a handler that changed its parameters would change the job's record. */
function copied<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}
