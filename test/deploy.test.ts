/** What `deploy/` states about the program must be true: keys, ports, paths and times. */
import { ERROR_CODES, LIMITS, WORKER_PATHS } from '@impresario/protocol'
import { CONFIG_KEYS, createServer, loadSettings } from '@impresario/server'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '..')
const DEPLOY = join(ROOT, 'deploy')
const read = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8')

const KEYS = new Set(Object.values(CONFIG_KEYS).flatMap(({ names }) => names as readonly string[]))
/** Settings for other programs: Node, the program before it reads its configuration, the PostgreSQL image. */
const OTHERS = new Set(['NODE_ENV', 'IMPRESARIO_CONFIG', 'POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD_FILE'])

interface Service {
  readonly image: string
  readonly environment?: Readonly<Record<string, string>>
  readonly networks: Readonly<Record<string, { readonly ipv4_address?: string }>>
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly profiles?: readonly string[]
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly stop_grace_period?: string
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, unknown>>
}

/** Type boundary: the shape that the tests below rely on. */
const compose = parse(read('compose.yaml'), { merge: true }) as Compose
const orchestrators = Object.entries(compose.services).filter(([name]) => name.startsWith('orchestrator-'))

/** The longest time that a stop can take: all related keys, the end of the history, the last responses. */
const STOP_SECONDS = Object.values(CONFIG_KEYS).reduce(
  (total, key) => (/^SHUTDOWN_.*SECONDS$/.test(key.names[0]) ? total + Number(key.default) : total),
  11,
)

function matchesOf(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map((found) => found[1] ?? '')
}

/** The number in an nginx setting, which occurs once in the text. */
function amountOf(text: string, name: string): number {
  const found = matchesOf(text, new RegExp(`^ *${name} (\\d+)[a-z]*;$`, 'gm'))
  if (found.length !== 1) throw new Error(`${name} stands ${found.length} times in the text`)
  return Number(found[0])
}

test('[I-02] [K-17] defect 24: every variable that files of the deployment set is a key of the configuration', () => {
  const named = [
    ...Object.values(compose.services).flatMap(({ environment }) => Object.keys(environment ?? {})),
    ...matchesOf(read('Containerfile'), /^(?:ENV| {4})\s*([A-Z_]+)=/gm),
    ...matchesOf(read('impresario.env.example'), /^#?([A-Z_]+)=/gm),
    ...readdirSync(join(DEPLOY, 'systemd')).flatMap((name) =>
      matchesOf(read(`systemd/${name}`), /^Environment=([A-Z_]+)=/gm),
    ),
    ...matchesOf(read('nginx/impresario.conf'), /^# {3}([A-Z_]{4,}) /gm),
  ]
  expect(named.length).toBeGreaterThan(25)
  expect(named.filter((name) => !KEYS.has(name) && !OTHERS.has(name))).toEqual([])
})

test('[M-04] every key that the guide names is one', () => {
  const guide = readFileSync(join(ROOT, 'docs/guide/deployment.md'), 'utf8')
  const named = [...matchesOf(guide, /`([A-Z]+_[A-Z_]+)`/g), ...matchesOf(guide, /^([A-Z]+_[A-Z_]+)=/gm)]
  expect(named.length).toBeGreaterThan(15)
  const codes: readonly string[] = ERROR_CODES
  expect(named.filter((name) => !KEYS.has(name) && !OTHERS.has(name) && !codes.includes(name))).toEqual([])
})

test('[I-02] nginx waits longer than the longest poll, and gives connections up before an instance does', () => {
  const site = read('nginx/impresario.conf')
  const [general = '', socket = ''] = matchesOf(site, /proxy_read_timeout (\d+)s;/g)
  // Five seconds later the SDKs have given up the poll themselves.
  expect(Number(general) * 1_000).toBeGreaterThanOrEqual(LIMITS.longPollMsMax + 5_000)
  expect(Number(socket) * 1_000).toBeGreaterThan(3 * LIMITS.socketPingMs)
  expect(amountOf(read('nginx/nginx.conf'), 'worker_shutdown_timeout')).toBeGreaterThan(Number(general))
  expect(amountOf(site, 'client_max_body_size') * 1_048_576).toBeGreaterThan(LIMITS.bodyBytesMax)
  const upstream = read('nginx/upstream.conf')
  expect(amountOf(upstream, 'keepalive_timeout') * 1_000).toBeLessThan(LIMITS.keepAliveMs)
})

test('[I-02] the paths of nginx are those of the worker protocol', () => {
  const site = read('nginx/impresario.conf')
  const places = matchesOf(site, /^ {4}location (\/\S*) \{/gm).filter((path) => path.startsWith('/_worker'))
  const placeOf = (path: string): string | undefined =>
    places.filter((place) => path.startsWith(place)).toSorted((one, other) => other.length - one.length)[0]
  expect(placeOf(WORKER_PATHS.socket('w'))).toBe('/_worker/ws')
  expect([WORKER_PATHS.token, WORKER_PATHS.tokenRefresh].map(placeOf)).toEqual(['/_worker/auth/', '/_worker/auth/'])
  const calls = [WORKER_PATHS.register, WORKER_PATHS.worker('w'), WORKER_PATHS.nextTask('w'), WORKER_PATHS.results]
  expect(new Set(calls.map(placeOf))).toEqual(new Set(['/_worker/']))
  expect(new Set(places)).toEqual(new Set(['/_worker/', '/_worker/auth/', '/_worker/ws']))
})

test('[I-02] what nginx refuses by itself has the shape and a code of our errors', () => {
  const refusals = matchesOf(read('nginx/impresario.conf'), /'(\{"error".*\})'/g)
  expect(refusals).toHaveLength(3)
  for (const text of refusals) {
    const body = JSON.parse(text.replace('$status', '500')) as Readonly<Record<string, string>>
    const { code = '' } = body
    expect(Object.keys(body)).toEqual(['error', 'code', 'type', 'title', 'status', 'detail'])
    expect([body['type'], body['detail']]).toEqual([`urn:impresario:error:${code}`, body['error']])
    expect(ERROR_CODES).toContain(code)
  }
})

test('[I-02] the instances of compose.yaml are those that nginx knows, and they believe nginx alone', () => {
  const serversIn = (name: string): readonly string[] => matchesOf(read(`nginx/${name}`), /^ +server (\S+) /gm)
  const expected = orchestrators.map(([name, { environment }]) => `${name}:${environment?.['API_PORT']}`)
  expect(expected.length).toBeGreaterThan(1)
  expect(serversIn('upstream.compose.conf')).toEqual(expected)
  const withoutServers = (name: string): readonly string[] =>
    read(`nginx/${name}`)
      .split('\n')
      .filter((line) => /^ +[a-z]/.test(line) && !line.includes(' server '))
  expect(withoutServers('upstream.compose.conf')).toEqual(withoutServers('upstream.conf'))
  const address = compose.services['nginx']?.networks['inside']?.ipv4_address
  for (const [name, { environment }] of orchestrators) {
    expect(environment).toMatchObject({ TRUST_PROXY: address, INSTANCE_ID: name })
  }
})

test('[I-02] the files, volumes, secrets and services that compose.yaml names are there', () => {
  expect(compose.services['redis']?.profiles).toEqual(['redis'])
  expect(compose.services['postgres']?.profiles).toEqual(['postgres'])
  for (const { volumes = [], secrets = [], depends_on: needs = {} } of Object.values(compose.services)) {
    for (const volume of volumes) {
      const [source = ''] = volume.split(':', 1)
      // These belong to the user; the guide says what to put into them.
      if (['./tls', './blueprints'].includes(source)) continue
      // Created by make-secrets.sh, as the test below checks.
      if (source === './secrets/config') continue
      const isThere = source.startsWith('./') ? existsSync(join(DEPLOY, source)) : source in compose.volumes
      expect({ source, isThere }).toEqual({ source, isThere: true })
    }
    for (const secret of secrets) expect(compose.secrets).toHaveProperty([secret])
    for (const service of Object.keys(needs)) expect(compose.services).toHaveProperty([service])
  }
})

test('[I-07] whoever stops the program gives it longer than it takes to stop by itself', () => {
  for (const [, { stop_grace_period: grace = '' }] of orchestrators) {
    expect(Number(grace.replace(/s$/, ''))).toBeGreaterThan(STOP_SECONDS)
  }
  for (const name of readdirSync(join(DEPLOY, 'systemd'))) {
    const [seconds] = matchesOf(read(`systemd/${name}`), /^TimeoutStopSec=(\d+)$/gm)
    expect(Number(seconds)).toBeGreaterThan(STOP_SECONDS)
  }
})

test('[I-02] units and image start what is built, and the image offers the port that it listens on', () => {
  for (const name of readdirSync(join(DEPLOY, 'systemd'))) {
    const [program = ''] = matchesOf(
      read(`systemd/${name}`),
      /^ExecStart=\/usr\/bin\/node \/opt\/impresario\/(\S+) start$/gm,
    )
    const source = program.replace('/dist/', '/src/').replace(/\.js$/, '.ts')
    expect({ source, isThere: existsSync(join(ROOT, source)) }).toEqual({ source, isThere: true })
  }
  const image = read('Containerfile')
  const [link = ''] = matchesOf(image, /ln -s \/opt\/impresario\/(\S+) \/usr\/local\/bin\/impresario/g)
  expect(statSync(join(ROOT, link)).mode & 0o100).not.toBe(0)
  const port = String(CONFIG_KEYS.apiPort.default)
  expect(matchesOf(image, /^EXPOSE (\d+)$/gm)).toEqual([port])
  expect(matchesOf(image, /API_PORT=(\d+)/g)).toEqual([port])
})

test('[I-02] the image gets the manifests of all workspaces, and no secrets, tests or builds', () => {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const { workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { workspaces: string[] }
  for (const place of workspaces) {
    const [top = ''] = place.split('/', 1)
    const manifest = `${place}/package.json`
    const isIn = lines.includes(`!${top}`) || lines.includes(`!${manifest}`)
    expect({ manifest, isIn }).toEqual({ manifest, isIn: true })
  }
  expect(lines[0]).toBe('*')
  expect(lines).toEqual(expect.arrayContaining(['**/node_modules', '**/dist', '**/*.test.ts', '**/*.key', '**/*.env']))
})

test.for(['redis', 'postgres'])(
  '[I-02] the secrets that are made for %s are accepted, and never made twice',
  (storage) => {
    const directory = mkdtempSync(join(tmpdir(), 'impresario-secrets-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const secrets = join(directory, 'secrets')
    const make = (): unknown => execFileSync(join(DEPLOY, 'make-secrets.sh'), [storage, secrets], { stdio: 'ignore' })
    make()
    const file = join(secrets, 'impresario.toml')
    const before = readFileSync(file, 'utf8')
    const settings = loadSettings({ environment: { IMPRESARIO_CONFIG: file }, directory })
    const { secretKey, storageUrl } = settings
    const config = (name: string): string => readFileSync(join(secrets, 'config', name), 'utf8')
    const tokens = ['clients.toml', 'workers.toml'].flatMap((name) => matchesOf(config(name), /^token = "(.*)"$/gm))
    expect(new Set([...tokens, secretKey].map((secret) => secret.length))).toEqual(new Set([48]))
    expect(new Set([...tokens, secretKey]).size).toBe(3)
    const { hostname, password } = new URL(storageUrl)
    // The program looks for its files where compose.yaml puts them, and accepts them unchanged, on a public address.
    const places = [settings.clientsConfigPath, settings.workersConfigPath, settings.schedulesConfigPath]
    for (const [, { volumes = [] }] of orchestrators) {
      expect(volumes).toContain('./secrets/config:/etc/impresario:ro')
      expect(volumes.some((one) => one.endsWith(':/var/lib/impresario'))).toBe(true)
    }
    expect(places.map((place) => dirname(place))).toEqual(Array.from({ length: 3 }, () => '/etc/impresario'))
    const [clientsConfigPath = '', workersConfigPath = '', schedulesConfigPath = ''] = places.map((place) =>
      join(secrets, 'config', basename(place)),
    )
    expect(settings.historyDatabaseUri).toMatch(storage === 'redis' ? /^sqlite:\/var\/lib\/impresario\// : /^postgres:/)
    const paths = { clientsConfigPath, workersConfigPath, schedulesConfigPath }
    const server = createServer({
      settings: { ...paths, apiHost: '0.0.0.0', storageUrl: 'memory:', logLevel: 'silent' },
    })
    expect(server.reloadCredentials()).toEqual({ status: 'reloaded', clients: 1, workers: 1 })
    expect(statSync(join(secrets, 'config')).mode & 0o777).toBe(0o755)
    for (const path of Object.values(paths)) expect(statSync(path).mode & 0o777).toBe(0o644)
    expect(Object.keys(compose.services)).toContain(hostname)
    const kept = storage === 'redis' ? `requirepass ${password}\n` : password
    expect(readFileSync(join(secrets, storage === 'redis' ? 'redis-password.conf' : 'postgres-password'), 'utf8')).toBe(
      kept,
    )
    expect(statSync(secrets).mode & 0o077).toBe(0)
    make()
    expect(readFileSync(file, 'utf8')).toBe(before)
  },
)
