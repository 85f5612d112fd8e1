import { LIMITS } from '@impresario/protocol'
import type { Data } from '@impresario/protocol'
import type { StepError } from './progress.ts'

/** A run keeps what its steps get and give some levels below its own beginning, and parts of parts keep it deeper. */
const LEVELS_MAX = LIMITS.jsonDepthMax - 16

/** What is wrong with data that a run could not keep; nothing if it could. The servers that tools ask may answer with anything. */
export function nestingProblem(what: 'input' | 'output', value: Data): StepError | undefined {
  if (!isDeeper(value, LEVELS_MAX)) return undefined
  return { code: 'LIMIT_EXCEEDED', message: `The ${what} of the step is nested deeper than ${LEVELS_MAX} levels.` }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}
