import { isTaskErrorCode, LIMITS, type Json, type TaskErrorCode, type WireTaskError } from '@impresario/protocol'

interface FailureOptions {
  readonly details?: Json
  readonly cause?: unknown
}

/** What a handler throws to say how its failure should be taken. Anything else that it throws is transient. */
export class TaskFailure extends Error {
  override readonly name: string = 'TaskFailure'
  readonly code: TaskErrorCode
  readonly details: Json | undefined

  constructor(code: TaskErrorCode, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.details = options.details
  }
}

/** It may work the next time: the task is tried again, after a while, and preferably elsewhere. */
export class TransientError extends TaskFailure {
  override readonly name = 'TransientError'
  constructor(message: string, options?: FailureOptions) {
    super('TRANSIENT_ERROR', message, options)
  }
}

/** It will never work: the job is put aside for a person. */
export class PermanentError extends TaskFailure {
  override readonly name = 'PermanentError'
  constructor(message: string, options?: FailureOptions) {
    super('PERMANENT_ERROR', message, options)
  }
}

/** What was asked for makes no sense: the job fails. */
export class InvalidInputError extends TaskFailure {
  override readonly name = 'InvalidInputError'
  constructor(message: string, options?: FailureOptions) {
    super('INVALID_INPUT_ERROR', message, options)
  }
}

/** A file is not what it should be. */
export class IntegrityMismatchError extends TaskFailure {
  override readonly name = 'IntegrityMismatchError'
  constructor(message: string, options?: FailureOptions) {
    super('INTEGRITY_MISMATCH_ERROR', message, options)
  }
}

/** This worker ran out of something: memory, disk, a quota. */
export class ResourceExhaustedError extends TaskFailure {
  override readonly name = 'ResourceExhaustedError'
  constructor(message: string, options?: FailureOptions) {
    super('RESOURCE_EXHAUSTED_ERROR', message, options)
  }
}

/** It took too long. */
export class TimeoutError extends TaskFailure {
  override readonly name = 'TimeoutError'
  constructor(message: string, options?: FailureOptions) {
    super('TIMEOUT_ERROR', message, options)
  }
}

/** Something that the task needs is broken. */
export class DependencyError extends TaskFailure {
  override readonly name = 'DependencyError'
  constructor(message: string, options?: FailureOptions) {
    super('DEPENDENCY_ERROR', message, options)
  }
}

/** Something that the task needs is not there yet. */
export class DependencyMissingError extends TaskFailure {
  override readonly name = 'DependencyMissingError'
  constructor(message: string, options?: FailureOptions) {
    super('DEPENDENCY_MISSING_ERROR', message, options)
  }
}

/** The worker refuses for reasons of security. */
export class SecurityError extends TaskFailure {
  override readonly name = 'SecurityError'
  constructor(message: string, options?: FailureOptions) {
    super('SECURITY_ERROR', message, options)
  }
}

/** Why a task's signal aborted. */
export type AbortCause = 'cancelled' | 'deadline' | 'timeout' | 'shutdown'

const ABORT_MESSAGES: Record<AbortCause, string> = {
  cancelled: 'The task was cancelled.',
  deadline: 'The deadline of the task has passed.',
  timeout: 'The task took longer than this worker allows.',
  shutdown: 'The worker is shutting down.',
}

/** The reason that a task's signal carries. */
export class TaskAborted extends Error {
  override readonly name = 'AbortError'
  readonly reason: AbortCause

  constructor(reason: AbortCause) {
    super(ABORT_MESSAGES[reason])
    this.reason = reason
  }
}

/** Decides by the code that an error carries and not by its class: this package may be installed twice. */
export function taskErrorOf(error: unknown): WireTaskError {
  if (!(error instanceof Error)) return { code: 'TRANSIENT_ERROR', message: String(error) }
  const code = hasTaskCode(error) ? error.code : 'TRANSIENT_ERROR'
  const details = error instanceof TaskFailure ? error.details : undefined
  const message = error.message === '' ? error.name : error.message
  const stack = stackOf(error)
  return {
    code,
    message,
    ...(details === undefined ? {} : { details }),
    ...(stack === undefined ? {} : { stack }),
  }
}

function hasTaskCode(error: Error): error is Error & { readonly code: TaskErrorCode } {
  return 'code' in error && isTaskErrorCode(error.code)
}

/** Whether a handler failed without meaning to: it threw something that says nothing of how to take it. */
export function isUnexpected(error: unknown): boolean {
  return !(error instanceof Error && hasTaskCode(error))
}

/** Causes that are reported. More of them are a cycle, or too long to read. */
const CAUSES_MAX = 5

/** Where it came from, with what caused it. A failure that a handler chose itself tells only of its causes. */
function stackOf(error: Error): string | undefined {
  const told: string[] = []
  if (isUnexpected(error)) told.push(error.stack ?? String(error))
  let { cause } = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    told.push(`Caused by: ${cause.stack ?? String(cause)}`)
    ;({ cause } = cause)
  }
  return told.length === 0 ? undefined : told.join('\n').slice(0, LIMITS.taskStackCharsMax)
}
