import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import type { LogFields } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newDurableStorageUrl } from '../../../test/servers/storage-ground.ts'
import { SILENT } from './runtime/log.ts'
import { createServer } from './server.ts'
import { echo, startTestServer, WORKER_TOKEN } from './server.fixture.ts'
import type { TestServer } from './server.fixture.ts'

let app: TestServer | undefined
let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-server-'))
})
afterEach(async () => {
  await app?.server.stop()
  app = undefined
  await rm(directory, { recursive: true, force: true })
})

/** Resolves once the condition holds; looks at every tick of the event loop. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe('health', () => {
  test('[I-08] liveness and readiness need no token, and readiness names each part', async () => {
    app = await startTestServer()
    for (const path of ['/_public/status', '/_public/live']) {
      expect(await app.call('GET', path)).toMatchObject({ status: 200, body: { status: 'ok' } })
    }
    expect(await app.call('GET', '/_public/ready')).toMatchObject({
      status: 200,
      body: {
        status: 'ready',
        components: { storage: { status: 'ok' }, engine: { status: 'ok' }, history: { status: 'ok' } },
      },
    })
  })

  test('[I-08] a stopping server is alive and not ready', async () => {
    let release: () => void = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let isRunning = false
    const slow = blueprint('slow', { start: 'work' }, (state) => ({
      work: state.handler(async (_context, actions) => {
        isRunning = true
        await held
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    const started = await startTestServer({ blueprints: [slow] })
    app = started
    await app.createJob('slow')
    await until(() => isRunning)
    const stopping = app.server.stop()
    expect(await app.call('GET', '/_public/ready')).toMatchObject({
      status: 503,
      body: {
        status: 'not_ready',
        components: { storage: { status: 'ok' }, engine: { status: 'stopping' }, history: { status: 'ok' } },
      },
    })
    expect((await app.call('GET', '/_public/live')).status).toBe(200)
    const create = (): ReturnType<TestServer['client']> => started.client('POST', '/api/v1/jobs', { blueprint: 'slow' })
    let refused = await create()
    // New work is taken until everything else has stopped listening.
    while (refused.status === 202) refused = await create()
    expect(refused).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } })
    expect(refused.headers.get('retry-after')).toBe('1')
    release()
    await stopping
  })
})

describe('stopping', () => {
  test('[I-07] parked polls end with 204, waits end with what is there, and the server is gone', async () => {
    app = await startTestServer()
    await app.register('w1')
    const jobId = await app.createJob('ask')
    await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=1`)
    const { server } = app
    const polls = [app.poll('w1', 60), app.poll('w1', 60)]
    const waiting = app.ended(jobId)
    await until(() => server.waiting === 3)
    await app.server.stop()
    for (const poll of polls) expect((await poll).status).toBe(204)
    expect((await waiting).body).toMatchObject({ status: 'waiting_for_human' })
    await expect(app.call('GET', '/_public/live')).rejects.toThrow('fetch failed')
    await app.server.stop()
  })

  test('[I-07] a handler that is running finishes first', async () => {
    let release: () => void = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let isRunning = false
    let hasEnded = false
    const slow = blueprint('slow', { start: 'work' }, (state) => ({
      work: state.handler(async (_context, actions) => {
        isRunning = true
        await held
        hasEnded = true
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    const settings = { storageUrl: newDurableStorageUrl() }
    app = await startTestServer({ blueprints: [slow], settings })
    const jobId = await app.createJob('slow')
    await until(() => isRunning)
    const stopping = app.server.stop()
    release()
    await stopping
    expect(hasEnded).toBe(true)
    app = await startTestServer({ blueprints: [slow], settings })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  })

  test('[I-07] the time limit holds for a handler that never ends, and the job goes on after the next start', async () => {
    let runs = 0
    const stuck = blueprint('stuck', { start: 'work' }, (state) => ({
      work: state.handler(async (_context, actions) => {
        runs += 1
        if (runs === 1) await new Promise(() => {})
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    const settings = { storageUrl: newDurableStorageUrl(), shutdownTimeoutSeconds: 0.05 }
    app = await startTestServer({ blueprints: [stuck], settings })
    const jobId = await app.createJob('stuck')
    await until(() => runs === 1)
    await app.server.stop()
    app = await startTestServer({ blueprints: [stuck], settings })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
    expect(runs).toBe(2)
  })

  test('[I-07] a start that fails leaves nothing open', async () => {
    app = await startTestServer({ settings: { storageUrl: newDurableStorageUrl() } })
    const { port } = new URL(app.address)
    const settings = { storageUrl: newDurableStorageUrl(), apiHost: '127.0.0.1', apiPort: Number(port) }
    const second = createServer({ settings, log: SILENT })
    await expect(second.start()).rejects.toThrow(/another program has it.*API_PORT/)
    const third = createServer({ settings: { ...settings, apiPort: 0 }, log: SILENT })
    await third.start()
    await third.stop()
  })
})

test('[E-07] a worker of the same process needs no network', async () => {
  app = await startTestServer()
  const worker = createWorker({ id: 'local', transport: app.server.localTransport(), log: SILENT })
  worker.task('echo', (params) => {
    const seen = JSON.stringify(params)
    Object.assign(params, { changed: true })
    return { seen }
  })
  await worker.start()
  const started = app
  const jobs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => started.createJob('echo', { initial_data: { n } })),
  )
  for (const [n, jobId] of jobs.entries()) {
    const { body } = await app.ended(jobId)
    expect(body).toMatchObject({ status: 'finished', state_history: { seen: JSON.stringify({ given: { n } }) } })
    const stored = await app.server.engine.readJob(jobId)
    expect(JSON.stringify(stored)).not.toContain('changed')
  }
  await worker.stop()
})

test.each(['auto', 'single'] as const)(
  '[E-01] the worker SDK takes and answers tasks over HTTP, calls: %s',
  async (mode) => {
    const started = await startTestServer()
    app = started
    const token = WORKER_TOKEN
    const worker = createWorker({ id: 'sdk', url: started.address, token, mode, concurrency: 10, log: SILENT })
    worker.task('echo', (params, task) => {
      task.progress(0.5, 'half')
      return { seen: params['given'] ?? null }
    })
    await worker.start()
    const jobs = await Promise.all(
      Array.from({ length: 30 }, (_, n) => started.createJob('echo', { initial_data: { n } })),
    )
    for (const [n, jobId] of jobs.entries()) {
      const { body } = await started.ended(jobId)
      expect(body).toMatchObject({ status: 'finished', state_history: { seen: { n } } })
    }
    await worker.stop()
    expect(started.server.engine.dispatcher.worker('sdk')?.status).toBe('offline')
  },
)

test('[I-05] what happens is logged with its ids, and never with a secret', async () => {
  const lines: { message: string; fields: LogFields }[] = []
  const write = (message: string, fields: LogFields = {}): void => {
    lines.push({ message, fields })
  }
  const log = { debug: write, info: write, warn: write, error: write }
  app = await startTestServer({ log })
  await app.register('w1')
  await app.call('GET', '/api/v1/jobs', { headers: { 'x-client-token': 'a-wrong-secret' } })
  await app.server.stop()
  expect(lines).toContainEqual({ message: 'worker registered', fields: { worker_id: 'w1', skills: ['echo'] } })
  const all = JSON.stringify(lines)
  expect(
    ['client-of-the-tests', 'worker-of-the-tests', 'a-wrong-secret'].filter((secret) => all.includes(secret)),
  ).toEqual([])
})

test('[A-09] blueprints of the directory and of the code are served together', async () => {
  app = await startTestServer({ blueprints: [echo], settings: { blueprintsDir: directory } })
  expect((await app.client('GET', '/api/v1/blueprints')).text).toContain('"echo"')
})
