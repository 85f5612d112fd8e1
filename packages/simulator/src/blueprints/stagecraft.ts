import type { Job } from '@impresario/core'
import { contract, isJsonObject } from '@impresario/protocol'
import type { Schema } from '@impresario/protocol'
import type { Part } from './stage.ts'

/** Short waits, so that a world of two minutes sees many of them. */
export const QUICK = { backoffMs: 200, backoffMsMax: 2_000, resultTimeout: '40s', retryTimeouts: true } as const

interface Counted {
  readonly stateHistory: { turns?: number }
}

/** Counts the accepted handler runs: each stores its count in the history with its choice. */
export function count({ stateHistory }: Counted): void {
  stateHistory.turns = (stateHistory.turns ?? 0) + 1
}

export function turnsOf({ stateHistory }: Counted): number {
  return stateHistory.turns ?? 0
}

/** The contract of simulated workers. Its results are distinguished by their value, which the params contain. */
export const trades = contract('', {
  alpha: { input: schemaOf<Part>(), output: schemaOf<{ readonly value: number }>() },
  beta: { input: schemaOf<Part>(), output: schemaOf<{ readonly value: number }>() },
})

/** Only for the compiler: simulated workers validate nothing. */
function schemaOf<T>(): Schema<T> {
  return { '~standard': { version: 1, vendor: 'simulator', validate: (value) => ({ value: value as T }) } }
}

export function task(type: string, part: Part = {}): { readonly type: string; readonly params: Part } {
  return { type, params: part }
}

/** A job that a person retried has more turns than its path has states. */
export function tookTurns(turns: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || job.loopFrom !== undefined) return undefined
    const taken = isJsonObject(job.result) ? job.result['turns'] : undefined
    return taken === turns ? undefined : `${job.id} took ${JSON.stringify(taken)} turns instead of ${turns}`
  }
}

/** The aggregator must see each branch once, and the sum of their results if all succeeded (where it is known). */
export function gathered(branches: number, sum?: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || !isJsonObject(job.result)) return undefined
    const { seen, succeeded, total, swapped } = job.result
    if (swapped === true) return `${job.id} found the result of one branch under the name of another`
    if (seen !== branches) return `${job.id} gathered ${JSON.stringify(seen)} branches instead of ${branches}`
    if (sum !== undefined && succeeded === branches && total !== sum) {
      return `${job.id} gathered ${JSON.stringify(total)} instead of ${sum}`
    }
    return undefined
  }
}

/** [B-14] Whether a branch that succeeded has a value other than the one it was sent with. */
export function areSwapped(
  outcomes: readonly { readonly status: string; readonly data?: unknown }[],
  values: readonly number[],
): boolean {
  return outcomes.some(({ status, data }, index) => status === 'success' && valueOf(data) !== values[index])
}

/** [B-14] The results of two tasks that both return a `value` are there at the end, and are not mixed up. */
export function keptApart(job: Job): string | undefined {
  if (job.status !== 'finished' || !isJsonObject(job.result)) return undefined
  const { first, second } = job.result
  if (first === 1 && second === 2) return undefined
  return `${job.id} has the results ${JSON.stringify(first)} and ${JSON.stringify(second)} instead of 1 and 2`
}

type Results = Readonly<Record<string, { readonly status: string; readonly data?: unknown }>>

export function gather(results: Results): { seen: number; succeeded: number; total: number } {
  const all = Object.values(results)
  const succeeded = all.filter(({ status }) => status === 'success')
  const total = succeeded.reduce((sum, { data }) => sum + valueOf(data), 0)
  return { seen: all.length, succeeded: succeeded.length, total }
}

function valueOf(data: unknown): number {
  if (!isJsonObject(data)) return 0
  return Number(data['value'] ?? data['total'] ?? 0)
}

interface Receiving {
  readonly event: { readonly id: string } | undefined
  readonly stateHistory: { got?: readonly string[] }
}

/** The key under which the client asked for the job. */
export function keyIn(initialData: Readonly<Record<string, unknown>>): string {
  const { key } = initialData
  return typeof key === 'string' ? key : 'none'
}

/** Writes down which event led here. */
export function got({ event, stateHistory }: Receiving): void {
  stateHistory.got = [...(stateHistory.got ?? []), event?.id ?? 'none']
}

/** Every event once, and those by name in the order in which they were sent. */
export function gotLetters(job: Job): string | undefined {
  if (job.status !== 'finished' || job.loopFrom !== undefined || !isJsonObject(job.result)) return undefined
  const key = keyIn(job.initialData)
  const wanted = [`${key} 1`, `${key} 2`, `${key} 3`].join(', ')
  const had = Array.isArray(job.result['got']) ? job.result['got'].join(', ') : 'nothing'
  return had === wanted ? undefined : `${job.id} got ${had} instead of ${wanted}`
}

/** The simulated person ignores messages that begin with this. */
export const IGNORED_REQUEST = 'Nobody will answer'
