import { createHash } from 'node:crypto'
import type { ParentRef } from '@impresario/core'
import { traceContextOf } from '@impresario/protocol'
import type { TraceContext } from '@impresario/protocol'
import type { SamplerName } from '../config/telemetry-keys.ts'

/*
 * Ids of traces and spans are derived from the ids of what they show. So every instance knows them, also after a restart,
 * and no record has to keep them: a task that is sent out by one instance, delivered by a second and finished by a third has
 * one span, and its worker has been told its id.
 */

/** The part of a job that its trace is known by. */
export interface Traced {
  readonly id: string
  readonly tracing?: Readonly<Record<string, string>> | undefined
  readonly parent?: ParentRef | undefined
}

export interface Trace {
  readonly traceId: string
  readonly isSampled: boolean
  /** The span of the caller, when the job came with one. */
  readonly callerId: string | undefined
  readonly traceState: string | undefined
}

export interface Sampling {
  readonly sampler: SamplerName
  /** From 0 to 1. */
  readonly share: number
}

const SAMPLED = 1
const SPAN_CHARS = 16
const TRACE_CHARS = 32
/** Ids of children begin with that of the job at the top. */
const TOP_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:_[\da-z]+)?(?=-|$)/

export function traceOf(job: Traced, sampling: Sampling): Trace {
  const caller = traceContextOf(job.tracing ?? {})
  if (caller === undefined) {
    const traceId = hashOf(`trace ${TOP_ID.exec(job.id)?.[0] ?? job.id}`, TRACE_CHARS)
    return { traceId, isSampled: isSampled(traceId, sampling), callerId: undefined, traceState: undefined }
  }
  const [, traceId = '', callerId, flags = '00'] = caller.traceparent.split('-')
  const isWanted = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  return { traceId, isSampled: isSampled(traceId, sampling, isWanted), callerId, traceState: caller.tracestate }
}

/** By the trace alone, so that all its spans on all instances are recorded, or none. */
function isSampled(traceId: string, { sampler, share }: Sampling, isWanted?: boolean): boolean {
  if (isWanted !== undefined && sampler.startsWith('parentbased_')) return isWanted
  if (sampler.endsWith('always_on')) return true
  if (sampler.endsWith('always_off')) return false
  return Number.parseInt(traceId.slice(-8), 16) < share * 0x1_00_00_00_00
}

export function jobSpanId(jobId: string): string {
  return hashOf(`job ${jobId}`, SPAN_CHARS)
}

/** One stay in a state. */
export function visitSpanId(jobId: string, visit: number): string {
  return hashOf(`visit ${jobId}.${visit}`, SPAN_CHARS)
}

/** One try of a task. `taskId` is the one that all tries have in common. */
export function trySpanId(taskId: string, attempt: number): string {
  return hashOf(`try ${taskId}.${attempt}`, SPAN_CHARS)
}

/** The span that the job's own hangs from: the state that started it, or the caller's. */
export function parentSpanId({ parent }: Traced, { callerId }: Trace): string | undefined {
  return parent === undefined ? callerId : visitSpanId(parent.jobId, parent.visit)
}

/** What is passed on to those who work for the span. */
export function contextOf({ traceId, isSampled: isOn, traceState }: Trace, spanId: string): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${isOn ? '01' : '00'}`
  return traceState === undefined ? { traceparent } : { traceparent, tracestate: traceState }
}

/** Never only zeros in practice, which W3C forbids: one id in 2^64. */
function hashOf(text: string, chars: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, chars)
}
