import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createServer } from '../server.ts'
import { SOME_NUMBER, SOME_TEXT, containing, listIn } from '../tenants.fixture.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-schedule-routes-'))
const clientsConfigPath = join(directory, 'clients.toml')
const schedulesConfigPath = join(directory, 'schedules.toml')

const CLIENTS = ['alpha', 'beta', 'reader', 'chief'] as const
type Client = (typeof CLIENTS)[number]
const ROLES: Readonly<Partial<Record<Client, string>>> = { reader: 'viewer', chief: 'admin' }

function clients(...more: readonly string[]): string {
  return [...CLIENTS, ...more]
    .map((id) => `[${id}]\ntoken = "token-of-${id}"\nrole = "${ROLES[id as Client] ?? 'client'}"\n`)
    .join('\n')
}

const SCHEDULES = `
[sweep]
blueprint = "quick"
interval_seconds = 3600
enabled = false
client = "alpha"

[report]
blueprint = "quick"
weekly_days = ["mon", "fri"]
time = "07:05"
timezone = "Europe/Berlin"
client = "reader"

[payroll]
blueprint = "quick"
monthly_dates = [1, "last"]
time = "23:59"
misfire = "skip"

[daily]
blueprint = "quick"
daily_at = "00:00"
`

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

let app: TestServer
function as(client: Client, method: string, path: string, body?: unknown, more = {}): Promise<Answer> {
  return app.call(method, `/api/v1${path}`, { body, headers: { 'x-client-token': `token-of-${client}`, ...more } })
}

const settings = { clientToken: '', clientsConfigPath, schedulesConfigPath }

beforeAll(async () => {
  writeFileSync(clientsConfigPath, clients())
  writeFileSync(schedulesConfigPath, SCHEDULES)
  app = await startTestServer({ blueprints: [quick], settings })
})
afterAll(async () => {
  await app.server.stop()
  rmSync(directory, { recursive: true })
})

const namesIn = (answer: Answer): readonly unknown[] => listIn(answer).map(({ name }) => name)

describe('schedules over the wire', () => {
  test('[F-04] an admin sees all of them, with when they fire next', async () => {
    const all = listIn(await as('chief', 'GET', '/schedules'))
    expect(all).toMatchObject([
      {
        name: 'sweep',
        enabled: false,
        client: 'alpha',
        trigger: { kind: 'interval', every_seconds: 3_600 },
        timezone: 'UTC',
        next_at: null,
        last_job_id: null,
        upcoming: [],
        recent: [],
      },
      {
        name: 'report',
        trigger: { kind: 'weekly', days: [1, 5], time: '07:05' },
        timezone: 'Europe/Berlin',
        next_at: SOME_NUMBER,
      },
      {
        name: 'payroll',
        client: 'scheduler',
        trigger: { kind: 'monthly', dates: [1, 'last'], time: '23:59' },
        misfire: 'skip',
      },
      { name: 'daily', trigger: { kind: 'daily', time: '00:00' } },
    ])
    for (const one of all.slice(1)) expect(one).toMatchObject({ upcoming: { length: 10, 0: one['next_at'] } })
    expect((await as('chief', 'GET', '/schedules/payroll')).body).toEqual(all[2])
  })

  test('[F-04] [H-05] others see those whose jobs are theirs; the rest does not exist for them', async () => {
    expect(namesIn(await as('alpha', 'GET', '/schedules'))).toEqual(['sweep'])
    expect(namesIn(await as('reader', 'GET', '/schedules'))).toEqual(['report'])
    expect(namesIn(await as('beta', 'GET', '/schedules'))).toEqual([])
    expect((await as('alpha', 'GET', '/schedules/sweep')).status).toBe(200)
    const [foreign, missing] = [await as('beta', 'GET', '/schedules/sweep'), await as('beta', 'GET', '/schedules/none')]
    expect([foreign.status, foreign.text]).toEqual([404, missing.text])
  })

  test('[F-04] [H-05] an admin pauses and resumes a schedule, and nobody else does', async () => {
    for (const verb of ['pause', 'resume']) {
      expect((await as('reader', 'POST', `/schedules/report/${verb}`)).status).toBe(403)
      expect((await as('beta', 'POST', `/schedules/report/${verb}`)).status).toBe(403)
      expect((await as('chief', 'POST', `/schedules/none/${verb}`)).body).toMatchObject({ code: 'NOT_FOUND' })
    }
    const paused = await as('chief', 'POST', '/schedules/report/pause')
    expect([paused.status, paused.body]).toMatchObject([
      200,
      { enabled: true, paused_at: SOME_NUMBER, paused_by: 'chief', next_at: null, upcoming: [] },
    ])
    expect((await as('reader', 'GET', '/schedules/report')).body).toEqual(paused.body)
    // Its job can be started all the same.
    expect((await as('chief', 'POST', '/schedules/report/run', {})).status).toBe(202)
    const resumed = await as('chief', 'POST', '/schedules/report/resume')
    expect(resumed.body).toMatchObject({ paused_at: null, paused_by: null, next_at: SOME_NUMBER })
    const off = await as('chief', 'POST', '/schedules/sweep/pause')
    expect([off.status, off.body]).toMatchObject([400, { code: 'INVALID_REQUEST' }])
  })

  test('[F-04] an admin starts the job of a schedule out of its turn, and nobody else does', async () => {
    expect((await as('alpha', 'POST', '/schedules/sweep/run', {})).status).toBe(403)
    const answer = await as('chief', 'POST', '/schedules/sweep/run', {})
    expect([answer.status, answer.body]).toMatchObject([202, { status: 'accepted', job_id: SOME_TEXT }])
    const job = await as('alpha', 'GET', `/jobs/${answer.body.job_id}?wait=20&until=end`)
    expect(job.body).toMatchObject({ status: 'finished', owner: 'alpha' })
    expect((await as('chief', 'POST', '/schedules/none/run', {})).body).toMatchObject({ code: 'NOT_FOUND' })
  })

  test('[F-04] the same call once more under its key starts no second job', async () => {
    const run = (name: string, key: string): Promise<Answer> =>
      as('chief', 'POST', `/schedules/${name}/run`, {}, { 'idempotency-key': key })
    const both = await Promise.all([run('sweep', 'k1'), run('sweep', 'k1')])
    const again = await run('sweep', 'k1')
    expect(new Set([...both, again].map(({ body }) => body.job_id)).size).toBe(1)
    expect(again.status).toBe(202)
    expect((await run('sweep', 'k2')).body.job_id).not.toBe(again.body.job_id)
    expect(await run('report', 'k1')).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } })
    expect((await run('sweep', 'x'.repeat(300))).status).toBe(400)
  })
})

describe('reading them anew', () => {
  test('[F-04] [H-02] the file of schedules alone: whole or not at all', async () => {
    writeFileSync(schedulesConfigPath, '[one]\nblueprint = "quick"\ninterval_seconds = 60\nclient = "newcomer"\n')
    expect(await as('chief', 'POST', '/admin/reload-schedules', {})).toMatchObject({
      status: 400,
      body: { code: 'INVALID_REQUEST', error: containing('[one].client is "newcomer", and there is no such client') },
    })
    expect(namesIn(await as('chief', 'GET', '/schedules'))).toHaveLength(4)
    writeFileSync(schedulesConfigPath, '[one]\nblueprint = "quick"\ninterval_seconds = 60\nenabled = false\n')
    expect((await as('chief', 'POST', '/admin/reload-schedules', {})).body).toEqual({
      status: 'schedules_reloaded',
      schedules: 1,
      scope: expect.stringMatching(/^(?:this_instance|all_instances)$/) as unknown,
    })
    expect(namesIn(await as('chief', 'GET', '/schedules'))).toEqual(['one'])
    expect((await as('alpha', 'POST', '/admin/reload-schedules', {})).status).toBe(403)
  })

  test('[F-04] [H-02] with the clients: a schedule may name one that comes with the same reload', async () => {
    const named = '[two]\nblueprint = "quick"\ninterval_seconds = 60\nenabled = false\nclient = "newcomer"\n'
    writeFileSync(schedulesConfigPath, named)
    expect((await as('chief', 'POST', '/admin/reload', {})).body).toMatchObject({ error: containing('newcomer') })
    writeFileSync(clientsConfigPath, clients('newcomer'))
    expect((await as('chief', 'POST', '/admin/reload', {})).body).toEqual({
      status: 'configs_reloaded',
      clients: 5,
      scope: expect.stringMatching(/^(?:this_instance|all_instances)$/) as unknown,
      workers: 0,
      schedules: 1,
    })
    expect(namesIn(await as('chief', 'GET', '/schedules'))).toEqual(['two'])
    // Schedules that cannot work keep the clients as they are too.
    writeFileSync(clientsConfigPath, clients('newcomer', 'another'))
    writeFileSync(schedulesConfigPath, named.replace('quick', 'nowhere'))
    expect((await as('chief', 'POST', '/admin/reload', {})).body).toMatchObject({
      error: containing('[two].blueprint'),
    })
    const another = { headers: { 'x-client-token': 'token-of-another' } }
    expect((await app.call('GET', '/api/v1/schedules', another)).status).toBe(401)
    expect(namesIn(await as('chief', 'GET', '/schedules'))).toEqual(['two'])
  })
})

test('[F-04] a server whose schedules name a client that is not there does not start', () => {
  writeFileSync(schedulesConfigPath, '[one]\nblueprint = "quick"\ninterval_seconds = 60\nclient = "nobody"\n')
  const start = (more: object): unknown =>
    createServer({ blueprints: [quick], settings: { apiHost: '127.0.0.1', storageUrl: 'memory:', ...more } })
  const refused = `${schedulesConfigPath}: [one].client is "nobody", and there is no such client.`
  expect(() => start(settings)).toThrow(refused)
  expect(() => start({ schedulesConfigPath })).toThrow(refused)
  writeFileSync(schedulesConfigPath, '[one]\nblueprint = "quick"\ninterval_seconds = 60\nclient = "default"\n')
  expect(() => start({ schedulesConfigPath })).not.toThrow()
  expect(() => start({ schedulesConfigPath, clientToken: 'the-only-one' })).not.toThrow()
})
