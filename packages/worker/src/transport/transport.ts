import {
  isImpresarioError,
  type EventRequest,
  type FileRef,
  type HeartbeatReply,
  type HeartbeatRequest,
  type ItemError,
  type JsonObject,
  type RegisterReply,
  type RegisterRequest,
  type ResultReply,
  type ResultRequest,
  type TaskBatchReply,
} from '@impresario/protocol'

export interface PollRequest {
  readonly limit: number
  readonly timeoutMs: number
  /** What can be started now, when that is less than everything. */
  readonly availableSkills?: readonly string[]
}

/** What an orchestrator tells a worker over the socket. */
export interface Command {
  readonly name: string
  readonly taskId: string | undefined
  readonly jobId: string | undefined
  readonly params: JsonObject
}

export type Delivered = 'accepted' | 'refused' | 'unknown'

/** A line that is kept open beside the calls, and opened again whenever it breaks. */
export interface WorkerSocket {
  readonly isOpen: boolean
  /**
   * Sends an event if the line is open. `unknown`: its arrival was not confirmed, so another way must be taken.
   * With `mayBeLost`, being sent is enough on a line whose other side never answers.
   */
  send(event: EventRequest, mayBeLost: boolean): Promise<Delivered>
  close(): Promise<void>
}

/** The files of the job that a task belongs to, by its id. Names are names within the job, or addresses (`s3://…`). */
export interface FileTransport {
  read(taskId: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  write(
    taskId: string,
    name: string,
    body: { readonly content: AsyncIterable<Uint8Array>; readonly bytes: number },
    signal: AbortSignal,
  ): Promise<FileRef>
  list(taskId: string, prefix: string, signal: AbortSignal): Promise<readonly FileRef[]>
}

/**
 * How a worker reaches an orchestrator. Over HTTP by default; an engine in the same process gives one of its own, and
 * workers cannot tell the difference.
 *
 * A reply to `register` with `batch` says that `poll` may give several tasks and `results` takes several results;
 * without it, each is called for one at a time.
 */
export interface WorkerTransport {
  /** Where it leads, for the log. */
  readonly name: string
  register(request: RegisterRequest): Promise<RegisterReply>
  heartbeat(workerId: string, request: HeartbeatRequest): Promise<HeartbeatReply>
  /** Resolves as soon as there is anything, and with no tasks when the time is up. */
  poll(workerId: string, request: PollRequest, signal: AbortSignal): Promise<TaskBatchReply>
  /** Resolves once the results are safe with the orchestrator. The same result may arrive more than once. */
  results(workerId: string, results: readonly ResultRequest[]): Promise<readonly (ResultReply | ItemError)[]>
  /** Resolves once the event is with the orchestrator. The same event, by its id, may arrive more than once. */
  event(event: EventRequest): Promise<void>
  /** Opens a line for commands, where the transport has such a thing. */
  socket?(workerId: string, onCommand: (command: Command) => void): WorkerSocket
  /** Nothing: there are no files this way. */
  readonly files?: FileTransport
  close(): Promise<void>
}

/** `unavailable`: try again later. `unknown_worker`: register first. `refused`: the same request will never pass. */
export type TransportFailure = 'unavailable' | 'unknown_worker' | 'refused'

interface TransportErrorOptions {
  readonly retryAfterMs?: number
  /** The status of the answer; without it there was none. */
  readonly status?: number
  readonly cause?: unknown
}

export class TransportError extends Error {
  override readonly name = 'TransportError'
  readonly kind: TransportFailure
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined

  constructor(kind: TransportFailure, message: string, options: TransportErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
    this.status = options.status
  }
}

/** A transport inside the process may throw the engine's own refusals. */
export function transportFailure(error: unknown): TransportFailure {
  if (error instanceof TransportError) return error.kind
  if (isImpresarioError(error, 'WORKER_NOT_FOUND')) return 'unknown_worker'
  return isImpresarioError(error) && error.retry === 'never' ? 'refused' : 'unavailable'
}

/** How long the orchestrator wants to be left in peace: as it says, or for so long when it has had too many requests. */
export function peaceMs(error: unknown, rateLimitMs: number): number {
  if (!(error instanceof TransportError)) return 0
  return error.retryAfterMs ?? (error.status === 429 ? rateLimitMs : 0)
}

/** Whether there was no reply at all. */
export function isUnreached(error: unknown): boolean {
  return error instanceof TransportError && error.status === undefined
}
