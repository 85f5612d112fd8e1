/** How a task can go wrong, as workers report it. The first three decide what happens to the job. */
export const TASK_ERROR_CODES = [
  'TRANSIENT_ERROR',
  'PERMANENT_ERROR',
  'INVALID_INPUT_ERROR',
  'INTEGRITY_MISMATCH_ERROR',
  'RESOURCE_EXHAUSTED_ERROR',
  'TIMEOUT_ERROR',
  'DEPENDENCY_ERROR',
  'SECURITY_ERROR',
  'INTERNAL_ERROR',
  'CONTRACT_VIOLATION_ERROR',
  'LIMIT_EXCEEDED_ERROR',
  'DEPENDENCY_MISSING_ERROR',
  'LATE_RESULT',
] as const

export type TaskErrorCode = (typeof TASK_ERROR_CODES)[number]

export interface TaskError {
  readonly code: TaskErrorCode
  readonly message: string
}

/**
 * What must follow from an error: try again, put the task aside for a person, or fail the job. A timeout fails the job
 * unless the blueprint says that timeouts are tried again.
 */
export type TaskErrorKind = 'transient' | 'permanent' | 'invalid_input' | 'timeout'

const KINDS: Partial<Record<TaskErrorCode, TaskErrorKind>> = {
  PERMANENT_ERROR: 'permanent',
  SECURITY_ERROR: 'permanent',
  DEPENDENCY_ERROR: 'permanent',
  CONTRACT_VIOLATION_ERROR: 'permanent',
  INVALID_INPUT_ERROR: 'invalid_input',
  INTEGRITY_MISMATCH_ERROR: 'invalid_input',
  TIMEOUT_ERROR: 'timeout',
}

export function taskErrorKind(code: TaskErrorCode): TaskErrorKind {
  // Codes come from workers: `constructor` must not find what every object has.
  return (Object.hasOwn(KINDS, code) ? KINDS[code] : undefined) ?? 'transient'
}

export function isTaskErrorCode(value: unknown): value is TaskErrorCode {
  return (TASK_ERROR_CODES as readonly unknown[]).includes(value)
}

/** Why a job failed, was cancelled or stands in quarantine, where it was no task's own error. */
export const JOB_ERROR_CODES = [
  'HANDLER_FAILED',
  'HANDLER_NEVER_ENDED',
  'UNHANDLED_STATUS',
  'UNKNOWN_STATE',
  'LOOP_LIMIT',
  'EXECUTION_TIMEOUT',
  'CHILD_FAILED',
  'CHILD_QUARANTINED',
  'CHILD_TOO_DEEP',
  'FAN_OUT_TOO_LARGE',
  'APPROVAL_EXPIRED',
  'REJECTED',
  'EVENT_TIMEOUT',
  'BLUEPRINT_GONE',
  'CANCELLED',
] as const

export type JobErrorCode = (typeof JOB_ERROR_CODES)[number] | TaskErrorCode

/** What a worker must have, beyond the skill, to take a task. Numbers mean at least, lists mean all of. */
export interface ResourceRequirements {
  readonly gpu?: { readonly model?: string; readonly vramGb?: number }
  readonly cpuCores?: number
  readonly ramGb?: number
  readonly models?: readonly string[]
  readonly software?: Readonly<Record<string, string>>
  readonly properties?: Readonly<Record<string, string | number | boolean | readonly (string | number)[]>>
}
