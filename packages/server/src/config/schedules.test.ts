import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { afterAll, expect, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { loadSchedules } from './schedules.ts'
import { createServer } from '../server.ts'
import type { Server, ServerOptions } from '../server.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-schedules-'))
afterAll(() => rmSync(directory, { recursive: true }))

let files = 0
function fileOf(text: string): string {
  files += 1
  const path = join(directory, `schedules-${files}.toml`)
  writeFileSync(path, text)
  return path
}

const options = {
  timeZone: 'Europe/Berlin',
  checkWebhook: (url: string) => {
    if (!url.startsWith('https://')) throw new Error('only https is allowed')
  },
}

function load(text: string): ReturnType<typeof loadSchedules> {
  return loadSchedules(fileOf(text), options)
}

test('[F-04] a schedule needs a blueprint and a time, and has modest values for the rest', () => {
  expect(load('[often]\nblueprint = "b"\ninterval_seconds = 90.5')).toEqual([
    {
      name: 'often',
      blueprint: 'b',
      initialData: {},
      isEnabled: true,
      trigger: { kind: 'interval', everyMs: 90_500 },
      timeZone: 'Europe/Berlin',
      misfire: 'run_once',
      catchUpMax: 10,
      clientId: 'scheduler',
      priority: undefined,
      dispatchTimeoutMs: undefined,
      resultTimeoutMs: undefined,
      metadata: {},
      webhookUrl: undefined,
    },
  ])
})

test('[F-04] everything that a schedule can say', () => {
  const [full] = load(`
[report]
blueprint = "b"
enabled = false
monthly_dates = [1, "last", 1]
time = "7:05"
timezone = "America/New_York"
dispatch_timeout = 30
result_timeout = 0.5
priority = -3
client = "acme"
misfire = "catch_up"
catch_up_max = 5
webhook_url = "https://example.com/hook"
[report.input_data]
since = 2026-01-01
count = 3
[report.metadata]
team = "ops"
`)
  expect(full).toMatchObject({
    isEnabled: false,
    trigger: { kind: 'monthly', dates: [1, 'last'], at: 425 },
    timeZone: 'America/New_York',
    dispatchTimeoutMs: 30_000,
    resultTimeoutMs: 500,
    priority: -3,
    clientId: 'acme',
    misfire: 'catch_up',
    catchUpMax: 5,
    webhookUrl: 'https://example.com/hook',
    initialData: { since: '2026-01-01', count: 3 },
    metadata: { team: 'ops' },
  })
})

test('[F-04] the other triggers, the older name of the data, and no file at all', () => {
  const text = `
[a]
blueprint = "b"
daily_at = "23:59"
initial_data = { x = 1 }
[c]
blueprint = "b"
weekly_days = ["mon", "Sunday", "SUN"]
time = "00:00"
`
  expect(load(text)).toMatchObject([
    { trigger: { kind: 'daily', at: 1_439 }, initialData: { x: 1 } },
    { trigger: { kind: 'weekly', days: [1, 7], at: 0 } },
  ])
  expect(loadSchedules('', options)).toEqual([])
})

test('[F-04] the example of the guide is one that works, and names every key', () => {
  const guide = readFileSync(new URL('../../../../docs/guide/schedules.md', import.meta.url), 'utf8')
  const [, example = ''] = /```toml\n(.*?)```/s.exec(guide) ?? []
  expect(load(example).map(({ name, trigger }) => [name, trigger.kind])).toEqual([
    ['refresh_prices', 'interval'],
    ['morning_report', 'daily'],
    ['payroll', 'monthly'],
  ])
  const told = (): unknown => load('[a]\nblueprint = "b"\ninterval_seconds = 60\nxyz = 1')
  const keys = /A schedule has (.*)\./.exec(messageOf(told))?.[1]?.split(', ') ?? []
  expect(keys.length).toBeGreaterThan(15)
  for (const key of keys) expect(guide).toContain(`\`${key}\``)
})

function messageOf(act: () => unknown): string {
  try {
    act()
    return ''
  } catch (error) {
    return String(error)
  }
}

const due = 'blueprint = "b"\ninterval_seconds = 60\n'

test.each([
  ['blueprint = "b"', 'blueprint is outside of a table'],
  ['[a]\ninterval_seconds = 60', '[a].blueprint is missing'],
  ['[a]\nblueprint = 7\ninterval_seconds = 60', '[a].blueprint must be a text'],
  ['[a]\nblueprint = "b"', '[a] has no trigger. Set one of interval_seconds, daily_at'],
  [`[a]\n${due}daily_at = "10:00"`, '[a].daily_at and interval_seconds are both there'],
  [`[a]\n${due}time = "10:00"`, '[a].time belongs to weekly_days and monthly_dates'],
  ['[a]\nblueprint = "b"\ninterval_seconds = 0', '[a].interval_seconds must be a number from 1 to'],
  ['[a]\nblueprint = "b"\ninterval_seconds = "60"', '[a].interval_seconds must be a number from 1 to'],
  ['[a]\nblueprint = "b"\ndaily_at = "24:00"', '[a].daily_at is "24:00". It must be a time from "00:00" to "23:59".'],
  ['[a]\nblueprint = "b"\ndaily_at = 10:00:00', '[a].daily_at must be a time in quotes'],
  ['[a]\nblueprint = "b"\nweekly_days = ["mon"]', '[a].time is missing. It is a time such as "07:30".'],
  ['[a]\nblueprint = "b"\nweekly_days = []\ntime = "1:00"', '[a].weekly_days must be a list of days such as'],
  ['[a]\nblueprint = "b"\nweekly_days = ["moon"]\ntime = "1:00"', '[a].weekly_days holds "moon".'],
  [
    '[a]\nblueprint = "b"\nmonthly_dates = [32]\ntime = "1:00"',
    '[a].monthly_dates holds 32. It must be a list of days',
  ],
  [`[a]\n${due}enabled = "no"`, '[a].enabled must be true or false'],
  [`[a]\n${due}timezone = "Mars/Olympus"`, '[a].timezone is "Mars/Olympus". It must be the name of a time zone'],
  [`[a]\n${due}misfire = "panic"`, '[a].misfire must be one of "skip", "run_once", "catch_up"'],
  [`[a]\n${due}catch_up_max = 5`, '[a].catch_up_max counts only with misfire = "catch_up"'],
  [`[a]\n${due}misfire = "catch_up"\ncatch_up_max = 1.5`, '[a].catch_up_max must be a whole number from 1 to 100'],
  [`[a]\n${due}input_data = "x"`, '[a].input_data must be a table'],
  [`[a]\n${due}input_data = {}\ninitial_data = {}`, '[a].initial_data is another name of input_data'],
  [`[a]\n${due}webhook_url = "ftp://x"`, '[a].webhook_url is refused: only https is allowed'],
  [`[a]\n${due}dispatch_timeout = -1`, '[a].dispatch_timeout must be a number from'],
  [`[a]\n${due}interval_second = 7`, '[a].interval_second is not known. Did you mean interval_seconds?'],
  [`[a]\n${due}cron = "* * * * *"`, '[a].cron is not known. A schedule has blueprint, input_data'],
  ['[a', 'cannot be read'],
])('[F-04] %j is refused by file, table and key', (text, problem) => {
  const path = fileOf(text)
  const refusal = (): unknown => loadSchedules(path, options)
  expect(refusal).toThrow(expect.objectContaining({ code: 'INVALID_CONFIGURATION' }))
  expect(refusal).toThrow(problem)
  expect(refusal).toThrow(path)
})

// ── In a server ──────────────────────────────────────────────────────────────

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

function serverWith(path: string, more: ServerOptions = {}): Server {
  const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl(), schedulesConfigPath: path }
  return createServer({ settings, blueprints: [quick], log: silent, ...more })
}

test('[F-04] a server starts with its schedules and reads them anew, whole or not at all', async () => {
  const path = fileOf('[often]\nblueprint = "quick"\ninterval_seconds = 3600')
  const server = serverWith(path)
  await server.start()
  try {
    const names = async (): Promise<readonly string[]> =>
      (await server.engine.scheduler.list()).map(({ schedule }) => schedule.name)
    const { jobId } = await server.engine.scheduler.runNow('often')
    const signal = new AbortController().signal
    expect((await server.engine.waitForJob(jobId, { waitMs: 10_000, signal }))?.value.status).toBe('finished')
    writeFileSync(path, '[other]\nblueprint = "nowhere"\ninterval_seconds = 3600')
    await expect(server.reloadSchedules()).rejects.toThrow(`${path}: [other].blueprint: The schedule "other" names`)
    expect(await names()).toEqual(['often'])
    writeFileSync(path, '[other]\nblueprint = "quick"\ninterval_seconds = 3600')
    await server.reloadSchedules()
    expect(await names()).toEqual(['other'])
  } finally {
    await server.stop()
  }
})

test('[F-04] a server with a schedule that cannot work does not start', async () => {
  const path = fileOf('[a]\nblueprint = "nowhere"\ndaily_at = "10:00"')
  await expect(serverWith(path).start()).rejects.toThrow('names the blueprint "nowhere", which is not there.')
  expect(() => serverWith(fileOf('[a]\nblueprint = "quick"'))).toThrow('[a] has no trigger')
})

test('[D-03] a server takes strategies of its program, and refuses names that are taken', () => {
  const strategies = [{ name: 'cheapest', criteria: [] }]
  expect(() => serverWith('', { strategies })).toThrow("The dispatch strategy 'cheapest' is there already")
})
