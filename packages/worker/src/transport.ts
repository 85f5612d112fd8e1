import {
  isImpresarioError,
  type EventRequest,
  type HeartbeatReply,
  type HeartbeatRequest,
  type ItemError,
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
  event(event: EventRequest): Promise<void>
  close(): Promise<void>
}

/** `unavailable`: try again later. `unknown_worker`: register first. `refused`: the same request will never pass. */
export type TransportFailure = 'unavailable' | 'unknown_worker' | 'refused'

export class TransportError extends Error {
  override readonly name = 'TransportError'
  readonly kind: TransportFailure
  readonly retryAfterMs: number | undefined

  constructor(kind: TransportFailure, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
  }
}

/** A transport inside the process may throw the engine's own refusals. */
export function transportFailure(error: unknown): TransportFailure {
  if (error instanceof TransportError) return error.kind
  if (isImpresarioError(error, 'WORKER_NOT_FOUND')) return 'unknown_worker'
  return isImpresarioError(error) && error.retry === 'never' ? 'refused' : 'unavailable'
}
