import type { RegisterRequest } from '@impresario/protocol'

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
    { type: 'worker', skills: ['a'], hotSkills: [], hotModels: [], models: [], isOpenEnded: true, costPerSkill: {} },
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
      isOpenEnded: true,
    },
  ],
  ['the least: an id', { worker_id: 'x' }, { id: 'x', type: 'worker', skills: [], status: 'idle', reputation: 1 }],
]

/** One request as a worker of this generation sends it, and what the documents promise in answer. */
export interface Exchange {
  readonly title: string
  readonly body?: object
  readonly status?: number
  /** Every key of it must be in the answer, with this value. */
  readonly answer: object
}

/** A result, for the task that `ids` names; the blueprint says which job it is for. */
interface ResultExchange extends Exchange {
  readonly blueprint: string
  readonly result: object
  /** What becomes of the job; nothing is said where it is tried again. */
  readonly job?: string
}

export interface Generation {
  readonly name: string
  /** Beside the token. */
  readonly headers: Readonly<Record<string, string>>
  readonly worker: string
  readonly register: Exchange
  readonly heartbeats: readonly Exchange[]
  /** What the poll adds to its path. */
  readonly query: string
  readonly results: readonly ResultExchange[]
  /** What the documents say about each ending; the key is the transition of the newer ones. */
  readonly accepted: (transition: string) => object
  /** Wraps the ids and the result into a body. */
  readonly resultBody: (ids: { job_id: string; task_id: string }, worker: string, result: object) => object
  /** A frame or an event that says how far a task is. */
  readonly progress: (ids: { job_id: string; task_id: string }, worker: string) => object
  readonly progressOver: 'socket' | 'http'
  /** What a result for a job gets that never was. */
  readonly noSuchJob: Exchange
}

type Ids = { readonly job_id: string; readonly task_id: string }

const OLD: Readonly<Record<string, string>> = {
  success_transition: 'result_accepted_success',
  failure_handled: 'result_accepted_failure',
  cancelled_handled: 'result_accepted_cancelled',
  parallel_branch_accepted: 'parallel_branch_result_accepted',
  unhandled_status_failure: 'result_accepted_success',
}

/** The same endings in every generation. */
const ENDINGS: readonly (Omit<ResultExchange, 'answer'> & { readonly transition: string })[] = [
  {
    title: 'a success with data',
    blueprint: 'echo',
    result: { status: 'success', data: { answer: 42 } },
    transition: 'success_transition',
    job: 'finished',
  },
  {
    title: 'a status of the blueprint’s own',
    blueprint: 'echo',
    result: { status: 'later', data: { answer: 1 } },
    transition: 'success_transition',
    job: 'finished',
  },
  {
    title: 'a status that the blueprint does not know',
    blueprint: 'echo',
    result: { status: 'odd', data: {} },
    transition: 'unhandled_status_failure',
    job: 'failed',
  },
  {
    title: 'a permanent failure',
    blueprint: 'echo',
    result: { status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'broken for good' } },
    transition: 'failure_handled',
    job: 'quarantined',
  },
  {
    title: 'bad input',
    blueprint: 'echo',
    result: { status: 'failure', error: { code: 'INVALID_INPUT_ERROR', message: 'no' } },
    transition: 'failure_handled',
    job: 'failed',
  },
  {
    title: 'a transient failure',
    blueprint: 'flaky',
    result: { status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'again' } },
    transition: 'failure_handled',
  },
  {
    title: 'a failure without a code',
    blueprint: 'flaky',
    result: { status: 'failure', error: { message: 'again' } },
    transition: 'failure_handled',
  },
  {
    title: 'a cancelled task',
    blueprint: 'echo',
    result: { status: 'cancelled' },
    transition: 'cancelled_handled',
    job: 'cancelled',
  },
  {
    title: 'a branch of a fan-out',
    blueprint: 'fan',
    result: { status: 'success', data: { part: 1 } },
    transition: 'parallel_branch_accepted',
  },
]

const OLD_ENDINGS: typeof ENDINGS = [
  ...ENDINGS,
  {
    title: 'no status at all',
    blueprint: 'echo',
    result: { data: { answer: 2 } },
    transition: 'success_transition',
    job: 'finished',
  },
  {
    title: 'an error that is a plain text',
    blueprint: 'flaky',
    result: { status: 'failure', error: 'it broke' },
    transition: 'failure_handled',
  },
  {
    title: 'a task that the worker does not know',
    blueprint: 'flaky',
    result: { status: 'failure', error_message: 'Unsupported task type' },
    transition: 'failure_handled',
  },
]

const newer = (transition: string): object => ({ status: 'accepted', transition })
const older = (transition: string): object => ({ status: OLD[transition] })

function endings(list: typeof ENDINGS, accepted: (transition: string) => object): readonly ResultExchange[] {
  return list.map(({ transition, ...ending }) => ({ ...ending, answer: accepted(transition) }))
}

const flat = (ids: Ids, worker: string, result: object): object => ({ ...ids, worker_id: worker, ...result })

const IGNORED: Exchange = {
  title: 'ignored',
  answer: { status: 'ignored', reason: 'job_not_found' },
}

const EMPTY: Exchange = { title: 'nothing', answer: { status: 'ttl_refreshed' } }

const G0: Generation = {
  name: 'G0',
  headers: {},
  worker: 'g0',
  register: {
    title: 'flat',
    body: {
      worker_id: 'g0',
      worker_type: 'generic-cpu-worker',
      supported_tasks: ['echo'],
      max_concurrent_tasks: 10,
      cost_per_skill: { echo: 0.5 },
      installed_models: [{ name: 'stable-diffusion-1.5', version: '1.0' }],
      hostname: 'host-0',
      ip_address: '10.0.0.1',
      resources: { cpu_cores: 4, gpu_info: null },
    },
    answer: { status: 'registered' },
  },
  heartbeats: [
    {
      title: 'idle: the whole record',
      body: { load: 0, status: 'idle', supported_tasks: ['echo'], hot_cache: [] },
      answer: {
        worker_id: 'g0',
        worker_type: 'generic-cpu-worker',
        status: 'idle',
        max_concurrent_tasks: 10,
        hot_cache: [],
      },
    },
    {
      title: 'busy, with what is warm',
      body: {
        load: 1,
        status: 'busy',
        supported_tasks: ['echo'],
        hot_cache: ['stable-diffusion-1.5'],
        hot_skills: ['echo'],
        skill_dependencies: { echo: ['stable-diffusion-1.5'] },
      },
      answer: { status: 'busy', hot_cache: ['stable-diffusion-1.5'], hot_skills: ['echo'] },
    },
    EMPTY,
  ],
  query: '',
  results: endings(OLD_ENDINGS, older),
  accepted: older,
  resultBody: (ids, worker, result) => ({ ...ids, worker_id: worker, result }),
  progress: (ids) => ({ type: 'progress_update', ...ids, progress: 0.5, message: 'half' }),
  progressOver: 'socket',
  noSuchJob: { title: 'refused', status: 404, answer: { error: 'Job not found' } },
}

const SEED_RESOURCES = { max_concurrent_tasks: 10, cpu_cores: 4, gpu_info: { model: 'RTX 4090', vram_gb: 24 } }
const SEED_CAPABILITIES = {
  hostname: 'host',
  ip_address: '10.0.0.2',
  cost_per_skill: { echo: 0.01 },
  s3_config_hash: null,
  extra: { websockets: true },
}

/** What G1 and G2 share: nulls are sent as they are. */
function nullish(worker: string, skills: string): readonly Exchange[] {
  const body = {
    worker_id: worker,
    status: 'idle',
    load: 0,
    current_tasks: [],
    [skills]: ['echo'],
    hot_cache: [],
    hot_skills: null,
    skill_dependencies: null,
  }
  return [
    { title: 'idle, full of nulls', body, answer: { status: 'ok' } },
    { title: 'every field null', body: nulled(body, worker), answer: { status: 'ok' } },
    { title: 'leaving', body: { ...body, status: 'offline' }, answer: { status: 'ok' } },
    { title: 'back', body, answer: { status: 'ok' } },
    EMPTY,
  ]
}

function nulled(body: object, worker: string): object {
  return { ...Object.fromEntries(Object.keys(body).map((key) => [key, null])), worker_id: worker }
}

const seedNulls = { error: null, data_metadata: null }

const G1: Generation = {
  name: 'G1',
  headers: { 'x-rxon-version': '1.0b2' },
  worker: 'g1',
  register: {
    title: 'nested, with tasks',
    body: {
      worker_id: 'g1',
      worker_type: 'gpu-worker',
      supported_tasks: ['echo'],
      resources: SEED_RESOURCES,
      installed_software: { python: '3.11' },
      installed_models: [],
      capabilities: SEED_CAPABILITIES,
    },
    answer: { status: 'registered' },
  },
  heartbeats: nullish('g1', 'supported_tasks'),
  query: '',
  results: endings(OLD_ENDINGS, newer),
  accepted: newer,
  resultBody: (ids, worker, result) => flat(ids, worker, { ...seedNulls, ...result }),
  progress: (ids, worker) => ({ event: 'progress_update', worker_id: worker, ...ids, progress: 0.5, message: 'half' }),
  progressOver: 'socket',
  noSuchJob: IGNORED,
}

const G2: Generation = {
  ...G1,
  name: 'G2',
  headers: { 'x-rxon-version': '1.0b3' },
  worker: 'g2',
  register: {
    title: 'skills as names',
    body: {
      worker_id: 'g2',
      worker_type: 'gpu-worker',
      supported_skills: ['echo'],
      resources: { ...SEED_RESOURCES, gpu_info: null },
      installed_software: { python: '3.11' },
      installed_models: [],
      capabilities: { ...SEED_CAPABILITIES, extra: null },
    },
    answer: { status: 'registered' },
  },
  heartbeats: nullish('g2', 'supported_skills'),
}

const event = (ids: Ids, worker: string): object => ({
  event_id: `e-${ids.task_id}`,
  worker_id: worker,
  origin_worker_id: worker,
  event_type: 'progress',
  payload: { progress: 0.5, message: 'half' },
  target_job_id: ids.job_id,
  target_task_id: ids.task_id,
  priority: 0,
})

const G3: Generation = {
  name: 'G3',
  headers: { 'x-rxon-version': '1.0b5' },
  worker: 'g3',
  register: {
    title: 'described skills, devices, artifacts',
    body: {
      worker_id: 'g3',
      worker_type: 'gpu-worker',
      supported_skills: [{ name: 'echo', type: 'echo', version: '1.2.0', output_statuses: ['success', 'later'] }],
      resources: { max_concurrent_tasks: 10, devices: [{ type: 'gpu', model: 'A100', properties: { vram_gb: 80 } }] },
      installed_software: { python: '3.11' },
      installed_artifacts: [{ name: 'sdxl', version: 'unknown' }],
      capabilities: SEED_CAPABILITIES,
    },
    answer: { status: 'registered' },
  },
  heartbeats: [
    {
      title: 'described skills',
      body: {
        worker_id: 'g3',
        status: 'idle',
        current_tasks: [],
        supported_skills: [{ name: 'echo', type: 'echo', version: '1.2.0', description: null }],
        hot_cache: ['sdxl'],
        hot_skills: [{ name: 'echo' }],
      },
      answer: { status: 'ok' },
    },
    EMPTY,
  ],
  query: '?timeout=10.0',
  results: endings(ENDINGS, newer),
  accepted: newer,
  resultBody: flat,
  progress: event,
  progressOver: 'http',
  noSuchJob: IGNORED,
}

const HASH = 'f'.repeat(64)

const G4: Generation = {
  name: 'G4',
  headers: { 'x-rxon-version': '1.0b16', 'x-worker-id': 'g4' },
  worker: 'g4',
  register: {
    title: 'without nulls, with a hash of the skills',
    body: {
      worker_id: 'g4',
      worker_type: 'gpu-worker',
      supported_skills: [{ name: 'echo', type: 'echo', version: '2.0.0', schema_dialect: 'json-schema', price: 3 }],
      available_skills: ['echo'],
      hot_skills: ['echo'],
      resources: { devices: [], properties: { cpu_cores: 16, ram_gb: 64, max_concurrent_tasks: 10 } },
      installed_artifacts: [],
      capabilities: { hostname: 'host-4', extra: { region: 'eu' } },
      skills_hash: HASH,
      security: { signature: 'unchecked', signer_id: 'g4' },
      metadata: {},
      timestamp: 1_700_000_000,
    },
    answer: { status: 'registered' },
  },
  heartbeats: [
    {
      title: 'the hash that is known',
      body: {
        worker_id: 'g4',
        status: 'idle',
        usage: { cpu_load_percent: 3.5, ram_used_gb: 1.25, devices_usage: [{ unit_id: '0', load_percent: 1 }] },
        current_tasks: [],
        available_skills: ['echo'],
        hot_skills: [],
        skills_hash: HASH,
        security: { signature: 'unchecked', signer_id: 'g4' },
        timestamp: 1_700_000_000,
      },
      answer: { status: 'ok', require_full_sync: undefined },
    },
    {
      title: 'a hash that is not known, without the skills',
      body: { worker_id: 'g4', status: 'idle', current_tasks: [], skills_hash: 'e'.repeat(64), timestamp: 1 },
      answer: { status: 'ok', require_full_sync: true },
    },
    {
      title: 'the skills of that hash',
      body: {
        worker_id: 'g4',
        status: 'idle',
        current_tasks: [],
        supported_skills: [{ name: 'echo', type: 'echo' }],
        skills_hash: 'e'.repeat(64),
      },
      answer: { status: 'ok', require_full_sync: undefined },
    },
    {
      title: 'that hash again',
      body: { worker_id: 'g4', status: 'full', current_tasks: [], skills_hash: 'e'.repeat(64) },
      answer: { status: 'ok', require_full_sync: undefined },
    },
    { title: 'draining', body: { worker_id: 'g4', status: 'draining' }, answer: { status: 'ok' } },
    { title: 'back', body: { worker_id: 'g4', status: 'idle' }, answer: { status: 'ok' } },
    EMPTY,
  ],
  query: '?timeout=10&available_skills=echo&hot_skills=echo',
  results: endings(ENDINGS, newer),
  accepted: newer,
  resultBody: (ids, worker, result) =>
    flat(ids, worker, {
      origin_worker_id: worker,
      security: { signature: 'unchecked', signer_id: worker },
      metadata: {},
      timestamp: 1_700_000_000,
      costs: [],
      ...result,
    }),
  progress: event,
  progressOver: 'socket',
  noSuchJob: IGNORED,
}

export const GENERATIONS: readonly Generation[] = [G0, G1, G2, G3, G4]
