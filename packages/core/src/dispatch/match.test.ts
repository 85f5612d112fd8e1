import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import { match, matches } from './match.ts'
import type { MismatchReason } from './match.ts'
import { describeMismatch, describeShared } from './mismatch.ts'
import { WorkerIndex } from './worker-index.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return newWorkerRecord({ id, skills: ['render'], ...said }, 0)
}

function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

const big: WorkerPatch = {
  cpuCores: 8,
  ramGb: 32,
  gpus: [
    { model: 'Tesla T4', vramGb: 16 },
    { model: 'NVIDIA A100', vramGb: 40 },
  ],
  models: ['sdxl', 'llama'],
  software: { ffmpeg: '7' },
  properties: { zone: 'a', disks: 4, tags: ['fast', 'eu'], ssd: true, nothing: null },
  costPerSecond: 2,
  costPerSkill: { train: 5 },
}
const worker = aWorker('w', big)

const sentences = (call: Partial<TaskCall>, of = worker) => match(aCall(call), of).map(describeMismatch)

test('[D-02] numbers mean at least, lists mean all of, names ignore case', () => {
  const fitting: readonly Partial<TaskCall>[] = [
    {},
    { requirements: {} },
    { requirements: { gpu: {} } },
    { requirements: { gpu: { model: 'a100', vramGb: 40 }, cpuCores: 8, ramGb: 32, models: ['llama', 'sdxl'] } },
    { requirements: { gpu: { vramGb: 16 } } },
    { requirements: { gpu: { model: 'T4' } } },
    { requirements: { software: { ffmpeg: '7' } } },
    { requirements: { software: { ffmpeg: 'any' } } },
    { requirements: { properties: { zone: 'a', disks: 3, tags: ['eu'], ssd: true } } },
    { requirements: { properties: { zone: ['a'], tags: 'fast', absent: [] } } },
    { maxCost: 2 },
  ]
  for (const call of fitting) {
    expect(match(aCall(call), worker)).toEqual([])
    expect(matches(aCall(call), worker)).toBe(true)
  }
})

test('[D-02] [D-05] every lack is named, in a sentence, with what was needed and what is there', () => {
  const bare = aWorker('bare')
  const cases: readonly [MismatchReason, Partial<TaskCall>, typeof worker, string][] = [
    ['skill', { type: 'train' }, worker, "It lacks the skill 'train'."],
    [
      'skill_unavailable',
      {},
      aWorker('w', { availableSkills: [] }),
      "It has the skill 'render' but cannot start it now.",
    ],
    ['status', {}, aWorker('w', { status: 'draining' }), 'Its status is draining.'],
    ['status', {}, aWorker('w', { status: 'full' }), 'Its status is full.'],
    ['status', {}, aWorker('w', { status: 'busy', isOpenEnded: true }), 'Its status is busy.'],
    ['gpu', { requirements: { gpu: {} } }, bare, 'It has no GPU.'],
    [
      'gpu_model',
      { requirements: { gpu: { model: 'H100' } } },
      worker,
      "It has no GPU 'H100', only 'Tesla T4', 'NVIDIA A100'.",
    ],
    [
      'gpu_vram',
      { requirements: { gpu: { model: 't4', vramGb: 20 } } },
      worker,
      'It has 16 GB of VRAM; the task needs 20 GB.',
    ],
    ['gpu_vram', { requirements: { gpu: { vramGb: 80 } } }, worker, 'It has 40 GB of VRAM; the task needs 80 GB.'],
    ['cpu_cores', { requirements: { cpuCores: 9 } }, worker, 'It has 8 CPU cores; the task needs 9.'],
    ['ram_gb', { requirements: { ramGb: 33 } }, worker, 'It has 32 GB of RAM; the task needs 33 GB.'],
    ['models', { requirements: { models: ['x', 'sdxl', 'y'] } }, worker, "It lacks the model 'x', 'y'."],
    [
      'software',
      { requirements: { software: { ffmpeg: '8' } } },
      worker,
      "The task needs the software ffmpeg (8); it has '7'.",
    ],
    [
      'software',
      { requirements: { software: { toString: 'any' } } },
      worker,
      'The task needs the software toString (any); it has none.',
    ],
    ['property', { requirements: { properties: { zone: 'b' } } }, worker, "The task needs zone = 'b'; it has 'a'."],
    ['property', { requirements: { properties: { disks: 5 } } }, worker, 'The task needs disks = 5; it has 4.'],
    ['property', { requirements: { properties: { zone: 1 } } }, worker, "The task needs zone = 1; it has 'a'."],
    [
      'property',
      { requirements: { properties: { tags: ['eu', 'us'] } } },
      worker,
      "The task needs tags = 'eu', 'us'; it has 'fast', 'eu'.",
    ],
    ['property', { requirements: { properties: { ssd: false } } }, worker, 'The task needs ssd = false; it has true.'],
    ['property', { requirements: { properties: { nothing: 1 } } }, worker, 'The task needs nothing = 1; it has none.'],
    [
      'property',
      { requirements: { properties: { tags: 'us' } } },
      aWorker('w', { properties: { tags: [] } }),
      "The task needs tags = 'us'; it has none.",
    ],
    ['max_cost', { maxCost: 1 }, worker, 'It costs 2 per second; the task allows 1.'],
  ]
  for (const [reason, call, of, sentence] of cases) {
    expect(match(aCall(call), of).map((mismatch) => mismatch.reason)).toEqual([reason])
    expect(sentences(call, of)).toEqual([sentence])
    expect(matches(aCall(call), of)).toBe(false)
  }
})

test('[D-02] numbers of many digits are compared exactly, and shown as numbers', () => {
  const large = aWorker('w', { properties: { size: '\uFDD09007199254740993', text: '\uFDD0\uFDD05', small: 4 } })
  const needs = (properties: Readonly<Record<string, string | number>>) => ({ requirements: { properties } })
  for (const size of [5, '\uFDD09007199254740992', '\uFDD09007199254740993']) {
    expect(matches(aCall(needs({ size })), large)).toBe(true)
  }
  const more = needs({ size: '\uFDD09007199254740994' })
  expect(matches(aCall(more), large)).toBe(false)
  expect(sentences(more, large)).toEqual(['The task needs size = 9007199254740994; it has 9007199254740993.'])
  const other = needs({ small: '\uFDD09007199254740993', text: '\uFDD0\uFDD06' })
  expect(sentences(other, large)).toEqual([
    'The task needs small = 9007199254740993; it has 4.',
    "The task needs text = '\uFDD06'; it has '\uFDD05'.",
  ])
})

test('[D-02] one GPU must have both the model and the memory', () => {
  expect(sentences({ requirements: { gpu: { model: 'T4', vramGb: 40 } } })).toHaveLength(1)
})

test('[D-02] the price for the skill goes before the general price, and no price is under every ceiling', () => {
  const trainer = aWorker('w', { skills: ['train', 'constructor'], costPerSecond: 2, costPerSkill: { train: 5 } })
  expect(matches(aCall({ type: 'train', maxCost: 4 }), trainer)).toBe(false)
  expect(matches(aCall({ type: 'train', maxCost: 5 }), trainer)).toBe(true)
  expect(matches(aCall({ type: 'constructor', maxCost: 2 }), trainer)).toBe(true)
  expect(matches(aCall({ type: 'constructor', maxCost: 1 }), trainer)).toBe(false)
})

test('[D-05] workers that lack the same are spoken of together', () => {
  const said = (call: Partial<TaskCall>, of = aWorker('w'), count = 2) =>
    match(aCall(call), of).map((mismatch) => describeShared(mismatch, count))
  expect(said({ requirements: { cpuCores: 9, ramGb: 33 } })).toEqual(['2 lack 9 CPU cores', '2 lack 33 GB of RAM'])
  expect(said({ requirements: { gpu: { model: 'H1' } } }, worker, 1)).toEqual(["1 lacks a GPU 'H1'"])
  expect(said({ requirements: { software: { x: '1' }, properties: { y: 2 } } }, worker, 1)).toEqual([
    '1 lacks the software x (1)',
    '1 lacks y = 2',
  ])
  expect(said({ requirements: { gpu: {}, models: ['m'] } })).toEqual(['2 lack a GPU', "2 lack the model 'm'"])
  expect(said({ maxCost: 1 }, worker, 1)).toEqual(['1 costs more than 1 per second'])
  expect(said({ maxCost: 1 }, worker)).toEqual(['2 cost more than 1 per second'])
  expect(said({ type: 'x' }, aWorker('w', { status: 'offline' }))).toEqual(["2 lack the skill 'x'", '2 are offline'])
  expect(said({}, aWorker('w', { availableSkills: [] }), 1)).toEqual(['1 cannot start it now'])
  expect(said({}, aWorker('w', { availableSkills: [] }))).toEqual(['2 cannot start it now'])
})

test('[D-01] a worker that names no price is within every maxCost, and comes after those that name one', () => {
  const silent = aWorker('a')
  const priced = aWorker('b', { costPerSecond: 0.5 })
  const call = aCall({ maxCost: 0, strategy: 'cheapest' })
  expect([matches(call, silent), matches(call, priced)]).toEqual([true, false])
  const index = new WorkerIndex()
  for (const one of [silent, priced]) index.put(one)
  expect(index.choose(call)?.worker.id).toBe('a')
  expect(index.choose({ ...call, maxCost: 1 })?.worker.id).toBe('b')
})
