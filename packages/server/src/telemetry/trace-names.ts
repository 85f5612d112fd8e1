import type { Job, TrailEntry } from '@impresario/core'
import { traceContextOf } from '@impresario/protocol'
import { jobSpanId, traceOf, trySpanId, visitSpanId } from './trace-identity.ts'
import type { Sampling } from './trace-identity.ts'

/** The fields of a line of the log that lead to the trace of its job. */
export type TraceNames = {
  readonly trace_id?: string
  /** The span of the job, of its state or of the try of a task, whichever the line is about. */
  readonly span_id?: string
}

type Named = Pick<Job, 'id' | 'parent' | 'visit'> & { readonly tracing?: Job['tracing'] }

/** `sampling`: nothing where no traces are recorded. Then only the trace of the caller is known. */
export function traceNames(job: Named, sampling: Sampling | undefined, entry?: Partial<TrailEntry>): TraceNames {
  if (sampling === undefined) {
    const traceId = traceContextOf(job.tracing ?? {})?.traceparent.split('-')[1]
    return traceId === undefined ? {} : { trace_id: traceId }
  }
  const { traceId, isSampled } = traceOf(job, sampling)
  return isSampled ? { trace_id: traceId, span_id: spanIdOf(job, entry) } : { trace_id: traceId }
}

function spanIdOf({ id, visit }: Named, entry: Partial<TrailEntry> = {}): string {
  const { event, taskId, attempt = 1 } = entry
  if (event?.startsWith('job_') === true) return jobSpanId(id)
  if (taskId?.startsWith(`${id}.`) === true) return trySpanId(taskId, attempt)
  return visitSpanId(id, entry.visit ?? visit)
}
