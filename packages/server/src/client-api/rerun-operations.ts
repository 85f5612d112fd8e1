import { resultsUpTo, shownJobId } from '@impresario/core'
import type { Engine, NewJob } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { CreateJobReply, RerunJobRequest } from '@impresario/protocol'
import type { Caller } from '../http/access.ts'
import { visibleJob } from './job-access.ts'
import type { Origin } from './wire-job.ts'

/** A new job of the caller that does what another one did: from the beginning, or from one of its states on. */
export async function rerunJob(
  engine: Engine,
  caller: Caller,
  jobId: string,
  request: RerunJobRequest,
  origin: Origin,
): Promise<CreateJobReply> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  const { from_state: state, initial_data: data, state_history: history } = request
  if (history && !state) {
    const message = '"state_history" needs "from_state": a job that begins in its first state has none.'
    throw new ImpresarioError('INVALID_REQUEST', message)
  }
  if (history && Buffer.byteLength(JSON.stringify(history)) > LIMITS.contextBytesMax) {
    throw new ImpresarioError('LIMIT_EXCEEDED', `"state_history" has more than ${LIMITS.contextBytesMax} bytes.`)
  }
  const from = state
    ? { jobId: job.id, state, stateHistory: history ?? job.stateHistory, results: resultsUpTo(job, state) }
    : undefined
  const { tracing: ofRequest, tracingOfJob, ...given } = origin
  const tracing = tracingOfJob?.() ?? ofRequest
  const wanted: NewJob = {
    ...given,
    ...(tracing === undefined ? {} : { tracing: { ...tracing } }),
    blueprint: job.blueprint,
    initialData: data ?? job.initialData,
    priority: job.priority,
    dispatchTimeoutMs: job.dispatchTimeoutMs,
    resultTimeoutMs: job.resultTimeoutMs,
    executionTimeoutMs: job.executionTimeoutMs,
    metadata: job.metadata,
    from,
  }
  const { jobId: id } = await engine.createJob(wanted)
  return { status: 'accepted', job_id: shownJobId(id) }
}
