import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import { STRATEGIES } from './strategies.ts'
import { WorkerIndex } from './worker-index.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return newWorkerRecord({ id, skills: ['render'], ...said }, 0)
}

function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

function indexOf(...workers: readonly ReturnType<typeof aWorker>[]) {
  const index = new WorkerIndex()
  for (const worker of workers) index.put(worker)
  return index
}

const idsOf = (index: WorkerIndex, type = 'render') => index.available(type).map(({ worker }) => worker.id)

test('[D-01] only workers with the skill, an accepting status and a free slot are candidates', () => {
  const index = indexOf(
    aWorker('idle'),
    aWorker('busy', { status: 'busy' }),
    aWorker('full', { status: 'full' }),
    aWorker('leaving', { status: 'draining' }),
    aWorker('gone', { status: 'offline' }),
    aWorker('other', { skills: ['train'] }),
    aWorker('not-now', { skills: ['render', 'train'], availableSkills: ['train'] }),
  )
  expect(idsOf(index)).toEqual(['idle', 'busy'])
  expect(idsOf(index, 'train')).toEqual(['other', 'not-now'])
  expect(idsOf(index, 'unknown')).toEqual([])
  expect(index.size).toBe(7)
  expect([...index.all()].map(({ worker }) => worker.id)[6]).toBe('not-now')
  expect(index.get('idle')?.id).toBe('idle')
  expect(index.get('nobody')).toBeUndefined()
})

test('[D-01] a worker leaves the candidates with its last slot and comes back with the first that is free', () => {
  const index = indexOf(aWorker('w', { concurrencyMax: 2 }), aWorker('v'))
  index.addLoad('w', 2)
  expect(idsOf(index)).toEqual(['v'])
  index.addLoad('w', -1)
  expect(idsOf(index)).toEqual(['v', 'w'])
  index.put(aWorker('w', { concurrencyMax: 1 }))
  expect([index.load('w'), idsOf(index)]).toEqual([1, ['v']])
  index.setLoad('w', 0)
  index.addLoad('w', -5)
  expect([index.load('w'), idsOf(index)]).toEqual([0, ['v', 'w']])
  index.addLoad('nobody', 1)
  expect(index.load('nobody')).toBe(0)
})

test('[D-01] [E-01] a worker that does not say how many tasks it takes has room for what it asks for while it is idle', () => {
  const index = indexOf(aWorker('open', { isOpenEnded: true }), aWorker('said', { concurrencyMax: 1 }))
  index.addLoad('open', 1)
  expect(idsOf(index)).toEqual(['said'])
  index.setAsked('open', 2)
  expect(idsOf(index)).toEqual(['said', 'open'])
  index.setAsked('open', 2)
  index.setAsked('nobody', 2)
  index.put(aWorker('open', { isOpenEnded: true, status: 'busy' }))
  expect(idsOf(index)).toEqual(['said'])
  index.put(aWorker('open', { isOpenEnded: true }))
  expect(idsOf(index)).toEqual(['said', 'open'])
})

test('[D-01] a heartbeat that changes what a worker can do changes where it is found', () => {
  const index = indexOf(aWorker('w', { skills: ['render', 'train'] }))
  index.put(aWorker('w', { skills: ['render', 'train'], availableSkills: ['train'] }))
  expect([idsOf(index), idsOf(index, 'train')]).toEqual([[], ['w']])
  index.put(aWorker('w', { skills: ['render', 'train'], availableSkills: ['render'] }))
  expect([idsOf(index), idsOf(index, 'train')]).toEqual([['w'], []])
  index.put(aWorker('w', { skills: ['render', 'train'] }))
  index.put(aWorker('w', { skills: ['train'] }))
  expect([idsOf(index), idsOf(index, 'train')]).toEqual([[], ['w']])
  expect(index.remove('w')).toBe(true)
  expect(index.remove('w')).toBe(false)
  expect([index.size, idsOf(index, 'train')]).toEqual([0, []])
})

test('[D-01] [D-03] the choice looks at requirements, price and exclusions and leaves the load alone', () => {
  const index = indexOf(
    aWorker('small', { hotSkills: ['render'] }),
    aWorker('big', { cpuCores: 8, costPerSecond: 1 }),
    aWorker('dear', { cpuCores: 8, costPerSecond: 3 }),
  )
  const call = aCall({ requirements: { cpuCores: 4 } })
  expect(index.choose(aCall())?.worker.id).toBe('small')
  expect(index.choose(call)?.worker.id).toBe('big')
  expect(index.choose(call, ['big'])?.worker.id).toBe('dear')
  expect(index.choose({ ...call, maxCost: 2 }, ['big'])).toBeUndefined()
  expect(index.choose(aCall({ type: 'train' }))).toBeUndefined()
  expect(index.load('small')).toBe(0)
  for (const id of ['small', 'big', 'dear']) index.addLoad(id, 1)
  expect(index.choose(aCall())).toBeUndefined()
})

test('[D-03] round_robin goes on from the worker that had the last task of this type', () => {
  const index = indexOf(aWorker('a'), aWorker('b'))
  const pick = () => index.choose(aCall({ strategy: 'round_robin' }))?.worker.id
  expect(index.last('render')).toBeUndefined()
  expect([pick(), pick(), pick()]).toEqual(['a', 'b', 'a'])
  expect([index.last('render'), index.last('train')]).toEqual(['a', undefined])
})

test('[D-03] an unknown strategy is refused even when nobody could take the task', () => {
  const attempt = () => new WorkerIndex().choose(aCall({ strategy: 'x' }))
  expect(attempt).toThrow(expect.objectContaining({ code: 'INVALID_BLUEPRINT' }))
})

test('[D-04] workers that failed a task are avoided while another live worker could take it', () => {
  const index = indexOf(aWorker('failed'), aWorker('weak'), aWorker('other', { cpuCores: 4, status: 'full' }))
  const call = aCall({ requirements: { cpuCores: 2 } })
  expect(index.exclusion(call, [])).toEqual([])
  expect(index.exclusion(call, ['failed'])).toEqual(['failed'])
  index.put(aWorker('other', { cpuCores: 4, status: 'draining' }))
  expect(index.exclusion(call, ['failed'])).toEqual([])
  expect(index.exclusion(aCall({ type: 'train' }), ['failed'])).toEqual([])
})

const rotating = aCall({ strategy: 'round_robin' })

/** Instances that choose in rotation and hear of each other’s choices later, in the order of `steps`; each step is one of them. */
function rotationsOver(
  instances: number,
  workers: readonly string[],
  steps: readonly number[],
  delay: number,
): number[] {
  const onTheirWay: { readonly from: number; readonly id: string }[] = []
  const indexes = Array.from({ length: instances }, (_, from) => {
    const index = new WorkerIndex(STRATEGIES, (_type, id) => onTheirWay.push({ from, id }))
    for (const id of workers) index.put(aWorker(id))
    return index
  })
  const counts = new Map(workers.map((id) => [id, 0]))
  const hear = ({ from, id }: { readonly from: number; readonly id: string }): void => {
    for (const [number, index] of indexes.entries()) if (number !== from) index.rotatedElsewhere('render', id)
  }
  for (const from of steps) {
    const id = indexes[from]?.choose(rotating)?.worker.id ?? ''
    counts.set(id, (counts.get(id) ?? 0) + 1)
    while (onTheirWay.length > delay) for (const one of onTheirWay.splice(0, 1)) hear(one)
  }
  return [...counts.values()]
}

const spread = (counts: readonly number[]): number => Math.max(...counts) - Math.min(...counts)

test('[D-03] rotation goes over several instances as they do over one', () => {
  const alternating = Array.from({ length: 7 }, (_, step) => step % 2)
  expect(rotationsOver(2, ['a', 'b', 'c'], alternating, 0)).toEqual([3, 2, 2])
  expect(rotationsOver(3, ['a', 'b', 'c', 'd', 'e'], [0, 1, 2, 2, 1, 0, 0, 0, 2, 1], 0)).toEqual([2, 2, 2, 2, 2])
})

test('[D-03] rotation stays even however much one instance gives, and however late the others hear of it', () => {
  const steps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 })), { minLength: 1, maxLength: 300 })
  const names = fc.integer({ min: 1, max: 7 }).map((count) => Array.from({ length: count }, (_, at) => `w${at}`))
  fc.assert(
    fc.property(steps, names, fc.integer({ min: 0, max: 12 }), (order, workers, delay) => {
      // What nobody has heard of yet cannot be made up for.
      expect(spread(rotationsOver(3, workers, order, delay))).toBeLessThanOrEqual(1 + 2 * delay)
      expect(spread(rotationsOver(3, workers, order, 0))).toBeLessThanOrEqual(1)
    }),
  )
})

test('[D-03] choices made elsewhere matter only to strategies that rotate, and to workers that are here', () => {
  const index = indexOf(aWorker('a'), aWorker('b'), aWorker('c'))
  index.rotatedElsewhere('render', 'b')
  // The first to hear of begins behind it.
  expect(index.choose(rotating)?.worker.id).toBe('c')
  index.rotatedElsewhere('render', 'a')
  index.rotatedElsewhere('render', 'nobody')
  index.rotatedElsewhere('unknown', 'a')
  index.put(aWorker('d', { skills: ['train'] }))
  index.rotatedElsewhere('render', 'd')
  expect(index.choose(aCall())?.worker.id).toBe('a')
  index.rotatedElsewhere('render', 'a')
  index.remove('a')
  index.put(aWorker('a'))
  expect(['b', 'c', 'a']).toEqual([1, 2, 3].map(() => index.choose(rotating)?.worker.id))
})

test('[D-03] a worker that alone fits what another instance has does not lose its place in rotation for ever', () => {
  const index = indexOf(aWorker('a'), aWorker('b'))
  index.choose(rotating)
  for (let times = 0; times < 1_000; times += 1) index.rotatedElsewhere('render', 'b')
  const got = Array.from({ length: 40 }, () => index.choose(rotating)?.worker.id)
  expect(got.filter((id) => id === 'b').length).toBeGreaterThan(10)
})

test('[C-10] what the workers say of themselves is weighed, as they say it now', () => {
  const index = indexOf(aWorker('one'), aWorker('two'))
  const before = index.bytes
  index.put(aWorker('one', { skills: ['render', 'x'.repeat(1_000)] }))
  expect(index.bytes - before).toBeGreaterThan(2_000)
  index.put(aWorker('one'))
  expect(index.bytes).toBe(before)
  index.remove('one')
  index.remove('two')
  expect(index.bytes).toBe(0)
})
