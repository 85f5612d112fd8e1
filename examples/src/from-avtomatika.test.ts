import { readFileSync } from 'node:fs'
import { blueprint } from 'impresario'
import { createServer } from 'impresario/server'
import { createOrchestrator } from 'impresario/embedded'
import type { Orchestrator } from 'impresario/embedded'
import { createWorker, outcome, PermanentError } from 'impresario/worker'
import type { Worker } from 'impresario/worker'
import { expect, onTestFinished, test } from 'vitest'
import * as samples from './07-from-avtomatika.ts'

const PAGE = readFileSync(new URL('../../docs/guide/from-avtomatika.md', import.meta.url), 'utf8')
const PROGRAM = readFileSync(new URL('07-from-avtomatika.ts', import.meta.url), 'utf8')

/** The seed's own way to write a fan-out: calls, and no `return`. */
const withoutReturn = blueprint('without_return', { start: 'start', handlerAttemptsMax: 1 }, (state) => ({
  start: state.handler(
    ((_context: unknown, actions: { dispatchTask: (task: object) => unknown }) => {
      actions.dispatchTask({ type: 'task_a', transitions: { success: 'aggregate_results' } })
      actions.dispatchTask({ type: 'task_b', transitions: { success: 'aggregate_results' } })
      // What a JavaScript program may write: the compiler would refuse it.
    }) as never,
    { to: ['aggregate_results'] },
  ),
  aggregate_results: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

async function started(prepare: (worker: Worker) => unknown = () => {}): Promise<Orchestrator> {
  const orchestrator = createOrchestrator({
    blueprints: [...Object.values(samples), withoutReturn],
    settings: { storageUrl: 'memory:', logLevel: 'silent' },
  })
  await orchestrator.start()
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const worker = createWorker({ id: 'w1', transport: orchestrator.localTransport(), log })
  prepare(worker)
  await worker.start()
  onTestFinished(async () => {
    await worker.stop()
    await orchestrator.stop()
  })
  return orchestrator
}

test('[M-04] the samples of the page are those that are compiled and run here', () => {
  const blocks = [...PAGE.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
  expect(blocks.length).toBeGreaterThan(5)
  for (const block of blocks) expect(PROGRAM).toContain(block.trim())
  const names = [...PROGRAM.matchAll(/export const (\w+)/g)].map(([, name = '']) => name)
  for (const name of names) expect(PAGE).toContain(name)
})

test('[B-07] generate_data: the worker’s status picks the state', async () => {
  const orchestrator = await started((worker) => {
    worker.task('data_generation', ({ kind }) => {
      if (kind === 'broken') throw new PermanentError('no data')
      return kind === 'odd' ? outcome('needs_review', {}) : { rows: 3 }
    })
  })
  const client = orchestrator.client()
  const asked = await client.start(samples.generateData, { kind: 'good' })
  const { signal } = new AbortController()
  for (let version = 0; (await asked.status()).status !== 'waiting_for_human'; version += 1) {
    await orchestrator.engine.waitForJob(asked.id, { afterVersion: version, waitMs: 5_000, signal })
  }
  await asked.approve('approved')
  expect(await asked.wait()).toMatchObject({ status: 'finished', currentState: 'approved', stateHistory: { rows: 3 } })
  expect((await (await client.start(samples.generateData, { kind: 'odd' })).wait()).currentState).toBe(
    'manual_review_step',
  )
  expect((await (await client.start(samples.generateData, { kind: 'broken' })).wait()).status).toBe('failed')
})

test('[B-08] parallel_work: two tasks, one aggregator, and a child that does the same', async () => {
  const orchestrator = await started((worker) => {
    worker.task('task_a', ({ id }) => ({ a: id }))
    worker.task('task_b', ({ id }) => ({ b: id }))
  })
  const client = orchestrator.client()
  const job = await client.start(samples.parallelWork, {})
  expect(await job.result()).toEqual({ summary: { [`${job.id}.1.0`]: { a: 1 }, [`${job.id}.1.1`]: { b: 2 } } })
  const parent = await client.start(samples.withChild, {})
  expect(Object.values((await parent.result()) as object)).toHaveLength(1)
})

test('[A-07, A-04] data stores and conditions', async () => {
  const orchestrator = await started()
  const client = orchestrator.client()
  expect(await (await client.start(samples.withDataStore, {})).result()).toEqual({ value: 'initial_value' })
  const end = async (quality: string, plan: string) => {
    const job = await orchestrator.client({ id: plan, plan }).start(samples.byQuality, { quality })
    return (await job.wait()).currentState
  }
  expect(await end('low', 'premium')).toBe('rejected')
  expect(await end('high', 'premium')).toBe('fast_lane')
  expect(await end('high', 'free')).toBe('queue')
})

test('[D-02] demanding_task: a worker with the card gets it', async () => {
  const orchestrator = createOrchestrator({
    blueprints: [samples.demandingTask],
    settings: { storageUrl: 'memory:', logLevel: 'silent' },
  })
  await orchestrator.start()
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const gpu = { model: 'A100', vramGb: 80 }
  const models = [{ name: 'scenes-v2' }]
  const transport = orchestrator.localTransport()
  const worker = createWorker({ id: 'gpu', transport, gpu, models, costPerSecond: 0.01, log })
  worker.task('render', () => ({ frames: 1 }))
  await worker.start()
  onTestFinished(async () => {
    await worker.stop()
    await orchestrator.stop()
  })
  const job = await orchestrator.client().start(samples.demandingTask, {})
  expect(await job.result()).toEqual({ frames: 1 })
})

test('[H-01, H-03] the endpoints and headers of the page answer as it says', async () => {
  const [clientToken, workerToken] = ['a client of this test', 'a worker of this test']
  const server = createServer({
    blueprints: [samples.withDataStore],
    settings: { storageUrl: 'memory:', logLevel: 'silent', apiHost: '127.0.0.1', apiPort: 0, clientToken, workerToken },
  })
  const { address } = await server.start()
  onTestFinished(() => server.stop())
  const ask = (path: string, headers: Record<string, string>, init: RequestInit = {}) =>
    fetch(`${address}${path}`, { ...init, headers: { 'content-type': 'application/json', ...headers } })
  for (const header of ['X-Client-Token', 'X-Orchestrator-Token']) {
    const token = { [header]: clientToken }
    const body = JSON.stringify({ blueprint: 'my_blueprint_with_datastore' })
    const created = await ask('/api/v1/jobs', token, { method: 'POST', body })
    const { job_id: id } = (await created.json()) as { job_id: string }
    for (const prefix of ['/api', '/api/v1']) {
      expect((await ask(`${prefix}/jobs/${id}/history`, token)).status).toBe(200)
    }
    const graph = await ask('/api/v1/blueprints/my_blueprint_with_datastore/graph', token)
    expect([graph.status, graph.headers.get('content-type')]).toEqual([200, expect.stringMatching('text/vnd.graphviz')])
    expect((await ask('/api/v1/blueprints/none/graph', token)).status).toBe(404)
  }
  expect((await ask('/api/v1/jobs', { 'X-Client-Token': 'wrong' })).status).toBe(401)
  for (const [index, header] of ['X-Worker-Token', 'X-Orchestrator-Worker-Token'].entries()) {
    const token = { [header]: workerToken }
    const worker_id = `w${index}`
    const body = JSON.stringify({ worker_id, worker_type: 'cpu', supported_tasks: ['echo'], resources: {} })
    expect((await ask('/_worker/workers/register', token, { method: 'POST', body })).status).toBe(200)
    expect((await ask(`/_worker/workers/${worker_id}/tasks/next?timeout=0`, token)).status).toBe(204)
  }
})

test('[B-06] a fan-out that is written without `return` is told what to write', async () => {
  const orchestrator = await started()
  const job = await (await orchestrator.client().start('without_return')).wait()
  expect(job.status).toBe('quarantined')
  expect(job.errorMessage).toContain(
    'dispatched 2 tasks into "aggregate_results" but did not return them. Write `return [actions.dispatchTask(…), ' +
      "actions.dispatchTask(…)]`, or `return actions.dispatchParallel([…], { into: 'aggregate_results' })`.",
  )
})
