import { blueprint } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, fanOut, guarded, oneTask } from '../stage.fixture.ts'

// ── Failed tries ─────────────────────────────────────────────────────────────

test('[C-02] a transient error is tried again, later each time, then the job is put aside', async () => {
  const stage = new Stage([oneTask()])
  stage.random.chance = 1
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  for (const [attempt, waitMs] of [1_000, 2_000, 4_000].entries()) {
    const delivery = await worker.takeOne()
    expect(delivery.attempt).toBe(attempt + 1)
    expect(await worker.fail(delivery.taskId)).toMatchObject({
      type: 'accepted',
      job: { status: 'waiting_for_worker' },
    })
    await stage.after(waitMs - 1)
    expect(await worker.take()).toEqual([])
    await stage.after(1)
  }
  await worker.fail((await worker.takeOne()).taskId)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['quarantined', 'TRANSIENT_ERROR'])
  expect(job.error?.message).toBe('"work" failed 4 times: a reports TRANSIENT_ERROR')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
})

test('[C-02] the next try prefers workers that have not failed it', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })])
  const failing = await stage.worker('a', { costPerSecond: 1 })
  const other = await stage.worker('b', { costPerSecond: 9 })
  const jobId = await stage.begin('one')
  await failing.fail((await failing.takeOne()).taskId)
  await stage.after(2_000)
  expect(await failing.take()).toEqual([])
  const delivery = await other.takeOne()
  expect([delivery.jobId, delivery.attempt]).toEqual([jobId, 2])
})

test('[C-02] a worker that failed a task gets it again when nobody else is left', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })])
  const failing = await stage.worker('a', { costPerSecond: 1 })
  const other = await stage.worker('b', { costPerSecond: 9 })
  await stage.begin('one')
  await failing.fail((await failing.takeOne()).taskId)
  await stage.after(2_000)
  expect(await failing.take()).toEqual([])
  await other.heartbeat([], { status: 'offline' })
  expect((await failing.takeOne()).attempt).toBe(2)
})

test('[C-02] a parked worker gets the next try the moment it is due', async () => {
  const stage = new Stage([oneTask()])
  stage.random.chance = 1
  const worker = await stage.worker('a')
  await stage.engine.start()
  await stage.create('one')
  await stage.clock.advance(1)
  await worker.fail((await worker.takeOne()).taskId)
  const before = stage.clock.now()
  let tookMs = -1
  void worker.poll(1, 30_000).then(() => {
    tookMs = stage.clock.now() - before
  })
  await stage.clock.advance(5_000)
  expect(tookMs).toBe(1_000)
  await stage.engine.stop()
})

test.each([
  ['PERMANENT_ERROR', 'quarantined'],
  ['SECURITY_ERROR', 'quarantined'],
  ['INVALID_INPUT_ERROR', 'failed'],
] as const)('[C-02] %s makes the job %s at once', async (code, status) => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await worker.fail((await worker.takeOne()).taskId, code)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual([status, code])
})

test('[C-02] a failure without an error is a transient one; a status without a transition fails the job', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await worker.report((await worker.takeOne()).taskId, { status: 'failure' })
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.after(2_000)
  await worker.report((await worker.takeOne()).taskId, { status: 'puzzled' })
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'UNHANDLED_STATUS'])
})

test('[C-02] a next try without any wait counts once for its new worker', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' }, { backoffMs: 0 })])
  const failing = await stage.worker('a', { costPerSecond: 1 })
  const other = await stage.worker('b', { costPerSecond: 9 })
  await stage.begin('one')
  await failing.fail((await failing.takeOne()).taskId)
  const { dispatcher } = stage.engine
  expect([dispatcher.loadOf('a'), dispatcher.loadOf('b')]).toEqual([0, 1])
  await other.report((await other.takeOne()).taskId)
  expect([dispatcher.loadOf('a'), dispatcher.loadOf('b')]).toEqual([0, 0])
})

test('[C-02] tasks of one fan-out fail for themselves', async () => {
  const stage = new Stage([fanOut('wait_all', { attemptsMax: 1 })])
  const worker = await stage.worker('a', { concurrencyMax: 3 })
  const jobId = await stage.begin('many', { initialData: { count: 3 } })
  const [first, ...rest] = await worker.take(3)
  await worker.fail(first?.taskId ?? '')
  for (const { taskId } of rest) await worker.report(taskId)
  await stage.run()
  expect((await stage.job(jobId)).result).toEqual({ statuses: ['failure', 'success', 'success'] })
})

// ── Timeouts ─────────────────────────────────────────────────────────────────

test('[C-04] [F-01] a task that nobody takes in time fails the job', async () => {
  const stage = new Stage([oneTask({ dispatchTimeout: '10s' })])
  const jobId = await stage.begin('one')
  await stage.after(9_999)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.after(1)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'TIMEOUT_ERROR'])
  expect(job.error?.message).toBe('No worker took "work" within its dispatch timeout of 10 s.')
  const late = await stage.worker('late')
  expect(await late.take()).toEqual([])
})

test('[C-04] the dispatch timeout no longer counts once a worker has the task', async () => {
  const stage = new Stage([oneTask({ dispatchTimeout: '10s' })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await stage.after(9_000)
  const { taskId } = await worker.takeOne()
  await stage.after(20_000)
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test("[C-04] the job's own dispatch timeout holds for tasks that name none", async () => {
  const stage = new Stage([oneTask()])
  const jobId = await stage.begin('one', { dispatchTimeoutMs: 5_000 })
  await stage.after(5_000)
  expect(await stage.statusOf(jobId)).toBe('failed')
})

test('[C-04] [F-01] a result that does not come before its deadline fails the job; the late one is ignored', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '40s' })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.after(39_999)
  await worker.heartbeat([taskId])
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.after(1)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'TIMEOUT_ERROR'])
  expect(job.error?.message).toBe('No result of "work" came within its result timeout of 40 s from its first dispatch.')
  expect(await worker.report(taskId, { data: { by: 'a' } })).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect((await stage.job(jobId)).status).toBe('failed')
})

test('[C-04] the deadline counts from the first dispatch, over all tries', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '40s' })])
  stage.random.chance = 1
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const first = await worker.takeOne()
  await stage.after(20_000)
  await worker.fail(first.taskId)
  await stage.after(1_000)
  const second = await worker.takeOne()
  expect([second.attempt, second.deadlineAt]).toEqual([2, first.deadlineAt])
  await worker.fail(second.taskId)
  await stage.after(18_999)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.after(1)
  const { status, error } = await stage.job(jobId)
  expect([status, error?.code]).toEqual(['failed', 'TIMEOUT_ERROR'])
  expect(error?.message).toMatch(
    /within its result timeout of 40 s from its first dispatch\. No worker had it at the end/,
  )
})

test('[C-04] where timeouts are tried again, the next try goes to another worker, and the late result is ignored', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest', resultTimeout: '40s', retryTimeouts: true })])
  const slow = await stage.worker('a', { costPerSecond: 1 })
  const other = await stage.worker('b', { costPerSecond: 9 })
  const jobId = await stage.begin('one')
  const { taskId } = await slow.takeOne()
  await stage.after(20_000)
  await slow.heartbeat([taskId])
  await stage.after(20_000)
  // It still beats, but its time is up.
  expect(await slow.heartbeat([taskId])).toEqual([taskId])
  expect(await slow.report(taskId, { data: { by: 'a' } })).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
  await stage.after(2_000)
  expect(await slow.take()).toEqual([])
  const delivery = await other.takeOne()
  expect(delivery.attempt).toBe(2)
  expect(await slow.report(taskId, { data: { by: 'a' } })).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  await other.report(delivery.taskId, { data: { by: 'b' } })
  expect((await stage.job(jobId)).result).toEqual({ by: 'b' })
})

test("[C-04] the blueprint's own way for a timeout is taken", async () => {
  const stage = new Stage([
    blueprint('timed', { start: 'ask' }, (state) => ({
      ask: state.handler((_context, actions) =>
        actions.dispatchTask({
          type: 'work',
          resultTimeout: '10s',
          transitions: { success: 'done', timeout: 'late' },
        }),
      ),
      late: state.end({ result: () => ({ late: true }) }),
      done: state.end(),
    })),
  ])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('timed')
  await worker.takeOne()
  await stage.after(10_000)
  const job = await stage.job(jobId)
  expect([job.status, job.result, job.error]).toEqual(['finished', { late: true }, undefined])
})

test('[C-04] [F-01] a job that does not end in its time fails, wherever it is', async () => {
  const stage = new Stage([oneTask({}, { executionTimeout: '1m' })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const short = await stage.begin('one', { executionTimeoutMs: 30_000 })
  const { taskId } = await worker.takeOne()
  await stage.after(30_000)
  expect([await stage.statusOf(jobId), await stage.statusOf(short)]).toEqual(['waiting_for_worker', 'failed'])
  await worker.heartbeat()
  await stage.after(30_000)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'EXECUTION_TIMEOUT'])
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
})

test('[C-04] a job that ends in time leaves no timer behind', async () => {
  const stage = new Stage([oneTask({}, { executionTimeout: '1m' })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  expect(await stage.storage.lanes('timers')).toEqual([])
  await worker.report((await worker.takeOne()).taskId)
  await stage.after(61_000)
  expect(await stage.statusOf(jobId)).toBe('finished')
  expect(await stage.storage.peek('timers', [`${jobId}.life`])).toEqual([undefined])
})

test('[F-01] the running watcher finds what has run out without being asked', async () => {
  const stage = new Stage([oneTask({ dispatchTimeout: '10s' })])
  await stage.engine.start()
  const ids = await Promise.all(Array.from({ length: 300 }, () => stage.create('one')))
  await stage.clock.advance(9_999)
  expect(await stage.statusOf(ids[0] ?? '')).toBe('waiting_for_worker')
  const statuses = async (): Promise<Set<string>> => new Set(await Promise.all(ids.map((id) => stage.statusOf(id))))
  // More than one batch of the watcher. A storage that others use too may give less than there is, and ask to be
  // asked again in a few milliseconds; it does not make the watcher wait until it would look anyway.
  for (let ms = 0; ms < 900 && (await statuses()).has('waiting_for_worker'); ms += 50) await stage.clock.advance(50)
  expect(await statuses()).toEqual(new Set(['failed']))
  await stage.engine.stop()
})

test('[F-01] a timeout that could not be written is applied later', async () => {
  let isBroken = false
  const storage = (now: () => number): Storage =>
    guarded(testStorage({ now }), (verb) => {
      if (isBroken && verb === 'commit') throw new Error('The disk is gone.')
    })
  const stage = new Stage([oneTask({ dispatchTimeout: '10s' })], { storage: ({ now }) => storage(now) })
  const jobId = await stage.begin('one')
  isBroken = true
  await stage.after(10_000)
  expect([await stage.statusOf(jobId), stage.log.errors]).toEqual([
    'waiting_for_worker',
    ['a timeout could not be applied'],
  ])
  isBroken = false
  await stage.after(15_000)
  expect(await stage.statusOf(jobId)).toBe('failed')
})

test('[F-01] [J-2] a task that waited long for its worker has its whole time from the pickup on', async () => {
  const stage = new Stage([oneTask({ runTimeout: 300_000, attemptsMax: 1 })])
  const jobId = await stage.begin('one')
  // Far longer than it may run.
  await stage.clock.advance(3_600_000)
  const worker = await stage.worker('a')
  const delivery = await worker.takeOne()
  expect(delivery.deadlineAt).toBe(stage.clock.now() + 300_000)
  for (let passedMs = 0; passedMs < 290_000; passedMs += 10_000) {
    await stage.clock.advance(10_000)
    await worker.heartbeat([delivery.taskId])
    await stage.run()
    expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  }
  await stage.after(10_000)
  expect((await stage.job(jobId)).error?.code).toBe('TIMEOUT_ERROR')
})
