import type { JsonObject } from '@impresario/protocol'
import { BOUNDS } from './bounds.ts'
import { resultOf } from './job-result.ts'
import { isoTime, textOf } from './tool.ts'
import { standing } from './job-view.ts'
import { elicitation } from './question.ts'
import type { Question } from './question.ts'

type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** A task is a job: what the protocol calls its status. */
function taskStatus(job: JsonObject, questions: readonly Question[]): TaskStatus {
  switch (job['status']) {
    case 'finished':
    case 'failed':
      return 'completed'
    case 'cancelled':
      return 'cancelled'
    case 'quarantined':
    case 'error':
      return 'failed'
    default:
      return questions.length > 0 ? 'input_required' : 'working'
  }
}

interface TaskBase {
  readonly taskId: string
  readonly status: TaskStatus
  readonly statusMessage: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
}

function baseOf(job: JsonObject, questions: readonly Question[]): TaskBase {
  const createdAt = isoTime(job['created_at']) ?? new Date(0).toISOString()
  return {
    taskId: textOf(job['job_id']),
    status: taskStatus(job, questions),
    statusMessage: questions[0]?.message ?? standing(job),
    createdAt,
    lastUpdatedAt: isoTime(job['updated_at']) ?? createdAt,
  }
}

/** As the Tasks extension of 2026-07-28 shows it. A job is kept as long as the server keeps jobs, so there is no end to name. */
export function taskOf(job: JsonObject, questions: readonly Question[]): JsonObject {
  return { ...baseOf(job, questions), ttlMs: null, pollIntervalMs: BOUNDS.pollIntervalMs }
}

/** With what belongs to its status: the result, the error, or what is asked. */
export function detailedTask(job: JsonObject, questions: readonly Question[]): JsonObject {
  const task = taskOf(job, questions)
  switch (task['status']) {
    case 'completed':
      return { ...task, result: { resultType: 'complete', ...resultOf(job) } }
    case 'failed':
      return { ...task, error: faultOf(job) }
    case 'input_required':
      return { ...task, inputRequests: inputRequests(questions) }
    default:
      return task
  }
}

/** Keyed, so that each answer finds its question. */
export function inputRequests(questions: readonly Question[]): JsonObject {
  return Object.fromEntries(
    questions.map((question) => [question.key, { method: 'elicitation/create', params: elicitation(question) }]),
  )
}

/** As the revision of 2025-11-25 shows it. */
export function olderTask(job: JsonObject, questions: readonly Question[]): JsonObject {
  return { ...baseOf(job, questions), ttl: null, pollInterval: BOUNDS.pollIntervalMs }
}

/** What went wrong outside of the work itself: a handler that threw, a result that did not fit. */
export function faultOf(job: JsonObject): { readonly code: number; readonly message: string } {
  const message = textOf(job['error_message']) || 'The job failed in an unexpected way.'
  return { code: -32_603, message: `${message} A person can mend the cause and retry the job.` }
}
