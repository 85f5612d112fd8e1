import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createClient } from '@impresario/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { EXIT } from './failure.ts'

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const CORE = new URL('../../../packages/core/dist/index.js', import.meta.url).href

/** One blueprint that is done at once, and one whose handler never is. */
const BLUEPRINTS = `
import { blueprint } from '${CORE}'
export const quick = blueprint('quick', { start: 'begin' }, (state) => ({
  begin: state.handler((context, actions) => actions.transitionTo('done')),
  done: state.end({ result: () => 'quick' }),
}))
export const endless = blueprint('endless', { start: 'begin' }, (state) => ({
  begin: state.handler(async (context, actions) => {
    console.log('the handler runs')
    await new Promise(() => {})
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))
`

let folder = ''
let child: ChildProcessByStdio<null, Readable, Readable> | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-servers-'))
  await mkdir(join(folder, 'blueprints'))
  await writeFile(join(folder, 'blueprints/some.mjs'), BLUEPRINTS)
})

afterEach(async () => {
  child?.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

interface Running {
  readonly closed: Promise<number | null>
  readonly output: () => string
  says(text: string): Promise<void>
  signal(name: NodeJS.Signals): void
}

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const started = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', API_HOST: '127.0.0.1', API_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child = started
  let output = ''
  let look = (): void => {}
  for (const stream of [started.stdout, started.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      look()
    })
  }
  const closed = new Promise<number | null>((resolve) => started.once('close', resolve))
  return {
    closed,
    output: () => output,
    says: (text) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (output.includes(text)) resolve()
        }
        look()
        void closed.then((code) => reject(new Error(`It ended with ${code} and never said "${text}":\n${output}`)))
      }),
    signal: (name) => {
      started.kill(name)
    },
  }
}

function addressIn(output: string): string {
  return /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0] ?? ''
}

test('[M-03] start runs what the environment says, and ends well when it is told to', async () => {
  const server = run(['start'], {
    BLUEPRINTS_DIR: 'blueprints',
    STORAGE_URL: 'file:./data',
    CLIENT_TOKEN: 'token-of-the-client',
    WORKER_TOKEN: 'token-of-the-workers',
    LOG_LEVL: 'debug',
  })
  await server.says('listening')
  expect(server.output()).toContain('The variable LOG_LEVL is not a setting. Did you mean LOG_LEVEL?')
  const client = createClient({ url: addressIn(server.output()), token: 'token-of-the-client' })
  const job = await client.start('quick')
  expect(await job.result()).toBe('quick')
  server.signal('SIGTERM')
  expect(await server.closed).toBe(0)
  expect(server.output()).toContain('Stopping: waiting up to 25 s')
})

test('[M-03] start refuses to be open to everybody, in a sentence', async () => {
  const server = run(['start'], { API_HOST: '0.0.0.0' })
  expect(await server.closed).toBe(EXIT.configurationRefused)
  expect(server.output()).toContain('Set CLIENT_TOKEN')
  expect(server.output()).not.toContain('    at ')
})

test('[H-01] a blueprint that leaves a timer behind does not keep a server that is told to end', async () => {
  await writeFile(join(folder, 'blueprints/some.mjs'), `${BLUEPRINTS}\nsetInterval(() => {}, 1_000)\n`)
  const server = run(['start'], { BLUEPRINTS_DIR: 'blueprints', STORAGE_URL: 'memory:' })
  await server.says('listening')
  server.signal('SIGTERM')
  expect(await server.closed).toBe(EXIT.ok)
})

const NIGHTLY = '[nightly]\nblueprint = "quick"\ndaily_at = "03:00"\n'

test('[H-02] SIGHUP reads clients and schedules anew, and what is wrong in them changes nothing', async () => {
  const clients = join(folder, 'clients.toml')
  const schedules = join(folder, 'schedules.toml')
  await writeFile(clients, '[early]\ntoken = "token-of-early-1b2c"\n')
  await writeFile(schedules, NIGHTLY)
  const server = run(['start'], {
    BLUEPRINTS_DIR: 'blueprints',
    STORAGE_URL: 'memory:',
    CLIENTS_CONFIG_PATH: clients,
    SCHEDULES_CONFIG_PATH: schedules,
    WORKER_TOKEN: 'token-of-the-workers',
  })
  await server.says('listening')
  const as = (token: string) => createClient({ url: addressIn(server.output()), token }).account()
  await expect(as('token-of-late-3f3f')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })

  await writeFile(clients, '[late]\ntoken = "token-of-late-3f3f"\n')
  await writeFile(schedules, `${NIGHTLY}\n[hourly]\nblueprint = "quick"\ninterval_seconds = 3600\n`)
  server.signal('SIGHUP')
  await server.says('clients and workers reloaded')
  expect(server.output()).toContain('schedules reloaded')
  expect(await as('token-of-late-3f3f')).toMatchObject({ clientId: 'late' })
  await expect(as('token-of-early-1b2c')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })

  await writeFile(clients, '[late]\nrole = "king"\n')
  await writeFile(schedules, '[nightly]\nblueprint = "quick"\n')
  server.signal('SIGHUP')
  await server.says('what was in force before still is')
  expect(await as('token-of-late-3f3f')).toMatchObject({ clientId: 'late' })
  server.signal('SIGTERM')
  expect(await server.closed).toBe(0)
})

test('[M-01] dev runs blueprints of a directory instead of the demo; a second signal ends it at once', async () => {
  const server = run(['dev', '--blueprints', 'blueprints', '--json'])
  await server.says('jobs start <blueprint>')
  const state = JSON.parse(
    server
      .output()
      .split('\n')
      .find((line) => line.startsWith('{')) ?? '',
  ) as {
    readonly url: string
    readonly client_token: string
  }
  const client = createClient({ url: state.url, token: state.client_token })
  expect((await client.blueprints()).map(({ name }) => name)).toEqual(['endless', 'quick'])
  expect(server.output()).toContain('http.request and webhooks may reach this machine')
  const called = await client.automations.create({
    title: 'Call home',
    pipeline: [{ id: 'get', uses: 'http.request', with: { url: `${state.url}/_public/live` } }],
  })
  const { runId } = await client.automations.run(called.id)
  await vi.waitFor(async () => expect((await client.runs.get(runId ?? '')).status).toBe('succeeded'), 30_000)
  // Tokens and keys lie there.
  expect(await readFile(join(folder, 'impresario-data/.gitignore'), 'utf8')).toBe('*\n')
  await client.start('endless')
  await server.says('the handler runs')
  server.signal('SIGINT')
  await server.says('again to stop at once.')
  server.signal('SIGINT')
  expect(await server.closed).toBe(130)
})

test('[M-01] dev names the process that has the directory already', async () => {
  const first = run(['dev', '--blueprints', 'blueprints'])
  await first.says('jobs start <blueprint>')
  const holder = child
  const second = run(['dev', '--blueprints', 'blueprints'])
  expect(await second.closed).toBe(EXIT.dataInUse)
  expect(second.output()).toContain(`is in use by process ${holder?.pid}`)
  first.signal('SIGTERM')
  expect(await first.closed).toBe(0)
})
