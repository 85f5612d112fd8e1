import type { HeartbeatRequest, RegisterRequest } from '@impresario/protocol'

/** What each generation sends when it registers, and the record that must come of it. */
export const REGISTRATIONS: readonly [string, RegisterRequest, object][] = [
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

/** What each generation sends as a sign of life while it is idle. */
export const HEARTBEATS: readonly [string, HeartbeatRequest][] = [
  ['G0', { status: 'idle', load: 0, supported_tasks: ['echo'], hot_cache: [] }],
  [
    'G1',
    {
      worker_id: 'w1',
      status: 'idle',
      load: 0,
      current_tasks: [],
      supported_tasks: ['echo'],
      hot_cache: [],
      hot_skills: null,
      skill_dependencies: null,
    },
  ],
  [
    'G2',
    {
      worker_id: 'w1',
      status: 'idle',
      load: 0,
      current_tasks: [],
      supported_skills: ['echo'],
      hot_cache: [],
      hot_skills: ['echo'],
      skill_dependencies: { echo: ['m'] },
    },
  ],
  [
    'G3',
    {
      worker_id: 'w1',
      status: 'idle',
      supported_skills: [{ name: 'echo', type: null }],
      hot_skills: [{ name: 'echo' }],
    },
  ],
  [
    'G4',
    {
      worker_id: 'w1',
      status: 'idle',
      usage: { cpu_load_percent: 3.5, ram_used_gb: 1 },
      current_tasks: [],
      available_skills: ['echo'],
      hot_skills: [],
      skills_hash: 'abc',
      security: { signature: 's', signer_id: 'w1' },
      timestamp: 1_700_000_000,
    },
  ],
]

/** The same success, as each generation writes it. */
export const RESULTS: readonly [string, object][] = [
  ['G0', { result: { status: 'success', data: { answer: 42 } } }],
  ['G1', { status: 'success', data: { answer: 42 }, error: null, data_metadata: null }],
  [
    'G2',
    {
      status: 'success',
      data: { answer: 42 },
      error: null,
      data_metadata: { a: { uri: 's3://b/c', size: 1, etag: 'e' } },
    },
  ],
  ['G3', { status: 'success', data: { answer: 42 } }],
  ['G4', { data: { answer: 42 }, origin_worker_id: 'w1', security: {}, metadata: {}, timestamp: 1, costs: [] }],
]
