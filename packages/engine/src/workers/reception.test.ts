import { blueprint } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import type { WorkerEventNews } from './desk-messages.ts'
import { Stage, guarded, oneTask } from '../stage.fixture.ts'

/** Looks for something, and goes on as soon as it is found. */
const search = blueprint('search', { start: 'look' }, (state) => ({
  look: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'work', transitions: { success: 'nothing' }, eventTransitions: { found: 'done' } }),
  ),
  nothing: state.end({ outcome: 'failed' }),
  done: state.end(),
}))

async function searching() {
  const stage = new Stage([search])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('search')
  const { taskId } = await worker.takeOne()
  return { stage, worker, jobId, taskId }
}

test('[E-01] an event with a way of its own moves the job at once; the worker is told to stop, and its result is ignored', async () => {
  const { stage, worker, jobId, taskId } = await searching()
  const recalls: string[] = []
  stage.engine.desk.onRecall((recall) => recalls.push(recall.taskId))
  const receipt = await worker.say(taskId, 'found', { where: 'attic' }, 'e1')
  expect(receipt).toMatchObject({ type: 'accepted', before: { status: 'waiting_for_worker' } })
  await stage.run()
  expect(await stage.job(jobId)).toMatchObject({ status: 'finished', result: { where: 'attic' } })
  expect(recalls).toEqual([taskId])
  expect(await worker.heartbeat([taskId])).toEqual([taskId])
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect(stage.engine.dispatcher.loadOf('w')).toBe(0)
})

test('[E-01] an event without a way is noted and counted once for each id', async () => {
  const { stage, worker, jobId, taskId } = await searching()
  expect(await worker.say(taskId, 'warm', { n: 1 }, 'e1')).toMatchObject({ type: 'accepted' })
  expect(await worker.say(taskId, 'warm', { n: 1 }, 'e1')).toMatchObject({ type: 'ignored', reason: 'repeated_event' })
  expect(await worker.say(taskId, 'warm', { n: 2 }, 'e2')).toMatchObject({ type: 'accepted' })
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'worker_event:warm')).toHaveLength(2)
  expect(await worker.heartbeat([taskId])).toEqual([])
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  expect(await stage.statusOf(jobId)).toBe('failed')
})

test('[E-01] [C-09] many copies of one event that come at the same time move the job once', async () => {
  const { stage, worker, jobId, taskId } = await searching()
  const receipts = await Promise.all(Array.from({ length: 20 }, () => worker.say(taskId, 'found', {}, 'e1')))
  expect(receipts.filter(({ type }) => type === 'accepted')).toHaveLength(1)
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'worker_event:found')).toHaveLength(1)
})

test('[E-01] only whoever holds a task speaks for it', async () => {
  const { stage, worker, taskId, jobId } = await searching()
  const other = await stage.worker('other')
  expect(await other.say(taskId, 'found')).toMatchObject({ type: 'ignored', reason: 'worker_mismatch' })
  expect(await worker.say('no.such.task', 'found')).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  // The worker falls silent, its lease ends, and another one has the task.
  await stage.after(40_000)
  const again = await other.takeOne()
  expect(await worker.say(taskId, 'found')).toMatchObject({ type: 'ignored', reason: 'stale_task', job: { id: jobId } })
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  expect(await other.say(again.taskId, 'found')).toMatchObject({ type: 'accepted' })
})

test('[E-01] after a restart the worker that holds the task is still heard', async () => {
  const { stage, worker, taskId, jobId } = await searching()
  await stage.restart()
  expect(await worker.say(taskId, 'found', {}, 'e1')).toMatchObject({ type: 'accepted' })
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[E-01] programs hear of events once they are durable, whatever other listeners do', async () => {
  const order: string[] = []
  const stage = new Stage([search], {
    storage: (clock) =>
      guarded(testStorage({ now: clock.now }), (verb) => {
        if (verb === 'sync') order.push('sync')
      }),
  })
  const heard: WorkerEventNews[] = []
  stage.engine.onWorkerEvent(() => {
    throw new Error('not my day')
  })
  const stop = stage.engine.onWorkerEvent((news) => {
    order.push('heard')
    heard.push(news)
  })
  const worker = await stage.worker('w')
  const jobId = await stage.begin('search')
  const { taskId } = await worker.takeOne()
  order.length = 0
  await worker.say(taskId, 'warm', { n: 1 }, 'e1')
  expect(heard).toEqual([{ workerId: 'w', jobId, taskId, type: 'warm', payload: { n: 1 }, eventId: 'e1' }])
  expect(order).toEqual(['sync', 'heard'])
  expect(stage.log.errors).toEqual(['a listener for events of workers failed'])
  await worker.say(taskId, 'warm', { n: 1 }, 'e1')
  expect(heard).toHaveLength(1)
  stop()
  await worker.say(taskId, 'warm', {}, 'e2')
  expect(heard).toHaveLength(1)
})

test('[E-01] an event has a type, an id and a payload of bounded size', async () => {
  const { worker, taskId } = await searching()
  const long = 'x'.repeat(LIMITS.eventTypeCharsMax)
  expect(await worker.say(taskId, long)).toMatchObject({ type: 'accepted' })
  await expect(worker.say(taskId, `${long}x`)).rejects.toThrow(/type of an event has from 1 to 100/)
  await expect(worker.say(taskId, '')).rejects.toThrow(/type of an event/)
  await expect(worker.say(taskId, 'a', {}, '')).rejects.toThrow(/id of an event/)
  await expect(worker.say(taskId, 'a', {}, 'x'.repeat(201))).rejects.toThrow(/id of an event/)
  await expect(worker.say(taskId, 'a', { text: 'x'.repeat(LIMITS.contextBytesMax) })).rejects.toThrow(/payload/)
})

test('[C-02] [J-6] a transient failure is tried again, after a while, by a worker that has not failed it', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  const first = await worker.takeOne()
  const other = await stage.worker('other')
  expect(await worker.fail(first.taskId)).toMatchObject({ type: 'accepted', job: { status: 'waiting_for_worker' } })
  expect(await other.take()).toEqual([])
  await stage.after(2_000)
  expect(await worker.take()).toEqual([])
  const second = await other.takeOne()
  expect(second).toMatchObject({ attempt: 2, idempotencyKey: first.idempotencyKey })
  await other.report(second.taskId)
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[D-04] [J-4] without a worker a job waits, and is neither tried again nor put aside', async () => {
  const stage = new Stage([oneTask()])
  const jobId = await stage.begin('one')
  await stage.after(600_000)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  expect((await stage.job(jobId)).branches['0']?.attempt).toBe(1)
  const worker = await stage.worker('w')
  await worker.report((await worker.takeOne()).taskId)
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[C-05] [J-3] a cancelled job stays cancelled, whatever its worker brings', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.engine.cancelJob(jobId, 'client')
  expect(await worker.report(taskId, { data: { n: 1 } })).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  await stage.run()
  expect(await stage.job(jobId)).toMatchObject({ status: 'cancelled', stateHistory: {} })
})
