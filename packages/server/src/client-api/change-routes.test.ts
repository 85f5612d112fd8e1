import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { DASHBOARD_HEADER } from '../dashboard/sessions.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'
import { ChangeLog } from './change-log.ts'
import { StreamReader } from './change-stream.fixture.ts'
import { ChangeStreams, windowOf } from './change-streams.ts'

let app: TenantServer
beforeAll(async () => {
  app = await startTenantServer({
    streamBounds: { beatMs: 20, recheckMs: 20, windowMs: 1, perClientMax: 3, streamsMax: 5 },
  })
})
afterAll(() => app.close())

async function listening(
  tenant: Tenant,
  headers: Readonly<Record<string, string>> = {},
  query = '',
): Promise<StreamReader> {
  const all = { 'x-client-token': TENANTS[tenant], ...headers }
  const reader = await StreamReader.open(`${app.address}/api/v1/changes${query}`, all)
  onTestFinished(() => reader.close())
  return reader
}

describe('a stream of changes', () => {
  test('[M-02] it says at once what has changed, and passes proxies that keep answers back', async () => {
    const reader = await listening('alpha')
    expect(reader.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(reader.response.headers.get('x-accel-buffering')).toBe('no')
    expect(reader.response.headers.get('content-encoding')).toBeNull()
    expect(await reader.next()).toMatchObject({ event: 'ready', data: { resumed: false } })
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { event, data } = await reader.untilJob(jobId, 'waiting_for_human')
    expect(event).toBe('change')
    expect(data['jobs']).toMatchObject([{ job_id: jobId, owner: 'alpha', blueprint_name: 'ask' }])
  })

  test('[M-02] [H-03] it tells a client of its own jobs only, and an admin of all', async () => {
    const [beta, admin] = [await listening('beta'), await listening('admin')]
    const foreign = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    await admin.untilJob(foreign)
    const own = await app.jobIn('beta', 'ask', 'waiting_for_human')
    const { data } = await beta.untilJob(own)
    expect(JSON.stringify(data)).not.toContain(foreign)
  })

  test('[M-02] a reader that comes back gets what it has missed, and one that cannot is told to read everything', async () => {
    const first = await listening('alpha')
    const id = (await first.next())?.id ?? ''
    first.close()
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const second = await listening('alpha', { 'last-event-id': id })
    expect(await second.next()).toMatchObject({ event: 'ready', data: { resumed: true } })
    await second.untilJob(jobId)
    second.close()
    for (const unknown of ['elsewhere-12', `${id.split('-')[0]}-999999`, 'nonsense\u00FF']) {
      const third = await listening('alpha', { 'last-event-id': unknown })
      expect(await third.next()).toMatchObject({ event: 'ready', data: { resumed: false } })
      expect(await third.next()).toMatchObject({ event: 'reset', data: { reason: 'unknown_id' } })
      third.close()
    }
  })

  test('[M-02] it shows signs of life, and ends after the time that was asked for', async () => {
    const reader = await listening('alpha', {}, '?wait=0.2')
    expect((await reader.next())?.event).toBe('ready')
    expect(await reader.next()).toBeUndefined()
    expect(reader.beats).toBeGreaterThan(0)
    const refused = await app.as('alpha', 'GET', '/api/v1/changes?wait=-1')
    expect([refused.status, refused.body['code']]).toEqual([400, 'INVALID_REQUEST'])
  })

  test('[M-02] it ends with the session that it was opened with', async () => {
    const own = { [DASHBOARD_HEADER]: '1', 'sec-fetch-site': 'same-origin' }
    const begun = await app.call('POST', '/dashboard/session', { body: { token: TENANTS.alpha }, headers: own })
    const session = { ...own, cookie: (begun.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '' }
    const url = `${app.address}/api/v1/changes`
    const { cookie } = session
    const foreign = await fetch(url, { headers: { cookie } })
    expect(foreign.status).toBe(403)
    const reader = await StreamReader.open(url, session)
    expect((await reader.next())?.event).toBe('ready')
    await app.call('DELETE', '/dashboard/session', { headers: session })
    for (;;) if ((await reader.next()) === undefined) break
    expect((await fetch(url, { headers: session })).status).toBe(401)
  })

  test('[M-02] [J-01] there are only so many streams, for each client and for all', async () => {
    const open = [await listening('alpha'), await listening('alpha'), await listening('alpha')]
    const refused = await app.as('alpha', 'GET', '/api/v1/changes')
    expect([refused.status, refused.body['code']]).toEqual([429, 'TOO_MANY_REQUESTS'])
    open.push(await listening('beta'), await listening('beta'))
    const full = await app.as('admin', 'GET', '/api/v1/changes')
    expect([full.status, full.body['code']]).toEqual([503, 'OVERLOADED'])
    open[0]?.close()
    await expect.poll(async () => (await app.as('admin', 'GET', '/api/v1/changes?wait=0')).status).toBe(200)
  })

  test('[M-02] a server that stops ends its streams', async () => {
    const stopping = await startTenantServer()
    const headers = { 'x-client-token': TENANTS.alpha }
    const reader = await StreamReader.open(`${stopping.address}/api/v1/changes`, headers)
    await reader.next()
    const stopped = stopping.close()
    expect(await reader.next()).toBeUndefined()
    await stopped
  })
})

const change = (jobId: string, version = 1, owner = 'alpha') => ({
  jobs: [{ jobId, version, status: 'running', owner, blueprint: 'b' }],
  more: [],
  workers: false,
})

describe('what streams hold', () => {
  test('[M-02] the log is bounded in entries and in bytes, and knows what it no longer has', () => {
    const short = new ChangeLog({ entriesMax: 10 })
    for (let count = 0; count < 25; count += 1) short.add(change(`job-${count}`))
    expect(short.since(14, undefined)).toBe('gone')
    expect(short.since(15, undefined)).toMatchObject({ jobs: { length: 10 }, more: false })
    expect([short.numberOf(short.idOf(15)), short.numberOf(short.idOf(14))]).toEqual([15, undefined])
    const small = new ChangeLog({ bytesMax: 10_000 })
    for (let count = 0; count < 1_000; count += 1) small.add(change(`${count}`.padEnd(800, 'x')))
    expect(small.bytes).toBeLessThanOrEqual(10_000)
    expect(small.since(0, undefined)).toBe('gone')
    expect(small.since(995, undefined)).toMatchObject({ jobs: { length: 5 } })
  })

  test('[M-02] one message has the newest of each job, and a bound', () => {
    const log = new ChangeLog()
    log.add(change('a', 1))
    log.add(change('a', 2))
    log.add(change('b', 7, 'beta'))
    expect(log.since(0, 'alpha')).toMatchObject({ jobs: [{ job_id: 'a', version: 2 }], more: false })
    log.add({ jobs: [], more: ['beta'], workers: false })
    expect([log.since(0, 'alpha'), log.since(0, 'beta')]).toMatchObject([{ more: false }, { more: true }])
    log.add({ jobs: [], more: 'all', workers: true })
    expect(log.since(0, 'alpha')).toMatchObject({ more: true, workers: true })
    for (let count = 0; count < 1_000; count += 1) log.add(change(`job-${count}`))
    const all = log.since(0, undefined)
    expect(JSON.stringify(all).length).toBeLessThan(40_000)
    expect(all).toMatchObject({ more: true })
  })

  test('[M-02] a reader that takes nothing holds one message, and is told to read everything again', async () => {
    let tell: (changes: ReturnType<typeof change>) => void = () => {}
    const engine = {
      onChanges: (listener: typeof tell) => {
        tell = listener
        return () => {}
      },
    }
    const log = new ChangeLog({ entriesMax: 100 })
    const streams = new ChangeStreams(engine, { windowMs: 0 }, log)
    onTestFinished(() => streams.close())
    const listener = { clientId: 'a', owner: undefined, lastId: undefined, isAdmitted: async () => true }
    const stream = streams.open(listener)
    for (let round = 0; round < 50; round += 1) {
      for (let count = 0; count < 100; count += 1) tell(change(`job-${round}-${count}`.padEnd(400, 'x')))
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(stream.body.readableLength).toBeLessThan(65_536)
    const texts: string[] = []
    stream.body.on('data', (text: string) => texts.push(text))
    await expect.poll(() => texts.join('')).toContain('event: reset\ndata: {"reason":"behind"}')
    expect(log.numberOf(/id: (?<id>[\w-]+)\nevent: reset/.exec(texts.join(''))?.groups?.['id'] ?? '')).toBe(log.newest)
    stream.body.destroy()
    await expect.poll(() => streams.size).toBe(0)
  })
})

test('[C-10] who comes back with many different ids leaves no text of each of them', async () => {
  let tell: (changes: ReturnType<typeof change>) => void = () => {}
  const engine = {
    onChanges: (listener: typeof tell) => {
      tell = listener
      return () => {}
    },
  }
  const log = new ChangeLog()
  const streams = new ChangeStreams(engine, {}, log)
  onTestFinished(() => streams.close())
  const open = (lastId: string | undefined) =>
    streams.open({ clientId: 'a', owner: 'alpha', lastId, isAdmitted: async () => true })
  open(undefined)
  for (let count = 0; count < 1_000; count += 1) tell(change(`job-${count}`.padEnd(400, 'x')))
  let bytes = 0
  for (let number = 0; number < 1_000; number += 1) {
    const { body } = open(log.idOf(number))
    bytes += body.readableLength
    body.destroy()
    await new Promise(setImmediate)
    expect(streams.textsBytes).toBeLessThanOrEqual(LIMITS.changesBytesMax)
  }
  expect(bytes).toBeGreaterThan(5 * LIMITS.changesBytesMax)
})

test('[M-02] many open streams get fewer messages each, so that all of them together get a bounded number', () => {
  for (const streams of [1, 50, 100]) expect(windowOf(streams, 200)).toBe(200)
  for (const streams of [100, 200, 1_000]) expect((streams * 1_000) / windowOf(streams, 200)).toBe(500)
})
