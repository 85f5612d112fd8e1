import { expect, test } from 'vitest'
import { changedFields, newWorkerRecord, mergeHeartbeat } from './registration.ts'

test('[E-01] a worker that says nothing but its id gets modest values', () => {
  expect(newWorkerRecord({ id: 'w' }, 5)).toEqual({
    id: 'w',
    type: 'worker',
    status: 'idle',
    skills: [],
    hotSkills: [],
    hotModels: [],
    concurrencyMax: 1,
    cpuCores: 0,
    ramGb: 0,
    gpus: [],
    models: [],
    software: {},
    properties: {},
    costPerSecond: undefined,
    costPerSkill: {},
    reputation: 1,
    registeredAt: 5,
    seenAt: 5,
  })
})

const full = newWorkerRecord(
  {
    id: 'w',
    type: 'gpu',
    status: 'busy',
    skills: ['render', 'upscale'],
    availableSkills: ['render'],
    hotSkills: ['render'],
    hotModels: ['sdxl'],
    concurrencyMax: 4,
    cpuCores: 8,
    ramGb: 32,
    gpus: [{ model: 'A100', vramGb: 40 }],
    models: ['sdxl'],
    software: { python: '3.11' },
    properties: { zone: 'a' },
    costPerSecond: 0.5,
    costPerSkill: { render: 0.7 },
    reputation: 0.9,
    skillInfo: [{ name: 'render' }],
    metadata: { rack: 3 },
  },
  10,
)

test('[E-01] an empty heartbeat changes only when the worker was seen', () => {
  expect(mergeHeartbeat(full, {}, 20)).toEqual({ ...full, seenAt: 20 })
  expect(mergeHeartbeat(full, {}, 3)).toEqual(full)
})

test('[J-7] null in a heartbeat or a registration counts as not sent', () => {
  const nulls = {
    type: null,
    status: null,
    skills: null,
    availableSkills: null,
    hotSkills: null,
    hotModels: null,
    concurrencyMax: null,
    cpuCores: null,
    ramGb: null,
    gpus: null,
    models: null,
    software: null,
    properties: null,
    costPerSecond: null,
    costPerSkill: null,
    reputation: null,
    skillInfo: null,
    metadata: null,
  }
  expect(mergeHeartbeat(full, nulls, 20)).toEqual({ ...full, seenAt: 20 })
  expect(newWorkerRecord({ id: 'w', ...nulls }, 1)).toEqual(newWorkerRecord({ id: 'w' }, 1))
})

test('[E-01] a heartbeat replaces what it names and never the id or the time of registration', () => {
  const next = mergeHeartbeat(full, { status: 'draining', availableSkills: [], hotSkills: [], costPerSecond: 0 }, 20)
  expect(next).toEqual({
    ...full,
    status: 'draining',
    availableSkills: [],
    hotSkills: [],
    costPerSecond: 0,
    seenAt: 20,
  })
})

test('[E-01] numbers that would break every comparison are not taken over', () => {
  const odd = newWorkerRecord(
    {
      id: 'w',
      concurrencyMax: 0.5,
      cpuCores: Number.NaN,
      ramGb: -1,
      costPerSecond: -2,
      costPerSkill: { a: Number.NaN, b: 1, c: -1 },
      reputation: 7,
    },
    0,
  )
  expect(odd).toMatchObject({ concurrencyMax: 1, cpuCores: 0, ramGb: 0, costPerSkill: { b: 1 }, reputation: 1 })
  expect(odd.costPerSkill).toEqual({ b: 1 })
  expect(odd.costPerSecond).toBeUndefined()
})

test('[F-02] nobody raises its own reputation by a heartbeat', () => {
  expect(mergeHeartbeat(full, { reputation: 1 }, 20)).toEqual({ ...full, seenAt: 20 })
})

test('[G-04] what a heartbeat changed is told apart from what it only said again', () => {
  const says = (patch: Parameters<typeof mergeHeartbeat>[1]): readonly string[] =>
    changedFields(full, mergeHeartbeat(full, patch, 20))
  expect(says({})).toEqual([])
  expect(says({ status: full.status, skills: [...full.skills], software: { ...full.software } })).toEqual([])
  expect(says({ status: 'draining', hotSkills: ['other'] })).toEqual(['status', 'hotSkills'])
  const { availableSkills: _, ...unsaid } = full
  expect(changedFields(unsaid, { ...unsaid, availableSkills: [] })).toEqual(['availableSkills'])
  expect(changedFields(full, { ...full, reputation: 0.5, registeredAt: 99 })).toEqual([])
})

test('[E-01] a worker that names no number of tasks stays so over its heartbeats, until it names one', () => {
  const open = newWorkerRecord({ id: 'w', isOpenEnded: true }, 5)
  expect(mergeHeartbeat(open, { status: 'busy' }, 6).isOpenEnded).toBe(true)
  expect(mergeHeartbeat(open, { isOpenEnded: false, concurrencyMax: 2 }, 6)).not.toHaveProperty('isOpenEnded')
})
