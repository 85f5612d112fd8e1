import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'
import type { StageWorker } from '../stage.fixture.ts'

const HOUR_MS = 3_600_000

/** Lets time pass for a worker that gives signs of life all the while. */
async function beating(stage: Stage, worker: StageWorker, ms: number): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= 10_000) {
    await stage.after(Math.min(leftMs, 10_000))
    await worker.heartbeat()
  }
}

test('[D-04] a task without a dispatch timeout waits for a worker as long as it takes', async () => {
  const stage = new Stage([oneTask()])
  const jobId = await stage.begin('one')
  await stage.clock.advance(24 * HOUR_MS)
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  const worker = await stage.worker('late')
  await worker.report((await worker.takeOne()).taskId)
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[C-04] a task that is picked up late has the whole time of its run (J-2)', async () => {
  const stage = new Stage([oneTask()])
  const jobId = await stage.begin('one')
  await stage.clock.advance(HOUR_MS)
  const worker = await stage.worker('late')
  const { deadlineAt, taskId } = await worker.takeOne()
  expect(deadlineAt).toBe(stage.clock.now() + LIMITS.runTimeoutMs)
  await beating(stage, worker, LIMITS.runTimeoutMs - 1_000)
  expect(await worker.heartbeat([taskId])).toEqual([])
  await stage.after(1_000)
  expect(await worker.heartbeat([taskId])).toEqual([taskId])
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['failed', 'TIMEOUT_ERROR'])
  expect(job.error?.message).toBe('The worker "late" did not finish "work" within its run timeout of 300 s.')
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
})

test('[C-04] every worker that gets the task has the whole time of its run (J-2)', async () => {
  const stage = new Stage([oneTask({ runTimeout: '1m' })])
  const first = await stage.worker('first')
  await stage.begin('one')
  const began = await first.takeOne()
  expect(began.deadlineAt).toBe(stage.clock.now() + 60_000)
  await stage.after(50_000)
  const second = await stage.worker('second')
  const again = await second.takeOne()
  expect([again.delivery, again.attempt, again.deadlineAt]).toEqual([2, 1, stage.clock.now() + 60_000])
  await beating(stage, second, 59_000)
  expect(await second.report(again.taskId)).toMatchObject({ type: 'accepted' })
})

test('[C-04] a deadline for the result that somebody named counts from dispatch, and stands in place of the run (J-2)', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '2h' })])
  const jobId = await stage.begin('one')
  const dispatchedAt = stage.clock.now()
  await stage.clock.advance(HOUR_MS)
  const worker = await stage.worker('late')
  expect((await worker.takeOne()).deadlineAt).toBe(dispatchedAt + 2 * HOUR_MS)
  await beating(stage, worker, 2 * LIMITS.runTimeoutMs)
  expect((await stage.job(jobId)).branches['0']).toMatchObject({ attempt: 1 })
})

test('[C-04] of a deadline and the time of a run that a task names both, the earlier one holds', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '10m', runTimeout: '1m' })])
  await stage.begin('one')
  const dispatchedAt = stage.clock.now()
  const early = await stage.worker('early')
  const handout = await early.poll()
  expect(handout.deliveries[0]?.deadlineAt).toBe(dispatchedAt + 60_000)
  await handout.giveBack()
  await stage.clock.advance(570_000)
  const late = await stage.worker('late')
  expect((await late.takeOne()).deadlineAt).toBe(dispatchedAt + 600_000)
})

test('[E-02] a handout that was given back did not end the wait for a worker', async () => {
  const stage = new Stage([oneTask({ dispatchTimeout: '40s' })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await (await worker.poll()).giveBack()
  await stage.after(39_000)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.after(1_000)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.message]).toEqual([
    'failed',
    'No worker took "work" within its dispatch timeout of 40 s.',
  ])
})

test('[E-02] handouts that are given back do not make a task look like one that kills its workers', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  for (let polls = 0; polls <= LIMITS.taskDeliveriesMax; polls += 1) await (await worker.poll()).giveBack()
  const { delivery, taskId } = await worker.takeOne()
  expect(delivery).toBe(1)
  await worker.report(taskId)
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test("[E-01] of a worker's error only the beginning is kept", async () => {
  const stage = new Stage([oneTask({ attemptsMax: 1 })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const error = { code: 'PERMANENT_ERROR', message: 'x'.repeat(1_000_000) } as const
  await stage.engine.desk.results('a', [{ taskId, status: 'failure', error }])
  const { message = '' } = (await stage.job(jobId)).error ?? {}
  expect([message.length, message.at(-1)]).toEqual([LIMITS.taskErrorCharsMax, '…'])
})

test('[C-04] a result that comes after its deadline is refused, also before anything has noticed the deadline', async () => {
  for (const limits of [{ resultTimeout: '1m' }, { runTimeout: '1m' }] as const) {
    const stage = new Stage([oneTask(limits)])
    const jobId = await stage.begin('one')
    const worker = await stage.worker('late')
    const { taskId } = await worker.takeOne()
    for (let beat = 0; beat < 6; beat += 1) {
      await worker.heartbeat()
      await stage.clock.advance(10_000)
    }
    // The watcher has not looked since.
    expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'stale_task' })
    expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
    await stage.run()
    const job = await stage.job(jobId)
    expect([job.status, job.error?.code]).toEqual(['failed', 'TIMEOUT_ERROR'])
  }
})

test('[C-04] a result that comes just before its deadline counts', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '1m' })])
  const jobId = await stage.begin('one')
  const worker = await stage.worker('early')
  const { taskId } = await worker.takeOne()
  await stage.clock.advance(59_999)
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})
