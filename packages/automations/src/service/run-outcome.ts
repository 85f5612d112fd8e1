import { storedCopy } from '@impresario/core'
import type { BranchOutcome, Job } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Data } from '@impresario/protocol'
import type { ItemResult, Outcome, Pending, StepError } from '../run/progress.ts'

/** Failures that a repetition would only repeat. */
const FINAL: ReadonlySet<string> = new Set([
  'PERMANENT_ERROR',
  'INVALID_INPUT_ERROR',
  'INVALID_EXPRESSION',
  'REJECTED',
  'APPROVAL_EXPIRED',
  'JUMP_REFUSED',
  'STEP_GONE',
  'INPUT_REFUSED',
  'LIMIT_EXCEEDED',
  'TOOL_GONE',
  'SCOPE_MISSING',
])

export function isFinal({ code }: StepError): boolean {
  return FINAL.has(code)
}

/** What came of what the run was waiting for, as its job has it. */
export function outcomeOf(job: Job, pending: Pending, isSleeping: boolean): Outcome {
  switch (pending.for) {
    case 'backoff':
      return { kind: 'elapsed' }
    case 'decision':
      return decisionIn(job)
    case 'items':
      return { kind: 'items', results: branchesOf(job).map(itemResult) }
    case 'result': {
      if (isSleeping) return { kind: 'result', output: { slept: true } }
      const [branch] = branchesOf(job)
      return branch === undefined ? lost() : resultIn(branch)
    }
  }
}

function branchesOf(job: Job): readonly BranchOutcome[] {
  return Object.values(job.aggregationResults ?? {})
}

function lost(): Outcome {
  const message = 'The step ended without a result. Run the automation again.'
  return { kind: 'error', error: { code: 'TRANSIENT_ERROR', message }, isFinal: false }
}

function resultIn(branch: BranchOutcome): Outcome {
  const error = errorIn(branch)
  if (error !== undefined) return { kind: 'error', error, isFinal: isFinal(error) }
  return { kind: 'result', output: outputIn(branch) }
}

function errorIn({ status, error }: BranchOutcome): StepError | undefined {
  if (error !== undefined) return { code: error.code, message: error.message }
  if (status !== 'failure' && status !== 'timeout' && status !== 'cancelled') return undefined
  return { code: status === 'timeout' ? 'TIMEOUT_ERROR' : 'TRANSIENT_ERROR', message: `It ended with "${status}".` }
}

/** Results of tools are wrapped, because the result of a task is an object and that of a tool may be anything. */
function outputIn({ data }: BranchOutcome): Data {
  if (!isJsonObject(data)) return data === undefined ? null : storedCopy(data)
  const seen = storedCopy(data)
  const keys = Object.keys(seen)
  return keys.length === 1 && keys[0] === TOOL_OUTPUT ? (seen[TOOL_OUTPUT] ?? null) : seen
}

/** Where the result of a task of ours has the output of the tool. */
export const TOOL_OUTPUT = 'tool_output'

/** Boundary: a part ends with what `partResult` made. */
function itemResult(branch: BranchOutcome): ItemResult {
  const error = errorIn(branch)
  if (error !== undefined) return { status: 'failed', output: null, error }
  const { data } = branch
  if (isJsonObject(data) && (data['status'] === 'succeeded' || data['status'] === 'failed')) {
    return storedCopy(data) as unknown as ItemResult
  }
  return { status: 'failed', output: null, error: { code: 'TRANSIENT_ERROR', message: 'The part gave no result.' } }
}

function decisionIn(job: Job): Outcome {
  const made = job.stateHistory['decision']
  if (job.failure?.code === 'APPROVAL_EXPIRED' || !isJsonObject(made)) return { kind: 'expired' }
  const { decision, comment, by } = storedCopy(made)
  return {
    kind: 'decision',
    decision: textOr(decision, ''),
    comment: typeof comment === 'string' ? comment : undefined,
    by: typeof by === 'string' ? by : undefined,
  }
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}
