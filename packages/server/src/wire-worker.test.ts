import { createWorker } from '@impresario/core'
import type { RegisterRequest } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { readHeartbeat, readProgress, readRegistration, readReport } from './wire-worker.ts'

/** What each generation sends when it registers, and the record that must come of it. */
const REGISTRATIONS: readonly [string, RegisterRequest, object][] = [
  [
    'G0: flat, with tasks',
    {
      worker_id: 'g0',
      worker_type: 'cpu',
      supported_tasks: ['a', 'b'],
      max_concurrent_tasks: 3,
      cost_per_skill: { a: 0.5 },
      installed_models: [{ name: 'm', version: '1' }],
      hostname: 'h',
      ip_address: '10.0.0.1',
      resources: { cpu_cores: 4, gpu_info: null },
    },
    {
      type: 'cpu',
      skills: ['a', 'b'],
      concurrencyMax: 3,
      costPerSkill: { a: 0.5 },
      models: ['m'],
      cpuCores: 4,
      gpus: [],
      metadata: { hostname: 'h', ip_address: '10.0.0.1' },
    },
  ],
  [
    'G1: tasks, resources and capabilities nested',
    {
      worker_id: 'g1',
      worker_type: 'gpu',
      supported_tasks: ['a'],
      resources: { max_concurrent_tasks: 2, cpu_cores: 8, gpu_info: { model: 'RTX', vram_gb: 24 } },
      installed_software: { python: '3.11' },
      installed_models: [],
      capabilities: {
        hostname: 'h',
        ip_address: 'i',
        cost_per_skill: { a: 1 },
        s3_config_hash: null,
        extra: { websockets: true },
      },
    },
    {
      skills: ['a'],
      concurrencyMax: 2,
      gpus: [{ model: 'RTX', vramGb: 24 }],
      software: { python: '3.11' },
      costPerSkill: { a: 1 },
      properties: { websockets: true },
      metadata: { hostname: 'h', ip_address: 'i' },
    },
  ],
  [
    'G2: skills as names, nulls',
    {
      worker_id: 'g2',
      worker_type: null,
      supported_skills: ['a'],
      hot_skills: null,
      hot_cache: null,
      installed_models: null,
      resources: { max_concurrent_tasks: null, cpu_cores: 2, gpu_info: null },
      capabilities: { cost_per_skill: null },
    },
    { type: 'worker', skills: ['a'], hotSkills: [], hotModels: [], models: [], concurrencyMax: 1, costPerSkill: {} },
  ],
  [
    'G3: skills as objects, devices, artifacts',
    {
      worker_id: 'g3',
      supported_skills: [{ name: 'a', version: '2', input_schema: { type: 'object' } }],
      hot_skills: [{ name: 'a' }],
      hot_cache: ['m'],
      resources: {
        max_concurrent_tasks: 4,
        devices: [
          { type: 'gpu', model: 'A100', properties: { vram_gb: 80 } },
          { type: 'npu', model: 'x' },
        ],
      },
      installed_artifacts: [{ name: 'm', version: 'unknown' }],
    },
    {
      skills: ['a'],
      hotSkills: ['a'],
      hotModels: ['m'],
      concurrencyMax: 4,
      gpus: [{ model: 'A100', vramGb: 80 }],
      models: ['m'],
      skillInfo: [{ name: 'a', version: '2', input_schema: { type: 'object' } }],
    },
  ],
  [
    'G4: properties, available and hot skills, hash',
    {
      worker_id: 'g4',
      supported_skills: [{ name: 'a', price: 3 } as never, { name: 'b' }],
      available_skills: ['a'],
      hot_skills: ['b'],
      resources: { properties: { cpu_cores: 16, ram_gb: 64, region: 'eu' } },
      skills_hash: 'abc',
      security: { signature: 's', signer_id: 'g4' },
      timestamp: 1,
    },
    {
      skills: ['a', 'b'],
      availableSkills: ['a'],
      hotSkills: ['b'],
      cpuCores: 16,
      ramGb: 64,
      properties: { cpu_cores: 16, ram_gb: 64, region: 'eu' },
      metadata: { skills_hash: 'abc' },
    },
  ],
  ['the least: an id', { worker_id: 'x' }, { id: 'x', type: 'worker', skills: [], status: 'idle', reputation: 1 }],
]

test.each(REGISTRATIONS)('[E-01] a registration of %s becomes a record', (_title, body, expected) => {
  const record = createWorker(readRegistration(body), 5)
  expect(record).toMatchObject({ id: body.worker_id, registeredAt: 5, ...expected })
})

describe('heartbeats', () => {
  test('[E-03] names of the older generations are what can be started now', () => {
    expect(readHeartbeat({ status: 'busy', supported_tasks: [] })).toMatchObject({
      status: 'busy',
      availableSkills: [],
    })
    expect(readHeartbeat({ supported_skills: ['a'] })).toMatchObject({ availableSkills: ['a'] })
    expect(readHeartbeat({ supported_skills: ['a'] })).not.toHaveProperty('skills')
  })

  test('[E-03] described skills replace the list', () => {
    const patch = readHeartbeat({ supported_skills: [{ name: 'a' }, { name: 'b' }], available_skills: ['b'] })
    expect(patch).toMatchObject({ skills: ['a', 'b'], availableSkills: ['b'] })
  })

  test('[E-03] J-7: nulls and unknown statuses count as not said', () => {
    const worker = createWorker({ id: 'w', skills: ['a'], hotSkills: ['a'] }, 1)
    const patch = readHeartbeat({ status: null, hot_skills: null, hot_cache: null, supported_skills: null })
    expect(Object.values(patch).every((value) => value === undefined || value === null)).toBe(true)
    expect(worker.hotSkills).toEqual(['a'])
    expect(readHeartbeat({ status: 'dancing' as never }).status).toBeUndefined()
  })
})

describe('results', () => {
  const ids = { job_id: 'j', task_id: 't' }
  test.each([
    ['flat', { ...ids, status: 'success', data: { a: 1 } }, { taskId: 't', status: 'success', data: { a: 1 } }],
    ['nested', { ...ids, result: { status: 'done', data: 5 } }, { taskId: 't', status: 'done', data: 5 }],
    ['without a status', { ...ids, data: null, error: null }, { taskId: 't', status: 'success' }],
    [
      'with a plain error',
      { ...ids, result: { error: 'broken' } },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'broken' } },
    ],
    [
      'with a loose message',
      { ...ids, status: 'failure', error_message: 'no such task' },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'no such task' } },
    ],
    [
      'with a code',
      { ...ids, status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'm', details: {} } },
      { taskId: 't', status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'm' } },
    ],
    [
      'with an unknown code',
      { ...ids, status: 'failure', error: { code: 'ODD', message: null } },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'The worker gave no message.' } },
    ],
  ])('[E-01] a result %s is read', (_title, body, expected) => {
    expect(readReport(body)).toEqual(expected)
  })

  test.each([
    ['not an object', 5],
    ['no task id', { job_id: 'j' }],
    ['no job id', { task_id: 't' }],
  ])('[E-01] a result with %s is refused in its place', (_title, body) => {
    expect(readReport(body)).toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

test('[E-01] progress is held between 0 and 1', () => {
  expect(readProgress({ progress: 1.5, message: 'm' })).toEqual({ fraction: 1, message: 'm' })
  expect(readProgress({ progress: -1 })).toEqual({ fraction: 0, message: undefined })
  expect(readProgress({ progress: 'half' })).toBeUndefined()
  expect(readProgress(null)).toBeUndefined()
})
