import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'
import type { CliOptions, Ended } from './run-cli.fixture.ts'

const passing = blueprint('passing', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) => actions.transitionTo('done', { step: 1 })),
  done: state.end({ result: (context) => ({ got: context.initialData['name'] ?? null }) }),
}))
const failing = blueprint('failing', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) => actions.transitionTo('bad')),
  bad: state.end({ outcome: 'failed' }),
}))
const asking = blueprint('asking', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Shall we?', transitions: { approved: 'yes', rejected: 'no' } }),
  ),
  yes: state.end(),
  no: state.end({ outcome: 'failed' }),
}))
const working = blueprint('working', { start: 'work' }, (state) => ({
  work: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'rare.skill', transitions: { success: 'done', partial: 'done' } }),
  ),
  done: state.end(),
}))
const broken = blueprint('broken', { start: 'begin', handlerAttemptsMax: 1 }, (state) => ({
  begin: state.handler((context, actions) => {
    if (context.initialData['mended'] !== true) throw new Error('It is broken.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

/** Boundary: vitest types its matchers as `any`. */
const containing = (text: string): unknown => expect.stringContaining(text)

let server: Server
let url = ''
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-cli-'))
  server = createServer({
    blueprints: [passing, failing, asking, working, broken],
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: 'memory:',
      logLevel: 'silent',
      clientToken: 'client-token-of-the-test',
    },
  })
  url = (await server.start()).address
})

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

function cli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const env = { IMPRESARIO_URL: url, IMPRESARIO_TOKEN: 'client-token-of-the-test', ...options.env }
  return runCli(args, { cwd: folder, ...options, env })
}

async function json(args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await cli([...args, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

async function started(name: string, data?: object): Promise<string> {
  const args = data === undefined ? [] : ['--data', JSON.stringify(data)]
  const { job_id: id } = (await json(['jobs', 'start', name, ...args])) as { readonly job_id: string }
  return id
}

/** Waits, on the server, until the job has this status. */
async function untilStatus(id: string, status: string): Promise<void> {
  const { signal } = new AbortController()
  for (let version = 0; ;) {
    const stored = await server.engine.waitForJob(id, { afterVersion: version, waitMs: 10_000, signal })
    if (stored?.value.status === status) return
    version = stored?.version ?? 0
  }
}

describe('[M-03] jobs', () => {
  test('are started with data, watched to their end, and shown', async () => {
    const watched = await cli(['jobs', 'start', 'passing', '--data', '{"name":"Ada"}', '--watch'])
    expect(watched).toMatchObject({ code: 0, stderr: '' })
    expect(watched.stdout).toContain('job finished')
    expect(watched.stdout).toContain('"got": "Ada"')
    // Lines for a program: no colours, nothing that is drawn over.
    expect(stripVTControlCharacters(watched.stdout)).toBe(watched.stdout)
    expect(watched.stdout).not.toContain('\r')
    const id = /Started job (\S+)/.exec(watched.stdout)?.[1] ?? ''
    const shown = await cli(['jobs', 'show', id])
    expect(shown.stdout).toMatch(/^status +finished$/m)
    expect(await json(['jobs', 'show', id])).toMatchObject({ id, status: 'finished', result: { got: 'Ada' } })
  })

  test('take their data from a file and from standard input too', async () => {
    await writeFile(join(folder, 'data.json'), '{"name":"from a file"}')
    const file = await cli(['jobs', 'start', 'passing', '--data', '@data.json', '--watch'])
    expect(file.stdout).toContain('from a file')
    const input = await cli(['jobs', 'start', 'passing', '--data', '-', '--watch'], { input: '{"name":"from stdin"}' })
    expect(input.stdout).toContain('from stdin')
  })

  test('are listed in columns, and as JSON', async () => {
    const id = await started('failing')
    await untilStatus(id, 'failed')
    const { stdout } = await cli(['jobs', 'list', '--blueprint', 'failing'])
    const [head = '', row = ''] = stdout.split('\n')
    expect(head.split(/ {2,}/).slice(0, 4)).toEqual(['JOB', 'BLUEPRINT', 'STATUS', 'STATE'])
    expect(row.indexOf('failing')).toBe(head.indexOf('BLUEPRINT'))
    expect(row.indexOf('failed')).toBe(head.indexOf('STATUS'))
    expect(await json(['jobs', 'list', '--status', 'failed', '--limit', '1'])).toMatchObject([{ id }])
    expect((await cli(['jobs', 'list', '--status', 'error'])).stdout).toBe('No matching jobs.\n')
  })

  test('watching ends with 3 when the job did not finish', async () => {
    const failed = await started('failing')
    expect(await cli(['jobs', 'watch', failed])).toMatchObject({ code: 3, stderr: '' })
    const cancelled = await started('asking')
    const watching = cli(['jobs', 'watch', cancelled, '--json'])
    expect(await json(['jobs', 'cancel', cancelled, '--reason', 'not today'])).toEqual({ status: 'ok' })
    const { code, stdout } = await watching
    expect(code).toBe(3)
    const last: unknown = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
    expect(last).toMatchObject({ status: 'cancelled', error_message: 'not today' })
  })

  test('that cannot go on by themselves say so while they are watched, and the watch ends in time', async () => {
    for (const [name, hint] of [
      ['asking', 'It waits for you: impresario jobs approve '],
      ['working', 'No worker can take rare.skill now: impresario explain '],
    ] as const) {
      const id = await started(name)
      const onOutput = (text: string): void => {
        if (text.includes(hint)) void server.engine.cancelJob(id, 'the test')
      }
      const { code, stdout } = await cli(['jobs', 'watch', id], { onOutput })
      expect(code).toBe(3)
      expect(stdout.split(`${hint}${id}\n`)).toHaveLength(2)
    }
    const late = await cli(['jobs', 'start', 'asking', '--watch', '--timeout', '1s'])
    expect(late).toMatchObject({ code: 4, stderr: containing('did not end within 1.0 s. It keeps running.') })
    expect((await cli(['jobs', 'start', 'asking', '--timeout', '2s'])).code).toBe(2)
  })

  test('are started although the reader of the output has gone', async () => {
    const env = { IMPRESARIO_URL: url, IMPRESARIO_TOKEN: 'client-token-of-the-test' }
    const ended = await runCli(['jobs', 'start', 'passing', '--watch'], { cwd: folder, env, hasReader: false })
    expect(ended).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('that wait for a person are answered', async () => {
    const id = await started('asking')
    await untilStatus(id, 'waiting_for_human')
    expect((await cli(['jobs', 'show', id])).stdout).toContain(`impresario jobs approve ${id}`)
    const asked = await cli(['jobs', 'approve', id])
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    expect(asked.stdout).toContain('? Shall we?')
    expect(asked.stdout).toMatch(/impresario jobs approve \S+ rejected --visit \d+/)
    expect(asked.stdout).toContain(`${url}/_public/webhooks/approval/${id}?capability=`)
    const { visit } = (await json(['jobs', 'approve', id])) as { readonly visit: number }
    for (const args of [['perhaps'], ['--comment', 'why']]) {
      const wrong = await cli(['jobs', 'approve', id, ...args])
      expect(wrong).toMatchObject({ code: 2, stdout: '' })
      expect(wrong.stderr).toContain('Possible decisions: approved, rejected.')
    }
    const stale = await cli(['jobs', 'approve', id, 'approved', '--visit', String(visit + 1)])
    expect(stale).toMatchObject({ code: 1, stdout: '' })
    expect(stale.stderr).toContain('See what it asks now')
    const answer = ['jobs', 'approve', id, 'approved', '--visit', String(visit), '--comment', 'Go on.']
    expect(await cli(answer)).toMatchObject({ code: 0 })
    expect(await cli(['jobs', 'watch', id])).toMatchObject({ code: 0 })
    // The first answer may have been lost: the same decision once more is done, another one is not.
    const again = await cli(['jobs', 'approve', id, 'approved'])
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('Decision "approved" recorded')])
    expect(await cli(answer)).toMatchObject({ code: 0 })
    expect(await cli(['jobs', 'approve', id, 'rejected'])).toMatchObject({ code: 1, stdout: '' })
    expect(await cli(['jobs', 'approve', id])).toMatchObject({ code: 1, stdout: '' })
  })

  test('in quarantine are tried again or given up', async () => {
    const [first, second] = [await started('broken'), await started('broken')]
    await untilStatus(first, 'quarantined')
    const watched = await cli(['jobs', 'watch', second])
    expect(watched.code).toBe(3)
    expect(watched.stdout).toContain(`jobs discard ${second}`)
    expect((await cli(['jobs', 'show', first])).stdout).toContain('It is broken.')
    expect(await cli(['jobs', 'retry', first, '--data', '{"mended":true}'])).toMatchObject({ code: 0 })
    expect(await cli(['jobs', 'watch', first])).toMatchObject({ code: 0 })
    expect(await cli(['jobs', 'discard', second])).toMatchObject({ code: 0 })
    expect(await cli(['jobs', 'watch', second])).toMatchObject({ code: 3 })
    expect(await cli(['jobs', 'discard', second])).toMatchObject({ code: 0 })
    const late = await cli(['jobs', 'retry', second])
    expect(late).toMatchObject({ code: 1, stdout: '' })
    expect(late.stderr).not.toContain('should not')
  })

  test('[M-03] run again from one of their states; a wrong name gets a suggestion', async () => {
    const first = await started('broken')
    await untilStatus(first, 'quarantined')
    const again = await json(['jobs', 'retry', first, '--to', 'begin', '--data', '{"mended":true}'])
    const { job_id: second } = again as { readonly job_id: string }
    expect(second).not.toBe(first)
    expect(await cli(['jobs', 'watch', second])).toMatchObject({ code: 0 })
    expect(await json(['jobs', 'show', first])).toMatchObject({ status: 'quarantined' })
    expect((await cli(['jobs', 'retry', first, '--to', 'begni'])).stderr).toContain('Did you mean "begin"?')
    expect((await cli(['jobs', 'start', 'pasing'])).stderr).toContain('Did you mean "passing"?')
    expect((await cli(['jobs', 'discard', first])).code).toBe(0)
  })

  test('are explained', async () => {
    const id = await started('working')
    await untilStatus(id, 'waiting_for_worker')
    expect((await cli(['explain', id])).stdout).toContain('No worker is live.')
    expect(await json(['explain', id])).toMatchObject({ tasks: [{ type: 'rare.skill', where: 'waiting' }] })
    await server.localTransport().register({ worker_id: 'clumsy', supported_skills: ['other.skill'] })
    const { stdout } = await cli(['explain', id])
    expect(stdout).toContain("No live worker has the skill 'rare.skill'.")
    expect(stdout).toMatch(/✗ +clumsy/)
    expect((await cli(['workers', 'list'])).stdout).toMatch(/^clumsy .*other\.skill$/m)
    expect(await json(['workers'])).toMatchObject([{ worker_id: 'clumsy' }])
    expect((await cli(['workers', 'show', 'clumsy'])).stdout).toMatch(/^skills +other\.skill$/m)
    expect(await json(['workers', 'show', 'clumsy'])).toMatchObject({ worker_id: 'clumsy' })
    const missing = await cli(['workers', 'show', 'nobody'])
    expect(missing).toMatchObject({ code: 1, stdout: '' })
    expect(missing.stderr).toContain('impresario workers list')
    expect((await cli(['skills'])).stdout).toMatch(/^other\.skill +1 /m)
    expect(await json(['skills'])).toMatchObject({ 'other.skill': { providers_count: 1 } })
  })
})

describe('[M-03] blueprints', () => {
  test('are listed', async () => {
    expect((await cli(['blueprint', 'list'])).stdout).toMatch(/^asking +1 +ask +ask, yes, no$/m)
    expect(await json(['blueprint'])).toContainEqual(expect.objectContaining({ name: 'passing', version: 1 }))
    const { stdout } = await cli(['blueprint', 'show', 'asking'])
    expect(stdout).toMatch(/^ask +handler +yes, no$/m)
    expect((await cli(['blueprint', 'show', 'working'])).stdout).toMatch(/^work +handler +done$/m)
    expect(await json(['blueprint', 'show', 'asking', '--blueprint-version', '1'])).toMatchObject({ name: 'asking' })
    expect(await cli(['blueprint', 'show', 'asking', '--blueprint-version', '2'])).toMatchObject({ code: 1 })
  })

  test('are drawn by the server', async () => {
    expect((await cli(['blueprint', 'graph', 'asking'])).stdout).toMatch(/^digraph "asking"/)
    const { code, stderr } = await cli(['blueprint', 'graph', 'nobody'])
    expect(code).toBe(1)
    expect(stderr).toContain('impresario blueprint list')
  })

  test('are drawn from their file without a server', async () => {
    const file = fileURLToPath(new URL('../../../examples/src/01-publish-video/blueprint.ts', import.meta.url))
    const env = { IMPRESARIO_URL: 'http://127.0.0.1:9' }
    const several = await cli(['blueprint', 'graph', file], { env })
    expect(several).toMatchObject({ code: 2, stdout: '' })
    expect(several.stderr).toContain('publish_video')
    const picture = join(folder, 'graph.svg')
    expect(await cli(['blueprint', 'graph', file, '--name', 'publish_video', '-o', picture], { env })).toMatchObject({
      code: 0,
      stderr: '',
    })
    expect(await readFile(picture, 'utf8')).toMatch(/^<svg[\s\S]*transcode[\s\S]*<\/svg>/)
  })
})

describe('[M-03] what goes wrong is said with a way out, on the error stream', () => {
  test('a job that is not there', async () => {
    const { code, stdout, stderr } = await cli(['jobs', 'show', 'nowhere'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('impresario jobs list')
  })

  test('a word that a group of commands does not have', async () => {
    const { code, stdout, stderr } = await cli(['jobs', 'lst'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain("unknown command 'jobs lst'; there is list, show,")
    expect((await cli(['jobs', '--status', 'finished'])).code).toBe(0)
  })

  test('a job that waits for a person has no task to explain, but a next step', async () => {
    const id = await started('asking')
    await untilStatus(id, 'waiting_for_human')
    expect((await cli(['explain', id])).stdout).toContain(`It waits for you: impresario jobs approve ${id}`)
  })

  test('a server that is not there', async () => {
    const { code, stdout, stderr } = await cli(['jobs', 'list', '--url', 'http://127.0.0.1:9'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('http://127.0.0.1:9')
    expect(stderr).toContain('impresario dev')
  })

  test('a wrong token, and none', async () => {
    const wrong = await cli(['jobs', 'list', '--token', 'wrong', '--json'])
    expect({ code: wrong.code, stdout: wrong.stdout }).toEqual({ code: 1, stdout: '' })
    expect(JSON.parse(wrong.stderr)).toMatchObject({
      code: 'UNAUTHENTICATED',
      hint: expect.stringContaining('--token') as unknown,
    })
    const none = await runCli(['jobs', 'list', '--url', url], { cwd: folder })
    expect(none.code).toBe(1)
    expect(none.stderr).toContain('requires a token')
  })

  test.for([
    [['jobs', 'dance']],
    [['jobs', 'show']],
    [['jobs', 'list', '--limit', 'many']],
    [['jobs', 'list', '--nonsense']],
    [['jobs', 'start', 'passing', '--data', '[1]']],
    [['jobs', 'list', '--url', 'here']],
    [['jobs', 'list', '--since', 'yesterday']],
    [['quarantine', 'retry']],
    [['quarantine', 'discard', '--blueprint', 'broken']],
    [['quarantine', 'discard', 'some-job', '--all']],
    [['quarantine', 'list', '--older-than', '5']],
    [['quarantine', 'edit', 'some-job', '--data', '-', '--history', '-']],
    [['webhooks', 'deliveries', '--status', 'lost']],
    [['blueprint', 'graph', 'x', '--format', 'pdf']],
  ] as const)('%j is a wrong use and ends with 2', async ([args]) => {
    const { code, stdout, stderr } = await cli(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).not.toBe('')
  })
})

test('[M-03] a development server in this directory is found by itself, and only it gets its token', async () => {
  const here = join(folder, 'here')
  await mkdir(join(here, 'impresario-data'), { recursive: true })
  const state = { url, client_token: 'client-token-of-the-test', worker_token: 'w' }
  await writeFile(join(here, 'impresario-data/dev.json'), JSON.stringify(state))
  expect(await runCli(['blueprint', 'list'], { cwd: here })).toMatchObject({ code: 0 })
  expect(await runCli(['blueprint', 'list', '--url', `${url}/`], { cwd: here })).toMatchObject({ code: 0 })
  const other = await runCli(['blueprint', 'list', '--url', url.replace('127.0.0.1', 'localhost')], { cwd: here })
  expect(other.stderr).toContain('requires a token')
})

test('[M-03] colours are for terminals, and for those who ask for them', async () => {
  expect((await cli(['blueprint', 'list'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001B[')
  const no = { FORCE_COLOR: '1', NO_COLOR: '1' }
  expect((await cli(['blueprint', 'list'], { env: no })).stdout).not.toContain('\u001B[')
  expect((await cli(['blueprint', 'list', '--json'], { env: { FORCE_COLOR: '1' } })).stdout).not.toContain('\u001B[')
})

test.for([[['--version']], [['--help']], [['jobs', 'list']]] as const)(
  '[M-03] %j does not load the server',
  async ([args]) => {
    const spy =
      'import Module from "node:module"; process.on("exit", () => { for (const path of Object.keys(Module._cache)) ' +
      'if (/node_modules.(fastify|pino|tsx|@viz-js)./.test(path)) console.error("loaded " + path) })'
    const { code, stderr } = await cli(args, {
      nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(spy)}`],
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  },
)
