import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { registration } from './description.ts'
import { describeEnvironment, readEnvironment } from './environment.ts'
import { ENVIRONMENT_KEYS, type WorkerEnvironment } from './environment-keys.ts'
import { settingsOf, type WorkerSettings } from './settings.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-worker-settings-'))
const pem = join(directory, 'one.pem')
writeFileSync(pem, 'PEM')

type Told = Partial<WorkerSettings> | { readonly told: object }

/** For every variable: a value, and what it changes in the settings or in what the orchestrator is told. */
const EFFECTS: Readonly<Record<keyof WorkerEnvironment, readonly [string, Told, Record<string, string>?]>> = {
  orchestratorUrl: [
    'http://o:1',
    { orchestrators: [{ url: 'http://o:1', priority: 10, weight: 1, token: undefined }] },
  ],
  orchestratorsConfig: [
    '[{"url":"http://a","priority":1,"weight":3,"token":"t"}]',
    { orchestrators: [{ url: 'http://a', priority: 1, weight: 3, token: 't' }] },
  ],
  multiOrchestratorMode: ['WATERFALL', { orchestratorMode: 'waterfall' }],
  workerId: ['w', { id: 'w' }],
  workerType: ['gpu', { type: 'gpu' }],
  individualToken: ['own', { orchestrators: [expect.objectContaining({ token: 'own' })] }, { WORKER_TOKEN: 'shared' }],
  token: ['shared', { orchestrators: [expect.objectContaining({ token: 'shared' })] }],
  useSts: ['true', { sts: 'yes' }],
  signMessages: ['yes', { signing: true }],
  tlsCaPath: [pem, { tls: { ca: 'PEM' }, sts: 'no' }],
  tlsCertPath: [pem, { tls: { cert: 'PEM', key: 'PEM' }, sts: 'if offered' }, { TLS_KEY_PATH: pem }],
  tlsKeyPath: [pem, { tls: { cert: 'PEM', key: 'PEM' } }, { TLS_CERT_PATH: pem }],
  maxConcurrentTasks: ['3', { concurrency: 3 }],
  costPerSecond: ['0.5', { told: { capabilities: { cost_per_second: 0.5 } } }],
  costPerSkill: ['{"a":0.5}', { told: { capabilities: { cost_per_skill: { a: 0.5 } } } }],
  cpuCores: ['8', { told: { resources: { cpu_cores: 8 } } }],
  ramGb: ['32', { told: { resources: { ram_gb: 32 } } }],
  gpuModel: ['RTX', { told: { resources: { gpu_info: { model: 'RTX', vram_gb: 0 } } } }],
  gpuVramGb: ['24', { told: { resources: { gpu_info: { vram_gb: 24 } } } }, { GPU_MODEL: 'RTX' }],
  gpuId: [
    'g0',
    { told: { resources: { gpu_info: null, devices: [{ type: 'gpu', id: 'g0', properties: { vram_gb: 0 } }] } } },
    { GPU_MODEL: 'RTX' },
  ],
  devices: ['[{"type":"tpu","id":"t0"}]', { told: { resources: { devices: [{ type: 'tpu', id: 't0' }] } } }],
  installedSoftware: ['{"ffmpeg":"7"}', { told: { installed_software: { ffmpeg: '7' } } }],
  installedModels: [
    '[{"name":"m","version":"2"},"n"]',
    { told: { installed_models: [{ name: 'm', version: '2' }, { name: 'n' }] } },
  ],
  installedArtifacts: [
    '[{"name":"a","type":"lora"}]',
    { told: { installed_artifacts: [{ name: 'a', type: 'lora' }] } },
  ],
  payloadDir: ['/var/tmp/payloads', { payloadDir: '/var/tmp/payloads' }],
  skillsDir: ['skills', { skillsDir: 'skills' }],
  heartbeatInterval: ['2.5', { heartbeatMs: 2_500 }],
  heartbeatDebounceDelay: ['0.5', { heartbeatDebounceMs: 500 }],
  heartbeatCooldown: ['3', { heartbeatCooldownMs: 3_000 }],
  registrationRetryInitialDelay: ['2', { registrationRetryMs: 2_000 }],
  registrationRetryMaxDelay: ['9', { registrationRetryMsMax: 9_000 }],
  taskPollTimeout: ['7', { pollMs: 7_000 }],
  idlePollDelay: ['0.5', { idlePollMs: 500 }],
  pollBackoffInitial: ['4', { pollRetryMs: 4_000 }],
  pollBackoffMax: ['8', { pollRetryMsMax: 8_000 }],
  pollBackoffFactor: ['3', { pollRetryFactor: 3 }],
  rateLimitBackoffFloor: ['11', { rateLimitMs: 11_000 }],
  resultMaxRetries: ['4', { resultRetriesMax: 4 }],
  resultRetryInitialDelay: ['0.2', { resultRetryMs: 200 }],
  shutdownTimeout: ['9', { shutdownMs: 9_000 }],
  enableWebsockets: ['on', { webSockets: true }],
  strictEventValidation: ['off', { strictEvents: false }],
  enableMetrics: ['1', { telemetry: { deadband: 5, forceMs: 60_000 } }],
  telemetryDeadband: ['2', { telemetry: { deadband: 2, forceMs: 60_000 } }, { WORKER_ENABLE_METRICS: 'true' }],
  telemetryForceInterval: ['5', { telemetry: { deadband: 5, forceMs: 5_000 } }, { WORKER_ENABLE_METRICS: 'true' }],
  port: ['8083', { healthPort: 8_083 }],
  logLevel: ['WARNING', {}],
  logFormat: ['json', {}],
  timeZone: ['Europe/Berlin', {}],
}

test.for(Object.entries(ENVIRONMENT_KEYS).map(([field, key]) => [key.names[0], field] as const))(
  '[E-05] %s is understood',
  ([name, field]) => {
    const [value, expected, others] = EFFECTS[field as keyof WorkerEnvironment]
    const settings = settingsOf({}, { ...others, [name]: value })
    const [seen, wanted] = 'told' in expected ? [registration(settings, []), expected.told] : [settings, expected]
    expect(seen).toMatchObject(wanted)
    expect(describeEnvironment()).toContain(`\`${name}\``)
  },
)

test('[E-05] the defaults are those of existing workers', () => {
  const settings = settingsOf({}, {})
  expect(settings).toMatchObject({
    orchestrators: [{ url: 'http://localhost:8080', priority: 10, weight: 1, token: undefined }],
    orchestratorMode: 'failover',
    type: 'generic-cpu-worker',
    concurrency: 10,
    heartbeatMs: 15_000,
    heartbeatDebounceMs: 100,
    heartbeatCooldownMs: 2_000,
    registrationRetryMs: 1_000,
    registrationRetryMsMax: 60_000,
    pollMs: 30_000,
    idlePollMs: 10,
    pollRetryMs: 1_000,
    pollRetryMsMax: 60_000,
    pollRetryFactor: 2,
    rateLimitMs: 30_000,
    resultRetriesMax: Number.POSITIVE_INFINITY,
    resultRetryMs: 1_000,
    shutdownMs: 30_000,
    webSockets: false,
    strictEvents: true,
    sts: 'no',
    signing: false,
    telemetry: undefined,
    healthPort: undefined,
  })
  expect(settings.id).toMatch(/^worker-[\da-f-]{36}$/)
  expect(registration(settings, [])).toMatchObject({
    resources: { max_concurrent_tasks: 10, cpu_cores: 4, gpu_info: null },
    capabilities: { cost_per_skill: {} },
  })
})

test('[E-05] the names of earlier generations are understood, and the present one goes before', () => {
  expect(readEnvironment({ TASK_POLL_ERROR_DELAY: '5' }).pollBackoffInitial).toBe(5)
  expect(readEnvironment({ TASK_POLL_ERROR_DELAY: '5', POLL_BACKOFF_INITIAL: '2' }).pollBackoffInitial).toBe(2)
})

test('[E-05] whatever begins with WORKER_EXTRA_ is told, as JSON where it is JSON', () => {
  const settings = settingsOf({}, { WORKER_EXTRA_ZONE: 'eu', WORKER_EXTRA_TAGS: '["x"]' })
  expect(registration(settings, []).capabilities?.extra).toEqual({ zone: 'eu', tags: ['x'], websockets: false })
})

test('[E-05] what is given in code counts more than the environment', () => {
  const settings = settingsOf(
    { url: 'http://here', id: 'mine', concurrency: 1 },
    { WORKER_ID: 'w', ORCHESTRATOR_URL: 'http://o', ORCHESTRATORS_CONFIG: '["http://p"]' },
  )
  expect(settings).toMatchObject({ orchestrators: [{ url: 'http://here' }], id: 'mine', concurrency: 1 })
})

test('[E-05] several orchestrators come by priority, then as they are listed, each with its token', () => {
  const list = [{ url: 'http://c' }, { url: 'http://b', token: 'tb' }, { url: 'http://a', priority: 1 }]
  const env = {
    ORCHESTRATORS_CONFIG: JSON.stringify(list),
    WORKER_TOKEN: 'shared',
    MULTI_ORCHESTRATOR_MODE: 'ROUND_ROBIN',
  }
  const settings = settingsOf({}, env)
  expect(settings.orchestrators).toEqual([
    { url: 'http://a', priority: 1, weight: 1, token: 'shared' },
    { url: 'http://c', priority: 10, weight: 1, token: 'shared' },
    { url: 'http://b', priority: 10, weight: 1, token: 'tb' },
  ])
  expect(settings.orchestratorMode).toBe('round_robin')
})

test.for([
  ['MAX_CONCURRENT_TASKS', 'many'],
  ['MAX_CONCURRENT_TASKS', '0'],
  ['HEARTBEAT_INTERVAL', '-1'],
  ['COST_PER_SKILL', '{"a":"cheap"}'],
  ['INSTALLED_SOFTWARE', '[]'],
  ['INSTALLED_MODELS', '{}'],
  ['WORKER_DEVICES', '[{"id":1}]'],
  ['ORCHESTRATORS_CONFIG', '[{"host":"x"}]'],
  ['ORCHESTRATORS_CONFIG', '[]'],
  ['ORCHESTRATORS_CONFIG', '[{"url":"http://a","weight":0}]'],
  ['ORCHESTRATORS_CONFIG', '[{"url":"http://a","priority":"high"}]'],
  ['ORCHESTRATORS_CONFIG', 'not json'],
  ['MULTI_ORCHESTRATOR_MODE', 'SOMETIMES'],
  ['WORKER_ENABLE_WEBSOCKETS', 'perhaps'],
  ['WORKER_ID', 'a b'],
  ['WORKER_PORT', '70000'],
  ['TLS_CA_PATH', join(directory, 'nothing.pem')],
  ['TLS_CERT_PATH', pem],
  ['LOG_LEVEL', 'loud'],
] as const)('[E-05] a setting that makes no sense is refused by name: %s=%s', ([name, value]) => {
  expect(() => settingsOf({}, { [name]: value })).toThrow(name)
})

test('[E-05] an address that is none is refused', () => {
  expect(() => settingsOf({}, { ORCHESTRATOR_URL: 'localhost:8080' })).toThrow('http:')
})

test('[E-05] the hash of the skills changes with the skills and with nothing else', () => {
  const settings = settingsOf({ id: 'a' }, {})
  const other = settingsOf({ id: 'b', cpuCores: 99 }, {})
  const dearer = settingsOf({ id: 'a', costPerSkill: { t: 1 } }, {})
  const hash = (from: WorkerSettings) => registration(from, []).skills_hash
  expect(hash(settings)).toMatch(/^[\da-f]{64}$/)
  expect(hash(other)).toBe(hash(settings))
  expect(hash(dearer)).not.toBe(hash(settings))
})
