import { parseExact, plainCopy, readJson, stringifyExact, writeJson } from '@impresario/protocol'
import type {
  EventRequest,
  FileRef,
  HeartbeatReply,
  HeartbeatRequest,
  ItemError,
  RegisterReply,
  RegisterRequest,
  ResultReply,
  ResultRequest,
  TaskBatchReply,
} from '@impresario/protocol'
import type { WorkerGateway } from './worker-gateway.ts'

/** The files of tasks, as the desk for them has them. Workers of this process hold their tasks without a name. */
interface FilesOfTasks {
  read(holder: undefined, taskId: string, name: string): Promise<AsyncIterable<Uint8Array>>
  write(
    holder: undefined,
    taskId: string,
    name: string,
    body: AsyncIterable<Uint8Array>,
    options: { readonly bytes: number; readonly signal: AbortSignal },
  ): Promise<FileRef>
  list(holder: undefined, taskId: string, prefix: string): Promise<readonly FileRef[]>
}

interface LocalFiles {
  read(taskId: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  write(
    taskId: string,
    name: string,
    body: { readonly content: AsyncIterable<Uint8Array>; readonly bytes: number },
    signal: AbortSignal,
  ): Promise<FileRef>
  list(taskId: string, prefix: string, signal: AbortSignal): Promise<readonly FileRef[]>
}

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
  readonly files: LocalFiles
  close(): Promise<void>
}

/** Lets workers of the same process reach the engine without a network. */
export function createLocalTransport(gateway: WorkerGateway, files: FilesOfTasks): LocalTransport {
  return {
    name: 'this process',
    register: (request) => gateway.register(request),
    heartbeat: async (workerId, request) => (await gateway.heartbeat(workerId, request)).reply,
    poll: async (workerId, { limit, timeoutMs, availableSkills }, signal) => {
      const options = { limit, waitMs: timeoutMs, signal, availableSkills, isLocal: true, wantsCancelled: true }
      const { tasks, cancelled, giveBack } = await gateway.poll(workerId, options)
      if (signal.aborted && tasks.length > 0) {
        await giveBack()
        return { tasks: [] }
      }
      return {
        tasks: tasks.map((task) => asSeen(task)),
        ...(cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }),
      }
    },
    results: (workerId, results) => gateway.results(workerId, results.map(written)),
    event: async (event) => {
      await gateway.event(event.worker_id ?? undefined, asKept(event))
    },
    files: {
      read: (taskId, name) => files.read(undefined, taskId, name),
      write: (taskId, name, { content, bytes }, signal) =>
        files.write(undefined, taskId, name, content, { bytes, signal }),
      list: (taskId, prefix) => files.list(undefined, taskId, prefix),
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
  return (plainCopy(value) ?? parseExact(writeJson(value))) as T
}

/** Boundary: a message from the worker. */
function asKept<T>(value: T): T {
  return (plainCopy(value) ?? readJson(stringifyExact(value))) as T
}
