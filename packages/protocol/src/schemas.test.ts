import { expect, test } from 'vitest'
import { z } from 'zod'
import * as schemas from './schemas.ts'

const oldest = {
  worker_id: 'w-1',
  worker_type: 'cpu',
  supported_tasks: ['a'],
  max_concurrent_tasks: 2,
  cost_per_skill: { a: 0.5 },
  installed_models: [{ name: 'm', version: '1' }],
  hostname: 'h',
  ip_address: '10.0.0.1',
  resources: { cpu_cores: 4, gpu_info: { model: 'RTX', vram_gb: 8 } },
}
const middle = {
  worker_id: 'w-1',
  worker_type: 'cpu',
  supported_skills: ['a'],
  resources: { max_concurrent_tasks: 2, cpu_cores: 4, gpu_info: null },
  installed_software: { python: '3.11' },
  installed_models: [],
  capabilities: {
    hostname: 'h',
    ip_address: '::1',
    cost_per_skill: {},
    s3_config_hash: null,
    extra: { websockets: false },
  },
}
const newest = {
  worker_id: 'w-1',
  supported_skills: [{ name: 'a', version: '1', price: 3, output_statuses: ['x'] }],
  available_skills: ['a'],
  hot_skills: ['a'],
  resources: {
    devices: [{ type: 'gpu', model: 'H100', properties: { vram_gb: 80 } }],
    properties: { cpu_cores: 8 },
  },
  installed_artifacts: [{ name: 'm', version: 'unknown' }],
  skills_hash: 'ab',
  security: { signature: 'ff', signer_id: 'w-1' },
  timestamp: 1_700_000_000,
  something_new: { yes: true },
}

test.each([
  ['oldest', oldest],
  ['middle', middle],
  ['newest', newest],
])('[H-01] the registration of the %s worker generation passes unchanged', (_name, body) => {
  expect(schemas.registerRequest.parse(body)).toEqual(body)
})

test('[H-01] a worker id that would not survive a path is refused', () => {
  expect(schemas.registerRequest.safeParse({ worker_id: 'a/b' }).success).toBe(false)
})

test('[H-01] nulls in a heartbeat mean absent', () => {
  const body = {
    worker_id: 'w',
    status: 'idle',
    load: 0,
    hot_skills: null,
    skill_dependencies: null,
    hot_cache: null,
  }
  expect(schemas.heartbeatRequest.safeParse(body).success).toBe(true)
  expect(schemas.heartbeatRequest.safeParse({}).success).toBe(true)
})

test('[H-01] flat and nested results pass, results without ids do not', () => {
  const ids = { job_id: 'j', task_id: 't', worker_id: 'w' }
  const passes = (body: unknown): boolean => schemas.resultRequest.safeParse(body).success
  expect(passes({ ...ids, status: 'success', data: { a: 1 }, error: null, data_metadata: null })).toBe(true)
  expect(passes({ ...ids, result: { status: 'failure', error: 'as a plain string' } })).toBe(true)
  expect(passes({ ...ids, result: { status: 'failure', error_message: 'unknown task' } })).toBe(true)
  expect(passes({ task_id: 't' })).toBe(false)
})

test('[H-01] every schema can be written as JSON Schema', () => {
  for (const schema of Object.values(schemas)) {
    expect(z.toJSONSchema(schema, { io: 'input' }).type).toMatch(/^(?:object|array)$/)
  }
})
