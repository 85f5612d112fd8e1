import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { blueprint } from '@impresario/core'
import { echo, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const broken = blueprint('broken', { start: 'fall', handlerAttemptsMax: 1 }, (state) => ({
  fall: state.handler((context, actions) => {
    if (context.initialData['mended'] !== true) throw new Error('the handler fell over')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

let app: TestServer

beforeEach(async () => {
  app = await startTestServer()
})
afterEach(async () => {
  await app.server.stop()
})

describe('creating', () => {
  test('[H-01] a job is created under both prefixes, and by its endpoint', async () => {
    for (const prefix of ['/api/v1', '/api']) {
      const created = await app.client('POST', `${prefix}/jobs`, { blueprint: 'echo', initial_data: { n: 1 } })
      expect(created).toMatchObject({ status: 202, body: { status: 'accepted' } })
      const { body } = await app.client('GET', `${prefix}/jobs/${created.body.job_id}`)
      expect(body).toMatchObject({ id: created.body.job_id, blueprint_name: 'echo', initial_data: { n: 1 } })
      const byEndpoint = await app.client('POST', `${prefix}/echo`, { initial_data: { n: 2 }, result_timeout: 5 })
      expect(byEndpoint.status).toBe(202)
      const own = await app.client('GET', `${prefix}/jobs/${byEndpoint.body.job_id}`)
      expect(own.body).toMatchObject({ initial_data: { n: 2 } })
    }
  })

  test('[H-01] an endpoint takes the whole body of an old client as the initial data', async () => {
    const created = await app.client('POST', '/api/v1/echo', { city: 'Paris' })
    const { body } = await app.client('GET', `/api/v1/jobs/${created.body.job_id}`)
    expect(body).toMatchObject({ initial_data: { city: 'Paris' } })
    expect((await app.client('POST', '/api/v1/echo')).status).toBe(202)
    expect((await app.client('POST', '/api/v1/nothing', {})).status).toBe(404)
    expect((await app.client('POST', '/api/v1/echo', { initial_data: 5 })).status).toBe(400)
  })

  test('[H-01] what cannot be created is refused with a reason', async () => {
    const post = (body: unknown) => app.client('POST', '/api/v1/jobs', body)
    expect(await post({ blueprint: 'none' })).toMatchObject({ status: 404, body: { code: 'BLUEPRINT_NOT_FOUND' } })
    expect(await post({ blueprint: 'ecoh' })).toMatchObject({
      status: 404,
      body: { error: 'There is no blueprint "ecoh". Did you mean "echo"?' },
    })
    expect(await post({})).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(await post({ blueprint: 'echo', initial_data: [1] })).toMatchObject({ status: 400 })
    expect(await post('nonsense')).toMatchObject({ status: 400, body: { error: 'Invalid JSON body' } })
    const plain = await app.client('POST', '/api/v1/jobs', 'x', { 'content-type': 'text/plain' })
    expect(plain).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA' } })
  })

  test('[C-08] the same key gives the same job, also at the same moment', async () => {
    const body = { blueprint: 'echo', initial_data: { n: 1 }, idempotency_key: 'k' }
    const created = await Promise.all(Array.from({ length: 5 }, () => app.client('POST', '/api/v1/jobs', body)))
    expect(new Set(created.map((answer) => answer.body.job_id)).size).toBe(1)
    const byHeader = await app.client(
      'POST',
      '/api/v1/jobs',
      { blueprint: 'echo', initial_data: { n: 1 } },
      { 'idempotency-key': 'k' },
    )
    expect(byHeader.body.job_id).toBe(created[0]?.body.job_id)
    const other = await app.client('POST', '/api/v1/jobs', { ...body, initial_data: { n: 2 } })
    expect(other).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } })
    const header = { 'idempotency-key': 'k'.repeat(256) }
    expect((await app.client('POST', '/api/v1/jobs', { blueprint: 'echo' }, header)).status).toBe(400)
  })

  test('[H-01] a batch answers each job in its place', async () => {
    const jobs = [{ blueprint: 'echo' }, { blueprint: 'none' }, { nonsense: 1 }, { blueprint: 'echo' }]
    const { status, body } = await app.client('POST', '/api/v1/jobs/batch', { jobs })
    expect(status).toBe(202)
    expect(body['results']).toMatchObject([
      { status: 'accepted' },
      { code: 'BLUEPRINT_NOT_FOUND' },
      { code: 'INVALID_REQUEST' },
      { status: 'accepted' },
    ])
    const many = Array.from({ length: 501 }, () => ({ blueprint: 'echo' }))
    expect((await app.client('POST', '/api/v1/jobs/batch', { jobs: many })).status).toBe(400)
  })
})

test('[H-01] an endpoint may lie below the paths of jobs', async () => {
  await app.server.stop()
  const deep = blueprint('deep', { start: 'done', endpoint: '/jobs/deep' }, (state) => ({ done: state.end() }))
  app = await startTestServer({ blueprints: [deep] })
  const created = await app.client('POST', '/api/v1/jobs/deep', { initial_data: {} })
  expect(created.status).toBe(202)
  expect((await app.ended(created.body.job_id)).body).toMatchObject({ blueprint_name: 'deep', status: 'finished' })
})

describe('reading', () => {
  test('[H-01] a list comes newest first, in pages that join without a gap', async () => {
    const created: string[] = []
    for (let index = 0; index < 7; index += 1) created.push(await app.createJob(index === 3 ? 'ask' : 'echo'))
    const seen: string[] = []
    let cursor: string | null = ''
    do {
      const page = await app.client('GET', `/api/v1/jobs?limit=3&cursor=${cursor}`)
      seen.push(...(JSON.parse(page.text) as { id: string }[]).map((job) => job.id))
      cursor = page.headers.get('x-next-cursor')
    } while (cursor !== null)
    expect(seen).toEqual(created.toReversed())
    const asked = await app.client('GET', '/api/v1/jobs?blueprint=ask&status=waiting_for_human,running,pending')
    expect(JSON.parse(asked.text)).toMatchObject([{ id: created[3] }])
    for (const limit of ['0', '101', 'many']) {
      expect((await app.client('GET', `/api/v1/jobs?limit=${limit}`)).status).toBe(400)
    }
    expect((await app.client('GET', '/api/v1/jobs?limit=100')).status).toBe(200)
  })

  test('[H-01] a wait ends when the job changes, or when its time is up', async () => {
    const jobId = await app.createJob('ask')
    const asking = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    expect(asking.body).toMatchObject({ status: 'waiting_for_human' })
    const unchanged = await app.client('GET', `/api/v1/jobs/${jobId}?wait=0.01&until=end`)
    expect(unchanged.body).toMatchObject({ status: 'waiting_for_human' })
    const waiting = app.ended(jobId)
    await app.client('POST', `/_public/webhooks/approval/${jobId}`, { decision: 'approved' })
    expect((await waiting).body).toMatchObject({ status: 'finished', current_state: 'done' })
    expect((await app.client('GET', `/api/v1/jobs/${jobId}?wait=soon`)).status).toBe(400)
    expect((await app.client('GET', `/api/v1/jobs/${jobId}?fields=id,status`)).body).toEqual({
      id: jobId,
      status: 'finished',
    })
  })

  test('[D-05] a job says why its task waits', async () => {
    const jobId = await app.createJob('echo')
    await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    const { body } = await app.client('GET', `/api/v1/jobs/${jobId}/explain`)
    expect(body).toMatchObject({
      job_id: jobId,
      tasks: [
        {
          type: 'echo',
          where: 'waiting',
          attempt: 1,
          deadline: null,
          last_error: null,
          explanation: { summary: 'No worker is live.', chosen: null },
        },
      ],
    })
    expect((await app.client('GET', '/api/v1/jobs/none/explain')).status).toBe(404)
  })

  test('[H-01] workers, blueprints and the overview are listed', async () => {
    await app.register('w1')
    await app.createJob('ask')
    const workers = await app.client('GET', '/api/v1/workers')
    expect(JSON.parse(workers.text)).toMatchObject([{ worker_id: 'w1', supported_skills: ['echo'], load: 0 }])
    const blueprints = await app.client('GET', '/api/v1/blueprints')
    expect((JSON.parse(blueprints.text) as { name: string }[]).map(({ name }) => name)).toEqual([
      'ask',
      'echo',
      'fan',
      'flaky',
    ])
    expect((await app.client('GET', '/api/v1/dashboard')).body).toMatchObject({ workers: { total: 1 } })
  })

  test('[A-06] a blueprint is drawn as DOT, or as SVG for whoever asks', async () => {
    const path = '/api/v1/blueprints/echo/graph'
    const dot = await app.client('GET', path)
    expect(dot.headers.get('content-type')).toContain('text/vnd.graphviz')
    expect(dot.text).toContain('digraph "echo"')
    for (const svg of [
      await app.client('GET', `${path}?format=svg`),
      await app.client('GET', path, undefined, { accept: 'image/svg+xml' }),
    ]) {
      expect(svg.headers.get('content-type')).toContain('image/svg+xml')
      expect(svg.text).toContain('<svg')
    }
    expect(await app.client('GET', '/api/v1/blueprints/none/graph')).toMatchObject({
      status: 404,
      body: { error: 'Blueprint not found' },
    })
    expect((await app.client('GET', `${path}?format=png`)).status).toBe(400)
  })
})

describe('commands', () => {
  test('[C-05] a job is cancelled once, and whoever asks again because the answer was lost hears that it is', async () => {
    const jobId = await app.createJob('ask')
    const cancelled = { status: 'cancellation_request_accepted', job_id: jobId, job_status: 'cancelled' }
    const cancel = (body?: object) => app.client('POST', `/api/v1/jobs/${jobId}/cancel`, body)
    expect(await cancel({ reason: 'enough' })).toMatchObject({ status: 200, body: cancelled })
    expect(await cancel({ reason: 'once more' })).toMatchObject({ status: 200, body: cancelled })
    const finished = await app.createJob('ask')
    await app.client('GET', `/api/v1/jobs/${finished}?wait=20&version=1`)
    await app.client('POST', `/_public/webhooks/approval/${finished}`, { decision: 'approved' })
    for (const id of [finished, 'none']) {
      const refused = await app.client('POST', `/api/v1/jobs/${id}/cancel`)
      expect(refused).toMatchObject({ status: 404, body: { error: 'Job not found or already terminal.' } })
    }
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'cancelled', error_message: 'enough' })
  })

  test('[H-01] a decision is taken once, and only one that was asked for', async () => {
    const jobId = await app.createJob('ask')
    await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    const decide = (id: string, body: unknown) => app.client('POST', `/_public/webhooks/approval/${id}`, body)
    expect((await decide(jobId, {})).status).toBe(400)
    expect((await decide(jobId, '{')).status).toBe(400)
    expect(await decide(jobId, { decision: 'maybe' })).toMatchObject({
      status: 400,
      body: { error: "Invalid decision 'maybe' for this job" },
    })
    expect((await decide('none', { decision: 'approved' })).status).toBe(404)
    expect(
      (await app.call('POST', `/_public/webhooks/approval/${jobId}`, { body: { decision: 'approved' } })).status,
    ).toBe(401)
    expect(await decide(jobId, { decision: 'approved' })).toMatchObject({
      status: 200,
      body: { status: 'approval_received', job_id: jobId },
    })
    // The same once more is done; anything else comes too late.
    expect(await decide(jobId, { decision: 'approved' })).toMatchObject({
      status: 200,
      body: { status: 'approval_received', job_id: jobId, job_status: 'finished' },
    })
    expect(await decide(jobId, { decision: 'rejected' })).toMatchObject({
      status: 409,
      body: { error: 'Job is not in a state that can be approved' },
    })
  })

  test('[H-01] a job in quarantine is retried or discarded', async () => {
    await app.server.stop()
    app = await startTestServer({ blueprints: [echo, broken] })
    const jobId = await app.createJob('broken')
    const quarantined = async (id: string): Promise<void> => {
      for (let version = 1; ; version += 1) {
        const { body } = await app.client('GET', `/api/v1/jobs/${id}?wait=20&version=${version}`)
        if (body['status'] === 'quarantined') return
      }
    }
    await quarantined(jobId)
    const found = await app.client('GET', `/api/v1/jobs/${jobId}`)
    expect(found.text).not.toContain('.ts:')
    const retried = await app.client('POST', `/api/v1/jobs/${jobId}/retry`, { initial_data: { mended: true } })
    expect(retried).toMatchObject({ status: 200, body: { job_id: jobId } })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
    expect((await app.client('POST', `/api/v1/jobs/${jobId}/retry`)).status).toBe(409)
    const other = await app.createJob('broken')
    await quarantined(other)
    expect((await app.client('POST', `/api/v1/jobs/${other}/discard`)).status).toBe(200)
    expect((await app.client('POST', '/api/v1/jobs/none/discard')).status).toBe(404)
  })
})
