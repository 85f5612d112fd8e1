import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONFIG_KEYS } from '@impresario/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from './failure.ts'
import { runCli } from './run-cli.fixture.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-refused-'))
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))

type Environment = Readonly<Record<string, string>>

interface Case {
  readonly env: Environment
  readonly says: string | RegExp
  readonly code?: number
  /** Written into the working directory first. */
  readonly files?: Readonly<Record<string, string>>
}

const TOKEN = { CLIENT_TOKEN: 'c-5pQz81xWnR2vLk07' }
const GOOD_TABLE = '[shop]\ntoken = "t-8mYw20zQpX4vKd63"\n'

/** Settings whose value is a text: each has a form that cannot work. */
const TEXTS: readonly Case[] = [
  { env: { API_HOST: 'not a host' }, says: 'API_HOST is "not a host"' },
  { env: { API_HOST: '999.1.1.1' }, says: 'API_HOST is "999.1.1.1"' },
  { env: { API_HOST: '0.0.0.0' }, says: 'Set CLIENT_TOKEN' },
  { env: { BLUEPRINTS_DIR: 'nowhere' }, says: 'nowhere: there is no such directory', code: EXIT.blueprintRefused },
  { env: { CLIENTS_CONFIG_PATH: 'nowhere.toml' }, says: 'nowhere.toml cannot be read' },
  { env: { WORKERS_CONFIG_PATH: 'nowhere.toml' }, says: 'nowhere.toml cannot be read' },
  { env: { SCHEDULES_CONFIG_PATH: 'nowhere.toml' }, says: 'nowhere.toml cannot be read' },
  { env: { DOCUMENTS_CONFIG_PATH: 'nowhere.yaml' }, says: 'nowhere.yaml cannot be read' },
  {
    env: { DOCUMENTS_CONFIG_PATH: 'd.yaml', DOCUMENTS_DIR: '/dev/null/documents' },
    files: { 'd.yaml': 'engine: {}' },
    says: 'DOCUMENTS_DIR: the directory /dev/null/documents cannot be used',
  },
  { env: { CLIENT_TOKEN: 'täglich' }, says: 'CLIENT_TOKEN must be 1 to' },
  { env: { WORKER_TOKEN: ' ends with a space ' }, says: 'WORKER_TOKEN must be 1 to' },
  { env: { INSTANCE_ID: 'one\ntwo' }, says: String.raw`INSTANCE_ID is "one\ntwo"` },
  { env: { STORAGE_URL: 'ftp://somewhere' }, says: 'STORAGE_URL is not understood' },
  { env: { STORAGE_URL: 'file:' }, says: 'STORAGE_URL names no directory' },
  { env: { STORAGE_URL: 'file:/dev/null/data' }, says: 'STORAGE_URL: the directory /dev/null/data cannot be used' },
  { env: { STORAGE_URL: 'redis://a:b:c' }, says: 'STORAGE_URL has a host that is not understood' },
  { env: { STORAGE_URL: 'redis://a/?colour=red' }, says: 'STORAGE_URL has a setting "colour" that is unknown' },
  { env: { STORAGE_URL: 'postgres://a/b?pool_max=0' }, says: 'pool_max must be a whole number' },
  { env: { STORAGE_URL: 'redis://a', REDIS_HOST: 'b' }, says: 'STORAGE_URL and REDIS_HOST name different storages' },
  { env: { REDIS_HOST: 'no host' }, says: 'REDIS_HOST is "no host"' },
  { env: { SECRET_KEY: 'abc' }, says: 'SECRET_KEY is too short' },
  { env: { PUBLIC_URL: 'jobs.example.com' }, says: 'PUBLIC_URL is "jobs.example.com"' },
  { env: { CORS_ORIGINS: 'example.com' }, says: 'CORS_ORIGINS has "example.com"' },
  { env: { TRUST_PROXY: 'evil' }, says: 'TRUST_PROXY has "evil"' },
  { env: { WEBHOOK_ALLOWED_PORTS: '443-' }, says: 'WEBHOOK_ALLOWED_PORTS is "443-"' },
  { env: { HISTORY_DATABASE_URI: 'mysql://x' }, says: 'HISTORY_DATABASE_URI is not understood' },
  { env: { HISTORY_DATABASE_URI: 'sqlite:/dev/null/h.db' }, says: 'the directory /dev/null cannot be used' },
  { env: { TLS_ENABLED: 'true' }, says: 'TLS_CERT_PATH is missing' },
  { env: { TLS_ENABLED: 'true', TLS_CERT_PATH: 'no.pem' }, says: 'TLS_CERT_PATH: no.pem cannot be read' },
  {
    env: { TLS_ENABLED: 'true', TLS_CERT_PATH: 'c.pem', TLS_KEY_PATH: 'c.pem' },
    files: { 'c.pem': 'junk' },
    says: 'do not go together',
  },
  {
    env: { TLS_ENABLED: 'true', TLS_CERT_PATH: 'c.pem', TLS_KEY_PATH: 'c.pem', TLS_CA_PATH: 'no.pem' },
    files: { 'c.pem': 'junk' },
    says: 'TLS_CA_PATH: no.pem cannot be read',
  },
  { env: { WORKER_AUTH_MODE: 'mtls-only' }, says: 'WORKER_AUTH_MODE is mtls-only, but TLS_ENABLED is not set' },
  { env: { FILES_DIR: '/dev/null/files' }, says: 'FILES_DIR: the directory /dev/null/files cannot be used' },
  { env: { TASK_FILES_DIR: '/dev/null/files' }, says: 'TASK_FILES_DIR: the directory /dev/null/files cannot be used' },
  { env: { S3_ENDPOINT_URL: 'minio:9000' }, says: 'S3_ENDPOINT_URL must be an address that begins with http' },
  { env: { S3_ACCESS_KEY: 'AKIA1' }, says: 'S3_ACCESS_KEY is set, but S3_SECRET_KEY is missing' },
  { env: { S3_SECRET_KEY: 'abc' }, says: 'S3_SECRET_KEY is set, but S3_ACCESS_KEY is missing' },
  { env: { S3_REGION: 'not a region' }, says: 'S3_REGION is "not a region"' },
  { env: { S3_DEFAULT_BUCKET: 'Not_A_Bucket' }, says: 'S3_DEFAULT_BUCKET must be the name of a bucket' },
  { env: { METRICS_TOKEN: 'täglich' }, says: 'METRICS_TOKEN must be at most' },
  { env: { MCP_HOSTS: 'not a host' }, says: 'MCP_HOSTS has "not a host"' },
  { env: { OAUTH_ISSUERS: 'http://login.example.com' }, says: 'OAUTH_ISSUERS has "http://login.example.com"' },
  { env: { OAUTH_ISSUERS: 'https://login.example.com' }, says: 'OAUTH_ISSUERS needs OAUTH_AUDIENCE or PUBLIC_URL' },
  { env: { OAUTH_AUDIENCE: 'my server' }, says: 'OAUTH_AUDIENCE has "my server"' },
  { env: { OAUTH_SCOPE_PREFIX: 'a b' }, says: 'OAUTH_SCOPE_PREFIX is "a b"' },
  { env: { MCP_AUTHORIZATION_SERVERS: 'login' }, says: 'MCP_AUTHORIZATION_SERVERS has "login"' },
  { env: { MCP_SERVERS_CONFIG_PATH: 'nowhere.json' }, says: 'nowhere.json cannot be read' },
  {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' },
    says: 'OTEL_EXPORTER_OTLP_ENDPOINT must be an address that begins with http',
  },
  {
    env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://user:word@localhost' },
    says: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an address that begins with http',
  },
  {
    env: { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'grpc://localhost' },
    says: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT must be an address that begins with http',
  },
  {
    env: { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'grpc://localhost' },
    says: 'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT must be an address that begins with http',
  },
  { env: { OTEL_EXPORTER_OTLP_HEADERS: 'no value' }, says: 'OTEL_EXPORTER_OTLP_HEADERS must be pairs of name=value' },
  { env: { OTEL_RESOURCE_ATTRIBUTES: 'a=%zz' }, says: 'OTEL_RESOURCE_ATTRIBUTES must be pairs of name=value' },
  { env: { OTEL_SERVICE_NAME: 'täglich' }, says: 'OTEL_SERVICE_NAME must be 1 to 255 printable' },
  { env: { TZ: 'Mars/Olympus' }, says: 'TZ is "Mars/Olympus"' },
  { env: { CLIENT_API_PREFIX: '_worker' }, says: 'CLIENT_API_PREFIX is "_worker"' },
]

/** From version 22.18 on. */
const readsTypes = 'typescript' in process.features && Boolean(process.features.typescript)

/** Files that are there and wrong. */
const FILES: readonly Case[] = [
  { env: { IMPRESARIO_CONFIG: 'x.toml' }, files: { 'x.toml': 'api_prt = 1' }, says: 'x.toml: api_prt is not a key' },
  { env: {}, files: { 'data/secret.key': 'junk' }, says: /secret\.key does not hold a key/ },
  { env: { CLIENTS_CONFIG_PATH: 'c.toml' }, files: { 'c.toml': '[shop]\nrole = "king"' }, says: 'token is missing' },
  { env: { WORKERS_CONFIG_PATH: 'w.toml' }, files: { 'w.toml': `${GOOD_TABLE}age = 3` }, says: 'age is not known' },
  { env: { SCHEDULES_CONFIG_PATH: 's.toml' }, files: { 's.toml': '[a]\nblueprint = "x"' }, says: 's.toml: [a]' },
  {
    env: { BLUEPRINTS_DIR: 'b' },
    files: { 'b/bad.mjs': 'setInterval(() => {}, 1000)\nthrow new Error("half a blueprint")' },
    says: 'bad.mjs: it cannot be loaded: half a blueprint',
    code: EXIT.blueprintRefused,
  },
  ...(readsTypes
    ? []
    : [
        {
          env: { BLUEPRINTS_DIR: 'b' },
          files: { 'b/typed.ts': 'export const count: number = 1' },
          says: /typed\.ts: Node [\d.]+ does not read TypeScript. Compile it to .js, or run Node 22.18 or newer/,
          code: EXIT.blueprintRefused,
        },
      ]),
]

/** One of each kind of number, choice and switch; `config.test.ts` has all of them. */
const VALUES: readonly Case[] = [
  { env: { API_PORT: '65536' }, says: 'API_PORT is "65536". It must be a whole number from 0 to 65535.' },
  { env: { LOG_LEVEL: 'loud' }, says: 'LOG_LEVEL is "loud". It must be one of' },
  { env: { TLS_ENABLED: 'perhaps' }, says: 'TLS_ENABLED is "perhaps". It must be true or false.' },
]

async function expectRefusal(one: Case, index: number): Promise<void> {
  const cwd = join(folder, String(index))
  await mkdir(cwd)
  for (const [name, text] of Object.entries(one.files ?? {})) {
    await mkdir(join(cwd, name, '..'), { recursive: true })
    await writeFile(join(cwd, name), text)
  }
  const host = { API_HOST: '127.0.0.1', API_PORT: '0' }
  const isRedis = 'REDIS_HOST' in one.env && !('STORAGE_URL' in one.env)
  const storage: Environment = isRedis ? {} : { STORAGE_URL: 'file:./data' }
  const ended = await runCli(['start'], { cwd, env: { ...host, ...storage, ...one.env } })
  const what = JSON.stringify(one.env)
  expect.soft({ what, code: ended.code }).toEqual({ what, code: one.code ?? EXIT.configurationRefused })
  expect.soft(ended.stderr).toMatch(one.says)
  expect.soft(ended.stderr, what).not.toContain('    at ')
  // Nothing was opened: no lock, no database. Only the directory may be there, and what was written into it before.
  const left = await readdir(join(cwd, 'data')).catch(() => [])
  expect.soft(left.filter((name) => name !== 'secret.key')).toEqual([])
}

test(
  '[H-01] a start that is refused ends by itself, says why, and has opened nothing',
  { timeout: 180_000 },
  async () => {
    const cases = [...TEXTS, ...FILES, ...VALUES]
    const queue = [...cases.entries()]
    const next = async (): Promise<void> => {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) await expectRefusal(one[1], one[0])
    }
    await Promise.all([next(), next(), next()])
    expect(queue).toEqual([])
  },
)

test('[H-01] every setting that is a text has a value that is refused', () => {
  const tried = new Set([...TEXTS, ...FILES].flatMap(({ env }) => Object.keys(env)))
  const texts = Object.values(CONFIG_KEYS).filter(({ type }) =>
    ['text', 'secret', 'path', 'prefix', 'time zone'].includes(type),
  )
  expect(texts.map(({ names }) => names[0]).filter((name) => !tried.has(name))).toEqual([])
})

test('[H-01] a port that is taken has an exit code of its own', async () => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  const { port } = holder.address() as AddressInfo
  const cwd = join(folder, 'taken')
  await mkdir(cwd)
  const env = { ...TOKEN, API_HOST: '127.0.0.1', API_PORT: String(port), STORAGE_URL: 'file:./data' }
  const ended = await runCli(['start'], { cwd, env })
  holder.close()
  expect(ended.stderr).toContain('another program has it')
  expect(ended.code).toBe(EXIT.cannotListen)
})
