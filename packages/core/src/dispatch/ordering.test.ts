import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerRecord } from '../worker/worker.ts'
import { matches } from './match.ts'
import { rank } from './rank.ts'
import { CRITERIA, STRATEGIES, questionOf, strategyNamed, strategySet } from './strategies.ts'
import type { Strategies } from './strategies.ts'
import { WorkerIndex } from './worker-index.ts'

/** Repeatable chance. */
function chanceOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 4_294_967_296) * below)
  }
}

function aWorker(id: string, chance: (below: number) => number): WorkerRecord {
  return newWorkerRecord(
    {
      id,
      skills: ['render'],
      status: chance(20) === 0 ? 'draining' : 'idle',
      concurrencyMax: 1 + chance(4),
      costPerSecond: chance(40) / 10,
      reputation: chance(11) / 10,
      ramGb: chance(4) * 16,
      hotSkills: chance(10) === 0 ? ['render'] : [],
      hotModels: chance(10) === 0 ? ['sdxl'] : [],
    },
    0,
  )
}

function aCall(over: Partial<TaskCall>): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

/** The same choice, made by putting all in order each time. */
function slowly(
  index: WorkerIndex,
  call: TaskCall,
  exclude: readonly string[],
  known: Strategies = STRATEGIES,
): string | undefined {
  const fitting = index
    .available(call.type)
    .filter(({ worker }) => matches(call, worker) && !exclude.includes(worker.id))
  const [first] = rank(strategyNamed(call.strategy, known), fitting, questionOf(call, index.last(call.type)))
  return first?.candidate.worker.id
}

const CALLS: readonly Partial<TaskCall>[] = [
  { strategy: 'default' },
  { strategy: 'default', params: { model: 'sdxl' } },
  { strategy: 'round_robin' },
  { strategy: 'least_connections' },
  { strategy: 'cheapest', requirements: { ramGb: 48 } },
  { strategy: 'best_value', maxCost: 2 },
]

test('[D-01] a kept order always gives whom a look at everybody would give', () => {
  const chance = chanceOf(7)
  const index = new WorkerIndex()
  const ids = Array.from({ length: 700 }, (_, at) => `w${at}`)
  for (const id of ids) index.put(aWorker(id, chance))
  for (let step = 0; step < 4_000; step += 1) {
    const id = ids[chance(ids.length)] ?? ''
    const kind = chance(10)
    if (kind === 0) index.put(aWorker(id, chance))
    else if (kind === 1) index.remove(id)
    else if (kind < 4) index.addLoad(id, -1)
    const call = aCall(CALLS[chance(CALLS.length)] ?? {})
    const exclude = chance(4) === 0 ? ids.slice(0, 3) : []
    const expected = slowly(index, call, exclude)
    const chosen = index.choose(call, exclude)?.worker.id
    expect(chosen).toBe(expected)
    if (chosen !== undefined) index.addLoad(chosen, 1)
  }
})

test('[D-01] rotation goes on also when everybody after the last one is excluded or gone', () => {
  const index = new WorkerIndex()
  for (let at = 0; at < 600; at += 1) index.put(newWorkerRecord({ id: `w${1000 + at}`, skills: ['render'] }, 0))
  const call = aCall({ strategy: 'round_robin' })
  for (let asked = 0; asked < 40; asked += 1) index.choose(call)
  expect(index.last('render')).toBe('w1039')
  for (let at = 40; at < 600; at += 1) index.choose(call)
  expect(index.choose(call)?.worker.id).toBe('w1000')
  for (let at = 1; at < 599; at += 1) index.choose(call)
  expect(index.choose(call, ['w1599'])?.worker.id).toBe('w1000')
  const everybody = Array.from({ length: 600 }, (_, at) => `w${1000 + at}`)
  expect(index.choose(call, everybody)).toBeUndefined()
})

test('[D-01] more kinds of tasks than orders are kept for are chosen for all the same', () => {
  const index = new WorkerIndex()
  const chance = chanceOf(3)
  for (let at = 0; at < 300; at += 1) index.put(aWorker(`w${at}`, chance))
  for (let round = 0; round < 40; round += 1) {
    for (let kind = 0; kind < 10; kind += 1) {
      const call = aCall({ strategy: 'cheapest', maxCost: 1 + kind / 10 })
      expect(index.choose(call)?.worker.id).toBe(slowly(index, call, []))
    }
  }
  for (let kind = 0; kind < 1_100; kind += 1) {
    const call = aCall({ strategy: 'cheapest', maxCost: 10 + kind })
    expect(index.choose(call)).toBeDefined()
  }
})

test('[D-01, D-03] a strategy whose criteria look at more than the worker is asked anew each time', () => {
  let favourite = 'w7'
  const known = strategySet([
    {
      name: 'favourite',
      criteria: [
        {
          name: 'favourite',
          measure: ({ worker }) => (worker.id === favourite ? 0 : 1),
          because: () => 'is the favourite',
        },
        CRITERIA.cost,
      ],
    },
  ])
  const index = new WorkerIndex(known)
  for (let at = 0; at < 300; at += 1) index.put(newWorkerRecord({ id: `w${at}`, skills: ['render'] }, 0))
  const call = aCall({ strategy: 'favourite' })
  for (let asked = 0; asked < 40; asked += 1) expect(index.choose(call)?.worker.id).toBe('w7')
  favourite = 'w8'
  expect(index.choose(call)?.worker.id).toBe('w8')
  expect(slowly(index, call, [], known)).toBe('w8')
})
