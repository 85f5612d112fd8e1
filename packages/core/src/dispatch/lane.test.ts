import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import {
  DEMAND_CHARS_MAX,
  LANE_CHARS_MAX,
  LaneReader,
  laneMatchesWorker,
  parseLane,
  requirementLane,
  workerLane,
  workerOfLane,
} from './lane.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return newWorkerRecord({ id, skills: ['render'], ...said }, 0)
}

function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

test('[D-04] the lane of a task says what its worker needs', () => {
  const requirements = { models: ['b', 'a', 'b'], gpu: { vramGb: 8 }, software: {}, properties: { zone: 'x' } }
  const lane = requirementLane(aCall({ requirements, maxCost: 2 }), ['w2', 'w1'])
  expect(lane).toBe(
    'any:{"type":"render","maxCost":2,"requirements":{"gpu":{"vramGb":8},"models":["a","b"],"properties":{"zone":"x"}},"exclude":["w1","w2"]}',
  )
  expect(parseLane(lane)).toEqual({
    type: 'render',
    maxCost: 2,
    requirements: { gpu: { vramGb: 8 }, models: ['a', 'b'], properties: { zone: 'x' } },
    exclude: ['w1', 'w2'],
  })
  expect(requirementLane(aCall())).toBe('any:{"type":"render"}')
})

test('[D-04] equal demands share a lane, however they are written', () => {
  const lane = (requirements: NonNullable<Parameters<typeof aCall>[0]>['requirements']) =>
    requirementLane(aCall(requirements === undefined ? {} : { requirements }))
  expect(lane({ ramGb: 1, cpuCores: 2, models: ['x', 'y'] })).toBe(lane({ models: ['y', 'x'], cpuCores: 2, ramGb: 1 }))
  expect(lane({ models: [], software: {}, properties: {} })).toBe(lane(undefined))
  expect(lane({ gpu: {} })).not.toBe(lane(undefined))
  expect(lane({ properties: { a: 1, b: 2 } })).toBe(lane({ properties: { b: 2, a: 1 } }))
})

test('[D-04] a demand without a strategy shares the lane of the default one', () => {
  const { strategy: _, ...without } = aCall()
  expect(requirementLane(without)).toBe(requirementLane(aCall()))
  expect(requirementLane(aCall({ strategy: 'cheapest' }))).toBe('any:{"type":"render","strategy":"cheapest"}')
})

test('[D-04] a demand that is too long for a lane is refused, and so is one that JSON cannot hold', () => {
  const models = Array.from({ length: 60 }, (_, index) => `model-${index}`)
  const tooLong = () => requirementLane(aCall({ requirements: { models } }))
  expect(tooLong).toThrow(expect.objectContaining({ code: 'LIMIT_EXCEEDED' }))
  const notFinite = () => requirementLane(aCall({ requirements: { cpuCores: Infinity } }))
  expect(notFinite).toThrow(expect.objectContaining({ code: 'INVALID_BLUEPRINT' }))
})

test('[D-04] exclusions never make a lane too long: the newest failures count', () => {
  const failed = Array.from({ length: 20 }, (_, index) => `w${index}-`.padEnd(200, 'x'))
  const lane = requirementLane(aCall({ type: 't'.repeat(400) }), failed)
  expect(lane.length).toBeLessThanOrEqual(LANE_CHARS_MAX)
  expect(parseLane(lane)?.exclude).toEqual(failed.slice(-2))
  expect(parseLane(requirementLane(aCall(), ['x'.repeat(2_000)]))?.exclude).toEqual([])
  expect(DEMAND_CHARS_MAX).toBeLessThan(LANE_CHARS_MAX)
})

test('[D-04] a lane that is no waiting lane is not read as one', () => {
  for (const lane of ['', 'worker:any:{}', 'any:', 'any:[]', 'any:{}', 'any:{"type":1}', workerLane('w')]) {
    expect(parseLane(lane)).toBeUndefined()
    expect(laneMatchesWorker(lane, aWorker('w'))).toBe(false)
  }
  expect(workerOfLane(workerLane('w'))).toBe('w')
  expect(workerOfLane(requirementLane(aCall()))).toBeUndefined()
})

test('[D-04] a worker may take from a lane when it fits, has the skill ready, stays and is not excluded', () => {
  const lane = requirementLane(aCall({ requirements: { cpuCores: 2 } }), ['failed'])
  expect(laneMatchesWorker(lane, aWorker('w', { cpuCores: 2 }))).toBe(true)
  expect(laneMatchesWorker(lane, aWorker('w', { cpuCores: 2, status: 'full' }))).toBe(true)
  expect(laneMatchesWorker(lane, aWorker('failed', { cpuCores: 2 }))).toBe(false)
  expect(laneMatchesWorker(lane, aWorker('w', { cpuCores: 2, status: 'draining' }))).toBe(false)
  expect(laneMatchesWorker(lane, aWorker('w', { cpuCores: 2, skills: [] }))).toBe(false)
  expect(laneMatchesWorker(lane, aWorker('w', { cpuCores: 2, availableSkills: [] }))).toBe(false)
  expect(laneMatchesWorker(lane, aWorker('w'))).toBe(false)
})

test('[D-04] a reader finds the lanes of a worker and remembers a bounded number', () => {
  const reader = new LaneReader(2)
  const lanes = ['render', 'train', 'render'].map((type) => requirementLane(aCall({ type })))
  const isFor = (lane: string): boolean => {
    const waiting = reader.read(lane)
    return waiting !== undefined && laneMatchesWorker(waiting, aWorker('w'))
  }
  expect([...lanes, 'worker:w', 'worker:w'].filter(isFor)).toEqual([lanes[0], lanes[2]])
  expect(lanes.filter(isFor)).toEqual([lanes[0], lanes[2]])
  expect(reader.read(lanes[0] ?? '')).toBe(reader.read(lanes[2] ?? ''))
  expect(new LaneReader().read('worker:w')).toBeUndefined()
})

test('[D-03] a lane says how its worker is chosen, unless it is the default way', () => {
  const demand = { type: 'ocr', requirements: { cpuCores: 2 } }
  const lane = requirementLane({ ...demand, strategy: 'cheapest' })
  expect(parseLane(lane)).toEqual({ ...demand, strategy: 'cheapest', exclude: [] })
  expect(requirementLane({ ...demand, strategy: 'default' })).toBe(requirementLane(demand))
})
