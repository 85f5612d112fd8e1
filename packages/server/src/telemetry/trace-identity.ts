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

/**
 * What the record of a job keeps whose trace is not recorded and was begun by nobody else. Such jobs are most of those of a busy
 * server: they have no ids, and nothing is asked at their steps. An empty object, because most records have to be small.
 */
export const UNRECORDED: Readonly<Record<string, string>> = Object.freeze({})

const SAMPLED = 1
const PARENT_BASED = 'parentbased_'
/** Where the last digit of the flags stands in a `traceparent` of any version. */
const FLAGS_AT = 54
/** Ids of children begin with that of the job at the top. */
const TOP_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:_[\da-z]+)?(?=-|$)/

export function traceOf(job: Traced, sampling: Sampling): Trace {
  const { tracing } = job
  const caller = tracing === undefined ? NO_CALLER : callerIn(tracing)
  if (caller.traceId === undefined) {
    const traceId = ownTraceId(job.id)
    const isOn = tracing === undefined && isSampled(traceId, sampling)
    return { traceId, isSampled: isOn, callerId: undefined, traceState: undefined }
  }
  const { traceId, callerId, isWanted, traceState } = caller
  return { traceId, isSampled: isSampled(traceId, sampling, isWanted), callerId, traceState }
}

function ownTraceId(jobId: string): string {
  const top = TOP_ID.exec(jobId)?.[0] ?? jobId
  return idOf(`trace ${top}`, TRACE_SEED) + idOf(`trace ${top}`, SPAN_SEED)
}

/** Whether nothing of the job is recorded, as far as it is seen without reading its trace. Asked at every step of every job. */
export function isPlainlyUnrecorded({ tracing }: Pick<Traced, 'tracing'>, { sampler }: Sampling): boolean {
  if (tracing === undefined) return false
  const { traceparent } = tracing
  if (traceparent === undefined) return true
  return sampler.startsWith(PARENT_BASED) && (Number.parseInt(traceparent[FLAGS_AT] ?? '', 16) & SAMPLED) === 0
}

/** What the record of a new job keeps, which came without a trace. */
export function newTracing(jobId: string, sampling: Sampling): Traced['tracing'] {
  return sampling.sampler.endsWith('always_on') || traceOf({ id: jobId }, sampling).isSampled ? undefined : UNRECORDED
}

interface Caller {
  readonly traceId: string | undefined
  readonly callerId: string | undefined
  readonly isWanted: boolean
  readonly traceState: string | undefined
}

const NO_CALLER: Caller = { traceId: undefined, callerId: undefined, isWanted: false, traceState: undefined }

/** A job is asked for its trace at every step, and keeps the object that came with it. */
const callers = new WeakMap<object, Caller>()

function callerIn(tracing: Readonly<Record<string, string>>): Caller {
  const known = callers.get(tracing)
  if (known !== undefined) return known
  const context = traceContextOf(tracing)
  const [, traceId, callerId, flags = '00'] = context?.traceparent.split('-') ?? []
  const isWanted = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  const caller = { traceId, callerId, isWanted, traceState: context?.tracestate }
  callers.set(tracing, caller)
  return caller
}

/** By the trace alone, so that all its spans on all instances are recorded, or none. */
function isSampled(traceId: string, { sampler, share }: Sampling, isWanted?: boolean): boolean {
  if (isWanted !== undefined && sampler.startsWith(PARENT_BASED)) return isWanted
  if (sampler.endsWith('always_on')) return true
  if (sampler.endsWith('always_off')) return false
  return Number.parseInt(traceId.slice(-8), 16) < share * 0x1_00_00_00_00
}

export function jobSpanId(jobId: string): string {
  return idOf(`job ${jobId}`, SPAN_SEED)
}

/** One stay in a state. */
export function visitSpanId(jobId: string, visit: number): string {
  return idOf(`visit ${jobId}.${visit}`, SPAN_SEED)
}

/** One try of a task. `taskId` is the one that all tries have in common. */
export function trySpanId(taskId: string, attempt: number): string {
  return idOf(`try ${taskId}.${attempt}`, SPAN_SEED)
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

/** The same for those who work for a job without a recorded trace: they record nothing either, and their logs have an id in common. */
export function unrecordedContext(jobId: string): Readonly<Record<string, string>> {
  const traceId = ownTraceId(jobId)
  return { traceparent: `00-${traceId}-${traceId.slice(16)}-00` }
}

const SPAN_SEED = 0x25_45_f4_91
const TRACE_SEED = 0x6c_07_89_65

/**
 * 64 bits of the text as 16 hexadecimal digits. Ids have to differ, not to be secret: two sums of 32 bits, each mixed with
 * the other at the end, are ten times as fast as SHA-256 and made nine times for each job. Never only zeros in practice,
 * which W3C forbids: one id in 2^64.
 */
function idOf(text: string, seed: number): string {
  let [one, two] = [seed, ~seed]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    one = Math.imul(one ^ code, 0x9e_37_79_b1)
    one ^= one >>> 15
    two = Math.imul(two ^ code, 0x85_eb_ca_6b)
    two ^= two >>> 13
  }
  const [high, low] = [mixed(one ^ Math.imul(two, 0xc2_b2_ae_35)), mixed(two ^ Math.imul(one, 0x27_d4_eb_2f))]
  return digits(high) + digits(low)
}

function mixed(value: number): number {
  const once = Math.imul(value ^ (value >>> 16), 0x7f_eb_35_2d)
  const twice = Math.imul(once ^ (once >>> 15), 0x84_6c_a6_8b)
  return (twice ^ (twice >>> 16)) >>> 0
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function digits(value: number): string {
  return `${pair(value >>> 24)}${pair(value >>> 16)}${pair(value >>> 8)}${pair(value)}`
}

function pair(value: number): string {
  return PAIRS[value & 0xff] ?? ''
}
