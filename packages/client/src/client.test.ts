import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClient, isImpresarioError, type ClientOptions } from './index.ts'
import { TestServer } from './server.fixture.ts'

let server: TestServer

beforeEach(async () => {
  server = await new TestServer().listen()
})
afterEach(() => server.close())

const connect = (options: Partial<ClientOptions> = {}) => createClient({ url: server.url, token: 'secret', ...options })

test('[H-01] a job starts with its input and options, under the client token', async () => {
  const options = { priority: 5, resultTimeoutMs: 1_500, metadata: { by: 'me' }, idempotencyKey: 'order-1' }
  const job = await connect().start('publish', { path: '/a' }, options)
  expect(job.id).toBe('job-1')
  expect(server.seen[0]).toMatchObject({ method: 'POST', path: '/jobs' })
  expect(server.seen[0]?.headers).toMatchObject({ 'x-client-token': 'secret', 'idempotency-key': 'order-1' })
  expect(server.seen[0]?.body).toEqual({
    blueprint: 'publish',
    initial_data: { path: '/a' },
    priority: 5,
    result_timeout: 1.5,
    metadata: { by: 'me' },
    idempotency_key: 'order-1',
  })
})

test('[C-08] the same key gives the same job', async () => {
  const client = connect()
  const first = await client.start('b', {}, { idempotencyKey: 'k' })
  const second = await client.start('b', {}, { idempotencyKey: 'k' })
  expect(second.id).toBe(first.id)
})

test('[C-08] a create whose answer was lost is sent again and makes no second job', async () => {
  server.creationsToCut = 2
  const job = await connect().start('b', {})
  expect(job.id).toBe('job-1')
  expect(server.seen).toHaveLength(3)
  expect(server.jobs.size).toBe(1)
  expect(server.seen[2]?.body).toEqual(server.seen[0]?.body)
})

test('[C-08] a whole batch whose answer was lost makes no second jobs', async () => {
  server.creationsToCut = 1
  const client = connect()
  const jobs = await Promise.all(Array.from({ length: 20 }, (_, n) => client.start('b', { n })))
  expect(new Set(jobs.map((job) => job.id)).size).toBe(20)
  expect(server.jobs.size).toBe(20)
})

test('[C-08] without retries there is no key of our own, and a lost answer is an error', async () => {
  server.creationsToCut = 1
  await expect(connect({ retries: 0 }).start('b', {})).rejects.toMatchObject({ name: 'ConnectionError' })
  expect(server.seen).toHaveLength(1)
  expect(server.seen[0]?.body).toEqual({ blueprint: 'b', initial_data: {} })
})

test('[H-01] jobs of the same moment are created together, and the answers find their way', async () => {
  const client = connect()
  const jobs = await Promise.all(Array.from({ length: 1_200 }, (_, n) => client.start('b', { n })))
  expect(server.seen.map((request) => request.path)).toEqual(['/jobs/batch', '/jobs/batch', '/jobs/batch'])
  for (const [n, job] of jobs.entries()) expect(server.jobs.get(job.id)?.initial_data).toEqual({ n })
})

test('[H-01] jobs that are wanted while a create is on its way go out together in the next one', async () => {
  const client = connect()
  server.holdCreations = true
  const first = client.start('b', {})
  await server.until(() => server.seen.length === 1)
  const others = [client.start('b', {}), client.start('b', {})]
  server.release()
  await Promise.all([first, ...others])
  expect(server.seen.map((request) => request.path)).toEqual(['/jobs', '/jobs/batch'])
})

test('[H-01] a refused job rejects only its own promise, with the code of the server', async () => {
  const client = connect()
  const [good, bad, fine] = await Promise.allSettled(['b', 'missing', 'b'].map((name) => client.start(name, {})))
  expect([good?.status, bad?.status, fine?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const reason: unknown = bad?.status === 'rejected' ? bad.reason : undefined
  expect(isImpresarioError(reason, 'BLUEPRINT_NOT_FOUND')).toBe(true)
  await expect(client.start('missing', {})).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
})

test('[H-01] a result is awaited with a long poll', async () => {
  const client = connect()
  const job = await client.start('b', {})
  const result = job.result()
  await server.until(() => server.seen.length === 2)
  expect(server.seen[1]?.query.get('until')).toBe('end')
  server.change(job.id, { current_state: 'middle' })
  server.change(job.id, { status: 'finished', result: { answer: 42 } })
  expect(await result).toEqual({ answer: 42 })
  expect(server.seen).toHaveLength(2)
})

test('[H-01] a job that ends otherwise rejects its result, and tells how', async () => {
  const job = await connect().start('b', {})
  server.change(job.id, { status: 'failed', error_code: 'INVALID_INPUT_ERROR', error_message: 'no such file' })
  await expect(job.result()).rejects.toMatchObject({
    name: 'JobFailedError',
    code: 'INVALID_INPUT_ERROR',
    message: 'Job job-1 is "failed": no such file',
    job: { status: 'failed' },
  })
  expect(await job.wait()).toMatchObject({ status: 'failed' })
})

test('[H-01] a job in quarantine does not keep anybody waiting', async () => {
  const job = await connect().start('b', {})
  server.change(job.id, { status: 'quarantined' })
  await expect(job.result()).rejects.toMatchObject({ name: 'JobFailedError', job: { status: 'quarantined' } })
})

test('[H-01] waiting can be given up', async () => {
  const job = await connect().start('b', {})
  const controller = new AbortController()
  const waiting = job.wait({ signal: controller.signal })
  await server.until(() => server.seen.length === 2)
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})

test('[H-01] waiting longer than allowed is an error, and the job goes on', async () => {
  const job = await connect().start('b', {})
  await expect(job.wait({ timeoutMs: 0 })).rejects.toMatchObject({ name: 'TimeoutError' })
  // A span that is no whole number of milliseconds, as every span is that a clock gave.
  await expect(job.wait({ timeoutMs: 12.5 })).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await job.status()).toMatchObject({ status: 'running' })
})

test('[H-01] watching gives the job now and after every change, up to its end', async () => {
  const job = await connect().start('b', {})
  const states: string[] = []
  for await (const body of job.watch()) {
    states.push(`${body.currentState}:${body.status}`)
    if (states.length === 1) server.change(job.id, { current_state: 'middle' })
    if (states.length === 2) server.change(job.id, { current_state: 'end', status: 'finished' })
  }
  expect(states).toEqual(['start:running', 'middle:running', 'end:finished'])
})

test('[H-01] a list is read page after page, and filtered by the server', async () => {
  const client = connect()
  for (let n = 0; n < 5; n += 1) await client.start('b', { n })
  server.change('job-2', { status: 'failed' })
  const ids: string[] = []
  for await (const job of client.list({ status: ['running', 'finished'], limit: 3 })) ids.push(job.id)
  expect(ids).toEqual(['job-1', 'job-3', 'job-4', 'job-5'])
  const page = await client.list({ limit: 2 }).page()
  expect([page.items.length, page.cursor]).toEqual([2, '2'])
  expect((await client.list({ limit: 2 }).all(3)).map(({ id }) => id)).toEqual(['job-1', 'job-2', 'job-3'])
  expect(await client.list().all(0)).toEqual([])
})

test('[H-01] what a list is filtered by reaches the server in its words', async () => {
  const createdAfter = new Date(Date.UTC(2026, 0, 31, 12))
  await connect()
    .list({ search: 'Paris', createdAfter, createdBefore: 1_800_000_000, owner: 'me', fields: ['id', 'status'] })
    .page()
  expect(Object.fromEntries(server.seen[0]?.query ?? [])).toEqual({
    q: 'Paris',
    created_after: '2026-01-31T12:00:00.000Z',
    created_before: '1800000000',
    owner: 'me',
    fields: 'id,status',
  })
})

const question = (visit: number) => ({ message: 'Go on?', decisions: ['approved', 'rejected'], visit, reminders: 0 })
const visitsSent = () =>
  server.seen.filter(({ path }) => path.startsWith('/_public')).map(({ body }) => (body as { visit?: number }).visit)

test('[B-04] [H-01] an answer goes to the question that was seen, however often it is sent', async () => {
  const job = await connect().start('b', {})
  server.change(job.id, { status: 'waiting_for_human', approval: question(3) })
  await job.status()
  server.change(job.id, { approval: question(5) })
  await Promise.all([job.approve('approved'), job.approve('approved', { comment: 'twice' })])
  expect(visitsSent()).toEqual([3, 3])
  await job.status()
  await job.approve('approved')
  await job.approve('approved', { visit: 4 })
  expect(visitsSent()).toEqual([3, 3, 5, 4])
})

test('[B-04] [H-01] an answer without a look takes the question that is open, and stays with it', async () => {
  const { id } = await connect().start('b', {})
  const job = connect().job(id)
  // Nothing is open: the server looks whether this was decided before, and nothing else can be decided by it.
  await job.approve('approved')
  expect(visitsSent()).toEqual([0])
  server.change(id, { status: 'waiting_for_human', approval: question(1) })
  await job.approve('approved')
  server.change(id, { approval: question(2) })
  await job.approve('approved')
  expect(visitsSent()).toEqual([0, 1, 1])
})

test('[H-01] the other calls reach their routes', async () => {
  const client = connect()
  const job = await client.start('b', {})
  await job.cancel('changed my mind')
  await client.approve(job.id, 'approved', { comment: 'fine' })
  expect(await client.workers()).toEqual([{ workerId: 'w1' }])
  expect(await client.blueprints()).toEqual([{ name: 'b', version: 1 }])
  expect(await client.graph('b', 'svg')).toBe('digraph b as svg')
  expect(await client.explain(job.id)).toEqual({ waitsFor: 'a worker' })
  expect(server.seen.slice(1, 3).map(({ method, path, body }) => [method, path, body])).toEqual([
    ['POST', '/jobs/job-1/cancel', { reason: 'changed my mind' }],
    ['POST', '/_public/webhooks/approval/job-1', { decision: 'approved', comment: 'fine' }],
  ])
  await expect(client.job('nobody').status()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND', status: 404 })
})

test('[H-01] a server that cannot be reached is an error of its own kind', async () => {
  await server.close()
  await expect(connect({ retries: 1 }).job('x').status()).rejects.toMatchObject({ name: 'ConnectionError' })
})
