import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { REGISTRATIONS } from './generations.fixture.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

let app: TestServer

beforeEach(async () => {
  app = await startTestServer()
})
afterEach(async () => {
  await app.server.stop()
})

function result(task: Answer, more: object = {}): object {
  return { job_id: task.body.job_id, task_id: task.body.task_id, worker_id: 'w1', ...more }
}

describe('one worker and one job', () => {
  test('[E-02] a poll that finds a task is answered at once, a parked one when a task comes', async () => {
    await app.register('w1')
    const first = await app.createJob('echo', { initial_data: { n: 1 } })
    const found = await app.poll('w1')
    expect(found.status).toBe(200)
    expect(found.body).toMatchObject({
      job_id: first,
      type: 'echo',
      params: { given: { n: 1 } },
      attempt: 1,
      delivery: 1,
    })
    expect(found.headers.get('x-rxon-version')).toBe('0.1.0')

    const parked = app.poll('w1')
    const second = await app.createJob('echo')
    expect((await parked).body).toMatchObject({ job_id: second })
  })

  test('[E-01] a worker that names no max_concurrent_tasks gets a task for each poll while it says idle', async () => {
    const newest = {
      worker_id: 'w1',
      supported_skills: [{ name: 'echo' }],
      available_skills: ['echo'],
      skills_hash: 'h',
    }
    await app.worker('POST', '/_worker/workers/register', newest)
    const running: unknown[] = []
    for (let count = 0; count < 4; count += 1) {
      await app.createJob('echo')
      const { status, body } = await app.poll('w1')
      expect(status).toBe(200)
      running.push(body.task_id)
      const beat = { worker_id: 'w1', status: 'idle', current_tasks: running, skills_hash: 'h' }
      expect((await app.worker('PATCH', '/_worker/workers/w1', beat)).body).not.toHaveProperty('cancel_task_ids')
    }
    const [record] = (await app.client('GET', '/api/v1/workers')).body as never as { max_concurrent_tasks: unknown }[]
    expect(record?.max_concurrent_tasks).toBeNull()
  })

  test('[E-02] asking for the head of a poll takes no task', async () => {
    await app.register('w1')
    const jobId = await app.createJob('echo')
    await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    expect((await app.worker('HEAD', '/_worker/workers/w1/tasks/next')).status).toBe(405)
    expect((await app.poll('w1')).body).toMatchObject({ job_id: jobId, delivery: 1 })
  })

  test('[E-02] a poll whose time is up is answered with 204', async () => {
    await app.register('w1')
    const answer = await app.poll('w1', 0)
    expect(answer.status).toBe(204)
    expect(answer.text).toBe('')
  })

  test('[E-01] a task names its deadline and the trace it belongs to', async () => {
    await app.register('w1')
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const tracestate = 'rojo=00f067aa0ba902b7'
    const headers = { traceparent, tracestate }
    await app.client('POST', '/api/v1/jobs', { blueprint: 'echo', result_timeout: 100_000 }, headers)
    const task = await app.poll('w1')
    expect([task.headers.get('traceparent'), task.headers.get('tracestate')]).toEqual([traceparent, tracestate])
    expect(task.body).toMatchObject({ tracing_context: { traceparent, tracestate } })
    const left = Number(task.body['deadline']) - Date.now() / 1_000
    expect(left).toBeGreaterThan(50_000)
    expect(left).toBeLessThanOrEqual(100_001)
  })

  test('[I-04] the trace in the body of a job goes before that of the headers; what is no trace is left out', async () => {
    await app.register('w1')
    const own = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1' }
    const headers = { traceparent: '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    const sent = await app.client('POST', '/api/v1/jobs', { blueprint: 'echo', tracing_context: own }, headers)
    expect(sent.status).toBe(202)
    expect((await app.poll('w1')).body['tracing_context']).toEqual(own)
    await app.client('POST', '/api/v1/jobs', { blueprint: 'echo' }, { traceparent: 'none', tracestate: 'a=1' })
    const bare = await app.poll('w1')
    expect([bare.body['tracing_context'], bare.headers.get('tracestate')]).toEqual([{}, null])
  })

  test('[C-04] a task without a deadline of its own has five minutes from its pickup (J-2)', async () => {
    await app.register('w1')
    await app.client('POST', '/api/v1/jobs', { blueprint: 'echo' })
    const before = Date.now() / 1_000
    const { body } = await app.poll('w1')
    expect(Number(body['deadline'])).toBeGreaterThanOrEqual(before + 300)
    expect(Number(body['deadline'])).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000 + 300))
  })

  test('[E-01] each ending of a task has its answer', async () => {
    await app.register('w1')
    const post = async (name: string, more: object): Promise<unknown> => {
      await app.createJob(name)
      return (await app.worker('POST', '/_worker/tasks/result', result(await app.poll('w1'), more))).body
    }
    expect(await post('echo', { status: 'later' })).toMatchObject({ transition: 'success_transition' })
    expect(await post('echo', { status: 'odd' })).toMatchObject({ transition: 'unhandled_status_failure' })
    expect(await post('echo', { status: 'cancelled' })).toMatchObject({ transition: 'cancelled_handled' })
    const error = { code: 'INVALID_INPUT_ERROR', message: 'no' }
    expect(await post('echo', { status: 'failure', error })).toMatchObject({ transition: 'failure_handled' })
  })

  test('[C-10] [E-01] a result that cannot be held is refused with 422, and the worker may report something else', async () => {
    await app.register('w1')
    // Values of this size stay in the record, wherever large ones are kept.
    const large = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`k${index}`, 'x'.repeat(10_000)]))
    const jobs = [await app.createJob('echo'), await app.createJob('echo')]
    const [one, two] = [await app.poll('w1'), await app.poll('w1')]
    const refused = await app.worker('POST', '/_worker/tasks/result', result(one, { data: large }))
    expect(refused).toMatchObject({ status: 422, body: { code: 'LIMIT_EXCEEDED' } })
    expect(refused.body['error']).toContain('does not fit into the job')
    // In a batch it spoils only its own place.
    const batch = { worker_id: 'w1', results: [result(one, { data: large }), result(two, { data: { n: 1 } })] }
    expect((await app.worker('POST', '/_worker/tasks/results', batch)).body).toMatchObject({
      results: [{ code: 'LIMIT_EXCEEDED' }, { status: 'accepted' }],
    })
    const beat = { status: 'busy', current_tasks: [one.body.task_id] }
    expect((await app.worker('PATCH', '/_worker/workers/w1', beat)).body).not.toHaveProperty('cancel_task_ids')
    const smaller = result(one, { data: { file: 's3://bucket/large' } })
    expect((await app.worker('POST', '/_worker/tasks/result', smaller)).body).toMatchObject({ status: 'accepted' })
    for (const jobId of jobs) expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  })

  test('[E-01] the job_id of a result has to fit its task', async () => {
    await app.register('w1')
    const jobId = await app.createJob('echo')
    const other = await app.createJob('echo')
    const task = await app.poll('w1')
    const wrong = result(task, { job_id: task.body.job_id === jobId ? other : jobId })
    const answer = await app.worker('POST', '/_worker/tasks/result', wrong)
    expect(answer).toMatchObject({
      status: 400,
      body: { error: 'task_id names a task of another job than job_id does.' },
    })
    const batch = { worker_id: 'w1', results: [wrong, result(task)] }
    expect((await app.worker('POST', '/_worker/tasks/results', batch)).body).toMatchObject({
      results: [{ code: 'INVALID_REQUEST' }, { status: 'accepted' }],
    })
  })

  test('[E-01] J-16: two tasks of one handler are a fan-out, and each branch is accepted', async () => {
    await app.register('w1')
    const jobId = await app.createJob('fan')
    for (let branch = 0; branch < 2; branch += 1) {
      const answer = await app.worker('POST', '/_worker/tasks/result', result(await app.poll('w1')))
      expect(answer.body).toEqual({ status: 'accepted', transition: 'parallel_branch_accepted' })
    }
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished', state_history: { parts: 2 } })
  })

  test('[E-01] J-6: a transient failure is tried again', async () => {
    await app.register('w1')
    const jobId = await app.createJob('flaky')
    const first = await app.poll('w1')
    const failure = { status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'try again' } }
    expect((await app.worker('POST', '/_worker/tasks/result', result(first, failure))).status).toBe(200)
    const second = await app.poll('w1')
    expect(second.body).toMatchObject({ job_id: jobId, attempt: 2, idempotency_key: first.body['idempotency_key'] })
    expect(second.body.task_id).not.toBe(first.body.task_id)
    await app.worker('POST', '/_worker/tasks/result', result(second))
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  })

  test('[E-01] J-4: without a worker a job waits, and goes on when one comes', async () => {
    const jobId = await app.createJob('echo')
    const waiting = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    expect(waiting.body).toMatchObject({ status: 'waiting_for_worker' })
    await app.register('w1')
    expect((await app.poll('w1')).body).toMatchObject({ job_id: jobId })
  })

  test('[E-01] J-14: tasks of equal priority are all handed out', async () => {
    await app.register('w1')
    const jobs = await Promise.all(Array.from({ length: 20 }, () => app.createJob('echo', { priority: 5 })))
    const polls = await Promise.all(jobs.map(() => app.poll('w1')))
    expect(polls.map((task) => task.body.job_id).toSorted()).toEqual(jobs.toSorted())
  })
})

describe('generations', () => {
  test.each(REGISTRATIONS)('[E-01] a worker of %s registers', async (_title, body) => {
    const answer = await app.worker('POST', '/_worker/workers/register', body, { 'x-rxon-version': '1.0b13' })
    expect(answer).toMatchObject({ status: 200, body: { status: 'registered', version: '1.0b13' } })
    expect(answer.body).not.toHaveProperty('batch')
    expect(app.server.engine.dispatcher.worker(body.worker_id)).toBeDefined()
  })
})

describe('results that no longer count', () => {
  test('[C-05] J-3: a cancelled job stays cancelled, and its worker is told', async () => {
    await app.register('w1')
    const jobId = await app.createJob('echo')
    const task = await app.poll('w1')
    expect((await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)).body).toMatchObject({
      status: 'cancellation_request_accepted',
    })
    const heartbeat = await app.worker('PATCH', '/_worker/workers/w1', {
      status: 'busy',
      current_tasks: [task.body.task_id],
    })
    expect(heartbeat.body).toEqual({ status: 'ok', cancel_task_ids: [task.body.task_id] })
    const late = await app.worker('POST', '/_worker/tasks/result', result(task))
    expect(late).toMatchObject({ status: 200, body: { status: 'ignored', reason: 'job_cancelled' } })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'cancelled' })
  })

  test('[C-05] a queued task of a cancelled job is not handed out', async () => {
    const jobId = await app.createJob('echo')
    await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)
    await app.register('w1')
    expect((await app.poll('w1', 0)).status).toBe(204)
  })

  test('[E-01] repeated, unknown, foreign and late results are ignored with a reason', async () => {
    await app.register('w1')
    await app.register('w2')
    const post = async (body: object): Promise<unknown> =>
      (await app.worker('POST', '/_worker/tasks/result', body)).body
    await app.createJob('echo')
    const task = await app.poll('w1')
    expect(await post({ ...result(task), worker_id: 'w2' })).toMatchObject({ reason: 'worker_mismatch' })
    expect(await post(result(task))).toMatchObject({ status: 'accepted' })
    expect(await post(result(task))).toMatchObject({ status: 'ignored', reason: 'job_already_terminated' })
    expect(await post({ job_id: 'x', task_id: 'x.1.0.1.1', worker_id: 'w1' })).toMatchObject({
      reason: 'job_not_found',
    })
    expect(await post({ job_id: 'x', task_id: 'nonsense', worker_id: 'w1' })).toMatchObject({
      reason: 'job_not_found',
    })
    const { job_id } = task.body
    expect(await post({ job_id, task_id: 'nonsense', worker_id: 'w1' })).toMatchObject({ reason: 'stale_task' })
  })

  test('[E-01] a result after the end of its time is ignored as such', async () => {
    await app.register('w1')
    const jobId = await app.createJob('echo', { execution_timeout: 0.05 })
    const task = await app.poll('w1')
    await app.ended(jobId)
    const late = await app.worker('POST', '/_worker/tasks/result', result(task))
    expect(late.body).toMatchObject({ status: 'ignored', reason: 'deadline_exceeded' })
  })

  test('[E-01] a result without ids, or that is not JSON, is refused with 400', async () => {
    await app.register('w1')
    for (const body of [{ worker_id: 'w1' }, { job_id: 'j', worker_id: 'w1' }, { job_id: 'j', task_id: 't' }]) {
      expect((await app.worker('POST', '/_worker/tasks/result', body)).status).toBe(400)
    }
    const broken = await app.worker('POST', '/_worker/tasks/result', '{"job_id":')
    expect(broken).toMatchObject({ status: 400, body: { error: 'Invalid JSON body', code: 'INVALID_JSON' } })
  })
})

describe('signs of life', () => {
  test('[E-03] J-8: an unknown worker is told so, and can register again', async () => {
    for (const body of [undefined, {}, { status: 'idle' }]) {
      const answer = await app.worker('PATCH', '/_worker/workers/ghost', body)
      expect(answer).toMatchObject({ status: 404, body: { error: 'Worker not found' } })
    }
    expect((await app.poll('ghost', 0)).status).toBe(404)
    expect((await app.register('ghost')).status).toBe(200)
    expect((await app.worker('PATCH', '/_worker/workers/ghost', { status: 'idle' })).body).toEqual({ status: 'ok' })
  })

  test('[E-03] an empty heartbeat keeps the worker alive', async () => {
    await app.register('w1')
    expect((await app.worker('PATCH', '/_worker/workers/w1')).body).toEqual({ status: 'ttl_refreshed' })
    expect((await app.worker('PATCH', '/_worker/workers/w1', '{}')).body).toEqual({ status: 'ttl_refreshed' })
  })

  test('[E-03] J-7: a heartbeat full of nulls is taken, and tasks still come', async () => {
    await app.register('w1')
    const heartbeat = {
      worker_id: 'w1',
      status: 'idle',
      load: 0,
      current_tasks: [],
      supported_skills: ['echo'],
      hot_cache: [],
      hot_skills: null,
      skill_dependencies: null,
    }
    expect(await app.worker('PATCH', '/_worker/workers/w1', heartbeat)).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    })
    const jobId = await app.createJob('echo')
    expect((await app.poll('w1')).body).toMatchObject({ job_id: jobId })
  })

  test('[E-03] what a silent worker held is given to another one', async () => {
    await app.server.stop()
    app = await startTestServer({ settings: { workerLeaseSeconds: 0.1, workerPickupSeconds: 0.05 } })
    await app.register('silent')
    const jobId = await app.createJob('echo')
    const lost = await app.poll('silent')
    await app.register('w1')
    const again = await app.poll('w1', 20)
    expect(again.body).toMatchObject({ job_id: jobId, delivery: 2, attempt: 1 })
    expect(again.body.task_id).not.toBe(lost.body.task_id)
    expect((await app.worker('POST', '/_worker/tasks/result', result(again))).body).toMatchObject({
      status: 'accepted',
    })
    const late = await app.worker('POST', '/_worker/tasks/result', { ...result(lost), worker_id: 'silent' })
    expect(late.body).toMatchObject({ status: 'ignored' })
  })

  test('[E-01] progress reaches the job', async () => {
    await app.register('w1')
    const jobId = await app.createJob('echo')
    const task = await app.poll('w1')
    const event = { event_type: 'progress', event_id: 'e', worker_id: 'w1', target_task_id: task.body.task_id }
    const payload = { progress: 0.5, message: 'half' }
    expect((await app.worker('POST', '/_worker/events', { ...event, payload })).body).toEqual({
      status: 'event_accepted',
    })
    expect((await app.client('GET', `/api/v1/jobs/${jobId}`)).body).toMatchObject({
      progress: 0.5,
      progress_message: 'half',
    })
    expect((await app.worker('POST', '/_worker/events', event)).body).toMatchObject({ status: 'error' })
    expect((await app.worker('POST', '/_worker/events', { event_type: 'other', worker_id: 'w1' })).body).toEqual({
      status: 'event_accepted',
    })
  })
})

describe('batches', () => {
  test('[E-01] tasks come and results go many at a time, a bad one spoils only its own place', async () => {
    await app.register('w1')
    const { body } = await app.client('POST', '/api/v1/jobs/batch', {
      jobs: Array.from({ length: 50 }, () => ({ blueprint: 'echo' })),
    })
    const created = body['results'] as readonly { job_id: string }[]
    expect(created).toHaveLength(50)
    const tasks: { job_id: string; task_id: string }[] = []
    while (tasks.length < 50) {
      const batch = await app.worker('POST', '/_worker/workers/w1/tasks/batch', { limit: 500, timeout: 10 })
      tasks.push(...(batch.body['tasks'] as typeof tasks))
    }
    const results = [
      { nonsense: true },
      ...tasks.map(({ job_id, task_id }) => ({ job_id, task_id, data: { ok: true } })),
    ]
    const answer = await app.worker('POST', '/_worker/tasks/results', { worker_id: 'w1', results })
    const [bad, ...good] = answer.body['results'] as readonly object[]
    expect(bad).toMatchObject({ code: 'INVALID_REQUEST' })
    expect(good).toHaveLength(50)
    for (const one of good) expect(one).toEqual({ status: 'accepted', transition: 'success_transition' })
    for (const { job_id } of created) expect((await app.ended(job_id)).body).toMatchObject({ status: 'finished' })
  })

  test('[E-01] an empty batch comes when the time is up; more than the limit is refused', async () => {
    await app.register('w1')
    const path = '/_worker/workers/w1/tasks/batch'
    expect((await app.worker('POST', path, { limit: 5, timeout: 0 })).body).toEqual({ tasks: [] })
    for (const limit of [0, 501]) expect((await app.worker('POST', path, { limit })).status).toBe(400)
    const results = Array.from({ length: 501 }, () => ({ job_id: 'j', task_id: 't' }))
    expect((await app.worker('POST', '/_worker/tasks/results', { worker_id: 'w1', results })).status).toBe(400)
  })
})

test('[E-02] J-1: polls that are aborted at any moment lose no task', async () => {
  await app.server.stop()
  app = await startTestServer({ settings: { workerLeaseSeconds: 1, workerPickupSeconds: 0.05 } })
  await app.register('w1')
  const jobs: string[] = []
  const spoiled: Promise<unknown>[] = []
  for (let round = 0; round < 40; round += 1) {
    const abort = new AbortController()
    const path = '/_worker/workers/w1/tasks/next?timeout=10'
    const poll = app.call('GET', path, { headers: { 'x-worker-token': WORKER_TOKEN }, signal: abort.signal })
    spoiled.push(poll.catch(() => 'aborted'))
    const created = app.createJob('echo')
    // Before the request has left, while it is parked, or while the task is on its way.
    if (round % 3 === 0) abort.abort()
    else if (round % 3 === 1) setImmediate(() => abort.abort())
    jobs.push(await created)
    abort.abort()
  }
  await Promise.all(spoiled)
  const open = new Set(jobs)
  while (open.size > 0) {
    const task = await app.poll('w1')
    if (task.status === 204) continue
    const answer = await app.worker('POST', '/_worker/tasks/result', result(task))
    // On a machine that is too busy for such a short lease it comes again.
    if (answer.body['status'] !== 'accepted') continue
    const { body } = await app.client('GET', `/api/v1/jobs/${task.body.job_id}?wait=10&until=end`)
    expect(body).toMatchObject({ status: 'finished' })
    open.delete(task.body.job_id)
    // Tasks that an aborted poll had read to the end, and thrown away, come back when their leases end.
    for (const jobId of open) {
      const job = await app.client('GET', `/api/v1/jobs/${jobId}`)
      if (String(job.body['status']) === 'finished') open.delete(jobId)
    }
  }
  expect(open.size).toBe(0)
})
