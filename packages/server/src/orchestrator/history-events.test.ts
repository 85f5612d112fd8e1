import { afterAll, beforeAll, expect, test } from 'vitest'
import { SOME_NUMBER, SOME_TEXT, containing, listIn, startTenantServer } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'

type Entry = Readonly<Record<string, unknown>>

let app: TenantServer
let alphaJob = ''
let betaJob = ''

beforeAll(async () => {
  app = await startTenantServer({ settings: { historyDatabaseUri: 'memory:', timeZone: 'Asia/Kathmandu' } })
  await app.register('w1')
  alphaJob = await app.jobIn('alpha', 'broken', 'finished', { initial_data: { mended: true } })
  betaJob = await app.jobIn('beta', 'broken', 'quarantined')
})
afterAll(() => app.close())

async function events(tenant: Tenant, query = ''): Promise<readonly Entry[]> {
  const answer = await app.as(tenant, 'GET', `/api/v1/history${query}`)
  expect(answer.status).toBe(200)
  return listIn(answer)
}

const namesOf = (entries: readonly Entry[]): readonly unknown[] => entries.map((entry) => entry['event_type'])

test('[G-04] a list of events says of each what the history of its job says, newest first, in the zone of the server', async () => {
  const list = await events('alpha')
  const own = listIn(await app.as('alpha', 'GET', `/api/v1/jobs/${alphaJob}/history`))
  expect(namesOf(list).toReversed()).toEqual(namesOf(own))
  expect(list[0]).toMatchObject({
    event_id: SOME_TEXT,
    event_type: 'job_finished',
    job_id: alphaJob,
    blueprint: 'broken',
    owner: 'alpha',
    duration_ms: SOME_NUMBER,
    time: containing('+05:45'),
  })
})

test('[G-04] [H-05] a client’s list and counts have its own jobs only; an admin’s have everything', async () => {
  for (const [tenant, jobId] of [
    ['alpha', alphaJob],
    ['beta', betaJob],
  ] as const) {
    expect(new Set((await events(tenant)).map((event) => event['job_id']))).toEqual(new Set([jobId]))
  }
  expect(await events('viewer')).toEqual([])
  expect(await events('alpha', `?job=${betaJob}`)).toEqual([])
  expect(await events('alpha', '?worker=w1')).toEqual([])
  expect(namesOf(await events('admin', '?worker=w1'))).toEqual(['registered'])
  expect(new Set((await events('admin')).map((event) => event['owner']))).toEqual(new Set(['alpha', 'beta', null]))
  expect(await events('admin', '?owner=beta')).toEqual(await events('beta'))
  const counted = listIn(await app.as('alpha', 'GET', '/api/v1/history/counts?event=job_created'))
  expect(counted).toMatchObject([{ event_type: 'job_created', count: 1 }])
  const took = await app.as('alpha', 'GET', '/api/v1/history/durations?spans=4')
  expect(took.status).toBe(200)
  expect(took.body['spans']).toHaveLength(4)
  for (const path of [
    '/api/v1/history?owner=beta',
    '/api/v1/history/counts?owner=beta',
    '/api/v1/history/durations?owner=beta',
  ]) {
    expect((await app.as('alpha', 'GET', path)).body).toMatchObject({ code: 'FORBIDDEN' })
  }
})

test('[G-04] a list can be filtered, and comes in pages', async () => {
  const all = await events('admin', '?limit=1000')
  const filtered = await events('admin', '?event=job_created,job_quarantined&blueprint=broken')
  expect(namesOf(filtered)).toEqual(['job_quarantined', 'job_created', 'job_created'])
  const at = Number(filtered[1]?.['timestamp'])
  expect(await events('admin', `?since=${at + 3_600}`)).toEqual([])
  expect(await events('admin', `?until=${new Date((at + 3_600) * 1_000).toISOString()}&limit=1000`)).toEqual(all)
  const pages: Entry[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = await app.as('admin', 'GET', `/api/v1/history?limit=3&before=${cursor}`)
    pages.push(...listIn(page))
    cursor = page.headers.get('x-next-cursor')
  }
  expect(pages).toEqual(all)
})

test('[G-04] counts by event, and per day of the server’s time zone', async () => {
  const total = listIn(await app.as('admin', 'GET', '/api/v1/history/counts?blueprint=broken&event=job_created'))
  expect(total).toEqual([{ timestamp: SOME_NUMBER, time: SOME_TEXT, event_type: 'job_created', count: 2 }])
  const daily = listIn(await app.as('admin', 'GET', '/api/v1/history/counts?per=day&event=job_created'))
  const sum = daily.reduce((all, { count }) => all + Number(count), 0)
  expect(sum).toBe(2)
  for (const { time } of daily) expect(time).toMatch(/T00:00:00\.000\+05:45$/)
})

test.for<readonly [query: string, message: string]>([
  ['?since=yesterday', '"since" must be a time'],
  ['?until=-1', '"until" must be a time'],
  ['?limit=0', '"limit" in the query'],
  ['?before=nonsense', '"before" in the query'],
  ['/counts?since=2026-01-02&until=2026-01-01', '"since" in the query must lie before "until"'],
  ['/counts?per=week', '"per" in the query'],
  ['/counts?per=hour&since=2020-01-01', 'Ask for less time at once'],
])('[H-01] what cannot be meant is refused: %s', async ([query, message]) => {
  const answer = await app.as('admin', 'GET', `/api/v1/history${query}`)
  expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST', error: containing(message) } })
})

test('[G-04] [I-08] how the writing goes is on the dashboard of admins, and among the parts of the server', async () => {
  const { body } = await app.as('admin', 'GET', '/api/v1/dashboard')
  expect(body['history']).toEqual({ is_away: false, waiting: SOME_NUMBER, dropped: 0 })
  expect((await app.as('alpha', 'GET', '/api/v1/dashboard')).body['history']).toBeUndefined()
  expect((await app.call('GET', '/_public/ready')).body).toMatchObject({ components: { history: { status: 'ok' } } })
})
