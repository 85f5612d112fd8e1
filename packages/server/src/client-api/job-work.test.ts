import { blueprint } from '@impresario/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const task = blueprint('task', { start: 'draw' }, (state) => ({
  draw: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'draw', transitions: { success: 'done', failure: 'done' } }),
  ),
  done: state.end(),
}))

const spread = blueprint('spread', { start: 'out' }, (state) => ({
  out: state.handler((_context, actions) =>
    actions.dispatchParallel(
      Array.from({ length: 3 }, () => ({ kind: 'task' as const, type: 'draw', params: {} })),
      { into: 'in' },
    ),
  ),
  in: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

const parent = blueprint('parent', { start: 'call' }, (state) => ({
  call: state.handler((_context, actions) =>
    actions.runBlueprint({ name: 'task', initialData: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

let app: TestServer

beforeEach(async () => {
  app = await startTestServer({ blueprints: [task, spread, parent] })
})
afterEach(() => app.server.stop())

/** Follows a job until it is in this status. */
async function until(id: string, status: string): Promise<void> {
  for await (const job of app.server.client().watch(id)) if (job.status === status) return
}

test('[B-09] a job that waits for a worker is told apart from one that runs at one, in every view', async () => {
  const client = app.server.client()
  const { id } = await client.start('task')
  await until(id, 'waiting_for_worker')
  const waiting = { waiting: 1, delayed: 0, running: 0, workers: [], children: [] }
  expect(await client.get(id)).toMatchObject({ status: 'waiting_for_worker', work: waiting })
  expect((await client.list().all())[0]?.work).toEqual(waiting)
  expect(await client.list({ fields: ['id', 'work'] }).all()).toEqual([{ id, work: waiting }])
  expect(await client.list({ fields: ['id'] }).all()).toEqual([{ id }])
  const { version } = await client.get(id)
  await app.register('gpu-1', { supported_skills: ['draw'] })
  const { body } = await app.poll('gpu-1', 5)
  const running = { ...waiting, waiting: 0, running: 1, workers: ['gpu-1'] }
  // The handout wrote nothing into the record.
  expect(await client.get(id)).toMatchObject({ status: 'waiting_for_worker', work: running, version })
  expect((await client.list().all())[0]?.work).toEqual(running)
  const answer = { job_id: id, task_id: body.task_id, status: 'success', data: {} }
  await app.worker('POST', '/_worker/tasks/result', answer, { 'x-worker-id': 'gpu-1' })
  expect(await client.wait(id)).not.toHaveProperty('work')
})

test('[B-09] a watch shows that a worker has picked the task up', async () => {
  const client = app.server.client()
  const { id } = await client.start('task')
  const seen: string[] = []
  for await (const { status, work } of client.watch(id)) {
    if (status !== 'waiting_for_worker' || work === undefined) continue
    seen.push(work.running === 0 ? 'waiting' : `running at ${work.workers.join(', ')}`)
    if (work.running > 0) break
    await app.register('gpu-1', { supported_skills: ['draw'] })
    await app.poll('gpu-1', 5)
  }
  expect(seen).toEqual(['waiting', 'running at gpu-1'])
})

test('[B-08] [B-09] of a fan-out it says how many tasks wait and how many run, and where', async () => {
  const client = app.server.client()
  const { id } = await client.start('spread')
  await until(id, 'waiting_for_parallel')
  for (const worker of ['gpu-1', 'gpu-2']) {
    await app.register(worker, { supported_skills: ['draw'], resources: { max_concurrent_tasks: 1 } })
    expect((await app.poll(worker, 5)).status).toBe(200)
  }
  const { work } = await client.get(id)
  expect({ ...work, workers: work?.workers.toSorted() }).toEqual({
    waiting: 1,
    delayed: 0,
    running: 2,
    workers: ['gpu-1', 'gpu-2'],
    children: [],
  })
})

test('[B-05] [B-09] a parent leads to its child, and the child back to its parent', async () => {
  const client = app.server.client()
  const { id } = await client.start('parent')
  await until(id, 'waiting_for_child')
  const [child = ''] = (await client.get(id)).work?.children ?? []
  // The child is created by a message, which may take a moment.
  await expect.poll(() => client.get(child).catch(() => undefined)).toBeDefined()
  await until(child, 'waiting_for_worker')
  expect(await client.get(child)).toMatchObject({ parentJobId: id, blueprintName: 'task', work: { waiting: 1 } })
  await app.register('gpu-1', { supported_skills: ['draw'] })
  const { body } = await app.poll('gpu-1', 5)
  const answer = { job_id: child, task_id: body.task_id, status: 'failure', error: { code: 'TRANSIENT_ERROR' } }
  await app.worker('POST', '/_worker/tasks/result', answer, { 'x-worker-id': 'gpu-1' })
  expect((await client.get(child)).work).toMatchObject({ waiting: 0, delayed: 1, running: 0 })
})
