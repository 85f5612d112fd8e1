import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Caller } from '../http/access.ts'
import { HandClock } from '../protection.fixture.ts'
import { QuotaCalendar } from './quota-calendar.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

const CALLER: Caller = { client: { id: 'a' }, role: 'client', monthlyAttempts: 5 }

describe('the month of a quota', () => {
  const at = (zone: string, time: string): string => {
    const clock = new HandClock()
    clock.ms = Date.parse(time)
    const quota = new QuotaCalendar(clock, zone).quotaOf(CALLER)
    return `${quota?.period} ends ${new Date(clock.ms + (quota?.renewsInMs ?? 0)).toISOString()}`
  }

  test.each([
    ['UTC', '2026-11-16T12:00:00Z', '2026-11 ends 2026-12-01T00:00:00.000Z'],
    ['UTC', '2026-12-31T23:59:59.999Z', '2026-12 ends 2027-01-01T00:00:00.000Z'],
    ['UTC', '2028-02-01T00:00:00Z', '2028-02 ends 2028-03-01T00:00:00.000Z'],
    ['Europe/Berlin', '2026-10-31T22:59:59Z', '2026-10 ends 2026-10-31T23:00:00.000Z'],
    ['Europe/Berlin', '2026-10-01T00:00:00Z', '2026-10 ends 2026-10-31T23:00:00.000Z'],
    ['Europe/Berlin', '2026-03-15T00:00:00Z', '2026-03 ends 2026-03-31T22:00:00.000Z'],
    ['America/Los_Angeles', '2026-12-01T07:59:59Z', '2026-11 ends 2026-12-01T08:00:00.000Z'],
    ['Pacific/Kiritimati', '2026-11-30T10:00:00Z', '2026-12 ends 2026-12-31T10:00:00.000Z'],
    ['Asia/Kathmandu', '2026-11-30T18:14:59Z', '2026-11 ends 2026-11-30T18:15:00.000Z'],
  ])('[H-04] in %s at %s it is %s', (zone, time, expected) => {
    expect(at(zone, time)).toBe(expected)
  })

  test('[H-04] a client without a quota has none, and a clock that goes on finds the next month', () => {
    const clock = new HandClock()
    const calendar = new QuotaCalendar(clock, 'UTC')
    expect(calendar.quotaOf({ client: { id: 'a' }, role: 'client' })).toBeUndefined()
    clock.ms = Date.parse('2026-11-30T23:59:59.999Z')
    expect(calendar.quotaOf(CALLER)).toEqual({ limit: 5, period: '2026-11', renewsInMs: 1 })
    clock.ms += 1
    expect(calendar.quotaOf(CALLER)?.period).toBe('2026-12')
  })
})

describe('over the wire', () => {
  let directory = ''
  let app: TestServer | undefined
  afterEach(async () => {
    await app?.server.stop()
    app = undefined
    await rm(directory, { recursive: true, force: true })
  })

  test('[H-04] only starting jobs costs; used up it is 429 with the time until the month ends; the account tells', async () => {
    directory = await mkdtemp(join(tmpdir(), 'impresario-quota-'))
    const clientsConfigPath = join(directory, 'clients.toml')
    await writeFile(
      clientsConfigPath,
      '[few]\ntoken = "token-of-few"\nplan = "small"\nmonthly_attempts = 3\n[many]\ntoken = "token-of-many"\n',
    )
    const started = await startTestServer({ settings: { clientToken: '', clientsConfigPath, timeZone: 'Asia/Tokyo' } })
    app = started
    const few = { 'x-client-token': 'token-of-few' }
    const create = (body: object = {}): Promise<Answer> =>
      started.call('POST', '/api/v1/jobs', { headers: few, body: { blueprint: 'ask', ...body } })
    const account = async (headers: Record<string, string> = few): Promise<unknown> =>
      (await started.call('GET', '/api/v1/account', { headers })).body
    expect((await create({ blueprint: 'none' })).status).toBe(404)
    const first = await create({ idempotency_key: 'k' })
    expect((await create({ idempotency_key: 'k' })).body.job_id).toBe(first.body.job_id)
    for (let reads = 0; reads < 5; reads += 1) {
      await started.call('GET', `/api/v1/jobs/${first.body.job_id}`, { headers: few })
    }
    expect(await account()).toMatchObject({
      client_id: 'few',
      role: 'client',
      plan: 'small',
      quota: { used: 1, left: 2 },
    })
    const batch = await started.call('POST', '/api/v1/jobs/batch', {
      headers: few,
      body: { jobs: Array.from({ length: 4 }, () => ({ blueprint: 'ask' })) },
    })
    expect(batch.text.match(/"accepted"/g)).toHaveLength(2)
    expect(batch.text.match(/"QUOTA_EXCEEDED"/g)).toHaveLength(2)
    const refused = await create()
    expect(refused).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } })
    expect(refused.body['error']).toMatch(/^Quota exceeded/)
    const retryAfter = Number(refused.headers.get('retry-after'))
    const renewed = new Date(Date.now() + retryAfter * 1_000 + 9 * 3_600_000)
    expect([renewed.getUTCDate(), renewed.getUTCHours(), renewed.getUTCMinutes()]).toEqual([1, 0, 0])
    expect((await started.call('POST', '/api/v1/echo', { headers: few, body: { initial_data: {} } })).status).toBe(429)
    // Reading and asking again are still possible.
    expect((await create({ idempotency_key: 'k' })).status).toBe(202)
    expect(await account()).toMatchObject({ quota: { limit: 3, used: 3, left: 0 } })
    expect(await account({ 'x-client-token': 'token-of-many' })).toMatchObject({ plan: null, quota: null })
    // A higher quota counts at once.
    await writeFile(clientsConfigPath, '[few]\ntoken = "token-of-few"\nmonthly_attempts = 4\n')
    started.server.reloadCredentials()
    expect([(await create()).status, (await create()).status]).toEqual([202, 429])
  })
})
