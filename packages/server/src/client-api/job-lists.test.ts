import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { containing, listIn, SOME_NUMBER, SOME_TEXT, startTenantServer } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeEach(async () => {
  app = await startTenantServer()
})
afterEach(() => app.close())

async function create(tenant: Tenant, more: object = {}): Promise<string> {
  const { body } = await app.as(tenant, 'POST', '/api/v1/jobs', { blueprint: 'ask', ...more })
  return body.job_id
}

async function idsIn(tenant: Tenant, query: string): Promise<readonly unknown[]> {
  return listIn(await app.as(tenant, 'GET', `/api/v1/jobs?${query}`)).map((job) => job['id'])
}

describe('lists', () => {
  test('[H-05] a client sees its own jobs, an admin everybody’s or those of one client', async () => {
    const mine = await create('alpha')
    const theirs = await create('beta')
    expect(await idsIn('alpha', '')).toEqual([mine])
    expect(await idsIn('alpha', 'owner=alpha')).toEqual([mine])
    expect(await idsIn('viewer', '')).toEqual([])
    expect(await idsIn('admin', '')).toEqual([theirs, mine])
    expect(await idsIn('admin', 'owner=alpha')).toEqual([mine])
    expect(await app.as('alpha', 'GET', '/api/v1/jobs?owner=beta')).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN' },
    })
  })

  test('[H-01] created_after and created_before take ISO times and Unix seconds', async () => {
    const first = await create('alpha')
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${first}`)
    const at = Number(body['created_at'])
    const iso = encodeURIComponent(new Date(at * 1_000).toISOString())
    for (const moment of [String(at), iso]) {
      expect(await idsIn('alpha', `created_after=${moment}`)).toEqual([first])
      expect(await idsIn('alpha', `created_before=${moment}`)).toEqual([])
    }
    expect(await idsIn('alpha', `created_after=${at + 10}`)).toEqual([])
    expect(await idsIn('alpha', `created_before=${at + 10}`)).toEqual([first])
    expect(await idsIn('alpha', 'created_before=2001-02-03')).toEqual([])
    expect(await idsIn('alpha', 'created_after=2001-02-03T04:05:06+02:00')).toEqual([first])
    for (const bad of ['yesterday', '2026-13-01', '2026-01-01T10:00', '-5', '1e30', '99999999999999']) {
      expect((await app.as('alpha', 'GET', `/api/v1/jobs?created_after=${bad}`)).status).toBe(400)
    }
  })

  test('[H-01] [M-02] order=oldest lists the same jobs the other way round, page by page', async () => {
    const { body } = await app.as('alpha', 'POST', '/api/v1/jobs/batch', {
      jobs: Array.from({ length: 7 }, () => ({ blueprint: 'ask' })),
    })
    expect(body).toHaveProperty('results')
    await create('alpha')
    await create('beta')
    const newest = await idsIn('alpha', 'limit=100')
    expect(newest).toHaveLength(8)
    for (const limit of [1, 3, 100]) {
      const found = await app.server.client({ id: 'alpha' }).list({ order: 'oldest', limit }).all()
      expect(found.map(({ id }) => id)).toEqual(newest.toReversed())
    }
    expect(await idsIn('alpha', 'order=oldest&created_before=2001-02-03')).toEqual([])
    expect(await idsIn('viewer', 'order=oldest')).toEqual([])
    for (const bad of ['order=up', 'order=oldest&q=a', 'order=oldest&offset=1']) {
      expect((await app.as('alpha', 'GET', `/api/v1/jobs?${bad}`)).status).toBe(400)
    }
  })

  test('[H-01] q finds jobs by what is in them', async () => {
    const paris = await create('alpha', { metadata: { city: 'Paris' } })
    await create('alpha', { metadata: { city: 'Rome' } })
    expect(await idsIn('alpha', 'q=pARIS')).toEqual([paris])
    expect(await idsIn('alpha', `q=${paris.slice(-12)}`)).toEqual([paris])
    expect(await idsIn('beta', 'q=paris')).toEqual([])
  })

  test('[H-01] a status that does not exist is named', async () => {
    await app.jobIn('alpha', 'broken', 'quarantined')
    expect(await idsIn('alpha', 'status=quarantined,finished')).toHaveLength(1)
    expect(await idsIn('alpha', 'status=finished')).toHaveLength(0)
    const refused = await app.as('alpha', 'GET', '/api/v1/jobs?status=finished,don')
    expect(refused).toMatchObject({ status: 400, body: { error: containing('"don"') } })
  })

  test('[H-01] pages are linked, and a cursor that is none of ours is refused', async () => {
    const ids = [await create('alpha'), await create('alpha'), await create('alpha')]
    const first = await app.as('alpha', 'GET', '/api/v1/jobs?limit=2&blueprint=ask')
    const link = /^<(?<path>[^>]+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.groups?.['path'] ?? ''
    expect(link).toContain('blueprint=ask')
    expect(listIn(await app.as('alpha', 'GET', link)).map((job) => job['id'])).toEqual([ids[0]])
    for (const cursor of [ids[0], 'x', 'YWZ0ZXI6', '..%2F..', Buffer.from('after:a b').toString('base64url')]) {
      const refused = await app.as('alpha', 'GET', `/api/v1/jobs?cursor=${cursor}`)
      expect(refused).toMatchObject({ status: 400, body: { error: containing('X-Next-Cursor') } })
    }
  })

  test('[H-01] an offset of older clients is served within a bound', async () => {
    const ids = [await create('alpha'), await create('alpha'), await create('alpha')]
    expect(await idsIn('alpha', 'limit=100&offset=0')).toEqual(ids.toReversed())
    expect(await idsIn('alpha', 'limit=1&offset=1')).toEqual([ids[1]])
    expect(await idsIn('alpha', 'offset=1000')).toEqual([])
    for (const offset of ['1001', '-1', '0.5', 'two']) {
      expect((await app.as('alpha', 'GET', `/api/v1/jobs?offset=${offset}`)).status).toBe(400)
    }
  })

  test('[H-01] fields are picked, and a misspelt one is named', async () => {
    const id = await create('alpha')
    expect(listIn(await app.as('alpha', 'GET', '/api/v1/jobs?fields=id,owner'))).toEqual([{ id, owner: 'alpha' }])
    for (const path of ['/api/v1/jobs', `/api/v1/jobs/${id}`]) {
      const refused = await app.as('alpha', 'GET', `${path}?fields=id,stauts`)
      expect(refused).toMatchObject({ status: 400, body: { error: containing('"stauts"') } })
    }
  })
})

describe('one job', () => {
  test('[H-05] another client’s job does not exist, whatever is asked of it', async () => {
    const id = await create('alpha')
    for (const [method, path] of [
      ['GET', `/api/v1/jobs/${id}`],
      ['GET', `/api/v1/jobs/${id}/history`],
      ['GET', `/api/v1/jobs/${id}/explain`],
      ['GET', `/api/v1/jobs/${id}/approval`],
      ['POST', `/api/v1/jobs/${id}/cancel`],
      ['POST', `/api/v1/jobs/${id}/retry`],
      ['POST', `/api/v1/jobs/${id}/discard`],
    ] as const) {
      expect(await app.as('beta', method, path)).toMatchObject({ status: 404, body: { code: 'JOB_NOT_FOUND' } })
    }
    expect((await app.as('admin', 'GET', `/api/v1/jobs/${id}`)).body).toMatchObject({ owner: 'alpha' })
  })

  test('[H-08] [H-01] the fields that clients read stay, and nothing secret is among them', async () => {
    const id = await app.jobIn('alpha', 'broken', 'quarantined')
    const { body, text } = await app.as('alpha', 'GET', `/api/v1/jobs/${id}`)
    expect(body).toMatchObject({ status: 'quarantined', state_history: {}, error_message: SOME_TEXT })
    expect(text).not.toMatch(/token|x-client|stack|\.ts:/i)
  })

  test('[J-9] [G-04] the history of a job is there from the start, oldest first, in pages', async () => {
    const id = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const all = listIn(await app.as('alpha', 'GET', `/api/v1/jobs/${id}/history`))
    expect(all.map((entry) => entry['event_type'])).toContain('approval_requested')
    expect(all[0]).toMatchObject({ job_id: id, event_id: SOME_TEXT, timestamp: SOME_NUMBER })
    const times = all.map((entry) => Number(entry['timestamp']))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    const seen: unknown[] = []
    let after: string | null = '0'
    while (after !== null) {
      const page = await app.as('alpha', 'GET', `/api/v1/jobs/${id}/history?limit=1&after=${after}`)
      seen.push(...listIn(page))
      after = page.headers.get('x-next-cursor')
    }
    expect(seen).toEqual(all)
    expect((await app.as('alpha', 'GET', `/api/v1/jobs/${id}/history?limit=0`)).status).toBe(400)
    expect((await app.as('alpha', 'GET', '/api/v1/jobs/none/history')).status).toBe(404)
  })

  test('[H-01] a viewer reads and starts nothing', async () => {
    expect(await app.as('viewer', 'POST', '/api/v1/jobs', { blueprint: 'ask' })).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN', error: containing('client') },
    })
    expect((await app.as('viewer', 'POST', '/api/v1/echo', {})).status).toBe(403)
    expect((await app.as('viewer', 'GET', '/api/v1/jobs')).status).toBe(200)
  })
})

test('[H-01] a blueprint of another version of the API has its endpoint and the common routes there', async () => {
  const started = await app.as('alpha', 'POST', '/api/v2/echo', { initial_data: {} })
  expect(started.status).toBe(202)
  const { body } = await app.as('alpha', 'GET', `/api/v2/jobs/${started.body.job_id}?wait=20&until=end`)
  expect(body).toMatchObject({ blueprint_name: 'second', status: 'finished' })
  const plain = await app.as('alpha', 'POST', '/api/v1/echo', { initial_data: {} })
  const found = await app.as('alpha', 'GET', `/api/v1/jobs/${plain.body.job_id}`)
  expect(found.body).toMatchObject({ blueprint_name: 'echo' })
  const page = await app.as('alpha', 'GET', '/api/v2/jobs?limit=1')
  expect(page.headers.get('link')).toContain('</api/v2/jobs?')
  expect((await app.as('alpha', 'GET', '/api/v3/jobs')).status).toBe(404)
  expect((await app.as('alpha', 'POST', '/api/v3/echo', {})).status).toBe(404)
  expect(listIn(await app.as('alpha', 'GET', '/api/v1/blueprints'))).toContainEqual(
    expect.objectContaining({ name: 'second', api_version: 'v2' }),
  )
})
