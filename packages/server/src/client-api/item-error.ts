import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { ItemError } from '@impresario/protocol'
import { problemBody } from '../http/problem.ts'

/** What is said of one of many that was refused. */
export function itemError(error: unknown): ItemError {
  const refusal = isImpresarioError(error) ? error : new ImpresarioError('INTERNAL', 'Internal error')
  const { error: text, code } = problemBody(refusal)
  return { error: text, code }
}
