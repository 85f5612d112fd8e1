import fc from 'fast-check'
import type { ResourceRequirements } from '@impresario/protocol'
import type { TaskCall } from '../job/job.ts'
import { createWorker } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import type { WorkerRecord } from '../worker/worker.ts'

/** Material for the tests of this folder: few values each, so that drawn ones often meet. */
export const TYPES = ['render', 'train', 'constructor'] as const

export function aWorker(id: string, said: WorkerPatch = {}): WorkerRecord {
  return createWorker({ id, skills: ['render'], ...said }, 0)
}

export function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

const type = fc.constantFrom(...TYPES)
const types = fc.uniqueArray(type)
const name = fc.constantFrom('a', 'b', 'c')
const names = fc.uniqueArray(name)
const amount = fc.integer({ min: 0, max: 3 })
const gpuModel = fc.constantFrom('NVIDIA A100', 'Tesla T4', 'nvidia a10')
const property = fc.oneof(amount, name, fc.boolean(), names)

export const workerArbitrary = (id: fc.Arbitrary<string>): fc.Arbitrary<WorkerRecord> =>
  fc
    .record({
      id,
      status: fc.constantFrom('idle', 'idle', 'busy', 'full', 'draining', 'offline'),
      skills: fc.array(type),
      availableSkills: fc.option(types),
      hotSkills: types,
      hotModels: names,
      concurrencyMax: fc.integer({ min: 1, max: 3 }),
      cpuCores: amount,
      ramGb: amount,
      gpus: fc.array(fc.record({ model: gpuModel, vramGb: amount }), { maxLength: 2 }),
      models: names,
      software: fc.dictionary(name, fc.constantFrom('1', '2')),
      properties: fc.dictionary(name, property),
      costPerSecond: fc.option(amount),
      costPerSkill: fc.dictionary(type, amount),
      reputation: fc.constantFrom(0, 0.5, 1),
    })
    .map((said) => createWorker(said, 0))

const needsArbitrary: fc.Arbitrary<ResourceRequirements> = fc.record(
  {
    gpu: fc.record({ model: fc.constantFrom('a10', 'A100', 'T4', 't'), vramGb: amount }, { requiredKeys: [] }),
    cpuCores: amount,
    ramGb: amount,
    models: names,
    software: fc.dictionary(name, fc.constantFrom('1', '2', 'any'), { maxKeys: 1 }),
    properties: fc.dictionary(name, property, { maxKeys: 1 }),
  },
  { requiredKeys: [] },
)

export const callArbitrary: fc.Arbitrary<TaskCall> = fc
  .record(
    {
      type,
      params: fc.oneof(fc.record({ model_name: name }), fc.record({ model: name }), fc.constant({})),
      strategy: fc.constantFrom('default', 'round_robin', 'least_connections', 'cheapest', 'best_value'),
      requirements: needsArbitrary,
      maxCost: amount,
    },
    { requiredKeys: ['type', 'params', 'strategy'] },
  )
  .map((drawn) => aCall(drawn))
