import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createReceiver } from 'node:http'
import type { Server as Receiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'
import type { CliOptions, Ended } from './run-cli.fixture.ts'

const broken = blueprint('broken', { start: 'fall', handlerAttemptsMax: 1 }, (state) => ({
  fall: state.handler((context, actions) => {
    if (context.initialData['mended'] !== true) throw new Error('It fell over.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

const SCHEDULES = `
[payroll]
blueprint = "quick"
monthly_dates = [15, "last"]
time = "06:00"
timezone = "Europe/Berlin"
client = "acme"
[report]
blueprint = "quick"
weekly_days = ["mon", "fri"]
time = "07:30"
[nightly]
blueprint = "quick"
daily_at = "03:00"
[sweep]
blueprint = "quick"
interval_seconds = 900
enabled = false
`

const TOKENS = { acme: 'token-of-acme-77c1', root: 'token-of-root-90d2' }
const CLIENTS = `
[acme]
token = "${TOKENS.acme}"
plan = "gold"
monthly_attempts = 1000
[root]
token = "${TOKENS.root}"
role = "admin"
`

let folder = ''
let server: Server
let url = ''
let acme: Client
let receiver: Receiver
let hook = ''
/** What the receiver answers. */
let answer = 204

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-commands-'))
  await writeFile(join(folder, 'clients.toml'), CLIENTS)
  await writeFile(join(folder, 'schedules.toml'), SCHEDULES)
  receiver = createReceiver((request, reply) => {
    request.resume().on('end', () => reply.writeHead(answer).end())
  })
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve)
  })
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  server = createServer({
    blueprints: [broken, quick],
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: 'memory:',
      logLevel: 'silent',
      clientsConfigPath: join(folder, 'clients.toml'),
      schedulesConfigPath: join(folder, 'schedules.toml'),
      webhookAllowHttp: true,
      webhookAllowPrivate: true,
      webhookAllowedPorts: '1024-65535',
    },
  })
  url = (await server.start()).address
  acme = createClient({ url, token: TOKENS.acme })
})

afterAll(async () => {
  await server.stop()
  receiver.closeAllConnections()
  receiver.close()
  await rm(folder, { recursive: true, force: true })
})

function cli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const env = { IMPRESARIO_URL: url, IMPRESARIO_TOKEN: TOKENS.acme, TZ: 'UTC', ...options.env }
  return runCli(args, { cwd: folder, ...options, env })
}

async function json(args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await cli([...args, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** A job in quarantine. */
async function fallen(): Promise<string> {
  const started = await acme.start('broken')
  for await (const job of started.watch()) if (job.status === 'quarantined') break
  return started.id
}

async function statusOf(id: string): Promise<string> {
  return (await acme.job(id).status()).status
}

test('[M-03] numbers keep their digits from --data to the screen, and through an edit', async () => {
  const data = '{"id":9007199254740993,"zero":-0,"price":0.30000000000000001,"text":"\uFDD05"}'
  const started = await cli(['jobs', 'start', 'broken', '--data', data, '--json'])
  const { job_id: id } = JSON.parse(started.stdout) as { job_id: string }
  for await (const job of acme.job(id).watch()) if (job.status === 'quarantined') break
  const shown = await cli(['jobs', 'show', id, '--json'])
  const plain = shown.stdout.replaceAll(/\n\s*/g, '').replaceAll('": ', '":')
  expect(plain).toContain(`"initial_data":${data}`)
  const page = await cli(['quarantine', 'show', id])
  expect(page.stdout).toContain('"id": 9007199254740993')
  const edited = '{"mended":true,"id":9007199254740995}'
  expect((await cli(['quarantine', 'edit', id, '--data', edited])).code).toBe(0)
  expect((await acme.job(id).wait()).initialData).toEqual({ mended: true, id: 9_007_199_254_740_995n })
})

describe('[M-03] [C-07] quarantine', () => {
  test('is listed, and each job shown with its error', async () => {
    const id = await fallen()
    const { stdout } = await cli(['quarantine'])
    expect(stdout).toMatch(new RegExp(`^${id} +broken +fall .*HANDLER_FAILED .*It fell over`, 'm'))
    expect(await json(['quarantine', 'list', '--code', 'HANDLER_FAILED', '--limit', '1'])).toMatchObject([{ id }])
    expect((await cli(['quarantine', 'list', '--code', 'OTHER'])).stdout).toBe('No job is in quarantine.\n')
    expect((await cli(['quarantine', 'list', '--older-than', '1h'])).stdout).toBe('No job is in quarantine.\n')
    const shown = await cli(['quarantine', 'show', id])
    expect(shown.stdout).toContain('Error: It fell over.')
    expect(shown.stdout).toContain(`impresario quarantine edit ${id}`)
    expect(await json(['quarantine', 'show', id])).toMatchObject({ error: { state: 'fall' } })
    await acme.job(id).discard()
  })

  test('jobs are named, and each is answered for itself', async () => {
    const ids = [await fallen(), await fallen()]
    const given = await cli(['quarantine', 'discard', ...ids, 'nobody'])
    expect(given).toMatchObject({ code: 1, stdout: '✓ 2 jobs are discarded.\n' })
    expect(given.stderr).toContain('nobody: Job not found')
    expect(await Promise.all(ids.map(statusOf))).toEqual(['failed', 'failed'])
    const { code, stdout } = await cli(['quarantine', 'retry', ...ids, '--json'])
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { results: [{ code: 'NOT_WAITING' }, { code: 'NOT_WAITING' }] },
    ])
  })

  test('all that fit are told by their number, and only touched with --yes', async () => {
    const [first, second, third] = [await fallen(), await fallen(), await fallen()]
    const unsure = await cli(['quarantine', 'discard', '--all'])
    expect(unsure).toMatchObject({ code: 2, stdout: '' })
    expect(unsure.stderr).toContain('3 jobs will be given up for good.')
    expect(unsure.stderr).toContain('--yes')
    expect((await cli(['quarantine', 'discard', '--all', '--blueprint', 'other'])).stdout).toBe('No matching jobs.\n')
    const one = await cli(['quarantine', 'discard', '--all', '--blueprint', 'broken', '--limit', '1', '--yes'])
    expect(one).toMatchObject({ code: 0, stdout: '✓ 1 job is discarded.\n', stderr: '' })
    expect([await statusOf(first), await statusOf(second), await statusOf(third)]).toEqual([
      'quarantined',
      'quarantined',
      'failed',
    ])
    // They fall over again at once: each is sent back once all the same.
    expect(await json(['quarantine', 'retry', '--all', '--yes'])).toMatchObject({
      results: [{ job_id: second }, { job_id: first }],
    })
    for (const id of [first, second]) {
      for await (const job of acme.job(id).watch()) if (job.status === 'quarantined') break
    }
    expect(await cli(['quarantine', 'discard', '--all', '--yes'])).toMatchObject({ code: 0 })
  })

  test('data are edited on the command line', async () => {
    const id = await fallen()
    const edit = ['quarantine', 'edit', id, '--data', '{"mended":true}', '--history', '-']
    expect(await cli(edit, { input: '{"by":"hand"}' })).toMatchObject({ code: 0, stderr: '' })
    expect(await acme.job(id).wait()).toMatchObject({ status: 'finished', stateHistory: { by: 'hand' } })
  })

  test('data are edited in an editor; what was left as it was changes nothing', async () => {
    const id = await fallen()
    const edit = ['quarantine', 'edit', id]
    const none = await cli(edit)
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain('set EDITOR')
    const unchanged = await cli(edit, { env: { EDITOR: 'true' } })
    expect(unchanged).toMatchObject({ code: 1, stdout: '' })
    expect(unchanged.stderr).toContain('Nothing was changed')
    const failed = await cli(edit, { env: { EDITOR: 'false' } })
    expect(failed.stderr).toContain('ended with 1')
    const noise = await cli(edit, { env: { EDITOR: 'echo noise >' } })
    expect(noise).toMatchObject({ code: 2 })
    expect(await statusOf(id)).toBe('quarantined')
    const EDITOR = `sed -i 's/"initial_data": {}/"initial_data": {"mended": true}/'`
    expect(await cli(edit, { env: { EDITOR } })).toMatchObject({ code: 0, stderr: '' })
    expect(await acme.job(id).wait()).toMatchObject({ status: 'finished', initialData: { mended: true } })
  })
})

describe('[M-03] jobs', () => {
  test('are found by what is in them and by when they were made', async () => {
    const { id } = await acme.start('broken', { mended: true }, { metadata: { city: 'Zürich-Oerlikon' } })
    expect(await json(['jobs', 'list', '--search', 'oerlikon'])).toMatchObject([{ id }])
    expect(await json(['jobs', 'list', '--search', 'oerlikon', '--since', '1h'])).toMatchObject([{ id }])
    expect((await cli(['jobs', 'list', '--until', '1h'])).stdout).toBe('No matching jobs.\n')
    expect((await cli(['jobs', 'list', '--until', '2001-02-03'])).stdout).toBe('No matching jobs.\n')
    const foreign = await cli(['jobs', 'list', '--owner', 'root'])
    expect(foreign).toMatchObject({ code: 1, stdout: '' })
    const env = { IMPRESARIO_TOKEN: TOKENS.root }
    expect((await cli(['jobs', 'list', '--search', 'oerlikon', '--owner', 'acme'], { env })).stdout).toContain(id)
  })

  test('tell their history', async () => {
    const job = await acme.start('broken', { mended: true })
    await job.wait()
    const { stdout } = await cli(['jobs', 'history', job.id])
    expect(stdout).toMatch(/^since \d{4}-\d{2}-\d{2} /)
    expect(stdout).toMatch(/^ *\+0 ms +fall +job created$/m)
    expect(stdout).toContain('job finished')
    expect(await json(['jobs', 'history', job.id, '--limit', '1'])).toMatchObject([{ event_type: 'job_created' }])
    expect(await cli(['jobs', 'history', 'nobody'])).toMatchObject({ code: 1, stdout: '' })
  })
})

describe('[M-03] [H-07] webhooks', () => {
  /** Runs a job that tells the receiver of its end, until the message has been tried. */
  async function told(): Promise<{ readonly jobId: string; readonly message: string }> {
    const args = ['jobs', 'start', 'broken', '--data', '{"mended":true}', '--webhook', hook]
    const { job_id: jobId } = (await json(args)) as { readonly job_id: string }
    for (;;) {
      const [delivery] = await acme.webhooks.deliveries({ jobId }).all()
      if (delivery !== undefined && delivery.attempts.length > 0) return { jobId, message: delivery.id }
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
  }

  test('are listed, shown, and sent again', async () => {
    answer = 204
    const { jobId, message } = await told()
    expect((await cli(['webhooks', 'deliveries', '--job', jobId])).stdout).toMatch(
      new RegExp(`^${message} +job_finished +delivered +1 +204 .*${hook}$`, 'm'),
    )
    expect(await json(['webhooks', 'deliveries', '--status', 'delivered', '--limit', '1'])).toMatchObject([
      { id: message },
    ])
    expect((await cli(['webhooks', 'deliveries', '--event', 'none'])).stdout).toBe('There is no such message.\n')
    const shown = await cli(['webhooks', 'delivery', message])
    expect(shown.stdout).toContain('"event": "job_finished"')
    expect(await json(['webhooks', 'redeliver', message])).toMatchObject({ id: message })
    expect(await cli(['webhooks', 'redeliver', 'msg_none'])).toMatchObject({ code: 1, stdout: '' })
    expect((await cli(['webhooks', 'endpoints'])).stdout).toMatch(/^ep_\S+ +active +0 /m)
  })

  test('that were refused say why', async () => {
    answer = 410
    const { message } = await told()
    const { stdout } = await cli(['webhooks', 'delivery', message])
    expect(stdout).toMatch(/ 410 /)
    expect(stdout).toContain(`impresario webhooks redeliver ${message}`)
    expect((await cli(['webhooks', 'endpoints'])).stdout).toMatch(/^ep_\S+ +disabled /m)
    expect(await cli(['webhooks', 'enable', hook])).toMatchObject({
      code: 0,
      stdout: `✓ ${hook} gets messages again.\n`,
    })
  })

  test('have secrets that are printed alone and replaced, by id or by address', async () => {
    const { stdout } = await cli(['webhooks', 'secret', hook])
    expect(stdout).toMatch(/^whsec_\S+\n$/)
    const { endpoint_id: id } = (await json(['webhooks', 'secret', hook])) as { readonly endpoint_id: string }
    const rotated = await cli(['webhooks', 'rotate', id, '--overlap', '2h'])
    expect(rotated.code).toBe(0)
    expect(rotated.stderr).toMatch(/^Until \d{4}-/)
    expect(rotated.stdout).not.toBe(stdout)
    expect((await cli(['webhooks', 'secret', id])).stdout).toBe(rotated.stdout)
    const leaked = await cli(['webhooks', 'rotate', id, '--overlap', '0'])
    expect(leaked.stderr).toBe('The old secret counts no more.\n')
  })
})

describe('[M-03] [F-04] schedules', () => {
  const env = { IMPRESARIO_TOKEN: TOKENS.root }

  test('are listed with when they fire', async () => {
    const { stdout } = await cli(['schedules'], { env })
    expect(stdout).toMatch(/^payroll +quick +on the 15, last of the month, 06:00 Europe\/Berlin +in \d+ /m)
    expect(stdout).toMatch(/^report +quick +mon, fri 07:30 UTC +in \d+ /m)
    expect(stdout).toMatch(/^nightly +quick +daily 03:00 UTC +in \d/m)
    expect(stdout).toMatch(/^sweep +quick +every 15 min +off +– +–$/m)
    expect(await json(['schedules', 'list'])).toMatchObject([{ name: 'payroll', client: 'acme' }])
    expect((await cli(['schedules', 'show', 'payroll'])).stdout).toMatch(/^next +\d{4}-\d{2}-\d{2} .*\(in /m)
    expect(await json(['schedules', 'show', 'payroll'])).toMatchObject({ misfire: 'run_once' })
    expect(await cli(['schedules', 'show', 'nightly'])).toMatchObject({ code: 1, stdout: '' })
  })

  test('are run out of their turn by admins', async () => {
    expect(await cli(['schedules', 'run', 'payroll'])).toMatchObject({ code: 1, stdout: '' })
    const { code, stdout } = await cli(['schedules', 'run', 'payroll', '--json'], { env })
    expect(code).toBe(0)
    const { job_id: id } = JSON.parse(stdout) as { readonly job_id: string }
    expect(await acme.job(id).wait()).toMatchObject({ blueprintName: 'quick', status: 'finished' })
    expect((await cli(['schedules', 'run', 'sweep'], { env })).stdout).toContain('impresario jobs watch')
    expect(await cli(['schedules', 'run', 'nobody'], { env })).toMatchObject({ code: 1, stdout: '' })
  })

  test('are paused and resumed by admins only', async () => {
    expect(await cli(['schedules', 'pause', 'payroll'])).toMatchObject({ code: 1, stdout: '' })
    const paused = await cli(['schedules', 'pause', 'payroll'], { env })
    expect(paused.code).toBe(0)
    expect(paused.stdout).toContain('is paused')
    expect((await cli(['schedules', 'show', 'payroll'])).stdout).toMatch(/^next +paused$/m)
    expect((await cli(['schedules', 'resume', 'payroll'], { env })).stdout).toMatch(/goes on: it fires next at \d{4}-/)
    expect(await json(['schedules', 'show', 'payroll'])).toMatchObject({ paused_at: null })
  })
})

test('[M-03] [G-04] workers tell their history', async () => {
  const transport = server.localTransport()
  await transport.register({ worker_id: 'w7', worker_type: 'cpu', supported_skills: ['draw'] })
  const events = (await json(['workers', 'history', 'w7'])) as readonly { readonly event_type: string }[]
  expect(events.map((event) => event.event_type)).toEqual(['registered'])
  expect((await cli(['workers', 'history', 'w7'])).stdout).toMatch(/^\d{4}-\d{2}-\d{2} .* registered/m)
  expect(await cli(['workers', 'history', 'nobody'])).toMatchObject({ code: 1, stdout: '' })
})

test('[M-03] [G-04] events of all jobs are listed and counted', async () => {
  const env = { IMPRESARIO_TOKEN: TOKENS.root }
  const transport = server.localTransport()
  await transport.register({ worker_id: 'w8', worker_type: 'cpu', supported_skills: ['draw'] })
  const list = ['history', '--worker', 'w8', '--since', '1h', '--limit', '5']
  expect((await cli(list, { env })).stdout).toMatch(/^\d{4}-\d{2}-\d{2} .* registered .* w8/m)
  const counted = ['history', 'counts', '--worker', 'w8', '--per', 'day']
  expect((await cli(counted, { env })).stdout).toMatch(/^\d{4}-\d{2}-\d{2} 00:00 +registered +1$/m)
  expect(JSON.parse((await cli([...counted, '--json'], { env })).stdout)).toMatchObject([{ count: 1 }])
  // Workers are nobody's jobs.
  expect((await cli(list)).stdout).toBe('No matching events.\n')
  expect((await cli(counted)).stdout).toBe('No matching events.\n')
  expect(await cli(['history', '--event', 'x', '--since', 'never'])).toMatchObject({ code: 2 })
})

test('[M-02] [M-03] how long jobs took is shown, where the server keeps every event', async () => {
  expect((await cli(['history', 'durations', '--since', '2h'])).stdout).toBe('No job has ended in this time.\n')
  const asJson = await cli(['history', 'durations', '--json'])
  expect(JSON.parse(asJson.stdout)).toMatchObject({ is_partial: false, blueprints: [], states: [] })
})

test('[M-03] [H-04] an account is shown with what is left of its quota', async () => {
  const { stdout } = await cli(['account'])
  expect(stdout).toMatch(/^client +acme$/m)
  expect(stdout).toMatch(/^jobs +\d+ of 1000 in \d{4}-\d{2}, \d+ left$/m)
  expect(await json(['account'])).toMatchObject({ client_id: 'acme', role: 'client', plan: 'gold' })
  expect((await cli(['account'], { env: { IMPRESARIO_TOKEN: TOKENS.root } })).stdout).toMatch(/^jobs +no quota$/m)
})

test('[M-03] the status counts workers and jobs', async () => {
  const { stdout } = await cli(['status'])
  expect(stdout).toMatch(/^Workers {2}\d+$/m)
  expect(stdout).toMatch(/^finished +\d+$/m)
  expect(await json(['status'])).toMatchObject({ jobs: { queued: 0 } })
})

test('[M-02] [M-03] an admin sees the server, its clients and its queues, and why a worker gets nothing', async () => {
  const env = { IMPRESARIO_TOKEN: TOKENS.root }
  const system = (await cli(['admin', 'system'], { env })).stdout
  expect(system).toMatch(/^promise +\S/m)
  expect(system).toMatch(/\(this one\) +running +\d/)
  expect(system).toMatch(/^open jobs +\d+$/m)
  expect((await cli(['admin', 'clients'], { env })).stdout).toMatch(/^acme +client +gold +1000 +1$/m)
  expect(await cli(['admin', 'system'])).toMatchObject({ code: 1, stdout: '' })
  const transport = server.localTransport()
  await transport.register({ worker_id: 'w9', worker_type: 'cpu', supported_skills: ['rest'] })
  expect((await cli(['workers', 'explain', 'w9'], { env })).stdout).toMatch(
    /^w9 (?:gets no tasks|can get the next task)\.\n {2}\S/,
  )
  expect(await json(['workers', 'explain', 'w9'])).toMatchObject({ worker_id: 'w9', waiting: null })
  expect(await cli(['workers', 'explain', 'nobody'])).toMatchObject({ code: 1, stdout: '' })
  expect(await cli(['queues'], { env })).toMatchObject({ code: 0, stderr: '' })
})

test('[M-03] [H-02] an admin lets the files be read anew; a broken one is named and changes nothing', async () => {
  const env = { IMPRESARIO_TOKEN: TOKENS.root }
  expect(await cli(['admin', 'reload'])).toMatchObject({ code: 1, stdout: '' })
  const reloaded = await cli(['admin', 'reload'], { env })
  expect(reloaded).toMatchObject({ code: 0, stderr: '' })
  expect(reloaded.stdout).toMatch(/^✓ Reloaded: 2 clients, \d+ workers?, 4 schedules\.$/m)
  await writeFile(join(folder, 'clients.toml'), `${CLIENTS}\n[late]\nrole = "king"\n`)
  const refused = await cli(['admin', 'reload'], { env })
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('clients.toml')
  expect(await cli(['account'])).toMatchObject({ code: 0 })
})
