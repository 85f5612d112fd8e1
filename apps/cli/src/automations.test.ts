import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runCli } from './run-cli.fixture.ts'
import type { Ended } from './run-cli.fixture.ts'

const TOKEN = 'token-of-the-only-client'

let folder = ''
let server: Server
let client: Client
let env: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-cli-automations-'))
  server = createServer({
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'silent', clientToken: TOKEN },
  })
  const { address } = await server.start()
  client = createClient({ url: address, token: TOKEN })
  env = { IMPRESARIO_URL: address, IMPRESARIO_TOKEN: TOKEN }
})

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const cli = (...args: readonly string[]): Promise<Ended> => runCli(args, { cwd: folder, env })

async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await cli(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Record<string, unknown>
}

const FILE = `automations:
  - title: Briefing
    timezone: Europe/Berlin
    triggers:
      - cron: 0 9 * * 1-5
    pipeline:
      - id: tell
        uses: log
        with: { message: Good morning }
  - title: Reminder
    pipeline:
      - id: tell
        uses: log
        with: { message: '\${params.text}' }
    params: { text: Tea }
`

test('[K-02] a file of automations is checked, compared, applied and exported, and applied again changes nothing', async () => {
  await writeFile(join(folder, 'automations.yaml'), FILE)
  const dry = await cli('automations', 'apply', 'automations.yaml', '--dry-run')
  expect(dry.stdout).toContain('+ Briefing')
  expect(dry.stdout).toContain('2 would change.')
  expect(await client.automations.list().all()).toEqual([])
  expect((await cli('automations', 'apply', 'automations.yaml')).stdout).toContain('2 changed.')
  expect((await cli('automations', 'apply', 'automations.yaml')).stdout).toContain('Nothing to change.')
  const exported = await cli('automations', 'export')
  await writeFile(join(folder, 'exported.yaml'), exported.stdout)
  expect((await cli('automations', 'apply', 'exported.yaml', '--prune')).stdout).toContain('Nothing to change.')
  await client.automations.create({ title: 'Surplus', pipeline: [{ id: 'a', uses: 'log', with: { message: 'x' } }] })
  await writeFile(join(folder, 'automations.yaml'), FILE.replace('Tea', 'Coffee'))
  const changed = await json('automations', 'apply', 'automations.yaml', '--prune')
  expect(changed).toEqual({
    dry_run: false,
    changes: [
      { change: 'unchanged', title: 'Briefing' },
      { change: 'update', title: 'Reminder' },
      { change: 'delete', title: 'Surplus' },
    ],
  })
  expect((await client.automations.list().all()).map(({ title }) => title).toSorted()).toEqual(['Briefing', 'Reminder'])
})

test('[K-02] an automation with a key keeps its place when its title changes, also one that got its key later', async () => {
  const own = (text: string): Promise<void> => writeFile(join(folder, 'keyed.yaml'), text)
  const entry = (head: string): string => `automations:\n  - ${head}\n    pipeline: []\n`
  const find = async (title: string): Promise<string | undefined> =>
    (await client.automations.list({ search: title }).all()).find((one) => one.title === title)?.id
  await own(entry('title: Nightly'))
  await cli('automations', 'apply', 'keyed.yaml')
  const id = await find('Nightly')
  await own(entry('title: Nightly\n    key: nightly'))
  expect((await cli('automations', 'apply', 'keyed.yaml')).stdout).toContain('~ Nightly')
  await own(entry('title: Every night\n    key: nightly'))
  expect((await cli('automations', 'apply', 'keyed.yaml')).stdout).toContain('~ Every night')
  expect(await find('Every night')).toBe(id)
  expect(await find('Nightly')).toBeUndefined()
  expect((await cli('automations', 'apply', 'keyed.yaml')).stdout).toContain('Nothing to change.')
  await own(`${entry('title: A\n    key: nightly')}  - title: B\n    key: nightly\n    pipeline: []\n`)
  expect((await cli('automations', 'apply', 'keyed.yaml')).stderr).toContain('automations[1].key is the same')
  await own(entry('title: A\n    key: "not a key"'))
  expect((await cli('automations', 'apply', 'keyed.yaml')).stderr).toContain('keyed.yaml:3: key: Must begin')
  await client.automations.delete(id ?? '')
})

test('[K-10] a task that no connected worker knows is a warning of apply, create and edit', async () => {
  const definition = 'title: Pictures\npipeline:\n  - id: shrink\n    uses: task.resise\n    with: {}\n'
  await writeFile(
    join(folder, 'doubtful.yaml'),
    `automations:\n  - ${definition.trimEnd().replaceAll('\n', '\n    ')}\n`,
  )
  const applied = await cli('automations', 'apply', 'doubtful.yaml', '--dry-run')
  expect(applied.stderr).toContain('warning: doubtful.yaml:2: Pictures: Step "shrink": no connected worker knows')
  expect(applied.stdout).toContain('1 would change.')
  expect((await json('automations', 'apply', 'doubtful.yaml', '--dry-run'))['warnings']).toHaveLength(1)
  await writeFile(join(folder, 'one.yaml'), definition)
  const created = await cli('automations', 'create', '--file', 'one.yaml')
  expect(created.stderr).toContain('warning: Step "shrink"')
  const [, id = ''] = /: (\S+)$/m.exec(created.stdout) ?? []
  expect((await cli('automations', 'edit', id, '--file', 'one.yaml')).stderr).toContain('warning: Step "shrink"')
  await client.automations.delete(id)
})

test('[K-02] every problem of a file is named with its line, and nothing is changed', async () => {
  const refused = async (text: string): Promise<string> => {
    await writeFile(join(folder, 'wrong.yaml'), text)
    const { code, stderr } = await cli('automations', 'apply', 'wrong.yaml')
    expect(code).not.toBe(0)
    return stderr
  }
  expect(await refused('automations: [\n')).toMatch(/wrong\.yaml:\d+: /)
  expect(await refused('jobs: []\n')).toContain('There must be a list "automations:"')
  const twice = await refused(`${FILE}  - title: Reminder\n    pipeline: []\n  - pipeline: []\n`)
  expect(twice).toContain('wrong.yaml:16: automations[2].title is the same as that of automations[1]')
  expect(twice).toContain('wrong.yaml:18: automations[3].title is missing')
  expect(await refused('automations: []\n---\nautomations: []\n')).toContain('wrong.yaml:2: A second document begins')
  expect(await refused('automations:\n  - title: 12\n    pipeline: []\n')).toContain('title must be a text.')
  expect(await refused('automations:\n  - title: !!js/function x\n    pipeline: []\n')).toMatch(/wrong\.yaml:2: .*tag/)
  expect(await refused('automations: [*nothing]\n')).toMatch(/wrong\.yaml.*alias.*nothing/i)
  const bomb = ['x-a: &a [x,x,x,x,x,x,x,x,x,x]', ...['b', 'c', 'd', 'e', 'f'].map(bombLine), 'automations: []\n']
  expect(await refused(bomb.join('\n'))).toMatch(/wrong\.yaml is not valid[\s\S]*alias/)
  expect((await cli('automations', 'apply', 'none.yaml')).stderr).toContain(
    '"none.yaml" cannot be read: there is no such',
  )
  const wrong = await refused(FILE.replace('0 9 * * 1-5', 'banana').replace('uses: log', 'uses: logg'))
  expect(wrong).toMatch(/wrong\.yaml:5: triggers\[0\]/)
  expect(wrong).toMatch(/wrong\.yaml:8: pipeline\[0\]\.uses/)
})

/** Ten times the list of the letter before. */
function bombLine(letter: string): string {
  const before = String.fromCodePoint((letter.codePointAt(0) ?? 0) - 1)
  return `x-${letter}: &${letter} [${Array.from({ length: 10 }, () => `*${before}`).join(',')}]`
}

test('[K-02] a file says once what its automations share, and its numbers are exact', async () => {
  const shared = [
    'x-base: &base',
    '  timezone: Europe/Berlin',
    '  params: { big: 12345678901234567890 }',
    '  pipeline: []',
  ]
  const entry = '  - { <<: *base, title: Shared }'
  await writeFile(join(folder, 'shared.yaml'), [...shared, 'automations:', entry, ''].join('\n'))
  expect((await cli('automations', 'apply', 'shared.yaml')).stdout).toContain('1 changed.')
  expect((await cli('automations', 'apply', 'shared.yaml')).stdout).toContain('Nothing to change.')
  const exported = (await cli('automations', 'export')).stdout
  expect(exported).toContain('big: 12345678901234567890')
  await writeFile(join(folder, 'big.yaml'), 'title: Big\nparams: { big: 12345678901234567890 }\npipeline: []\n')
  const created = await cli('automations', 'create', '--file', 'big.yaml', '--json')
  expect(created.stdout).toContain('12345678901234567890')
  for (const { id, title } of await client.automations.list({ limit: 100 }).all()) {
    if (title === 'Shared' || title === 'Big') await client.automations.delete(id)
  }
})

test('[K-05] [K-11] [K-13] people run, snooze, pause, resume and cancel automations, and look at runs', async () => {
  const definition = {
    title: 'By hand',
    triggers: [{ every: 3_600 }],
    pipeline: [{ id: 'tell', uses: 'log', with: { message: 'hi' } }],
  }
  await writeFile(join(folder, 'one.json'), JSON.stringify(definition))
  expect(
    (await cli('automations', 'preview', '--file', 'one.json', '--count', '2')).stdout.split('\n').length,
  ).toBeGreaterThan(2)
  const id = String((await json('automations', 'create', '--file', 'one.json'))['id'])
  expect((await cli('automations', 'show', 'by HAND')).stdout).toContain(id)
  const unknown = await cli('automations', 'show', 'By foot')
  expect(unknown.stderr).toMatch(/no automation with the id or title "By foot".*automations list/s)
  expect((await cli('automations', 'show', id)).stdout).toContain('By hand')
  expect((await cli('automations', 'list', '--status', 'active')).stdout).toContain(id)
  const launched = await json('automations', 'run', id)
  const run = String(launched['run_id'])
  await vi.waitFor(async () => expect((await client.runs.get(run)).status).toBe('succeeded'), 30_000)
  const shown = (await cli('runs', 'show', run)).stdout
  expect(shown).toMatch(/tell\s+succeeded/)
  expect(shown).toContain('tell: input\n{\n  "message": "hi"\n}')
  expect(await json('runs', 'rerun', run)).toMatchObject({ status: 'started' })
  expect((await cli('runs', 'list', '--automation', id, '--trigger', 'manual')).stdout).toContain(run)
  expect(await json('runs', 'stats', '--automation', id)).toMatchObject({ total: 2 })
  expect((await cli('automations', 'snooze', id, '--for', '2h', '--reason', 'lunch')).stdout).toContain(
    'put off by 2 h',
  )
  expect((await cli('automations', 'show', id)).stdout).toContain('lunch')
  for (const [verb, text] of [
    ['pause', 'is paused'],
    ['resume', 'goes on'],
    ['cancel', 'canceled for good'],
  ] as const) {
    // The beginning of an id is enough, as with jobs.
    expect((await cli('automations', verb, id.slice(0, -2))).stdout).toContain(text)
  }
  expect((await cli('audit', 'list', '--subject', id)).stdout).toContain('automation.snoozed')
  const lines = (await cli('audit', 'export', '--subject', id)).stdout.trim().split('\n')
  const count = async (...filter: readonly string[]): Promise<number> =>
    (await cli('audit', 'export', '--subject', id, ...filter)).stdout.split('\n').filter((line) => line !== '').length
  expect(await count('--since', '1h')).toBe(lines.length)
  expect(await count('--until', '1h')).toBe(0)
  expect(lines.map((line) => (JSON.parse(line) as { subject: string }).subject)).toEqual(lines.map(() => id))
})

test('[K-01] [K-04] [K-10] people make agents, publish events and look at tools', async () => {
  const agent = await json(
    'agents',
    'create',
    'helper',
    '--scope',
    'runs:read',
    '--scope',
    'events:publish',
    '--on-behalf-of',
    'ada',
  )
  expect(agent).toMatchObject({ name: 'helper', scopes: ['events:publish', 'runs:read'], on_behalf_of: 'ada' })
  const made = await cli('agents', 'token', String(agent['id']), 'laptop', '--expires', '30d')
  const token = made.stdout.trim()
  expect(token).toMatch(/^agt_/)
  const published = await runCli(['events', 'publish', 'a.b', '--data', '{"n": 1}', '--json'], {
    env: { ...env, IMPRESARIO_TOKEN: token },
  })
  expect(published.code).toBe(0)
  const event = (JSON.parse(published.stdout) as { id: string }).id
  expect((await cli('events', 'show', event)).stdout).toContain('"n": 1')
  expect((await cli('events', 'list', '--topic', 'a.b')).stdout).toContain(event)
  expect((await cli('agents', 'show', String(agent['id']))).stdout).toContain('laptop')
  const edited = await cli('agents', 'edit', String(agent['id']), '--for-nobody', '--json')
  expect(JSON.parse(edited.stdout)).toMatchObject({ on_behalf_of: null })
  expect((await cli('agents', 'delete', String(agent['id']))).code).toBe(0)
  expect((await cli('tools', 'list')).stdout).toContain('http.request')
  expect((await cli('tools', 'show', 'log')).stdout).toContain('"message"')
  expect((await cli('tools', 'show', 'none')).code).not.toBe(0)
})

test('[K-16] the budget of an automation and what is left of it are shown', async () => {
  const budget = { runs_per_day: 3, usd_per_day: 2.5 }
  const definition = JSON.stringify({ title: 'Saver', budget, pipeline: [] })
  const made = await json('automations', 'create', '--data', definition)
  const id = String(made['id'])
  await cli('automations', 'run', id)
  expect(await json('automations', 'budget', id)).toMatchObject({
    runs: { used: 1, limit: 3 },
    usd: { used: 0, limit: 2.5 },
    agent: null,
  })
  const { stdout } = await cli('automations', 'budget', id)
  expect(stdout).toMatch(/runs +1 +3\n/)
  expect(stdout).toMatch(/usd +0 +2\.5\n/)
  const agent = await json('agents', 'create', 'saver', '--scope', 'automations:*', '--budget', '{"usd_per_day": 5}')
  expect(agent).toMatchObject({ budget: { usd_per_day: 5 } })
  expect((await cli('agents', 'show', String(agent['id']))).stdout).toContain('usd_per_day 5')
})

test('[K-02] long numbers go through a file unharmed, and an export says which automations need a key', async () => {
  const own = await client.automations.list().all()
  for (const { id } of own) await client.automations.cancel(id)
  const long = `automations:
  - title: Long
    params: { account: 12345678901234567890, small: 7, date: 2026-01-01, "yes": "no" }
    pipeline: []
`
  await writeFile(join(folder, 'long.yaml'), long)
  expect((await cli('automations', 'apply', 'long.yaml')).stdout).toContain('1 changed.')
  const exported = await cli('automations', 'export')
  expect(exported).toMatchObject({ code: 0, stderr: '' })
  expect(exported.stdout).toContain('account: 12345678901234567890')
  await writeFile(join(folder, 'long.yaml'), exported.stdout)
  expect((await cli('automations', 'apply', 'long.yaml', '--prune')).stdout).toContain('Nothing to change.')
  await client.automations.create({ title: 'Long', pipeline: [] })
  const warned = await cli('automations', 'export')
  expect({ code: warned.code, stderr: warned.stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('"Long" and no key') as string,
  })
})
