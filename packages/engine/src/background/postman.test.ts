import { blueprint, child, childJobId } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, fanOut, guarded, oneTask } from '../stage.fixture.ts'

const inner = blueprint(
  'inner',
  { start: 'ask', input: z.object({ size: z.number(), unit: z.string().default('cm') }) },
  (state) => ({
    ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'work', transitions: { success: 'done' } })),
    done: state.end({ result: (context) => ({ size: `${context.initialData.size} ${context.initialData.unit}` }) }),
  }),
)

function nameIn({ name }: DataObject): string {
  return typeof name === 'string' ? name : 'inner'
}

/** Runs the blueprint that its data names, and ends as that does. */
const outer = blueprint('outer', { start: 'run' }, (state) => ({
  run: state.handler((context, actions) =>
    actions.runBlueprint({
      name: nameIn(context.initialData),
      initialData: { size: context.initialData['size'] ?? 3 },
      transitions: { success: 'done' },
    }),
  ),
  done: state.end(),
}))

test('[B-05] a parent waits for its child, whose checked data and result travel between them', async () => {
  const stage = new Stage([outer, inner])
  const worker = await stage.worker('a')
  const client = { id: 'acme', plan: 'pro' }
  const jobId = await stage.begin('outer', { client, priority: 7, tracing: { traceparent: 't' } })
  const childId = childJobId(jobId, 1, '0')
  expect(await stage.statusOf(jobId)).toBe('waiting_for_child')
  expect(await stage.job(childId)).toMatchObject({
    status: 'waiting_for_worker',
    client,
    priority: 7,
    depth: 1,
    tracing: { traceparent: 't' },
    initialData: { size: 3, unit: 'cm' },
    parent: { jobId, visit: 1, branch: '0' },
  })
  await worker.report((await worker.takeOne()).taskId)
  await stage.run()
  expect((await stage.job(childId)).result).toEqual({ size: '3 cm' })
  const job = await stage.job(jobId)
  expect([job.status, job.result]).toEqual(['finished', { inner: { size: '3 cm' } }])
})

test.each([
  ['does not exist', { name: 'nowhere' }, 'There is no blueprint "nowhere".'],
  ['refuses its data', { size: 'big' }, 'The initial data does not fit "inner": size'],
])('[B-05] a child whose blueprint %s fails its parent', async (_name, initialData, message) => {
  const stage = new Stage([outer, inner])
  const jobId = await stage.begin('outer', { initialData })
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'CHILD_FAILED'])
  expect(job.error?.message).toContain(message)
  expect(await stage.engine.readJob(childJobId(jobId, 1, '0'))).toBeUndefined()
  await stage.after(60_000)
  expect(stage.log.errors).toEqual([])
})

test('[B-05] a child that fails fails its parent', async () => {
  const stage = new Stage([outer, inner])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('outer')
  await worker.fail((await worker.takeOne()).taskId, 'INVALID_INPUT_ERROR')
  await stage.run()
  expect((await stage.job(jobId)).error).toMatchObject({ code: 'CHILD_FAILED' })
})

test('[B-05] a child in quarantine keeps its parent waiting; mended, it goes on', async () => {
  const stage = new Stage([outer, inner])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('outer')
  const childId = childJobId(jobId, 1, '0')
  await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
  await stage.run()
  expect([await stage.statusOf(childId), await stage.statusOf(jobId)]).toEqual(['quarantined', 'waiting_for_child'])
  expect(await stage.eventsOf(jobId)).toContain('child_quarantined')
  await stage.engine.retryJob(childId, 'test')
  await stage.run()
  await worker.report((await worker.takeOne()).taskId)
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test("[B-05] [C-05] cancelling a parent cancels its child and its child's child, and takes their tasks back", async () => {
  const middle = blueprint('middle', { start: 'run' }, (state) => ({
    run: state.handler((_context, actions) =>
      actions.runBlueprint(inner, { initialData: { size: 1 }, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([outer, middle, inner])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('outer', { initialData: { name: 'middle' } })
  const childId = childJobId(jobId, 1, '0')
  const grandchildId = childJobId(childId, 1, '0')
  const { taskId } = await worker.takeOne()
  await stage.engine.cancelJob(jobId, 'test')
  await stage.run()
  for (const id of [jobId, childId, grandchildId]) expect(await stage.statusOf(id)).toBe('cancelled')
  expect(await worker.heartbeat([taskId])).toEqual([taskId])
})

test('[B-05] [C-05] a parent that is cancelled before its child was born never gets one', async () => {
  const stage = new Stage([outer, inner])
  const jobId = await stage.create('outer')
  await stage.engine.executor.tick()
  expect(await stage.statusOf(jobId)).toBe('waiting_for_child')
  await stage.engine.cancelJob(jobId, 'test')
  await stage.run()
  expect(await stage.engine.readJob(childJobId(jobId, 1, '0'))).toBeUndefined()
})

test('[B-05] a blueprint that runs itself for ever is stopped at the greatest depth', async () => {
  const endless = blueprint('endless', { start: 'run' }, (state) => ({
    run: state.handler((_context, actions) =>
      actions.runBlueprint({ name: 'endless', transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([endless])
  await stage.begin('endless')
  const jobs = await stage.engine.listJobs({ limit: 100 })
  expect(jobs).toHaveLength(LIMITS.childDepthMax + 1)
  const deepest = jobs.find(({ value }) => value.status === 'quarantined')?.value
  expect([deepest?.depth, deepest?.error?.code]).toEqual([LIMITS.childDepthMax, 'CHILD_TOO_DEEP'])
})

test('[B-05] a letter that could not be delivered is delivered later', async () => {
  let isBroken = false
  const storage = (now: () => number): Storage =>
    guarded(testStorage({ now }), (verb) => {
      if (isBroken && verb === 'commit') throw new Error('The disk is gone.')
    })
  const stage = new Stage([outer, inner], { storage: ({ now }) => storage(now) })
  await stage.run()
  const jobId = await stage.create('outer')
  await stage.engine.executor.tick()
  isBroken = true
  await stage.run()
  expect(stage.log.errors).toEqual(['a letter could not be delivered'])
  isBroken = false
  await stage.after(15_000)
  expect(await stage.statusOf(childJobId(jobId, 1, '0'))).toBe('waiting_for_worker')
})

// ── Fan-out ──────────────────────────────────────────────────────────────────

test('[B-08] a fan-out runs its aggregator once, after all branches, with their results', async () => {
  const stage = new Stage([fanOut()])
  const count = 300
  const worker = await stage.worker('a', { concurrencyMax: count })
  const jobId = await stage.begin('many', { initialData: { count } })
  const deliveries = await worker.take(count)
  expect(deliveries).toHaveLength(count)
  // All results at once, far more than conflicts are borne: each is decided on what the one before it left.
  const reports = deliveries.map(({ taskId }) => ({ taskId, status: 'success' }))
  const receipts = await stage.engine.desk.results('a', reports)
  expect(receipts.every(({ type }) => type === 'accepted')).toBe(true)
  await stage.run()
  const job = await stage.job(jobId)
  expect([job.status, job.result]).toEqual(['finished', { statuses: Array.from({ length: count }, () => 'success') }])
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'state_started')).toHaveLength(1)
})

test('[B-08] fail_fast: the first failure takes the other branches back and goes on at once', async () => {
  const stage = new Stage([fanOut('fail_fast', { attemptsMax: 1 })])
  const worker = await stage.worker('a', { concurrencyMax: 2 })
  const jobId = await stage.begin('many', { initialData: { count: 5 } })
  const [first, second] = await worker.take(2)
  await worker.fail(first?.taskId ?? '')
  await stage.run()
  const job = await stage.job(jobId)
  expect([job.status, job.result]).toEqual([
    'finished',
    { statuses: ['failure', 'cancelled', 'cancelled', 'cancelled', 'cancelled'] },
  ])
  expect(await worker.heartbeat([second?.taskId ?? ''])).toEqual([second?.taskId])
  expect(await worker.take(5)).toEqual([])
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
})

test('[B-08] a fan-out over nothing still runs its aggregator', async () => {
  const stage = new Stage([fanOut()])
  const jobId = await stage.begin('many', { initialData: { count: 0 } })
  expect((await stage.job(jobId)).result).toEqual({ statuses: [] })
})

test('[B-08] a fan-out that is too large is put aside', async () => {
  const stage = new Stage([fanOut()])
  const jobId = await stage.begin('many', { initialData: { count: LIMITS.fanOutMax + 1 } })
  await stage.after(10_000)
  const job = await stage.job(jobId)
  expect(job.status).toBe('quarantined')
  expect(job.error?.message).toContain(String(LIMITS.fanOutMax))
})

test('[B-08] blueprints can be branches too; one that cannot be is a failed branch', async () => {
  const mixed = blueprint('mixed', { start: 'split' }, (state) => ({
    split: state.handler((_context, actions) =>
      actions.dispatchParallel([{ type: 'work' }, child(inner, { size: 2 }), child('nowhere', {})], { into: 'join' }),
    ),
    join: state.aggregator((context, actions) =>
      actions.transitionTo('done', {
        results: Object.values(context.aggregationResults).map(({ status, data }) => [status, data ?? null]),
      }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([mixed, inner, oneTask()])
  const worker = await stage.worker('a', { concurrencyMax: 2 })
  const jobId = await stage.begin('mixed')
  const deliveries = await worker.take(2)
  expect(deliveries.map((one) => one.jobId).sort()).toEqual([jobId, childJobId(jobId, 1, '1')])
  for (const { taskId } of deliveries) await worker.report(taskId, { data: { done: 1 } })
  await stage.run()
  expect((await stage.job(jobId)).result).toEqual({
    results: [
      ['success', { done: 1 }],
      ['success', { size: '2 cm' }],
      ['failure', null],
    ],
  })
})
