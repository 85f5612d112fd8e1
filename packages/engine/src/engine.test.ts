import { blueprint, shownJobId } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { EmbeddedStorage, createVolatileJournal } from '@impresario/storage-embedded'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { testStorage } from '../../../test/servers/test-storage.ts'
import { NEVER, Stage, VirtualClock, guarded, oneTask, settled } from './stage.fixture.ts'

const asking = blueprint('asking', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'Publish it?',
      transitions: { yes: 'done', no: 'refused', expired: 'forgotten' },
      expires: '10m',
    }),
  ),
  done: state.end(),
  refused: state.end({ outcome: 'failed' }),
  forgotten: state.end({ outcome: 'cancelled' }),
}))

// ── Approval ─────────────────────────────────────────────────────────────────

test('[B-04] a job waits for a person, and the decision leads on', async () => {
  const stage = new Stage([asking])
  const jobId = await stage.begin('asking')
  expect(await stage.job(jobId)).toMatchObject({
    status: 'waiting_for_human',
    wait: { message: 'Publish it?', expiresAt: stage.clock.now() + 600_000 },
  })
  expect(await stage.engine.decideApproval(jobId, 'perhaps', 'anna')).toMatchObject({ reason: 'unknown_decision' })
  expect(await stage.engine.decideApproval(jobId, 'toString', 'anna')).toMatchObject({ reason: 'unknown_decision' })
  expect(await stage.engine.decideApproval(jobId, 'yes', 'anna', { comment: 'fine' })).toMatchObject({
    type: 'applied',
  })
  const job = await stage.job(jobId)
  expect([job.status, job.result]).toEqual(['finished', { decision: { decision: 'yes', by: 'anna', comment: 'fine' } }])
  expect(await stage.engine.decideApproval(jobId, 'no', 'bob')).toMatchObject({ type: 'ignored' })
})

test('[B-04] of two decisions at the same time one counts', async () => {
  const stage = new Stage([asking])
  const jobId = await stage.begin('asking')
  const both = await Promise.all([
    stage.engine.decideApproval(jobId, 'yes', 'anna'),
    stage.engine.decideApproval(jobId, 'no', 'bob'),
  ])
  expect(both.map(({ type }) => type).sort()).toEqual(['applied', 'ignored'])
})

test('[B-04] [F-01] an approval that nobody gives expires', async () => {
  const short = blueprint('short', { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'Now?', transitions: { yes: 'done' }, expires: '1m' }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([asking, short])
  await stage.engine.start()
  const declared = await stage.create('asking')
  const undeclared = await stage.create('short')
  await stage.clock.advance(59_999)
  expect(await stage.statusOf(undeclared)).toBe('waiting_for_human')
  await stage.clock.advance(1)
  expect((await stage.job(undeclared)).error?.code).toBe('APPROVAL_EXPIRED')
  await stage.clock.advance(540_000)
  expect(await stage.job(declared)).toMatchObject({ status: 'cancelled', state: 'forgotten' })
  await stage.engine.stop()
})

test('[B-04] the timer of an approval that was given does not touch the next one', async () => {
  const twice = blueprint('twice', { start: 'first' }, (state) => ({
    first: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: '1', transitions: { yes: 'second' }, expires: '10s' }),
    ),
    second: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: '2', transitions: { yes: 'done' }, expires: '10s' }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([twice])
  const jobId = await stage.begin('twice')
  await stage.after(9_000)
  await stage.engine.decideApproval(jobId, 'yes', 'anna')
  await stage.run()
  await stage.after(9_000)
  expect(await stage.job(jobId)).toMatchObject({ status: 'waiting_for_human', state: 'second' })
})

// ── Quarantine ───────────────────────────────────────────────────────────────

/** Fails until its data says that it shall not. */
const picky = blueprint('picky', { start: 'first', handlerAttemptsMax: 1 }, (state) => ({
  first: state.handler((_context, actions) => actions.transitionTo('second', { kept: 1 })),
  second: state.handler((context, actions) => {
    const { initialData } = context
    if (initialData['ok'] !== true) throw new Error('not ok')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

test('[C-07] quarantined jobs can be listed, looked into, mended and retried from where they failed', async () => {
  const stage = new Stage([picky])
  const jobId = await stage.begin('picky')
  await stage.begin('picky', { initialData: { ok: true } })
  const listed = await stage.engine.listJobs({ statuses: ['quarantined'], limit: 10 })
  expect(listed.map(({ id }) => id)).toEqual([jobId])
  expect(listed[0]?.value.error).toMatchObject({ code: 'HANDLER_FAILED', state: 'second' })
  expect(await stage.engine.retryJob(jobId, 'anna')).toMatchObject({ type: 'applied' })
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('quarantined')
  const data = { initialData: { ok: true }, stateHistory: { kept: 2 } }
  expect(await stage.engine.retryJob(jobId, 'anna', data)).toMatchObject({ type: 'applied' })
  await stage.run()
  expect(await stage.job(jobId)).toMatchObject({ status: 'finished', result: { kept: 2 } })
  expect(await stage.engine.retryJob(jobId, 'anna')).toMatchObject({ reason: 'job_ended' })
})

test('[C-07] a quarantined job can be given up; one that is not in quarantine neither retried nor given up', async () => {
  const stage = new Stage([picky, asking])
  const jobId = await stage.begin('picky')
  expect(await stage.engine.discardJob(jobId, 'anna')).toMatchObject({ type: 'applied' })
  expect(await stage.job(jobId)).toMatchObject({ status: 'failed', error: { code: 'HANDLER_FAILED' } })
  const waiting = await stage.begin('asking')
  expect(await stage.engine.retryJob(waiting, 'anna')).toMatchObject({ reason: 'job_not_quarantined' })
  expect(await stage.engine.discardJob(waiting, 'anna')).toMatchObject({ reason: 'job_not_quarantined' })
  expect(await stage.engine.discardJob('nothing', 'anna')).toMatchObject({ reason: 'job_not_found' })
})

test('[C-07] two people who retry at the same time retry once', async () => {
  const stage = new Stage([picky])
  const jobId = await stage.begin('picky')
  const data = { initialData: { ok: true } }
  const both = await Promise.all(['anna', 'bob'].map((by) => stage.engine.retryJob(jobId, by, data)))
  expect(both.map(({ type }) => type).sort()).toEqual(['applied', 'ignored'])
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

// ── Creation ─────────────────────────────────────────────────────────────────

const sized = blueprint('sized', { start: 'done', input: z.object({ size: z.number().default(1) }) }, (state) => ({
  done: state.end({ result: (context) => context.initialData.size }),
}))

test('a job is refused when its blueprint is not there or its data does not fit', async () => {
  const stage = new Stage([sized])
  await expect(stage.create('nowhere')).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
  await expect(stage.create('sized', { initialData: { size: 'big' } })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
  const jobId = await stage.begin('sized')
  expect((await stage.job(jobId)).result).toBe(1)
  const request = { client: { id: 'c' }, initialData: {} }
  const results = await stage.engine.createJobs([
    { ...request, blueprint: 'sized' },
    { ...request, blueprint: 'nowhere' },
    { ...request, blueprint: 'sized', idempotencyKey: 'k' },
    { ...request, blueprint: 'sized', idempotencyKey: 'k' },
  ])
  expect(results[0]).toHaveProperty('jobId')
  expect(results[1]).toMatchObject({ error: { code: 'BLUEPRINT_NOT_FOUND' } })
  expect(results[3]).toMatchObject({ jobId: results[2] !== undefined && 'jobId' in results[2] ? results[2].jobId : '' })
})

test('[C-08] the same key gives the same job, also at the same moment, and to each client its own', async () => {
  const stage = new Stage([sized])
  const request = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  const both = await Promise.all([1, 2].map(() => stage.engine.createJob({ ...request, idempotencyKey: 'k' })))
  expect(both.filter(({ isNew }) => isNew)).toHaveLength(1)
  expect(both[0]?.jobId).toBe(both[1]?.jobId)
  await stage.run()
  await stage.after(1_000)
  // Also after the job has ended, and however the data is ordered.
  expect(await stage.engine.createJob({ ...request, idempotencyKey: 'k' })).toEqual({
    jobId: both[0]?.jobId,
    isNew: false,
  })
  const other = await stage.engine.createJob({ ...request, client: { id: 'b' }, idempotencyKey: 'k' })
  expect(other.isNew).toBe(true)
  expect(await stage.engine.listJobs({ limit: 10 })).toHaveLength(2)
})

test('[C-08] a key that was used for other data is refused', async () => {
  const stage = new Stage([sized, picky])
  const request = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  await stage.engine.createJob({ ...request, idempotencyKey: 'k' })
  for (const other of [
    { ...request, initialData: { size: 3 } },
    { ...request, blueprint: 'picky' },
  ]) {
    const creating = stage.engine.createJob({ ...other, idempotencyKey: 'k' })
    await expect(creating).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' })
  }
  const swapped = { blueprint: 'picky', client: { id: 'a' }, initialData: { x: 1, y: [{ p: 1, q: 2 }] } }
  const first = await stage.engine.createJob({ ...swapped, idempotencyKey: 'order' })
  const again = { ...swapped, initialData: { y: [{ q: 2, p: 1 }], x: 1 } }
  expect(await stage.engine.createJob({ ...again, idempotencyKey: 'order' })).toEqual({ ...first, isNew: false })
})

test('[C-08] a key that an earlier version stored is known by the mark that it made', async () => {
  const stage = new Stage([sized])
  const request = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  const { jobId } = await stage.engine.createJob(request)
  // As such a version wrote it.
  const value = { jobId, fingerprint: 'dsna269xrq5v13', createdAt: stage.clock.now() }
  await stage.storage.commit({ put: [{ kind: 'key', id: 'a/k', version: 1, value, expiresMs: 60_000 }] })
  expect(await stage.engine.createJob({ ...request, idempotencyKey: 'k' })).toEqual({ jobId, isNew: false })
  const other = stage.engine.createJob({ ...request, initialData: { size: 3 }, idempotencyKey: 'k' })
  await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' })
})

test('[C-08] a job that its caller named is made once, and no other request gets its id', async () => {
  const stage = new Stage([sized])
  const request = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  const jobId = idMadeAt(stage.clock.now())
  const both = await Promise.all([1, 2].map(() => stage.engine.createJob({ ...request, jobId })))
  expect(both.map((made) => made.jobId)).toEqual([jobId, jobId])
  expect(both.filter(({ isNew }) => isNew)).toHaveLength(1)
  const creating = stage.engine.createJob({ ...request, initialData: { size: 3 }, jobId })
  await expect(creating).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' })
  const offTime = stage.engine.createJob({ ...request, jobId: 'ffffffff-ffff-7000-8000-000000000001' })
  await expect(offTime).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  expect(await stage.engine.listJobs({ limit: 10 })).toHaveLength(1)
})

test('[C-08] [H-08] two clients that name the same id get a job each, and each finds its own again', async () => {
  const stage = new Stage([sized])
  const ofA = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  const ofB = { ...ofA, client: { id: 'b' } }
  const jobId = idMadeAt(stage.clock.now())
  await stage.engine.createJob({ ...ofA, jobId })
  const first = await stage.engine.createJob({ ...ofB, jobId })
  const quota = { period: '2026-01', limit: 0, renewsInMs: 1 }
  const again = await stage.engine.createJob({ ...ofB, jobId, quota })
  expect([first.isNew, again]).toEqual([true, { jobId: first.jobId, isNew: false }])
  expect(shownJobId(first.jobId)).toBe(jobId)
  const owners = (await stage.engine.listJobs({ limit: 10 })).map(({ id, value }) => [id === jobId, value.client.id])
  expect(owners).toEqual([
    [false, 'b'],
    [true, 'a'],
  ])
})

test('[H-01] a job is as old as the time in its id says, when that was a moment ago', async () => {
  const stage = new Stage([sized])
  const now = stage.clock.now()
  const request = { blueprint: 'sized', client: { id: 'a' }, initialData: { size: 2 } }
  const createdAt = async (idTime: number): Promise<number | undefined> => {
    const { jobId } = await stage.engine.createJob({ ...request, jobId: idMadeAt(idTime) })
    return (await stage.engine.readJob(jobId))?.value.createdAt
  }
  expect(await createdAt(now - 3)).toBe(now - 3)
  expect(await createdAt(now - 60_000)).toBe(now)
  expect(await createdAt(now + 5)).toBe(now)
})

function idMadeAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`
}

// ── Guarantees ───────────────────────────────────────────────────────────────

test('[C-09] what was told to the outside survives a crash at that moment, and the rest goes on from it', async () => {
  const clock = new VirtualClock()
  let disk = createVolatileJournal()
  const open = (): Stage =>
    new Stage([oneTask()], { clock, storage: () => new EmbeddedStorage({ now: clock.now, journal: disk }) })
  const crash = (): Stage => {
    disk = disk.reopened()
    return open()
  }
  const first = open()
  const jobId = await first.create('one')
  const second = crash()
  expect(await second.statusOf(jobId)).toBe('pending')
  const worker = await second.worker('a')
  await second.run()
  const { taskId } = await worker.takeOne()
  // The worker has the task: the orchestrator that comes back knows of it and gives it to nobody else.
  const third = crash()
  const other = await third.worker('b')
  const same = await third.worker('a')
  expect(await other.take()).toEqual([])
  expect(await same.report(taskId, { data: { by: 'a' } })).toMatchObject({ type: 'accepted' })
  // The result was acknowledged, so it counts, and counts once.
  const fourth = crash()
  const sender = await fourth.worker('a')
  expect(await sender.report(taskId, { data: { by: 'again' } })).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect(await fourth.job(jobId)).toMatchObject({ status: 'finished', result: { by: 'a' } })
})

test('[C-09] a result that is sent many times at once is applied once', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const receipts = await Promise.all(
    Array.from({ length: 10 }, (_unused, by) => worker.report(taskId, { data: { by } })),
  )
  expect(receipts.filter(({ type }) => type === 'accepted')).toHaveLength(1)
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'task_finished')).toHaveLength(1)
})

test('[C-09] two orchestrators on one storage take each turn once', async () => {
  let runs = 0
  const counting = blueprint('counting', { start: 'a' }, (state) => ({
    a: state.handler((_context, actions) => {
      runs += 1
      return actions.transitionTo('b')
    }),
    b: state.handler((_context, actions) => {
      runs += 1
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const first = new Stage([counting])
  const second = new Stage([counting], { clock: first.clock, storage: () => first.storage })
  await Promise.all([first.engine.start(), second.engine.start()])
  const ids = await Promise.all(Array.from({ length: 50 }, () => first.create('counting')))
  await settled()
  expect(new Set(await Promise.all(ids.map((id) => second.statusOf(id))))).toEqual(new Set(['finished']))
  expect(runs).toBe(100)
  await Promise.all([first.engine.stop(), second.engine.stop()])
})

test('[C-09] a turn whose orchestrator is gone is taken again after its lease', async () => {
  let runs = 0
  const hanging = blueprint('hanging', { start: 'a' }, (state) => ({
    a: state.handler(async (_context, actions) => {
      runs += 1
      if (runs === 1) await new Promise<never>(() => undefined)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const first = new Stage([hanging], { settings: { handlerMs: 60_000 } })
  const jobId = await first.create('hanging')
  void first.engine.tick()
  await settled()
  const second = new Stage([hanging], { clock: first.clock, storage: () => first.storage })
  await second.after(1_000)
  expect(runs).toBe(1)
  await first.clock.advance(75_000)
  await second.run()
  expect([runs, await second.statusOf(jobId)]).toEqual([2, 'finished'])
})

// ── Waiting for a job ────────────────────────────────────────────────────────

test('waiting for a job ends with the job', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.engine.start()
  const jobId = await stage.create('one')
  await settled()
  let isOver = false
  const waiting = stage.engine.waitForJob(jobId, { waitMs: 60_000, signal: NEVER }).then((stored) => {
    isOver = true
    return stored
  })
  await stage.clock.advance(5_000)
  expect(isOver).toBe(false)
  const before = stage.clock.now()
  await worker.report((await worker.takeOne()).taskId)
  expect((await waiting)?.value.status).toBe('finished')
  expect(stage.clock.now()).toBe(before)
  // A job that has ended already is no wait at all.
  expect((await stage.engine.waitForJob(jobId, { waitMs: 60_000, signal: NEVER }))?.value.status).toBe('finished')
  await stage.engine.stop()
  expect(stage.clock.sleeping).toBe(0)
})

test('waiting for a change ends with the next version', async () => {
  const stage = new Stage([asking])
  const jobId = await stage.begin('asking')
  const seen = (await stage.engine.readJob(jobId))?.version ?? 0
  const waiting = stage.engine.waitForJob(jobId, { afterVersion: seen, waitMs: 60_000, signal: NEVER })
  await settled()
  await stage.engine.decideApproval(jobId, 'yes', 'anna')
  expect((await waiting)?.version).toBe(seen + 1)
  const known = await stage.engine.waitForJob(jobId, { afterVersion: seen, waitMs: 60_000, signal: NEVER })
  expect(known?.version).toBe(seen + 1)
})

test('waiting ends when the time is up or the caller goes, with the job as it is', async () => {
  const stage = new Stage([asking])
  const jobId = await stage.begin('asking')
  const caller = new AbortController()
  const timed = stage.engine.waitForJob(jobId, { waitMs: 10_000, signal: NEVER })
  const left = stage.engine.waitForJob(jobId, { waitMs: 10_000, signal: caller.signal })
  await settled()
  caller.abort()
  expect((await left)?.value.status).toBe('waiting_for_human')
  await stage.clock.advance(10_000)
  expect((await timed)?.value.status).toBe('waiting_for_human')
  expect(stage.clock.sleeping).toBe(0)
})

test('waiting for a job that is not there ends at once', async () => {
  const stage = new Stage([asking])
  expect(await stage.engine.waitForJob('nothing', { waitMs: 10_000, signal: NEVER })).toBeUndefined()
})

test('waiting notices within a second what another instance wrote', async () => {
  const first = new Stage([asking])
  const second = new Stage([asking], { clock: first.clock, storage: () => first.storage })
  const jobId = await first.begin('asking')
  let isOver = false
  void first.engine.waitForJob(jobId, { waitMs: 60_000, signal: NEVER }).then(() => {
    isOver = true
  })
  await settled()
  await second.engine.decideApproval(jobId, 'yes', 'anna')
  await first.clock.advance(1_000)
  expect(isOver).toBe(true)
})

// ── Start and stop ───────────────────────────────────────────────────────────

test('[I-07] starts and stops follow one another as they were called, however slow the storage is', async () => {
  const storage = ({ now }: VirtualClock): Storage => guarded(testStorage({ now }), () => settled())
  const stage = new Stage([oneTask()], { storage })
  const { engine, clock } = stage
  await Promise.all([engine.stop(), engine.start(), engine.start(), engine.stop(), engine.stop()])
  await settled()
  expect(clock.sleeping).toBe(0)
  await Promise.all([engine.start(), engine.stop(), engine.start()])
  for (let turns = 0; turns < 9; turns += 1) await settled()
  // Dispatcher, executor, postman, watcher, log of jobs, reputation and leadership; the two processes that are led.
  expect(clock.sleeping).toBe(9)
  await engine.stop()
  expect(clock.sleeping).toBe(0)
})

test('[I-07] a start that fails can be tried again', async () => {
  let isBroken = true
  const storage = ({ now }: VirtualClock): Storage =>
    guarded(testStorage({ now }), (verb) => {
      if (isBroken && verb === 'list') throw new Error('The disk is gone.')
    })
  const stage = new Stage([oneTask()], { storage })
  await expect(stage.engine.start()).rejects.toThrow('The disk is gone.')
  isBroken = false
  await stage.engine.start()
  const worker = await stage.worker('a')
  await stage.create('one')
  await settled()
  expect(await worker.take()).toHaveLength(1)
  await stage.engine.stop()
})

test('[I-07] stop ends the parked polls, waits for the handlers that run, and still takes results', async () => {
  let go: () => void = () => undefined
  const slow = blueprint('slow', { start: 'a' }, (state) => ({
    a: state.handler(async (_context, actions) => {
      await new Promise<void>((resolve) => {
        go = resolve
      })
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([slow, oneTask()])
  const worker = await stage.worker('a')
  const other = await stage.worker('b', { skills: ['other'] })
  await stage.engine.start()
  const running = await stage.create('slow')
  await stage.create('one')
  await settled()
  const { taskId } = await worker.takeOne()
  const parked = other.poll(1, 30_000)
  await settled()
  let isStopped = false
  const stopping = stage.engine.stop().then(() => {
    isStopped = true
  })
  expect((await parked).deliveries).toEqual([])
  await settled()
  expect(isStopped).toBe(false)
  go()
  await stopping
  expect(await stage.statusOf(running)).toBe('finished')
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  expect(stage.clock.sleeping).toBe(0)
})

test('[C-07] whoever waits for the end of a job hears at once that it stands aside', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const waiting = stage.engine.waitForJob(jobId, { waitMs: 60_000, signal: NEVER })
  await settled()
  await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
  expect((await waiting)?.value.status).toBe('quarantined')
  expect((await stage.engine.waitForJob(jobId, { waitMs: 60_000, signal: NEVER }))?.value.status).toBe('quarantined')
})
