import type * as Api from '@opentelemetry/api'
import type { RunningTask } from './running.ts'

/** Under this name OpenTelemetry keeps what a program has set up; without it there is nothing that would take spans. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Makes a span of each run of a handler. */
export interface TaskTracing {
  run<T>(task: RunningTask, code: () => T | Promise<T>): T | Promise<T>
}

/**
 * Spans by the OpenTelemetry that the program has set up before. Nothing where it has not: then nothing is loaded, and runs
 * cost nothing more. The package is the program's own, and an optional one.
 */
export async function loadTaskTracing(): Promise<TaskTracing | undefined> {
  if (!Object.hasOwn(globalThis, REGISTERED)) return undefined
  try {
    return new ApiTracing(await import('@opentelemetry/api'))
  } catch {
    return undefined
  }
}

class ApiTracing implements TaskTracing {
  readonly #api: typeof Api
  readonly #tracer: Api.Tracer

  constructor(api: typeof Api) {
    this.#api = api
    this.#tracer = api.trace.getTracer('impresario-worker')
  }

  /** The try of the task is the parent, and spans that the handler makes are children of this one. */
  run<T>(task: RunningTask, code: () => T | Promise<T>): T | Promise<T> {
    const { context, trace, SpanKind, ROOT_CONTEXT } = this.#api
    const remote = remoteOf(this.#api, task.tracingContext)
    const parent = remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
    const span = this.#tracer.startSpan(
      `Worker:${task.type}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: {
          'job.id': task.jobId,
          'task.id': task.idempotencyKey,
          'task.type': task.type,
          'task.attempt': task.attempt,
          'worker.id': task.origin.workerId,
        },
      },
      parent,
    )
    return context.with(trace.setSpan(parent, span), () => this.#watched(span, code))
  }

  #watched<T>(span: Api.Span, code: () => T | Promise<T>): T | Promise<T> {
    const failed = (error: unknown): never => {
      span.recordException(error instanceof Error ? error : String(error))
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: error instanceof Error ? error.message : '' })
      span.end()
      throw error
    }
    const done = (value: T): T => {
      span.end()
      return value
    }
    try {
      const value = code()
      return value instanceof Promise ? value.then(done, failed) : done(value)
    } catch (error) {
      return failed(error)
    }
  }
}

/** The server has checked its form. */
function remoteOf(api: typeof Api, given: Readonly<Record<string, string>>): Api.SpanContext | undefined {
  const [, traceId, spanId, flags] = given['traceparent']?.split('-') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  const { tracestate } = given
  return tracestate === undefined ? remote : { ...remote, traceState: api.createTraceState(tracestate) }
}
