import { blueprint, requirementLane } from '@impresario/core'
import type { WorkerPatch } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { companyOf } from '../company.fixture.ts'
import { Stage, fanOut, guarded, oneTask, settled } from '../stage.fixture.ts'

/** How many tasks count for each worker. */
function loads(stage: Stage, ids: readonly string[]): readonly number[] {
  return ids.map((id) => stage.engine.dispatcher.loadOf(id))
}

test("[D-04] a task goes to the chosen worker's own queue, and to nobody else at first", async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })])
  const dear = await stage.worker('a', { costPerSecond: 9 })
  const cheap = await stage.worker('b', { costPerSecond: 1 })
  const jobId = await stage.begin('one')
  expect(loads(stage, ['a', 'b'])).toEqual([0, 1])
  expect(await dear.take()).toEqual([])
  await stage.after(4_999)
  expect(await dear.take()).toEqual([])
  expect((await cheap.takeOne()).jobId).toBe(jobId)
})

test('[D-04] [J-22] a task that its worker does not pick up goes to another that fits, never to one that does not', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest', resourceRequirements: { ramGb: 8 } })])
  const chosen = await stage.worker('a', { ramGb: 16, costPerSecond: 1 })
  const unskilled = await stage.worker('b', { ramGb: 16, skills: ['other'] })
  const small = await stage.worker('c', { ramGb: 4 })
  const leaving = await stage.worker('d', { ramGb: 64, status: 'draining' })
  const fitting = await stage.worker('e', { ramGb: 8, costPerSecond: 5 })
  const jobId = await stage.begin('one')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(1)
  await stage.after(5_000)
  for (const worker of [unskilled, small, leaving]) expect(await worker.take()).toEqual([])
  const delivery = await fitting.takeOne()
  expect(delivery.jobId).toBe(jobId)
  expect(loads(stage, ['a', 'e'])).toEqual([0, 1])
  expect(await chosen.take()).toEqual([])
  expect(await fitting.report(delivery.taskId)).toMatchObject({ type: 'accepted' })
})

test('[D-04] whoever is parked gets what the chosen worker left lying, though a better one is not there', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })])
  // The cheapest two are registered, have room, and do not come for it.
  await stage.worker('a', { costPerSecond: 1, concurrencyMax: 4 })
  await stage.worker('b', { costPerSecond: 2, concurrencyMax: 4 })
  const third = await stage.worker('c', { costPerSecond: 3 })
  await stage.engine.start()
  const parked = third.poll(1, 30_000)
  await settled()
  const jobId = await stage.create('one')
  await stage.clock.advance(4_000)
  expect(stage.engine.desk.parked).toBe(1)
  await stage.clock.advance(2_000)
  expect(stage.engine.desk.parked).toBe(0)
  expect((await parked).deliveries.map((one) => one.jobId)).toEqual([jobId])
  await stage.engine.stop()
})

test('[D-04] tasks that nobody can take wait in the order of their priority until somebody fits', async () => {
  const stage = new Stage([
    oneTask({ priority: 1, resourceRequirements: { gpu: { vramGb: 8 } } }, {}, 'low'),
    oneTask({ priority: 9, resourceRequirements: { gpu: { vramGb: 8 } } }, {}, 'high'),
    oneTask({ priority: 5, resourceRequirements: { gpu: { vramGb: 8 }, cpuCores: 2 } }, {}, 'mid'),
  ])
  const weak = await stage.worker('weak', { concurrencyMax: 9 })
  for (const name of ['low', 'high', 'mid', 'low']) await stage.begin(name)
  expect(await weak.take(9)).toEqual([])
  await stage.after(100_000)
  const strong = await stage.worker('strong', {
    gpus: [{ model: 'any', vramGb: 24 }],
    cpuCores: 8,
    concurrencyMax: 9,
  })
  const order: string[] = []
  for (let taken = 0; taken < 4; taken += 1) {
    const { jobId } = await strong.takeOne()
    order.push((await stage.job(jobId)).blueprint)
  }
  expect(order).toEqual(['high', 'mid', 'low', 'low'])
})

test('[D-04] a heartbeat that changes what a worker can do lets it take what waited', async () => {
  const stage = new Stage([oneTask({ resourceRequirements: { models: ['m'] } })])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  expect(await worker.take()).toEqual([])
  await worker.heartbeat([], { models: ['m'] })
  expect((await worker.takeOne()).jobId).toBe(jobId)
})

test('[D-01] a worker is not given more than it can do at a time; the rest waits', async () => {
  const stage = new Stage([fanOut()])
  const worker = await stage.worker('a', { concurrencyMax: 3 })
  const other = await stage.worker('b', { concurrencyMax: 2 })
  await stage.begin('many', { initialData: { count: 8 } })
  expect(loads(stage, ['a', 'b'])).toEqual([3, 2])
  const lanes = await stage.storage.lanes('tasks')
  expect(Object.fromEntries(lanes.map(({ lane, ready }) => [lane, ready]))).toEqual({
    'worker:a': 3,
    'worker:b': 2,
    'any:{"type":"work"}': 3,
  })
  const mine = await worker.take(3)
  expect(mine).toHaveLength(3)
  await worker.report(mine[0]?.taskId ?? '')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(2)
  // Both go on until all is done.
  for (const { taskId } of mine.slice(1)) await worker.report(taskId)
  for (const { taskId } of await worker.take(3)) await worker.report(taskId)
  for (const { taskId } of await other.take(2)) await other.report(taskId)
  expect(loads(stage, ['a', 'b'])).toEqual([0, 0])
})

test('[D-01] a worker that calls itself full is given nothing, and gets what waits once it asks', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a', { status: 'full' })
  await stage.begin('one')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
  // It asks by itself, so it has room by now.
  expect(await worker.take()).toHaveLength(1)
})

test('[D-01] [D-03] a warm worker that does not fit does not keep the task from a cold one that does', async () => {
  const stage = new Stage([oneTask({ resourceRequirements: { gpu: { vramGb: 24 } } })])
  const warm = await stage.worker('warm', { hotSkills: ['work'], gpus: [{ model: 'x', vramGb: 8 }] })
  const cold = await stage.worker('cold', { gpus: [{ model: 'x', vramGb: 24 }] })
  const jobId = await stage.begin('one')
  expect(await warm.take()).toEqual([])
  expect((await cold.takeOne()).jobId).toBe(jobId)
})

test('[D-01] a choice that could not be written leaves no place taken', async () => {
  const unknown = blueprint('unknown', { start: 'a', handlerAttemptsMax: 2 }, (state) => ({
    a: state.handler((_context, actions) =>
      actions.dispatchParallel([{ type: 'work' }, { type: 'work', strategy: 'by_moonlight' }], { into: 'b' }),
    ),
    b: state.aggregator((_context, actions) => actions.transitionTo('done')),
    done: state.end(),
  }))
  const stage = new Stage([unknown])
  await stage.worker('a')
  const jobId = await stage.begin('unknown')
  await stage.after(2_000)
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['quarantined', 'HANDLER_FAILED'])
  expect(job.error?.message).toContain("There is no dispatch strategy 'by_moonlight'. Known are: default")
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
})

test('[D-04] a waiting task with a strategy that this program does not know is offered all the same', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.engine.start()
  const parked = worker.poll(1, 30_000)
  await settled()
  // As another version of the program on the same storage would leave it.
  const lane = requirementLane({ type: 'work', strategy: 'by_moonlight' })
  const payload = { jobId: 'j', visit: 1, branch: '0', attempt: 1, type: 'work' }
  await stage.storage.commit({ enqueue: [{ queue: 'tasks', id: 'j.1.0', lane, priority: 0, delayMs: 0, payload }] })
  await settled()
  // Its job is unknown here, so it is only cleared away: what matters is that the worker was woken for it.
  expect([await stage.storage.peek('tasks', ['j.1.0']), stage.log.errors]).toEqual([[undefined], []])
  const jobId = await stage.create('one')
  await settled()
  expect(stage.engine.desk.parked).toBe(0)
  expect((await parked).deliveries.map((one) => one.jobId)).toEqual([jobId])
  await stage.engine.stop()
})

test('[D-01] [J-22] a commit that the storage refuses to make leaves no place taken, and its turn is not lost', async () => {
  let isBroken = false
  const stage = new Stage([oneTask()], {
    storage: (clock) =>
      guarded(testStorage({ now: clock.now }), (verb) => {
        if (isBroken && verb === 'commit') throw new Error('The disk is gone.')
      }),
  })
  const worker = await stage.worker('a')
  const jobId = await stage.create('one')
  isBroken = true
  await stage.engine.executor.tick()
  expect([stage.engine.dispatcher.loadOf('a'), stage.log.errors]).toEqual([0, ['a turn could not be committed']])
  isBroken = false
  // The turn was not lost: it is taken again when its lease ends.
  await stage.after(75_000)
  expect((await worker.takeOne()).jobId).toBe(jobId)
})

test("[D-02] requirements that are too long to wait under are the handler's failure, said clearly", async () => {
  const models = Array.from({ length: 60 }, (_unused, index) => `some-model-with-a-name-${index}`)
  const stage = new Stage([oneTask({ resourceRequirements: { models } }, { handlerAttemptsMax: 1 })])
  const jobId = await stage.begin('one')
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code]).toEqual(['quarantined', 'HANDLER_FAILED'])
  expect(job.error?.message).toContain("The requirements of the task 'work' are too long")
})

const CROWD: Readonly<Record<string, WorkerPatch>> = {
  warm: { hotSkills: ['work'], costPerSecond: 8, reputation: 0.5 },
  cheap: { costPerSecond: 1, reputation: 0.1 },
  value: { costPerSecond: 2, reputation: 1 },
  unpriced: { reputation: 1 },
}

test.each([
  ['default', ['warm', 'cheap', 'value', 'unpriced']],
  ['cheapest', ['cheap', 'value', 'warm', 'unpriced']],
  ['best_value', ['value', 'cheap', 'warm', 'unpriced']],
  ['round_robin', ['cheap', 'unpriced', 'value', 'warm']],
  ['least_connections', ['warm', 'cheap', 'value', 'unpriced']],
])('[D-03] %s chooses the workers one after the other, end to end', async (strategy, order) => {
  const stage = new Stage([oneTask({ strategy })])
  const workers = await Promise.all(Object.entries(CROWD).map(([id, said]) => stage.worker(id, said)))
  const given: string[] = []
  for (let jobs = 0; jobs < 4; jobs += 1) {
    const jobId = await stage.begin('one')
    for (const worker of workers) {
      const { deliveries } = await worker.poll()
      if (deliveries.some((one) => one.jobId === jobId)) given.push(worker.id)
    }
  }
  expect(given).toEqual(order)
})

test('[D-03] round_robin goes round, least_connections evens out', async () => {
  const stage = new Stage([
    oneTask({ strategy: 'round_robin' }, {}, 'round'),
    oneTask({ strategy: 'least_connections' }, {}, 'least'),
  ])
  for (const id of ['a', 'b', 'c']) await stage.worker(id, { concurrencyMax: 9 })
  for (let jobs = 0; jobs < 6; jobs += 1) await stage.begin('round')
  expect(loads(stage, ['a', 'b', 'c'])).toEqual([2, 2, 2])
  await stage.worker('d', { concurrencyMax: 9 })
  for (let jobs = 0; jobs < 2; jobs += 1) await stage.begin('least')
  expect(loads(stage, ['a', 'b', 'c', 'd'])).toEqual([2, 2, 2, 2])
})

test('[D-05] every task has an answer to why it is where it is', async () => {
  const stage = new Stage([oneTask({ resourceRequirements: { ramGb: 8 } })])
  await stage.worker('small', { ramGb: 4 })
  await stage.worker('other', { ramGb: 64, skills: ['else'] })
  const jobId = await stage.begin('one')
  const why = async () => (await stage.engine.explainJob(await stage.job(jobId)))[0]

  const waiting = await why()
  expect(waiting).toMatchObject({ type: 'work', where: 'waiting', worker: undefined })
  expect(waiting?.explanation).toMatchObject({ chosen: null, live: 2, skilled: 1, candidates: 0 })
  expect(waiting?.explanation?.workers[0]).toMatchObject({
    workerId: 'small',
    verdict: 'filtered',
    mismatches: [{ reason: 'ram_gb', needed: 8, has: 4 }],
  })
  expect(waiting?.explanation?.summary).not.toBe('')

  const worker = await stage.worker('big', { ramGb: 16, concurrencyMax: 2 })
  expect((await why())?.explanation).toMatchObject({ chosen: 'big', candidates: 1 })
  const { taskId } = await worker.takeOne()
  expect(await why()).toMatchObject({ where: 'running', worker: 'big', taskId: `${jobId}.1.0` })

  await worker.fail(taskId)
  expect(await why()).toMatchObject({
    where: 'delayed',
    worker: undefined,
    attempt: 2,
    lastError: { code: 'TRANSIENT_ERROR' },
  })

  // A worker that has just been here would have it at once.
  await stage.clock.advance(200)
  const second = await stage.begin('one')
  const [assigned] = await stage.engine.explainJob(await stage.job(second))
  expect(assigned).toMatchObject({ where: 'assigned', worker: 'big' })
})

test('[D-05] in a fan-out each branch is explained, those that have ended too', async () => {
  const stage = new Stage([fanOut()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('many', { initialData: { count: 3 } })
  await worker.report((await worker.takeOne()).taskId)
  await worker.takeOne()
  const found = await stage.engine.explainJob(await stage.job(jobId))
  expect(found.map(({ where }) => where).sort()).toEqual(['ended', 'running', 'waiting'])
  expect(found.find(({ where }) => where === 'ended')?.explanation).toBeUndefined()
  const waiting = found.find(({ where }) => where === 'waiting')?.explanation
  expect(waiting?.workers[0]).toMatchObject({ workerId: 'a', mismatches: [{ reason: 'slots' }] })
  // A job without tasks has nothing to explain.
  await stage.engine.cancelJob(jobId, 'test')
  expect(await stage.engine.explainJob(await stage.job(jobId))).toEqual([])
})

test('[D-01] after a restart the engine knows its live workers again, and only those', async () => {
  const stage = new Stage([oneTask()])
  const gone = await stage.worker('gone')
  await stage.after(100_000)
  await stage.worker('here')
  await stage.after(30_000)
  await stage.restart()
  await stage.engine.start()
  expect(stage.engine.dispatcher.workers().map(({ id }) => id)).toEqual(['here'])
  await gone.heartbeat()
  expect(stage.engine.dispatcher.workers()).toHaveLength(2)
  await stage.engine.stop()
})

test('[D-01] an instance learns of workers that registered with another one on the same storage', async () => {
  const first = new Stage([oneTask()], { settings: { isShared: true } })
  const second = new Stage([oneTask()], {
    clock: first.clock,
    storage: () => first.storage,
    settings: { isShared: true },
  })
  await first.worker('a')
  expect(second.engine.dispatcher.workers()).toEqual([])
  await second.run()
  expect(second.engine.dispatcher.workers().map(({ id }) => id)).toEqual(['a'])
  await first.worker('b')
  await second.after(1_000)
  expect(second.engine.dispatcher.workers()).toHaveLength(1)
  await second.after(1_000)
  expect(second.engine.dispatcher.workers()).toHaveLength(2)
})

test('[D-01] [I-01] instances in company know at once who is new, and who takes no more tasks', async () => {
  const [first, second] = await companyOf(2)
  const worker = await first!.worker('a')
  await settled()
  expect(second!.engine.dispatcher.worker('a')?.status).toBe('idle')
  await worker.heartbeat([], { status: 'draining' })
  await settled()
  expect(second!.engine.dispatcher.worker('a')?.status).toBe('draining')
})

test('[I-07] a stop that overtakes a start which is still reading workers counts', async () => {
  const stage = new Stage([oneTask()], {
    storage: ({ now }) => guarded(testStorage({ now }), () => settled()),
  })
  const { dispatcher } = stage.engine
  const starting = dispatcher.start()
  await dispatcher.stop()
  await starting
  for (let turns = 0; turns < 4; turns += 1) await settled()
  expect(stage.clock.sleeping).toBe(0)
})

test('[C-02] a worker that waits gets the next try as soon as it is due, and not with the next round', async () => {
  const stage = new Stage([oneTask({}, { backoffMs: 100 })])
  const worker = await stage.worker('a')
  await stage.engine.start()
  const jobId = await stage.create('one')
  await settled()
  await worker.fail((await worker.takeOne()).taskId)
  const parked = worker.poll(1, 30_000)
  await settled()
  expect(stage.engine.desk.parked).toBe(1)
  await stage.clock.advance(200)
  await settled()
  expect(stage.engine.desk.parked).toBe(0)
  expect((await parked).deliveries.map((one) => one.jobId)).toEqual([jobId])
  await stage.engine.stop()
})
