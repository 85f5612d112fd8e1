import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import { choose, rank } from './rank.ts'
import { explain } from './explain.ts'
import { CRITERIA, STRATEGIES, isStrategyName, questionOf, strategyNamed, strategySet } from './strategies.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return newWorkerRecord({ id, skills: ['render'], ...said }, 0)
}

function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

/** The ids in the order of the strategy. Loads are given by id; who is not named has none. */
function order(
  call: Partial<TaskCall>,
  workers: readonly ReturnType<typeof aWorker>[],
  { loads = {}, last }: { readonly loads?: Readonly<Record<string, number>>; readonly last?: string } = {},
) {
  const candidates = workers.map((worker) => ({ worker, load: loads[worker.id] ?? 0 }))
  const asked = aCall(call)
  return rank(strategyNamed(asked.strategy), candidates, questionOf(asked, last)).map((one) => one.candidate.worker.id)
}

test('[D-03] default: warm, then cheap, then trusted, then little to do, then by id', () => {
  const workers = [
    aWorker('z', { costPerSecond: 1 }),
    aWorker('y', { costPerSecond: 1 }),
    aWorker('loaded', { costPerSecond: 1 }),
    aWorker('doubtful', { costPerSecond: 1, reputation: 0.5 }),
    aWorker('dear', { costPerSecond: 9 }),
    aWorker('priceless'),
    aWorker('warm', { costPerSecond: 9, hotSkills: ['render'] }),
    aWorker('warm-model', { costPerSecond: 10, hotModels: ['sdxl'] }),
  ]
  const expected = ['warm', 'warm-model', 'y', 'z', 'loaded', 'doubtful', 'dear', 'priceless']
  const loads = { loaded: 1 }
  expect(order({ params: { model_name: 'sdxl' } }, workers, { loads })).toEqual(expected)
  expect(order({ params: { model: 'sdxl' } }, workers, { loads })).toEqual(expected)
  expect(order({ params: { model: 7 } }, workers, { loads }).slice(0, 2)).toEqual(['warm', 'y'])
})

test('[D-03] round_robin: every worker in rotation, also when workers come and go', () => {
  const strategy = strategyNamed('round_robin')
  let last: string | undefined
  const pick = (ids: readonly string[]) => {
    const candidates = ids.map((id) => ({ worker: aWorker(id), load: 0 }))
    last = choose(strategy, candidates, questionOf(aCall(), last))?.worker.id
    return last
  }
  const all = ['c', 'a', 'b']
  expect([pick(all), pick(all), pick(all), pick(all)]).toEqual(['a', 'b', 'c', 'a'])
  expect([pick(['a', 'c']), pick(['a', 'c', 'd']), pick(all)]).toEqual(['c', 'd', 'a'])
  expect(pick([])).toBeUndefined()
})

test('[D-03] least_connections: whoever has the fewest tasks', () => {
  const workers = [aWorker('a', { costPerSecond: 0 }), aWorker('b'), aWorker('c')]
  expect(order({ strategy: 'least_connections' }, workers, { loads: { a: 3, c: 1 } })).toEqual(['b', 'c', 'a'])
})

test('[D-03] cheapest: the price for the skill, then the general price, then those without one', () => {
  const workers = [
    aWorker('none', { hotSkills: ['render'] }),
    aWorker('general', { costPerSecond: 2 }),
    aWorker('special', { costPerSecond: 9, costPerSkill: { render: 1 } }),
  ]
  expect(order({ strategy: 'cheapest' }, workers)).toEqual(['special', 'general', 'none'])
})

test('[D-03] best_value: cost for reputation, and nobody without reputation unless alone', () => {
  const workers = [
    aWorker('gone', { costPerSecond: 0, reputation: 0 }),
    aWorker('priceless', { reputation: 0.1 }),
    aWorker('cheap', { costPerSecond: 1, reputation: 0.25 }),
    aWorker('good', { costPerSecond: 2, reputation: 1 }),
  ]
  expect(order({ strategy: 'best_value' }, workers)).toEqual(['good', 'cheap', 'priceless', 'gone'])
  expect(order({ strategy: 'best_value' }, workers.slice(0, 1))).toEqual(['gone'])
})

test('[D-03] among equals the one that registered first goes before a newcomer; only rotation goes by id', () => {
  const workers = [{ ...aWorker('a-newcomer'), registeredAt: 9 }, aWorker('long-here')]
  for (const strategy of ['default', 'least_connections', 'cheapest', 'best_value']) {
    expect(order({ strategy }, workers)).toEqual(['long-here', 'a-newcomer'])
  }
  expect(order({ strategy: 'round_robin' }, workers)).toEqual(['a-newcomer', 'long-here'])
  const candidates = workers.map((worker) => ({ worker, load: 0 }))
  expect(explain(aCall(), candidates).summary).toContain("it has been registered for longer than 'a-newcomer'")
})

test('[D-03] [J-14] workers that are equal in everything are told apart by their ids', () => {
  const workers = ['c', 'a', 'b'].map((id) => aWorker(id))
  for (const strategy of STRATEGIES.keys()) expect(order({ strategy }, workers)).toEqual(['a', 'b', 'c'])
})

test('[D-03] a strategy that nobody knows is refused with the names of those that exist', () => {
  expect(isStrategyName('best_value')).toBe(true)
  expect(isStrategyName('toString')).toBe(false)
  const attempt = () => strategyNamed('fastest')
  expect(attempt).toThrow(expect.objectContaining({ code: 'INVALID_BLUEPRINT' }))
  expect(attempt).toThrow("There is no dispatch strategy 'fastest'. Known are: default, round_robin,")
})

test('[D-03] a strategy of one’s own is a list of criteria, and what it cannot measure comes last', () => {
  const nearest = {
    name: 'zone',
    measure: ({ worker }: { readonly worker: ReturnType<typeof aWorker> }) => Number(worker.properties['zone']),
    because: () => 'is nearer',
  }
  const known = strategySet([{ name: 'nearest', criteria: [nearest, CRITERIA.load] }])
  const workers = [aWorker('a'), aWorker('b', { properties: { zone: 2 } }), aWorker('c', { properties: { zone: 1 } })]
  const candidates = workers.map((worker) => ({ worker, load: 0 }))
  const ranked = rank(strategyNamed('nearest', known), candidates, questionOf(aCall(), undefined))
  expect(ranked.map(({ candidate }) => candidate.worker.id)).toEqual(['c', 'b', 'a'])
})
