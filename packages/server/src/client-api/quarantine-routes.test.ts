import { LIMITS } from '@impresario/protocol'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { containing, listIn, SOME_NUMBER, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeEach(async () => {
  app = await startTenantServer()
})
afterEach(() => app.close())

const fallen = (tenant: 'alpha' | 'beta' = 'alpha'): Promise<string> => app.jobIn(tenant, 'broken', 'quarantined')

describe('looking', () => {
  test('[C-07] [H-05] the list shows the own jobs with their errors, and everybody’s to an admin', async () => {
    const mine = [await fallen(), await fallen()]
    const theirs = await fallen('beta')
    const list = listIn(await app.as('alpha', 'GET', '/api/v1/quarantine'))
    expect(list.map((job) => job['id'])).toEqual(mine.toReversed())
    expect(list[0]).toMatchObject({
      status: 'quarantined',
      owner: 'alpha',
      error: { code: 'HANDLER_FAILED', message: containing('fell over'), state: 'fall' },
      quarantined_at: SOME_NUMBER,
    })
    expect(JSON.stringify(list)).not.toContain('.ts:')
    const all = listIn(await app.as('admin', 'GET', '/api/v1/quarantine'))
    expect(all.map((job) => job['id'])).toEqual([theirs, ...mine.toReversed()])
    expect(listIn(await app.as('admin', 'GET', '/api/v1/quarantine?owner=beta'))).toHaveLength(1)
    expect((await app.as('alpha', 'GET', '/api/v1/quarantine?owner=beta')).status).toBe(403)
  })

  test('[C-07] filters by blueprint, error and age, in pages that join', async () => {
    const ids = [await fallen(), await fallen(), await fallen()]
    const get = (query: string) => app.as('alpha', 'GET', `/api/v1/quarantine?${query}`)
    expect(listIn(await get('blueprint=echo'))).toHaveLength(0)
    expect(listIn(await get('error_code=HANDLER_FAILED'))).toHaveLength(3)
    expect(listIn(await get('error_code=OTHER'))).toHaveLength(0)
    expect(listIn(await get('older_than=3600'))).toHaveLength(0)
    expect(listIn(await get('older_than=0'))).toHaveLength(3)
    const first = await get('limit=2')
    const cursor = first.headers.get('x-next-cursor')
    const rest = await get(`limit=2&cursor=${cursor}`)
    expect([...listIn(first), ...listIn(rest)].map((job) => job['id'])).toEqual(ids.toReversed())
    expect(rest.headers.get('x-next-cursor')).toBeNull()
    for (const query of ['limit=0', 'older_than=long', 'cursor=x']) expect((await get(query)).status).toBe(400)
  })

  test('[C-07] [E-01] so is the stack that a worker sent, cut and without what would steer a terminal', async () => {
    const jobId = await app.jobIn('alpha', 'echo', 'waiting_for_worker')
    await app.worker('POST', '/_worker/workers/register', { worker_id: 'w1', supported_skills: ['echo'] })
    const { body: task } = await app.worker('GET', '/_worker/workers/w1/tasks/next?timeout=10')
    const stack = `Error: broken\n    at \u001B[31mlamp.js:3\r\n${'x'.repeat(20_000)}`
    const error = { code: 'PERMANENT_ERROR', message: 'broken', stack }
    const result = { job_id: jobId, task_id: task.task_id, worker_id: 'w1', status: 'failure', error }
    expect((await app.worker('POST', '/_worker/tasks/result', result)).status).toBe(200)
    const { body } = await app.as('alpha', 'GET', `/api/v1/quarantine/${jobId}`)
    const shown = (body['error'] as { readonly stack: string }).stack
    expect(shown).toMatch(/^Error: broken\n {4}at \[31mlamp\.js:3\nx+$/)
    expect(shown.length).toBeLessThanOrEqual(LIMITS.taskStackCharsMax)
    const plain = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)
    const history = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}/history`)
    for (const { text } of [plain, history]) expect(text).not.toContain('lamp.js')
  })

  test('[C-03] [C-07] one job is shown with its stack, to its owner and admins', async () => {
    const jobId = await fallen()
    for (const tenant of ['alpha', 'admin'] as const) {
      const { status, body } = await app.as(tenant, 'GET', `/api/v1/quarantine/${jobId}`)
      expect(status).toBe(200)
      expect(body['error']).toMatchObject({ stack: containing('fell over') })
    }
    expect((await app.as('beta', 'GET', `/api/v1/quarantine/${jobId}`)).status).toBe(404)
    const open = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    expect((await app.as('alpha', 'GET', `/api/v1/quarantine/${open}`)).status).toBe(409)
  })

  test('[J-17] the old list needs a token and shows the own jobs, and there is no way to flush', async () => {
    const jobId = await fallen()
    expect((await app.call('GET', '/_public/jobs/quarantined')).status).toBe(401)
    expect(listIn(await app.as('beta', 'GET', '/_public/jobs/quarantined'))).toHaveLength(0)
    expect(listIn(await app.as('alpha', 'GET', '/_public/jobs/quarantined'))).toMatchObject([{ id: jobId }])
    for (const tenant of ['alpha', 'admin'] as const) {
      expect((await app.as(tenant, 'POST', '/_public/debug/flush_db')).status).toBe(404)
    }
    const { paths } = await app.server.apiDocument()
    expect(Object.keys(paths).filter((path) => /flush|debug/.test(path))).toEqual([])
  })
})

describe('one by one', () => {
  test('[C-07] a job goes on with other data, which is checked', async () => {
    const jobId = await fallen()
    const retry = (body: unknown) => app.as('alpha', 'POST', `/api/v1/jobs/${jobId}/retry`, body)
    expect(await retry({ initialData: {} })).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect((await retry({ initial_data: 5 })).status).toBe(400)
    expect(await retry({ initial_data: { weight: 11 } })).toMatchObject({
      status: 422,
      body: { code: 'INPUT_REFUSED', error: containing('weight') },
    })
    const large = { text: Array.from({ length: 3 }, () => 'x'.repeat(LIMITS.contextBytesMax / 3)) }
    expect(await retry({ state_history: large })).toMatchObject({ status: 422, body: { code: 'LIMIT_EXCEEDED' } })
    expect((await app.as('viewer', 'POST', `/api/v1/jobs/${jobId}/retry`)).status).toBe(403)
    expect((await app.as('beta', 'POST', `/api/v1/jobs/${jobId}/retry`)).status).toBe(404)
    expect((await retry({ initial_data: { mended: true }, state_history: { note: 'mended' } })).status).toBe(200)
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&until=end`)
    expect(body).toMatchObject({ status: 'finished', state_history: { note: 'mended' } })
    expect(await retry({})).toMatchObject({ status: 409, body: { code: 'NOT_WAITING' } })
    // The very same once more: its first answer was perhaps lost.
    expect(await retry({ initial_data: { mended: true }, state_history: { note: 'mended' } })).toMatchObject({
      status: 200,
      body: { status: 'retry_accepted', job_id: jobId, job_status: 'finished' },
    })
  })

  test('[C-07] a job is given up, by an admin too', async () => {
    const jobId = await fallen()
    expect((await app.as('alpha', 'POST', `/api/v1/jobs/${jobId}/discard`, { why: 'x' })).status).toBe(400)
    expect((await app.as('admin', 'POST', `/api/v1/jobs/${jobId}/discard`)).status).toBe(200)
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)
    expect(body).toMatchObject({ status: 'failed' })
  })
})

describe('many at once', () => {
  test('[C-07] by ids, each answered for itself', async () => {
    const mine = await fallen()
    const theirs = await fallen('beta')
    const open = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const ids = [mine, theirs, open, 'none', mine]
    const { status, body } = await app.as('alpha', 'POST', '/api/v1/quarantine/discard', { ids })
    expect(status).toBe(200)
    expect(body).toEqual({
      results: [
        { job_id: mine, status: 'discard_accepted', job_status: 'failed' },
        { job_id: theirs, error: 'Job not found', code: 'JOB_NOT_FOUND' },
        { job_id: open, error: 'The job is not in quarantine.', code: 'NOT_WAITING' },
        { job_id: 'none', error: 'Job not found', code: 'JOB_NOT_FOUND' },
      ],
      has_more: false,
    })
    expect(listIn(await app.as('beta', 'GET', '/api/v1/quarantine'))).toHaveLength(1)
  })

  test('[C-07] by a filter, as many as asked for', async () => {
    const ids = [await fallen(), await fallen(), await fallen()]
    await fallen('beta')
    const retry = (body: unknown) => app.as('alpha', 'POST', '/api/v1/quarantine/retry', body)
    const none = await retry({ filter: { error_code: 'OTHER' } })
    expect(none.body).toEqual({ results: [], has_more: false })
    const some = await retry({ filter: { blueprint: 'broken' }, limit: 2 })
    expect(some.body).toMatchObject({
      results: ids
        .slice(1)
        .toReversed()
        .map((id) => ({ job_id: id, status: 'retry_accepted' })),
      has_more: true,
    })
    for (const body of [{}, { ids: ['a'], filter: {} }, { ids: [] }, { filter: { owner: 'beta' } }, { id: ['a'] }]) {
      expect((await retry(body)).status).toBe(400)
    }
    const many = Array.from({ length: LIMITS.batchItemsMax + 1 }, (_, index) => `job-${index}`)
    expect((await retry({ ids: many })).status).toBe(400)
    expect((await retry({ ids: many.slice(1) })).status).toBe(200)
    expect((await app.as('viewer', 'POST', '/api/v1/quarantine/retry', { filter: {} })).status).toBe(403)
  })
})
