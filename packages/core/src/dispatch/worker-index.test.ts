import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { createWorker } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import { WorkerIndex } from './worker-index.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return createWorker({ id, skills: ['render'], ...said }, 0)
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
