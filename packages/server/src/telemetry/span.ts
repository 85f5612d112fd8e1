/** A piece of work that has ended, as it is sent to the collector. */
export interface Span {
  readonly name: string
  readonly kind: 'client' | 'internal' | 'producer' | 'server'
  readonly traceId: string
  readonly spanId: string
  readonly parentId?: string | undefined
  /** What other tracing systems keep with the trace. */
  readonly traceState?: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Readonly<Record<string, string | number>>
  /** What went wrong, if it did. */
  readonly error?: string | undefined
  /** Spans of the same trace that led to it, beside its parent. */
  readonly links?: readonly string[] | undefined
}
