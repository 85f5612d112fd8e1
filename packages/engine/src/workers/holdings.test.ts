import { describe, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Holdings } from './holdings.ts'
import { fanOut, NEVER, oneTask, settled, Stage, StageWorker, VirtualClock } from '../stage.fixture.ts'

async function started(...options: ConstructorParameters<typeof Stage>): Promise<Stage> {
  const stage = new Stage(...options)
  await stage.engine.start()
  return stage
}

describe('capacity', () => {
  test('[E-01] a worker never gets more than it has room for, whatever it asks for', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 3 })
    for (let count = 0; count < 10; count += 1) await stage.create('one')
    await settled()
    const first = await worker.take(100)
    expect(first).toHaveLength(3)
    expect(await worker.take(100)).toEqual([])
    await worker.report(first[0]!.taskId)
    expect(await worker.take(100)).toHaveLength(1)
    await stage.engine.stop()
  })

  test('[E-01] polls at the same time share the room that there is', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 4 })
    for (let count = 0; count < 20; count += 1) await stage.create('one')
    await settled()
    const polls = (await Promise.all(Array.from({ length: 10 }, () => worker.take(3)))).flat()
    // A shared storage may give what it has in parts, and a poll that does not wait takes the first.
    expect(polls.length).toBeLessThanOrEqual(4)
    while (polls.length < 4) polls.push(...(await worker.take(4)))
    expect(polls).toHaveLength(4)
    expect(await worker.take(4)).toEqual([])
    await stage.engine.stop()
  })

  describe('of a worker that did not say how many tasks it takes', () => {
    const OPEN = { isOpenEnded: true, status: 'idle' } as const

    test('[E-01] it gets what it asks for, as long as it asks', async () => {
      const stage = await started([oneTask()])
      const worker = await stage.worker('a', OPEN)
      for (let count = 0; count < 5; count += 1) await stage.create('one')
      await settled()
      const taken = [...(await worker.take()), ...(await worker.take()), ...(await worker.take(2))]
      expect(taken).toHaveLength(4)
      // A poll that waits gets the next one in the moment when it comes, heartbeats in between or not.
      await worker.take()
      const parked = worker.poll(1, 60_000)
      await worker.heartbeat(undefined, { status: 'idle' })
      const jobId = await stage.create('one')
      expect((await parked).deliveries).toMatchObject([{ jobId }])
      await stage.engine.stop()
    })

    test.each(['full', 'busy'] as const)(
      '[E-01] [D-02] nothing lies before it while it says that it is %s',
      async (status) => {
        const stage = await started([oneTask()], { settings: { pickupMs: 600_000 } })
        const worker = await stage.worker('a', OPEN)
        await worker.take()
        await worker.heartbeat([], { status })
        const jobId = await stage.create('one')
        await settled()
        expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
        const other = await stage.worker('b')
        expect(await other.takeOne()).toMatchObject({ jobId })
        await stage.engine.stop()
      },
    )

    test('[D-02] no more is put before it than it has asked for', async () => {
      const stage = await started([oneTask()], { settings: { pickupMs: 600_000 } })
      const worker = await stage.worker('a', OPEN)
      for (let count = 0; count < 5; count += 1) await stage.create('one')
      await settled()
      expect(stage.engine.dispatcher.loadOf('a')).toBe(1)
      await worker.take()
      const other = await stage.worker('b', { concurrencyMax: 10 })
      expect(await other.take(10)).toHaveLength(4)
      await stage.engine.stop()
    })
  })

  test('[E-02] a poll that waits because its worker is full goes on when a task has ended', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 1 })
    await stage.create('one')
    await stage.create('one')
    await settled()
    const { taskId } = await worker.takeOne()
    const parked = worker.poll(1, 60_000)
    await settled()
    await worker.report(taskId)
    expect((await parked).deliveries).toHaveLength(1)
    await stage.engine.stop()
  })

  test('[E-03] what a worker lost without saying so no longer fills its hands', async () => {
    const stage = await started([oneTask()], { settings: { workerLeaseMs: 1_000 } })
    const worker = await stage.worker('a', { concurrencyMax: 1 })
    await stage.create('one')
    await settled()
    const lost = await worker.takeOne()
    await stage.clock.advance(1_500)
    const again = await worker.takeOne()
    expect(again).toMatchObject({ jobId: lost.jobId, delivery: 2 })
    await stage.engine.stop()
  })

  test.each(['draining', 'offline'] as const)(
    '[E-03] a worker that is %s gets nothing, and its tasks go to others',
    async (status) => {
      const stage = await started([oneTask()], { settings: { pickupMs: 1_000 } })
      const leaving = await stage.worker('a')
      await stage.create('one')
      await settled()
      await leaving.heartbeat([], { status })
      expect(await leaving.take()).toEqual([])
      const staying = await stage.worker('b')
      await stage.clock.advance(1_500)
      expect(await staying.take()).toHaveLength(1)
      await stage.engine.stop()
    },
  )

  test('[D-01] what a poll says of the worker’s skills counts at once', async () => {
    const stage = await started([oneTask()])
    const { desk } = stage.engine
    await stage.worker('a')
    const ask = (availableSkills: readonly string[]): Promise<number> =>
      desk
        .poll('a', { limit: 1, waitMs: 0, signal: NEVER, availableSkills, hotSkills: ['work'] })
        .then(({ deliveries }) => deliveries.length)
    await ask([])
    await stage.create('one')
    await settled()
    expect(stage.engine.dispatcher.worker('a')).toMatchObject({ availableSkills: [], hotSkills: ['work'] })
    expect(await ask([])).toBe(0)
    expect(await ask(['work'])).toBe(1)
    await stage.engine.stop()
  })
})

describe('what is taken back', () => {
  test('[C-05] whoever holds a task of a cancelled job is told at once, and once more by its heartbeat', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 2 })
    const told: unknown[] = []
    const unlisten = stage.engine.desk.onRecall((recall) => told.push(recall))
    const jobId = await stage.create('one')
    await settled()
    const { taskId } = await worker.takeOne()
    await stage.engine.cancelJob(jobId, 'test')
    await settled()
    expect(told).toEqual([{ workerId: 'a', taskId, jobId }])
    expect(await worker.heartbeat()).toEqual([taskId])
    expect(await worker.heartbeat()).toEqual([])
    expect(await worker.heartbeat([taskId])).toEqual([taskId])
    unlisten()
    await stage.engine.stop()
  })

  test('[C-05] a poll that can carry it is woken; one that cannot goes on waiting', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 5 })
    const jobs = [await stage.create('one'), await stage.create('one')]
    await settled()
    const taken = await worker.take(2)
    const { desk } = stage.engine
    const plain = desk.poll('a', { limit: 1, waitMs: 60_000, signal: NEVER })
    await settled()
    await stage.engine.cancelJob(jobs[0]!, 'test')
    await settled()
    expect(desk.parked).toBe(1)
    const batched = desk.poll('a', { limit: 5, waitMs: 60_000, signal: NEVER, wantsCancelled: true })
    // What the first cancellation left is told with the next poll, at once.
    expect(await batched).toMatchObject({ deliveries: [], cancelled: [taskOf(taken, jobs[0]!)] })
    const next = desk.poll('a', { limit: 5, waitMs: 60_000, signal: NEVER, wantsCancelled: true })
    await settled()
    await stage.engine.cancelJob(jobs[1]!, 'test')
    expect(await next).toMatchObject({ cancelled: [taskOf(taken, jobs[1]!)] })
    await stage.create('one')
    expect((await plain).deliveries).toHaveLength(1)
    await stage.engine.stop()
  })

  test('[C-05] the branches that a failure made needless are taken back', async () => {
    const stage = await started([fanOut('fail_fast')])
    const worker = await stage.worker('a', { concurrencyMax: 5 })
    const told: string[] = []
    stage.engine.desk.onRecall(({ taskId }) => told.push(taskId))
    await stage.create('many', { initialData: { count: 3 } })
    await settled()
    const [first, ...others] = await worker.take(3)
    await worker.report(first!.taskId, { status: 'failure', code: 'PERMANENT_ERROR' })
    await settled()
    expect(told.toSorted()).toEqual(others.map(({ taskId }) => taskId).toSorted())
    await stage.engine.stop()
  })

  test('[C-05] a task that ended by its result is not taken back', async () => {
    const stage = await started([oneTask()])
    const worker = await stage.worker('a')
    let told = 0
    stage.engine.desk.onRecall(() => {
      told += 1
    })
    await stage.create('one')
    await settled()
    await worker.report((await worker.takeOne()).taskId)
    await settled()
    expect(told).toBe(0)
    expect(await worker.heartbeat()).toEqual([])
    await stage.engine.stop()
  })

  test('[C-05] a worker that never asks does not fill the memory', () => {
    const holdings = new Holdings()
    for (let count = 0; count < 1_500; count += 1) {
      const lease = { queue: 'tasks', id: `t${count}`, token: count } as const
      holdings.add('a', { deliveryId: `d${count}`, jobId: 'j', lease, takenAt: 0 })
      holdings.recall('a', lease.id)
    }
    const told = holdings.tellRecalls('a')
    expect(told).toHaveLength(1_000)
    expect(told.at(-1)).toBe('d1499')
  })
})

function taskOf(taken: readonly { readonly jobId: string; readonly taskId: string }[], jobId: string): string {
  return taken.find((delivery) => delivery.jobId === jobId)?.taskId ?? ''
}

describe('after a restart', () => {
  test('[E-03] a worker that never names its tasks keeps them by its heartbeats', async () => {
    const clock = new VirtualClock()
    const storage = testStorage({ now: clock.now })
    const blueprints = [oneTask(), fanOut()]
    const settings = { workerLeaseMs: 10_000 }
    const first = await started(blueprints, { clock, storage: () => storage, settings })
    const worker = await first.worker('a', { concurrencyMax: 3 })
    await first.create('one')
    await first.create('many', { initialData: { count: 2 } })
    await settled()
    const taken = await worker.take(3)
    expect(taken).toHaveLength(3)
    await first.engine.stop()

    const second = await started(blueprints, { clock, storage: () => storage, settings })
    const same = new StageWorker(second, 'a')
    const other = await second.worker('b', { concurrencyMax: 10 })
    expect(second.engine.dispatcher.loadOf('a')).toBe(3)
    for (let beats = 0; beats < 5; beats += 1) {
      await clock.advance(6_000)
      await second.engine.desk.heartbeat('a', { status: 'busy' }, undefined, 3)
      expect(await other.take(10)).toEqual([])
    }
    // Nor does it get more than it has room for.
    await second.create('one')
    await settled()
    expect(await same.take(10)).toEqual([])
    for (const { taskId } of taken) expect(await same.report(taskId)).toMatchObject({ type: 'accepted' })
    await second.engine.stop()
  })

  test('[E-03] [J-1] a worker that says it has nothing did not get what was sent to it before', async () => {
    const stage = await started([oneTask()], { settings: { workerLeaseMs: 10_000 } })
    const worker = await stage.worker('a', { concurrencyMax: 1 })
    await stage.create('one')
    await settled()
    const lost = await worker.takeOne()
    const beat = (): Promise<unknown> => stage.engine.desk.heartbeat('a', { status: 'idle' }, undefined, 0)
    // What was given since the last beat may be on its way; what was given before it is not.
    await stage.clock.advance(1_000)
    await beat()
    for (let beats = 0; beats < 3; beats += 1) {
      await stage.clock.advance(4_000)
      await beat()
    }
    expect(await worker.takeOne()).toMatchObject({ jobId: lost.jobId, delivery: 2 })
    await stage.engine.stop()
  })
})
