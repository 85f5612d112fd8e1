import type { WorkerBody } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { priceOf, readWorker, reputationsOf } from './worker.ts'

const worker = (prices: object) =>
  readWorker({
    worker_id: 'w',
    worker_type: 't',
    status: 'idle',
    supported_skills: [],
    ...prices,
  } as unknown as WorkerBody)

test('[M-02] a second of a task costs what the worker asks for its kind, or else for any', () => {
  const dear = worker({ cost_per_second: 0.02, cost_per_skill: { draw: 0.5, free: 0 } })
  expect(['draw', 'free', 'other', 'toString'].map((type) => priceOf(dear, type))).toEqual([0.5, 0, 0.02, 0.02])
  expect(priceOf(worker({ cost_per_second: null }), 'draw')).toBeUndefined()
})

test('[M-02] the reputation of a worker over time: the oldest first, each change once, what says nothing left out', () => {
  const newestFirst = [{ reputation: 0.9 }, {}, { reputation: 0.95 }, null, { reputation: 1 }, { reputation: 1 }, 'odd']
  expect(reputationsOf(newestFirst)).toEqual([1, 0.95, 0.9])
})
