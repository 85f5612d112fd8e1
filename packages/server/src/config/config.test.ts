import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { doubtfulVariables, CONFIG_KEYS, describeConfig, loadSettings } from './config.ts'
import type { ConfigKey } from './config.ts'
import { SILENT } from '../runtime/log.ts'
import { createServer } from '../server.ts'
import { shownAddress } from '../orchestrator/storage.ts'

let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-config-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

test('[H-01] the environment goes before the file, and the file before the defaults', async () => {
  await writeFile(
    join(directory, 'impresario.toml'),
    'api_port = 9000\nlog_level = "debug"\nworker_poll_timeout_seconds = 1.5',
  )
  const settings = loadSettings({ environment: { API_PORT: '9001', GLOBAL_WORKER_TOKEN: 'g' }, directory })
  expect(settings).toMatchObject({
    apiPort: 9_001,
    logLevel: 'debug',
    workerPollTimeoutSeconds: 1.5,
    workerToken: 'g',
    apiHost: '0.0.0.0',
    storageUrl: 'file:./impresario-data',
    jobMaxRetries: 3,
  })
})

test('[H-01] a named file may be JSON; WORKER_TOKEN goes before its older name', async () => {
  const path = join(directory, 'other.json')
  await writeFile(path, '{"instance_id":"one"}')
  const environment = { IMPRESARIO_CONFIG: path, WORKER_TOKEN: 'new', GLOBAL_WORKER_TOKEN: 'old' }
  expect(loadSettings({ environment, directory })).toMatchObject({ instanceId: 'one', workerToken: 'new' })
})

test.each([
  [{ API_PORT: 'eighty' }, 'API_PORT is "eighty". It must be a whole number from 0 to 65535.'],
  [{ API_PORT: '65536' }, 'a whole number from 0 to 65535'],
  [{ API_PORT: '1.5' }, 'a whole number'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL is "loud". It must be one of debug, info, warn, error, silent.'],
  [{ TZ: 'Mars/Olympus' }, 'TZ is "Mars/Olympus". It must be the name of a time zone'],
  [{ WORKER_LEASE_SECONDS: '-1' }, 'WORKER_LEASE_SECONDS is "-1". It must be a number of seconds'],
  [{ CLIENT_API_PREFIX: '_worker' }, 'CLIENT_API_PREFIX is "_worker". It must be a path of letters'],
  [{ CLIENT_API_PREFIX: '/' }, 'a path of letters'],
  [{ MAX_TRANSITIONS_PER_JOB: '1001' }, 'a whole number from 1 to 1000'],
])('[H-01] a bad value is refused with its key and what is allowed: %o', (environment, message) => {
  expect(() => loadSettings({ environment, directory })).toThrow(message)
})

/** A value of the wrong kind, and for numbers one beyond each end. */
function badValues(key: ConfigKey): readonly string[] {
  switch (key.type) {
    case 'integer':
    case 'number':
    case 'seconds':
      return ['many', '1e999', String(key.min - 1), String(key.max + 1), ...(key.type === 'integer' ? ['1.5'] : [])]
    case 'choice':
      return ['none-of-these']
    case 'switch':
      return ['perhaps']
    default:
      return []
  }
}

test('[H-01] every number, choice and switch refuses what it cannot mean, by each of its names', () => {
  for (const key of Object.values(CONFIG_KEYS)) {
    for (const value of badValues(key)) {
      for (const name of key.names) {
        const load = (): unknown => loadSettings({ environment: { [name]: value }, directory })
        expect(load, `${name}=${value}`).toThrow(new RegExp(`^${name} is "`))
      }
    }
  }
})

test.each([
  [{ REDIS_HOST: 'cache' }, 'redis://cache:6379/0'],
  [{ REDIS_HOST: 'cache', REDIS_PORT: '7000', REDIS_DB: '3' }, 'redis://cache:7000/3'],
  [{ REDIS_PORT: '7000' }, 'redis://localhost:7000/0'],
  [{ REDIS_DB: '2' }, 'redis://localhost:6379/2'],
  [{ REDIS_HOST: '::1' }, 'redis://[::1]:6379/0'],
  [{ REDIS_HOST: '' }, 'file:./impresario-data'],
  [{ REDIS_PORT: 'tcp://10.0.0.1:6379' }, 'file:./impresario-data'],
  [{ REDIS_HOST: 'cache', REDIS_PORT: 'tcp://10.0.0.1:6379' }, 'redis://cache:6379/0'],
  [{ STORAGE_URL: 'redis://cache/0?shards=4', REDIS_HOST: 'cache' }, 'redis://cache/0?shards=4'],
  [{ STORAGE_URL: 'rediss://u:p@cache:7000/3', REDIS_PORT: '7000', REDIS_DB: '3' }, 'rediss://u:p@cache:7000/3'],
])('[G-01] the names of a Redis select it as STORAGE_URL does: %o', (environment, storageUrl) => {
  expect(loadSettings({ environment, directory }).storageUrl).toBe(storageUrl)
})

test.each([
  [{ STORAGE_URL: 'redis://cache', REDIS_HOST: 'other' }, 'REDIS_HOST'],
  [{ STORAGE_URL: 'redis://cache', REDIS_HOST: 'cache', REDIS_PORT: '7000' }, 'REDIS_PORT'],
  [{ STORAGE_URL: 'redis://cache/1', REDIS_DB: '2' }, 'REDIS_DB'],
  [{ STORAGE_URL: 'file:./data', REDIS_HOST: 'cache' }, 'REDIS_HOST'],
  [{ STORAGE_URL: 'postgres://me:secret@db/x', REDIS_HOST: 'db' }, 'REDIS_HOST'],
  [{ STORAGE_URL: 'redis://a,b?cluster=true', REDIS_HOST: 'a' }, 'REDIS_HOST'],
])('[G-01] two names of different storages are refused: %o', (environment, name) => {
  const load = (): unknown => loadSettings({ environment, directory })
  expect(load).toThrow(`STORAGE_URL and ${name} name different storages. Keep one of them.`)
  expect(load).not.toThrow('secret')
})

test('[G-01] the file and the environment may not name different storages either', async () => {
  await writeFile(join(directory, 'impresario.toml'), 'redis_host = "cache"')
  expect(loadSettings({ environment: {}, directory }).storageUrl).toBe('redis://cache:6379/0')
  expect(() => loadSettings({ environment: { STORAGE_URL: 'memory:' }, directory })).toThrow('different storages')
})

test('[H-01] a bad file is refused with its path, and an unknown key with its name', async () => {
  const path = join(directory, 'impresario.toml')
  await writeFile(path, 'api_prt = 1')
  const load = (): unknown => loadSettings({ environment: {}, directory })
  expect(load).toThrow(`${path}: api_prt is not a key of the configuration. Did you mean api_port?`)
  await writeFile(path, 'colour = 1')
  expect(load).toThrow(`${path}: colour is not a key of the configuration. docs/reference/configuration.md lists`)
  await writeFile(path, 'api_port = [1]')
  expect(load).toThrow(`${path}: api_port must be a whole number`)
  await writeFile(path, 'api_port = ')
  expect(load).toThrow(`${path} cannot be read`)
  expect(() => loadSettings({ environment: { IMPRESARIO_CONFIG: join(directory, 'none.toml') }, directory })).toThrow(
    'none.toml cannot be read',
  )
})

test.each([
  ['file:', 'names no directory'],
  ['ftp://x', 'is not understood'],
])('[H-01] the storage "%s" is refused', (storageUrl, message) => {
  const create = (): unknown => createServer({ settings: { apiHost: '127.0.0.1', storageUrl }, log: SILENT })
  expect(create).toThrow(expect.objectContaining({ code: 'INVALID_CONFIGURATION' }))
  expect(create).toThrow(message)
})

test('[H-01] the reference has a row for every key', () => {
  const reference = describeConfig()
  for (const { names } of Object.values(CONFIG_KEYS)) {
    for (const name of names) expect(reference).toContain(`\`${name}\``)
  }
})

test.each([
  ['redis://ann:p%40ss@host:1/2?prefix=x', 'redis://host:1/2'],
  ['postgres://ann:a@b@host/db?password=secret', 'postgres://host/db'],
  ['file:./impresario-data', 'file:./impresario-data'],
])('[H-03] the address "%s" of a storage is shown without its secrets', (url, shown) => {
  expect(shownAddress(url)).toBe(shown)
})

test('[H-03] addresses that may hold a password are secrets of the configuration', () => {
  expect(CONFIG_KEYS.storageUrl.type).toBe('secret')
  expect(CONFIG_KEYS.historyDatabaseUri.type).toBe('secret')
})

test('[H-01] a variable that is nearly a setting, or has our prefix and is none, is doubtful', () => {
  const environment = {
    LOG_LEVL: 'debug',
    WORKER_TOKE: 'abc',
    LOG_LEVEL: 'info',
    PATH: '/bin',
    HOME: '/',
    IMPRESARIO_X: '',
  }
  expect(doubtfulVariables(environment)).toEqual([
    'The variable LOG_LEVL is not a setting. Did you mean LOG_LEVEL?',
    'The variable WORKER_TOKE is not a setting. Did you mean WORKER_TOKEN?',
    'The variable IMPRESARIO_X is not a setting.',
  ])
})
