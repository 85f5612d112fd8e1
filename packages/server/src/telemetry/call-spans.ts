import type { Job } from '@impresario/core'
import type { Delivery } from '@impresario/engine'
import type { TraceContext } from '@impresario/protocol'
import type { Span } from './span.ts'
import type { SpansOptions } from './spans-options.ts'
import { contextOf, isPlainlyUnrecorded, traceOf, trySpanId, UNRECORDED } from './trace-identity.ts'
import type { Trace } from './trace-identity.ts'

export interface CallStart {
  readonly name: string
  readonly kind: Span['kind']
  readonly attributes?: Span['attributes']
  /** How long ago it began. */
  readonly sinceMs?: number
}

interface CallEnd {
  readonly attributes?: Span['attributes']
  readonly error?: string | undefined
}

/** A request or call that is under way. */
export interface CallSpan {
  /** What is passed on to those who work for it. Nothing where nobody has begun a trace and none is recorded. */
  readonly context: TraceContext | undefined
  /** The same for the record of a job that it starts: of a trace that begins here, only so many jobs in a second are recorded. */
  contextForJob(): Job['tracing']
  /** Runs code so that libraries in it find the span as their parent. */
  run<T>(code: () => T): T
  /** To be called once. */
  end(end?: CallEnd): void
}

const TEXT_CHARS_MAX = 1_000

const UNRECORDED_CALL: CallSpan = {
  context: undefined,
  contextForJob: () => UNRECORDED,
  run: (code) => code(),
  end: () => undefined,
}

/** Spans of what is asked of the server and of what its tools ask of others: HTTP requests, messages of assistants, calls of tools. */
export class CallSpans {
  readonly #options: SpansOptions
  /** A call beside which enough others are recorded. All of them are one: it costs nothing. */
  readonly #beyond: CallSpan

  constructor(options: SpansOptions) {
    this.#options = options
    const contextForJob = (): Job['tracing'] => {
      options.rate?.take()
      return UNRECORDED
    }
    this.#beyond = { ...UNRECORDED_CALL, contextForJob }
  }

  get isOn(): boolean {
    return this.#options.isOn()
  }

  /**
   * Nothing where the caller has begun a trace that is not recorded: its context is passed on as it is. `start` is asked for
   * only where the call is recorded.
   */
  open(caller: TraceContext | undefined, start: () => CallStart): CallSpan | undefined {
    const { sampling, newSpanId, rate } = this.#options
    if (!this.#options.isOn()) return undefined
    if (caller === undefined) {
      if (rate?.isUsedUp === true) return this.#beyond
      const trace = traceOf({ id: `${newSpanId()}${newSpanId()}` }, sampling)
      return trace.isSampled ? this.#opened(trace, undefined, start(), true) : UNRECORDED_CALL
    }
    const trace = traceOf({ id: '', tracing: { ...caller } }, sampling)
    return trace.isSampled ? this.#opened(trace, trace.callerId, start()) : undefined
  }

  /** The run of a tool in this process. The try of its task is its parent. */
  openTool(delivery: Delivery, start: CallStart): CallSpan | undefined {
    const { jobId, idempotencyKey, attempt, tracing } = delivery
    if (!this.#options.isOn() || isPlainlyUnrecorded(delivery, this.#options.sampling)) return undefined
    const trace = traceOf({ id: jobId, tracing }, this.#options.sampling)
    return trace.isSampled ? this.#opened(trace, trySpanId(idempotencyKey, attempt), start) : undefined
  }

  #opened(
    trace: Trace,
    parentId: string | undefined,
    { name, kind, attributes, sinceMs = 0 }: CallStart,
    isNew = false,
  ): CallSpan {
    const { clock, newSpanId, within, add, rate } = this.#options
    const { traceId, traceState } = trace
    const spanId = newSpanId()
    const startedAt = clock.now() - sinceMs
    const context = contextOf(trace, spanId)
    const isCounted = isNew && rate !== undefined
    return {
      context,
      contextForJob: () => (!isCounted || rate.take() ? { ...context } : UNRECORDED),
      run: (code) => within(trace, spanId, code),
      end: ({ attributes: more, error } = {}) =>
        add({
          name,
          kind,
          traceId,
          traceState,
          spanId,
          parentId,
          startedAt,
          endedAt: clock.now(),
          attributes: { ...attributes, ...more },
          error: error?.slice(0, TEXT_CHARS_MAX),
        }),
    }
  }
}
