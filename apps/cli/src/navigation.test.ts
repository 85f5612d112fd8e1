import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'
import type { Ended } from './run-cli.fixture.ts'

const TOKEN = 'token-of-the-navigator'
const inner = blueprint('inner', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'done' } }),
  ),
  done: state.end(),
}))
const outer = blueprint('outer', { start: 'run' }, (state) => ({
  run: state.handler((_context, actions) => actions.runBlueprint({ name: 'inner', transitions: { success: 'done' } })),
  done: state.end(),
}))

let server: Server
let client: Client
let url = ''
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-navigation-'))
  server = createServer({
    blueprints: [inner, outer],
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'silent', clientToken: TOKEN },
  })
  url = (await server.start()).address
  client = createClient({ url, token: TOKEN })
})
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

function cli(args: readonly string[], input = ''): Promise<Ended> {
  return runCli(args, { cwd: folder, input, env: { IMPRESARIO_URL: url, IMPRESARIO_TOKEN: TOKEN } })
}

/** A job whose child waits for a person, and that child. */
async function family(): Promise<{ readonly parent: string; readonly child: string }> {
  const job = await client.start('outer')
  for await (const { status } of job.watch()) if (status === 'waiting_for_child') break
  const { children } = await job.explain()
  const child = children[0]?.jobId ?? ''
  for await (const { status } of client.job(child).watch()) if (status === 'waiting_for_human') break
  return { parent: job.id, child }
}

test('[M-03] a parent that waits leads to its child, and the child to its parent', async () => {
  const { parent, child } = await family()
  expect(await client.explain(parent)).toMatchObject({
    parentJobId: null,
    children: [{ jobId: child, blueprintName: 'inner', status: 'waiting_for_human' }],
  })
  expect(await client.explain(child)).toMatchObject({ parentJobId: parent, children: [] })
  for (const args of [
    ['jobs', 'show', parent],
    ['explain', parent],
  ]) {
    const { stdout } = await cli(args)
    expect(stdout).toMatch(new RegExp(`^${child} +inner +waiting for human$`, 'm'))
    expect(stdout).toContain(`It waits for its child: impresario explain ${child}`)
  }
  expect((await cli(['explain', child])).stdout).toContain(`It is a child of ${parent}`)
  expect((await cli(['jobs', 'show', child])).stdout).toMatch(new RegExp(`^parent +${parent}$`, 'm'))
})

test('[M-03] jobs are named by the beginning of their ids; what fits several is refused with all of them', async () => {
  const { parent } = await family()
  // The child begins with the same digits; the parent is meant.
  expect((await cli(['jobs', 'show', parent.slice(0, 30)])).stdout).toMatch(new RegExp(`^job +${parent}$`, 'm'))
  expect((await cli(['explain', parent.slice(0, 30).toUpperCase()])).stdout).toContain('waiting for child')
  const other = await client.start('inner')
  // Ids begin with their time: these digits stand for more than a day.
  const both = await cli(['jobs', 'cancel', parent.slice(0, 5)])
  expect(both.code).toBe(2)
  expect(both.stderr).toMatch(/jobs begin with "[\da-f]{5}". Write more of the id:/)
  for (const id of [parent, other.id]) expect(both.stderr).toContain(`  ${id}  `)
  expect(await cli(['jobs', 'show', '0000'])).toMatchObject({ code: 1, stdout: '' })
  expect((await cli(['jobs', 'show', '0000'])).stderr).toContain('No job begins with "0000".')
  // Names that are no beginning of an id go to the server as they are.
  expect((await cli(['jobs', 'show', 'nobody'])).stderr).toContain('Job not found')
  expect(await cli(['jobs', 'cancel', other.id.slice(0, 34)])).toMatchObject({ code: 0 })
  expect((await other.status()).status).toBe('cancelled')
})

test('[M-03] a job is started with metadata, given as any data', async () => {
  await writeFile(join(folder, 'facts.json'), '{"order": 7}')
  for (const [given, input] of [
    ['{"order": 7}', ''],
    ['@facts.json', ''],
    ['-', '{"order": 7}'],
  ] as const) {
    const { stdout } = await cli(['jobs', 'start', 'inner', '--metadata', given, '--json'], input)
    const { job_id: id } = JSON.parse(stdout) as { readonly job_id: string }
    expect((await client.job(id).status()).metadata).toEqual({ order: 7 })
  }
  expect(await cli(['jobs', 'start', 'inner', '--metadata', '[1]'])).toMatchObject({ code: 2, stdout: '' })
})

/** What a shell would offer after these words, the last of which is not finished. */
function offered(script: string, words: readonly string[]): readonly string[] {
  const set = words.map((word) => `'${word}'`).join(' ')
  const program = `${script}\nCOMP_WORDS=(${set}); COMP_CWORD=${words.length - 1}; _impresario; echo "\${COMPREPLY[@]}"`
  const { stdout, stderr, status } = spawnSync('bash', ['-c', program], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout.trim().split(' ')
}

test('[M-03] bash completes commands, options and what they take', async () => {
  const { stdout: script, code } = await cli(['completion', 'bash'])
  expect(code).toBe(0)
  expect(offered(script, ['impresario', 'jo'])).toEqual(['jobs'])
  expect(offered(script, ['impresario', 'jobs', ''])).toEqual(expect.arrayContaining(['list', 'show', 'start']))
  expect(offered(script, ['impresario', '--json', 'jobs', 'start', 'x', '--met'])).toEqual(['--metadata'])
  expect(offered(script, ['impresario', 'webhooks', 'deliveries', '--status', ''])).toEqual([
    'pending',
    'delivered',
    'failed',
  ])
  expect(offered(script, ['impresario', 'completion', 'f'])).toEqual(['fish'])
})

test('[M-03] zsh and fish get the same words; where they are installed, they understand them', async () => {
  for (const shell of ['zsh', 'fish']) {
    const { stdout, code } = await cli(['completion', shell])
    expect(code).toBe(0)
    for (const word of ['quarantine', 'jobs start', 'metadata', 'pending']) expect(stdout).toContain(word)
    const checked = spawnSync(shell, ['-n'], { input: stdout, encoding: 'utf8' })
    expect({ shell, said: checked.error === undefined ? checked.stderr : '' }).toEqual({ shell, said: '' })
  }
  expect(await cli(['completion', 'tcsh'])).toMatchObject({ code: 2, stdout: '' })
})
