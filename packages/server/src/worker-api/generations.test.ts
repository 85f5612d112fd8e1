import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { GENERATIONS } from './generations.fixture.ts'
import type { Exchange, Generation } from './generations.fixture.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import { G4_TOKEN, SimulatedWorker, speak } from './simulated-worker.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

let app: TestServer

/** Jobs of the present test. What it leaves open must not come to the next one. */
let jobs: string[] = []

beforeAll(async () => {
  app = await startTestServer({ settings: { rateLimitingEnabled: false } })
})
afterEach(async () => {
  for (const jobId of jobs) await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)
  jobs = []
})
afterAll(async () => {
  await app.server.stop()
})

async function createJob(name: string, more: object = {}): Promise<string> {
  const jobId = await app.createJob(name, more)
  jobs.push(jobId)
  return jobId
}

function expectAnswer(answer: Answer, { status = 200, answer: expected }: Exchange): void {
  expect(answer.status).toBe(status)
  for (const [key, value] of Object.entries(expected)) expect(answer.body[key]).toEqual(value)
}

test('[E-01] a worker of a version that is not understood is told so', async () => {
  const headers = { 'x-rxon-version': '7.2' }
  const body = { worker_id: 'future', supported_skills: ['echo'] }
  const answer = await app.worker('POST', '/_worker/workers/register', body, headers)
  expect(answer.headers.get('x-rxon-version')).toBe('0.1.0')
  const warning = 'The worker speaks version 7.2 of the protocol, this server 0.1.0.'
  expect(answer.body).toEqual({ status: 'registered', version: '0.1.0', warning })
  await app.worker('PATCH', '/_worker/workers/future', { status: 'offline' })
})

describe.each(GENERATIONS.map((generation) => [generation.name, generation] as const))('%s', (_name, generation) => {
  const say = speak(() => app, generation)

  afterAll(async () => {
    // Else the next ones would have to wait for what is meant for this one.
    await say.heartbeat({ worker_id: generation.worker, status: 'offline' })
  })

  // Before it registers.
  test('[E-03] [J-7] [J-8] beats, and gets the documented answers', async () => {
    const [first] = generation.heartbeats
    const unknown = await say.heartbeat(first?.body)
    expect(unknown).toMatchObject({ status: 404, body: { error: 'Worker not found' } })
    expect(await say.heartbeat()).toMatchObject({ status: 404, body: { error: 'Worker not found' } })
    await say.register(generation.register.body ?? {})
    for (const exchange of generation.heartbeats) expectAnswer(await say.heartbeat(exchange.body), exchange)
    const jobId = await createJob('echo')
    expect((await say.poll()).body).toMatchObject({ job_id: jobId })
  })

  test('[E-01] registers, and gets the documented answer', async () => {
    const answer = await say.register(generation.register.body ?? {})
    expectAnswer(answer, generation.register)
    // Answered in the version that it speaks: it would warn about any other, each time.
    const version = generation.headers['x-rxon-version'] ?? '0.1.0'
    expect([answer.headers.get('x-rxon-version'), answer.body['version']]).toEqual([version, version])
    expect(answer.body).not.toHaveProperty('warning')
    // New keys go only to who may know them.
    expect('batch' in answer.body).toBe(version === '0.1.0')
    expect((await say.poll(undefined, '?timeout=0')).headers.get('x-rxon-version')).toBe(version)
    const known = app.server.engine.dispatcher.worker(generation.worker)
    expect(known).toMatchObject({ skills: ['echo'], concurrencyMax: 10 })
  })

  test('[E-02] polls, and gets a task it understands, or 204', async () => {
    await say.register(generation.register.body ?? {})
    expect((await say.poll(undefined, '?timeout=0')).status).toBe(204)
    const jobId = await createJob('echo', { initial_data: { n: 1 } })
    const { status, body } = await say.poll()
    expect(status).toBe(200)
    expect(body).toMatchObject({
      job_id: jobId,
      type: 'echo',
      params: { given: { n: 1 } },
      tracing_context: {},
      priority: 0,
    })
    expect(Number.isInteger(body['deadline'])).toBe(true)
    expect(body.task_id).toBeTypeOf('string')
  })

  test.each(generation.results.map((result) => [result.title, result] as const))(
    '[E-01] [J-12] brings %s',
    async (_title, { blueprint, result, answer, job }) => {
      await say.register(generation.register.body ?? {})
      const jobId = await createJob(blueprint)
      const { job_id, task_id } = (await say.poll()).body
      const replied = await say.result(generation.resultBody({ job_id, task_id }, generation.worker, result))
      expectAnswer(replied, { title: '', answer })
      const { status } = job === undefined ? { status: undefined } : await settled(jobId)
      expect(status).toBe(job)
    },
  )

  test('[E-01] [J-11] is refused where the documents say so', async () => {
    await say.register(generation.register.body ?? {})
    const ids = {
      job_id: '01900000-0000-7000-8000-000000000000',
      task_id: '01900000-0000-7000-8000-000000000000.1.0.1.1',
    }
    const unknown = await say.result(generation.resultBody(ids, generation.worker, { status: 'success' }))
    expectAnswer(unknown, generation.noSuchJob)
    expect((await say.result({ worker_id: generation.worker })).status).toBe(400)
    const wrong = await speak(() => app, generation, 'not-the-right-token').register(generation.register.body ?? {})
    expect(wrong).toMatchObject({ status: 401, body: { error: 'Unauthorized: Invalid token' } })
  })

  test('[E-04] says how far it is', async () => {
    await say.register(generation.register.body ?? {})
    const jobId = await createJob('echo')
    const { job_id, task_id } = (await say.poll()).body
    const message = generation.progress({ job_id, task_id }, generation.worker)
    const version = Number((await app.client('GET', `/api/v1/jobs/${jobId}`)).body['version'])
    if (generation.progressOver === 'http') await say.event(message)
    else await overSocket(generation, message)
    const job = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=${version}`)
    expect(job.body).toMatchObject({ progress: 0.5, progress_message: 'half' })
  })
})

/** A quarantined job has not ended, but stands still. */
async function settled(jobId: string): Promise<{ readonly status: string }> {
  for (let version = 1; ; version += 1) {
    const { body } = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=${version}`)
    const status = String(body['status'])
    if (['finished', 'failed', 'cancelled', 'quarantined', 'error'].includes(status)) return { status }
  }
}

/** The older generations have no id in the path, and no header that names them. */
async function overSocket(generation: Generation, message: object): Promise<void> {
  const path = generation.name === 'G4' ? `/_worker/ws/${generation.worker}` : '/_worker/ws'
  const socket = new WebSocket(`${app.address.replace('http', 'ws')}${path}`, {
    headers: { 'x-worker-token': WORKER_TOKEN, ...generation.headers },
  })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  socket.send(JSON.stringify(message))
  await new Promise((resolve) => {
    socket.once('close', resolve)
    socket.close()
  })
}

test('[H-03] a worker may send its token under either name', async () => {
  for (const name of ['x-worker-token', 'x-orchestrator-worker-token']) {
    const headers = { [name]: WORKER_TOKEN }
    const answer = await app.call('POST', '/_worker/workers/register', { headers, body: { worker_id: 'w' } })
    expect(answer.status).toBe(200)
  }
})

test('[E-01] [J-1] [J-14] workers of all generations work side by side; polls die at random, and each job is done once', async () => {
  const replayed = app
  const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
  try {
    const workersConfigPath = join(directory, 'workers.toml')
    await writeFile(workersConfigPath, `[g4]\ntoken = "${G4_TOKEN}"\nsigned = true\n`)
    app = await startTestServer({
      settings: {
        workersConfigPath,
        workerLeaseSeconds: 0.5,
        workerPickupSeconds: 0.05,
        rateLimitingEnabled: false,
      },
    })
    const created: string[] = []
    for (let count = 0; count < 60; count += 1) created.push(await app.createJob('echo', { priority: count % 3 }))
    const workers = GENERATIONS.map((generation, index) => new SimulatedWorker(() => app, generation, 7_919 + index))
    let isDone = false
    const work = Promise.all(workers.map((worker) => worker.run(() => isDone)))
    const endings = await Promise.all(created.map((jobId) => app.ended(jobId)))
    // Until each of them has had its part.
    while (workers.some(({ accepted }) => accepted.length === 0)) {
      const jobId = await app.createJob('echo')
      created.push(jobId)
      endings.push(await app.ended(jobId))
    }
    isDone = true
    await work
    const accepted = workers.flatMap((worker) => worker.accepted)
    expect(accepted.toSorted()).toEqual(created.toSorted())
    for (const { body } of endings) expect(body).toMatchObject({ status: 'finished' })
  } finally {
    await app.server.stop()
    app = replayed
    await rm(directory, { recursive: true })
  }
})
