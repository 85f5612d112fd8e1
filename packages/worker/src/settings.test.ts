import { expect, test } from 'vitest'
import { registration, settingsOf } from './settings.ts'

test('[E-05] the environment of existing workers is understood', () => {
  const settings = settingsOf(
    {},
    {
      ORCHESTRATOR_URL: 'http://o:1',
      WORKER_ID: 'w',
      WORKER_TYPE: 'gpu',
      WORKER_TOKEN: 'shared',
      WORKER_INDIVIDUAL_TOKEN: 'own',
      MAX_CONCURRENT_TASKS: '3',
      COST_PER_SKILL: '{"a":0.5}',
      CPU_CORES: '8',
      GPU_MODEL: 'RTX',
      GPU_VRAM_GB: '24',
      INSTALLED_MODELS: '[{"name":"m","version":"2"},"n"]',
      INSTALLED_SOFTWARE: '{"ffmpeg":"7"}',
      HEARTBEAT_INTERVAL: '2.5',
      TASK_POLL_TIMEOUT: '7',
      RESULT_MAX_RETRIES: '4',
      RESULT_RETRY_INITIAL_DELAY: '0.2',
      WORKER_SHUTDOWN_TIMEOUT: '9',
      WORKER_EXTRA_ZONE: 'eu',
      WORKER_EXTRA_TAGS: '["x"]',
    },
  )
  expect(settings).toMatchObject({
    orchestrators: [{ url: 'http://o:1' }],
    tokens: ['own'],
    id: 'w',
    type: 'gpu',
    concurrency: 3,
    heartbeatMs: 2_500,
    pollMs: 7_000,
    shutdownMs: 9_000,
    resultRetriesMax: 4,
    resultRetryMs: 200,
  })
  expect(registration(settings, [])).toMatchObject({
    resources: { max_concurrent_tasks: 3, cpu_cores: 8, gpu_info: { model: 'RTX', vram_gb: 24 } },
    installed_models: [{ name: 'm', version: '2' }, { name: 'n' }],
    installed_software: { ffmpeg: '7' },
    capabilities: { cost_per_skill: { a: 0.5 }, extra: { zone: 'eu', tags: ['x'] } },
  })
})

test('[E-05] what is given in code counts more than the environment', () => {
  const settings = settingsOf(
    { url: 'http://here', id: 'mine', concurrency: 1 },
    { WORKER_ID: 'w', ORCHESTRATOR_URL: 'http://o' },
  )
  expect(settings).toMatchObject({ orchestrators: [{ url: 'http://here' }], id: 'mine', concurrency: 1 })
})

test('[E-05] several orchestrators come by priority, then by address, each with its token', () => {
  const list = [{ url: 'http://c' }, { url: 'http://b', token: 'tb' }, { url: 'http://a', priority: 1 }]
  const env = {
    ORCHESTRATORS_CONFIG: JSON.stringify(list),
    WORKER_TOKEN: 'shared',
    MULTI_ORCHESTRATOR_MODE: 'ROUND_ROBIN',
  }
  const settings = settingsOf({}, env)
  expect(settings.orchestrators.map((one) => one.url)).toEqual(['http://a', 'http://b', 'http://c'])
  expect(settings.tokens).toEqual(['shared', 'tb', 'shared'])
  expect(settings.orchestratorMode).toBe('round_robin')
})

test.each([
  ['MAX_CONCURRENT_TASKS', 'many'],
  ['MAX_CONCURRENT_TASKS', '0'],
  ['COST_PER_SKILL', '{"a":"cheap"}'],
  ['ORCHESTRATORS_CONFIG', '[{"host":"x"}]'],
  ['MULTI_ORCHESTRATOR_MODE', 'SOMETIMES'],
])('[E-05] a setting that makes no sense is refused by name: %s=%s', (name, value) => {
  expect(() => settingsOf({}, { [name]: value })).toThrow(name)
})
