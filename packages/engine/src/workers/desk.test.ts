import { blueprint, workerLane } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { EmbeddedStorage, createVolatileJournal } from '@impresario/storage-embedded'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, VirtualClock, guarded, oneTask, settled } from '../stage.fixture.ts'

/** A stage whose storage calls `hook` before and after each of its verbs. */
function hookedStage() {
  const hooks: { call: (at: string) => Promise<void> | void } = { call: () => undefined }
  const storage = (clock: VirtualClock): Storage =>
    guarded(
      testStorage({ now: clock.now }),
      (verb) => hooks.call(`before ${verb}`),
      (verb) => hooks.call(`after ${verb}`),
    )
  return { stage: new Stage([oneTask()], { storage }), hooks }
}

// ── Polls ────────────────────────────────────────────────────────────────────

test('[E-02] a poll gets a task at once if there is one, else nothing when its time is up', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  let isBack = false
  const parked = worker.poll(1, 30_000).then((handout) => {
    isBack = true
    return handout
  })
  await stage.clock.advance(29_999)
  expect([isBack, stage.engine.desk.parked]).toEqual([false, 1])
  await stage.clock.advance(1)
  expect(isBack).toBe(true)
  const { deliveries } = await parked
  expect([deliveries, stage.engine.desk.parked, stage.clock.sleeping]).toEqual([[], 0, 0])

  const jobId = await stage.begin('one', { tracing: { traceparent: 't' }, resultTimeoutMs: 9_000 })
  const delivery = await worker.takeOne()
  expect(delivery).toMatchObject({
    jobId,
    attempt: 1,
    delivery: 1,
    idempotencyKey: `${jobId}.1.0`,
    call: { type: 'work' },
    tracing: { traceparent: 't' },
    deadlineAt: stage.clock.now() + 9_000,
  })
  expect(await worker.take()).toEqual([])
})

test('[E-02] a parked poll gets a task the moment it is committed, without any time passing', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const other = await stage.worker('x', { skills: ['other'] })
  await stage.engine.start()
  const parked = worker.poll(1, 30_000)
  void other.poll(1, 30_000)
  await settled()
  const before = stage.clock.now()
  const jobId = await stage.create('one')
  const { deliveries } = await parked
  expect([deliveries.map((one) => one.jobId), stage.clock.now()]).toEqual([[jobId], before])
  expect(stage.engine.desk.parked).toBe(1)
  await stage.engine.stop()
  expect(stage.engine.desk.parked).toBe(0)
})

test('[E-02] a parked poll takes all that come in the same moment, as many as it asked for', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w', { concurrencyMax: 10 })
  await stage.engine.start()
  const parked = worker.poll(5, 30_000)
  await settled()
  const request = { blueprint: 'one', client: { id: 'c' }, initialData: {} }
  await stage.engine.createJobs(Array.from({ length: 7 }, () => request))
  expect((await parked).deliveries).toHaveLength(5)
  expect(await worker.take(5)).toHaveLength(2)
  await stage.engine.stop()
})

test('[E-02] a worker that registers late is found by the task that waits for it', async () => {
  const stage = new Stage([oneTask()])
  await stage.engine.start()
  const jobId = await stage.create('one')
  await settled()
  const worker = await stage.worker('w')
  expect((await worker.takeOne()).jobId).toBe(jobId)
  await stage.engine.stop()
})

test('[E-02] whoever is not known is told so, and a closed desk gives nothing', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  await stage.begin('one')
  const poll = stage.engine.desk.poll('nobody', { limit: 1, waitMs: 0, signal: new AbortController().signal })
  await expect(poll).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' })
  await expect(stage.engine.desk.heartbeat('nobody', {}, [])).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' })
  await stage.engine.stop()
  expect(await worker.take()).toEqual([])
  await stage.engine.start()
  await expect(worker.take()).resolves.toHaveLength(1)
  await stage.engine.stop()
})

/** What a poll that finds a task asks of the storage, in order: the points at which it can be cut off. */
async function awaitPoints(): Promise<readonly string[]> {
  const { stage, hooks } = hookedStage()
  const worker = await stage.worker('w')
  await stage.begin('one')
  const points: string[] = []
  hooks.call = (at) => {
    points.push(at)
  }
  await worker.takeOne()
  return points
}

test('[E-02] a poll that is aborted loses nothing, wherever it is cut off (J-1)', async () => {
  const points = await awaitPoints()
  expect(points.length).toBeGreaterThanOrEqual(6)
  for (const [cut, point] of points.entries()) {
    const { stage, hooks } = hookedStage()
    const worker = await stage.worker('w')
    const jobId = await stage.begin('one')
    const connection = new AbortController()
    let calls = 0
    hooks.call = () => {
      if (calls === cut) connection.abort()
      calls += 1
    }
    const handout = await worker.poll(1, 30_000, connection.signal)
    expect([point, handout.deliveries]).toEqual([point, []])
    // No time has passed, and the very next poll has it.
    expect([point, (await worker.takeOne()).jobId]).toEqual([point, jobId])
    expect([stage.engine.desk.parked, stage.clock.sleeping]).toEqual([0, 0])
  }
})

test('[E-02] a poll that is aborted while it is parked, or just as it is woken, loses nothing (J-1)', async () => {
  for (const isWoken of [false, true]) {
    const stage = new Stage([oneTask()])
    const worker = await stage.worker('w')
    await stage.engine.start()
    const connection = new AbortController()
    const parked = worker.poll(1, 30_000, connection.signal)
    await settled()
    if (isWoken) stage.engine.desk.wakeWorker('w')
    connection.abort()
    const jobId = await stage.create('one')
    await settled()
    expect((await parked).deliveries).toEqual([])
    expect((await worker.takeOne()).jobId).toBe(jobId)
    await stage.engine.stop()
  }
})

test('[E-02] a poll that only finds tasks of jobs that are gone looks on at once', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const payload = { jobId: 'gone', visit: 1, branch: '0', attempt: 1, type: 'work' }
  const stale = { queue: 'tasks', lane: workerLane('w'), priority: 9, delayMs: 0, payload } as const
  await stage.storage.commit({
    enqueue: [
      { ...stale, id: 'gone.1.0' },
      { ...stale, id: 'gone.1.1' },
    ],
  })
  const jobId = await stage.begin('one')
  expect((await worker.takeOne()).jobId).toBe(jobId)
})

test('[E-02] what could not be handed over is given back at once, and its first handing-out counts no more', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  const handout = await worker.poll()
  const lost = handout.deliveries[0]?.taskId ?? ''
  await handout.giveBack()
  const again = await worker.takeOne()
  expect([again.jobId, again.delivery]).toEqual([jobId, 1])
  expect(again.taskId).not.toBe(lost)
  expect(await worker.report(lost)).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  expect(await worker.report(again.taskId)).toMatchObject({ type: 'accepted' })
})

test('[E-02] a storage that fails during a poll leaves no poll behind and keeps no task from the others', async () => {
  const points = await awaitPoints()
  for (const [cut, point] of points.entries()) {
    const { stage, hooks } = hookedStage()
    const worker = await stage.worker('w')
    const jobId = await stage.begin('one')
    let calls = 0
    hooks.call = () => {
      calls += 1
      if (calls === cut + 1) throw new Error('The disk is gone.')
    }
    await expect(worker.poll(1, 30_000)).rejects.toThrow('The disk is gone.')
    hooks.call = () => undefined
    expect([point, stage.engine.desk.parked]).toEqual([point, 0])
    // A sign of life does not keep what the worker never got.
    await worker.heartbeat()
    await stage.after(30_000)
    await worker.heartbeat()
    expect([point, (await worker.takeOne()).jobId]).toEqual([point, jobId])
  }
})

// ── Leases ───────────────────────────────────────────────────────────────────

test('[E-03] the tasks of a worker that has fallen silent go to others after its lease', async () => {
  const stage = new Stage([oneTask()])
  const silent = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId, idempotencyKey } = await silent.takeOne()
  const other = await stage.worker('b')
  await stage.after(29_999)
  expect(await other.take()).toEqual([])
  await stage.after(1)
  const delivery = await other.takeOne()
  expect([delivery.delivery, delivery.attempt, delivery.idempotencyKey]).toEqual([2, 1, idempotencyKey])
  // What it sends after that is ignored, before and after the other's result.
  expect(await silent.report(taskId)).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  expect(await silent.report(taskId)).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  expect(await other.report(delivery.taskId, { data: { by: 'b' } })).toMatchObject({ type: 'accepted' })
  expect(await silent.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect((await stage.job(jobId)).result).toEqual({ by: 'b' })
})

test('[E-03] a parked worker gets the task of a silent one without polling again', async () => {
  const stage = new Stage([oneTask()])
  const silent = await stage.worker('a', { concurrencyMax: 5 })
  await stage.engine.start()
  const jobId = await stage.create('one')
  await settled()
  await silent.takeOne()
  const other = await stage.worker('b')
  const parked = other.poll(1, 60_000)
  await stage.clock.advance(31_000)
  expect((await parked).deliveries.map((one) => one.jobId)).toEqual([jobId])
  await stage.engine.stop()
})

test("[E-03] heartbeats keep a task in its worker's hands, whether they name it or not", async () => {
  for (const isNaming of [true, false]) {
    const stage = new Stage([oneTask()])
    const worker = await stage.worker('a')
    await stage.begin('one')
    const { taskId } = await worker.takeOne()
    const other = await stage.worker('b')
    for (let beats = 0; beats < 6; beats += 1) {
      await stage.after(20_000)
      expect(await worker.heartbeat(isNaming ? [taskId] : undefined)).toEqual([])
      await other.heartbeat()
      expect(await other.take()).toEqual([])
    }
    expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  }
})

test('[E-03] after a restart of the orchestrator a worker keeps the tasks that it names', async () => {
  const clock = new VirtualClock()
  const journal = createVolatileJournal()
  const first = new Stage([oneTask()], { clock, storage: () => new EmbeddedStorage({ now: clock.now, journal }) })
  const worker = await first.worker('a')
  const jobId = await first.begin('one')
  const { taskId } = await worker.takeOne()

  const reopened = (): Storage => new EmbeddedStorage({ now: clock.now, journal: journal.reopened() })
  const second = new Stage([oneTask()], { clock, storage: reopened })
  await second.engine.start()
  expect(second.engine.dispatcher.worker('a')?.id).toBe('a')
  const again = await second.worker('a')
  const other = await second.worker('b')
  for (let beats = 0; beats < 3; beats += 1) {
    await clock.advance(20_000)
    expect(await again.heartbeat([taskId])).toEqual([])
    expect(await other.take()).toEqual([])
  }
  expect(second.engine.dispatcher.loadOf('a')).toBe(1)
  expect(await other.report(taskId)).toEqual({ type: 'ignored', reason: 'worker_mismatch', job: undefined })
  expect(await again.report(taskId)).toMatchObject({ type: 'accepted' })
  await settled()
  expect(await second.statusOf(jobId)).toBe('finished')
  await second.engine.stop()
})

test('[E-03] after a restart a result is taken from its worker without any heartbeat', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.restart()
  const other = await stage.worker('b')
  expect(await other.report(taskId)).toMatchObject({ type: 'ignored', reason: 'worker_mismatch' })
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
})

test('[E-03] a worker cannot take over the task of another by naming it', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const thief = await stage.worker('b')
  expect(await thief.heartbeat([taskId])).toEqual([taskId])
  expect(await thief.report(taskId)).toMatchObject({ type: 'ignored', reason: 'worker_mismatch' })
  expect([stage.engine.dispatcher.loadOf('a'), stage.engine.dispatcher.loadOf('b')]).toEqual([1, 0])
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
})

test('[E-03] an id that was never given out settles nothing', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const token = taskId.split('.').at(-1) ?? ''
  for (const forged of [`${jobId}.1.0.9.${token}`, `${jobId}.9.0.1.${token}`, `${jobId}.1.7.1.${token}`, 'x', '']) {
    expect(await worker.report(forged)).toMatchObject({ type: 'ignored' })
  }
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[E-03] a worker that comes back before anybody took its task may go on with it', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.after(100_000)
  expect(await worker.heartbeat([taskId])).toEqual([])
  await stage.after(20_000)
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
})

test('[E-03] [F-03] a silent worker leaves dispatch by itself and is back with its next heartbeat', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.after(120_000)
  expect(stage.engine.dispatcher.workers()).toHaveLength(1)
  await stage.after(1_000)
  expect(stage.engine.dispatcher.workers()).toEqual([])
  await worker.heartbeat()
  const jobId = await stage.begin('one')
  expect((await worker.takeOne()).jobId).toBe(jobId)
})

test('[E-03] a task that every worker falls silent over is put aside', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '2h' })])
  const jobId = await stage.create('one')
  for (let deliveries = 1; deliveries <= LIMITS.taskDeliveriesMax; deliveries += 1) {
    const worker = await stage.worker(`w${deliveries}`)
    await stage.run()
    expect((await worker.takeOne()).delivery).toBe(deliveries)
    await stage.after(31_000)
  }
  const last = await stage.worker('last')
  expect(await last.take()).toEqual([])
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['quarantined', 'PERMANENT_ERROR'])
  expect(job.error?.message).toContain('handed out 10 times')
  expect(stage.engine.dispatcher.loadOf('last')).toBe(0)
})

test('[E-03] a worker that registers again keeps its reputation and its tasks', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a', { reputation: 0.3 })
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const again = await stage.worker('a', { reputation: 1 })
  expect([stage.engine.dispatcher.worker('a')?.reputation, stage.engine.dispatcher.loadOf('a')]).toEqual([0.3, 1])
  expect(await again.report(taskId)).toMatchObject({ type: 'accepted' })
})

test('[E-04] progress counts while the task runs, and only from its worker', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.worker('b')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const { desk } = stage.engine
  await desk.progress('b', taskId, 0.9, 'not mine')
  await desk.progress('a', 'nonsense', 0.9, undefined)
  expect((await stage.job(jobId)).progress).toBeUndefined()
  await desk.progress('a', taskId, 0.5, 'half')
  expect((await stage.job(jobId)).progress).toEqual({ fraction: 0.5, message: 'half' })
  await worker.report(taskId)
  await desk.progress('a', taskId, 0.9, undefined)
  expect((await stage.job(jobId)).progress).toBeUndefined()
})

test('[E-04] who has lost its task to the queue speaks for it no longer', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { giveBack, deliveries } = await worker.poll(1, 0)
  await giveBack()
  await stage.engine.desk.progress('a', deliveries[0]?.taskId ?? '', 0.9, 'no longer mine')
  expect((await stage.job(jobId)).progress).toBeUndefined()
})

// ── Cancellation ─────────────────────────────────────────────────────────────

test('[C-05] a job that is cancelled while its task waits takes it back', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(1)
  await stage.engine.cancelJob(jobId, 'test', 'No longer needed.')
  expect(await worker.take()).toEqual([])
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
  const job = await stage.job(jobId)
  expect([job.status, job.error]).toEqual([
    'cancelled',
    { code: 'CANCELLED', message: 'No longer needed.', state: 'ask' },
  ])
})

test('[C-05] the worker of a cancelled task is told at its next heartbeat; its result is ignored', async () => {
  for (const isNaming of [true, false]) {
    const stage = new Stage([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 2 })
    const jobId = await stage.begin('one')
    const kept = await stage.begin('one')
    const [first, second] = await worker.take(2)
    await stage.engine.cancelJob(jobId, 'test')
    const gone = first?.jobId === jobId ? first.taskId : second?.taskId
    const stays = first?.jobId === kept ? first.taskId : second?.taskId
    expect(await worker.heartbeat(isNaming ? [gone ?? '', stays ?? ''] : undefined)).toEqual([gone])
    expect(await worker.report(gone ?? '', { data: { late: 1 } })).toMatchObject({
      type: 'ignored',
      reason: 'job_ended',
      job: { status: 'cancelled' },
    })
    expect((await stage.job(jobId)).stateHistory).toEqual({})
    expect(await worker.report(stays ?? '')).toMatchObject({ type: 'accepted' })
  }
})

test('[C-05] a result that comes before the worker has heard of it is ignored as well', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.engine.cancelJob(jobId, 'test')
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect(await worker.heartbeat()).toEqual([])
})

test('[C-05] a job is cancelled before its first turn, while it waits for a person, in quarantine, and once', async () => {
  const asking = blueprint('asking', { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'ok?', transitions: { yes: 'done' }, expires: '1m' }),
    ),
    done: state.end(),
  }))
  const broken = blueprint('broken', { start: 'a', handlerAttemptsMax: 1 }, (state) => ({
    a: state.handler((context, actions) => {
      if (context.jobId !== '') throw new Error('no')
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([asking, broken, oneTask()])
  const fresh = await stage.create('one')
  await stage.engine.cancelJob(fresh, 'test')
  const waiting = await stage.begin('asking')
  const aside = await stage.begin('broken')
  expect([await stage.statusOf(waiting), await stage.statusOf(aside)]).toEqual(['waiting_for_human', 'quarantined'])
  for (const jobId of [waiting, aside]) await stage.engine.cancelJob(jobId, 'test')
  await stage.after(61_000)
  for (const jobId of [fresh, waiting, aside]) {
    expect(await stage.statusOf(jobId)).toBe('cancelled')
    expect(await stage.engine.cancelJob(jobId, 'test')).toMatchObject({
      type: 'repeated',
      job: { status: 'cancelled' },
    })
  }
  expect(await stage.engine.cancelJob('nothing', 'test')).toMatchObject({ reason: 'job_not_found' })
  expect(stage.log.errors).toEqual([])
})
