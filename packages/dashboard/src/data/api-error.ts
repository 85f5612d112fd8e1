import type { FieldProblem } from '@impresario/protocol'

/** A refusal, or a server that cannot be reached (status 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  /** All that is wrong with what was sent, where the server names several things. */
  readonly problems: readonly FieldProblem[]

  constructor(status: number, code: string, message: string, problems: readonly FieldProblem[] = []) {
    super(message)
    this.status = status
    this.code = code
    this.problems = problems
  }
}
