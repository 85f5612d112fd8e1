import type { TaskError } from '@impresario/protocol'
import { failureOf } from './draft.ts'
import type { Draft } from './draft.ts'
import type { EventOf } from './event.ts'
import { childJobId, shownJobId, taskId } from './identity.ts'
import type { Branch, Call, JobError, JobFailure } from './job.ts'

/** A call of the present state, by its name; of a child that has sent word, how it stands. */
export interface Called {
  readonly name: string
  readonly branch: Branch
  readonly ending?: Pick<EventOf<'childEnded'>, 'outcome' | 'error'>
}

/** What the handler of the next state is told of a call that went wrong. */
export function callFailure({ job }: Draft, { name, branch, ending }: Called, error: JobError): JobFailure {
  const { call, attempt } = branch
  const failure = failureOf(error, attempt)
  if (ending === undefined) return { ...failure, task: { id: taskId(job.id, job.visit, name), type: nameOf(call) } }
  const child = {
    jobId: shownJobId(childJobId(job.id, job.visit, name)),
    blueprint: nameOf(call),
    status: ending.outcome,
    ...(ending.error === undefined ? {} : { code: ending.error.code }),
  }
  return { ...failure, child }
}

/** The error of a job whose call went wrong. */
export function branchError(call: Call, { code, message }: TaskError, state: string): JobError {
  return call.kind === 'child'
    ? { code: 'CHILD_FAILED', message: `"${call.blueprint}": ${message}`, state }
    : { code, message, state }
}

export function nameOf(call: Call): string {
  return call.kind === 'task' ? call.type : call.blueprint
}
