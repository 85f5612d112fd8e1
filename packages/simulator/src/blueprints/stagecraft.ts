import type { Job } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Part } from './stage.ts'

/** Short waits, so that a world of two minutes sees many of them. */
export const QUICK = { backoffMs: 200, backoffMsMax: 2_000, resultTimeout: '40s', retryTimeouts: true } as const

interface Counted {
  readonly stateHistory: { turns?: number }
}

/** Counts the handler runs that were accepted: each leaves its count in the history with its choice. */
export function count({ stateHistory }: Counted): void {
  stateHistory.turns = (stateHistory.turns ?? 0) + 1
}

export function task(type: string, part: Part = {}): { readonly type: string; readonly params: Part } {
  return { type, params: part }
}

/** A job that a person sent back has more turns than its path has states. */
export function tookTurns(turns: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || job.loopFrom !== undefined) return undefined
    const taken = isJsonObject(job.result) ? job.result['turns'] : undefined
    return taken === turns ? undefined : `${job.id} took ${JSON.stringify(taken)} turns instead of ${turns}`
  }
}

/** The aggregator must see each branch once, and the sum of what they gave if all succeeded (where it is known). */
export function gathered(branches: number, sum?: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || !isJsonObject(job.result)) return undefined
    const { seen, succeeded, total } = job.result
    if (seen !== branches) return `${job.id} gathered ${JSON.stringify(seen)} branches instead of ${branches}`
    if (sum !== undefined && succeeded === branches && total !== sum) {
      return `${job.id} gathered ${JSON.stringify(total)} instead of ${sum}`
    }
    return undefined
  }
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

/** Messages that begin like this are left alone by the simulated person. */
export const IGNORED_REQUEST = 'Nobody will answer'
