import type { Clock } from '@impresario/core'
import type { Span } from './span.ts'
import type { Sampling, Trace } from './trace-identity.ts'
import type { TraceRate } from './trace-rate.ts'

/** What is needed to record spans, of jobs and of calls. */
export interface SpansOptions {
  readonly clock: Clock
  readonly sampling: Sampling
  /** How many traces may begin here. Without it, any number. */
  readonly rate?: TraceRate | undefined
  /** Without it nothing is recorded and nothing is changed. */
  readonly isOn: () => boolean
  readonly add: (span: Span) => void
  /** A new id, for what happens once and is known by no name. */
  readonly newSpanId: () => string
  /** Whether the program has set up OpenTelemetry, so that there may be such libraries. */
  readonly hasLibraries: () => boolean
  /** Runs code so that libraries in it find the span as their parent. */
  readonly within: <T>(trace: Trace, spanId: string, code: () => T) => T
}
