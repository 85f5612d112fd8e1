import { expect, test } from 'vitest'
import { newWorkerRecord } from '../worker/registration.ts'
import { explain } from './explain.ts'
import { CRITERIA, STRATEGIES } from './strategies.ts'
import { strategiesWith } from './trust.ts'
import { WorkerIndex } from './worker-index.ts'

function call(strategy: string): Parameters<WorkerIndex['choose']>[0] {
  return { kind: 'task', type: 'work', params: {}, priority: 0, strategy }
}

function indexOf(reputationMin: number): WorkerIndex {
  const index = new WorkerIndex(strategiesWith([], reputationMin))
  index.put(newWorkerRecord({ id: 'shaky', skills: ['work'], costPerSecond: 1, reputation: 0.2 }, 0))
  index.put(newWorkerRecord({ id: 'steady', skills: ['work'], costPerSecond: 9, reputation: 0.9 }, 0))
  return index
}

test('[F-02] below the least reputation a worker gets what nobody better has room for, and nothing else', () => {
  for (const name of STRATEGIES.keys()) {
    const index = indexOf(0.3)
    expect([name, index.choose(call(name))?.worker.id]).toEqual([name, 'steady'])
    index.addLoad('steady', 1)
    expect([name, index.choose(call(name))?.worker.id]).toEqual([name, 'shaky'])
  }
  expect(indexOf(0).choose(call('cheapest'))?.worker.id).toBe('shaky')
})

test('[F-02] [D-05] an explanation says who was passed over for its reputation', () => {
  const { summary } = explain(call('cheapest'), indexOf(0.3).all(), { strategies: strategiesWith([], 0.3) })
  expect(summary).toContain("it has a reputation of at least 0.3 and 'shaky' has 0.2.")
})

test('[D-03] a program adds strategies of its own', () => {
  const own = strategiesWith([{ name: 'idlest', criteria: [CRITERIA.load] }], 0)
  expect([...own.keys()]).toEqual([...STRATEGIES.keys(), 'idlest'])
})

test('[D-03] a strategy whose name is taken, or that decides nothing, is refused', () => {
  const criteria = [CRITERIA.load]
  expect(() => strategiesWith([{ name: 'cheapest', criteria }], 0)).toThrow("'cheapest' is there already")
  const twice = { name: 'mine', criteria }
  expect(() => strategiesWith([twice, twice], 0)).toThrow("'mine' is there already")
  expect(() => strategiesWith([{ name: 'mine', criteria: [] }], 0)).toThrow("'mine' has no criteria")
})
