import type { Data, DataObject, TraceContext, UsageReport } from '@impresario/protocol'

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = DataObject

/** What a tool is told beside its input. */
export interface ToolCall {
  /** Aborts at the step's timeout, and when the run is cancelled. */
  readonly signal: AbortSignal
  /** The same for every attempt of one call, so that a receiver can tell a repetition. */
  readonly idempotencyKey: string
  /** The trace that the call belongs to, for those whom the tool asks. */
  readonly tracing?: TraceContext
  /** The run that calls it, or the part of one. */
  readonly runId: string
  /** Whose run it is. */
  readonly owner: string
  /** Says what the call has used, beside what it said before. Counts against the budgets of the run; durable when it resolves. */
  readonly meter: (report: UsageReport) => Promise<void>
  readonly log: (message: string, details?: DataObject) => void
}

/** Something that a step can use. */
export interface Tool {
  /** Such as `http.request`. */
  readonly name: string
  readonly description: string
  /** Where it runs: in this process, at a worker, as a child job, or at a connected MCP server. */
  readonly kind: 'built_in' | 'worker' | 'blueprint' | 'mcp'
  readonly input: JsonSchema
  readonly output: JsonSchema
  /** Used when the step names no timeout. */
  readonly timeoutSeconds: number
  /** Scopes that an agent needs to use it. */
  readonly scopes: readonly string[]
  /** Whether a second call with the same input does no harm. */
  readonly isIdempotent: boolean
  /** Whether it changes nothing. */
  readonly isReadOnly: boolean
  /** What it is given is kept as it is, so it is given no secrets. */
  readonly isKeeping?: boolean
}

/** A tool that runs in this process. */
export interface BuiltInTool extends Tool {
  readonly kind: 'built_in'
  run(input: DataObject, call: ToolCall): Promise<Data> | Data
}

/** A failure that will not go away by trying again. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly code: 'TRANSIENT_ERROR' | 'PERMANENT_ERROR' | 'INVALID_INPUT_ERROR'

  constructor(code: ToolError['code'], message: string) {
    super(message)
    this.code = code
  }
}
