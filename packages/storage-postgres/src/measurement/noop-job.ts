import type { Claimed, ClaimOptions, Item, Lease, Put, Queue, Storage } from '@impresario/core'

/** Durations of the storage calls, in milliseconds. */
export interface CallTimes {
  readonly claim: number[]
  readonly commit: number[]
}

/**
 * The storage calls of a job with one task that does nothing: it is created with its first turn, the turn is claimed
 * and creates a task, a worker claims the task from its lane, and its result ends the job.
 *
 * Every job makes its own claims, as many workers would. It does not matter that jobs claim each other's turns.
 */
export async function runNoopJob(storage: Storage, id: string, times: CallTimes): Promise<void> {
  const timed = async <T>(list: number[], call: T | Promise<T>): Promise<T> => {
    const begin = performance.now()
    const answer = await call
    list.push(performance.now() - begin)
    return answer
  }
  const commit = async (batch: Parameters<Storage['commit']>[0]): Promise<void> => {
    const outcome = await timed(times.commit, storage.commit(batch))
    if (outcome !== 'committed') throw new Error('A commit conflicted that nothing can conflict with')
  }
  const claimOne = async (queue: Queue, options: Omit<ClaimOptions, 'limit' | 'leaseMs'>): Promise<Lease> => {
    for (;;) {
      const { leases, nextInMs }: Claimed = await timed(
        times.claim,
        storage.claim(queue, { ...options, limit: 1, leaseMs: 60_000 }),
      )
      if (leases[0] !== undefined) return leases[0]
      await new Promise((resolve) => setTimeout(resolve, Math.min(nextInMs ?? 1, 5)))
    }
  }
  await commit({ put: [record(id, 1, 'active')], enqueue: [item('turns', id, 'client')] })
  const turn = await claimOne('turns', {})
  const lane = `worker ${turn.id.slice(-1)}`
  await commit({ settle: turn, put: [record(turn.id, 2, 'active')], enqueue: [item('tasks', turn.id, lane)] })
  const task = await claimOne('tasks', { lanes: [lane, 'any'], holder: lane })
  const read = await storage.read('delivery', task.id)
  if (read?.version !== 2) throw new Error('A read did not see what was committed before it')
  await commit({ settle: task, put: [{ ...record(task.id, 3, 'finished'), expiresMs: 60_000 }] })
}

/** About the length of the record of a job with one task. */
const FILLER = 'x'.repeat(600)

function record(id: string, version: number, status: string): Put {
  const value = { id, status, trail: FILLER, version }
  return { kind: 'delivery', id, version, value, facets: { owner: 'client', status, name: 'noop' } }
}

function item(queue: Queue, id: string, lane: string): Item {
  const payload = { job: id, input: { index: 1 } }
  return { queue, id, lane, priority: 0, delayMs: 0, payload, ...(queue === 'tasks' ? { settleMs: 600_000 } : {}) }
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? Number.NaN
}
