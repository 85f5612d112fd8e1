import type { Delivery } from '@impresario/engine'
import type { TraceContext } from '@impresario/protocol'
import type { Span } from './span.ts'
import type { SpansOptions } from './spans-options.ts'
import { contextOf, traceOf, trySpanId } from './trace-identity.ts'
import type { Trace } from './trace-identity.ts'

export interface CallStart {
  readonly name: string
  readonly kind: Span['kind']
  /** The trace that the caller sent along; without it a new one begins here. */
  readonly caller?: TraceContext | undefined
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
  /** What is passed on to those who work for it. */
  readonly context: TraceContext
  /** Runs code so that libraries in it find the span as their parent. */
  run<T>(code: () => T): T
  /** To be called once. */
  end(end?: CallEnd): void
}

const TEXT_CHARS_MAX = 1_000

/** Spans of what is asked of the server and of what its tools ask of others: HTTP requests, messages of assistants, calls of tools. */
export class CallSpans {
  readonly #options: SpansOptions

  constructor(options: SpansOptions) {
    this.#options = options
  }

  get isOn(): boolean {
    return this.#options.isOn()
  }

  /** Nothing where the call is not recorded: then the context of its caller is passed on as it is. */
  open(start: CallStart): CallSpan | undefined {
    const { sampling, newSpanId } = this.#options
    if (!this.#options.isOn()) return undefined
    const trace = traceOf({ id: `${newSpanId()}${newSpanId()}`, tracing: { ...start.caller } }, sampling)
    return trace.isSampled ? this.#opened(trace, trace.callerId, start) : undefined
  }

  /** The run of a tool in this process. The try of its task is its parent. */
  openTool({ jobId, idempotencyKey, attempt, tracing }: Delivery, start: CallStart): CallSpan | undefined {
    if (!this.#options.isOn()) return undefined
    const trace = traceOf({ id: jobId, tracing }, this.#options.sampling)
    return trace.isSampled ? this.#opened(trace, trySpanId(idempotencyKey, attempt), start) : undefined
  }

  #opened(trace: Trace, parentId: string | undefined, { name, kind, attributes, sinceMs = 0 }: CallStart): CallSpan {
    const { clock, newSpanId, within, add } = this.#options
    const { traceId, traceState } = trace
    const spanId = newSpanId()
    const startedAt = clock.now() - sinceMs
    return {
      context: contextOf(trace, spanId),
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
