import type { Storage } from '@impresario/core'
import { describe, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { companyOf } from '../company.fixture.ts'
import { NEVER, Stage, StageWorker, fanOut, guarded, oneTask, settled } from '../stage.fixture.ts'
import type { VirtualClock } from '../stage.fixture.ts'

/** A stage whose storage calls `hook` before and after each of its verbs. */
function hookedStage() {
  const hooks: { call: (verb: keyof Storage) => Promise<void> | void } = { call: () => undefined }
  const storage = (clock: VirtualClock): Storage =>
    guarded(
      testStorage({ now: clock.now }),
      (verb) => hooks.call(verb),
      (verb) => hooks.call(verb),
    )
  return { stage: new Stage([oneTask({}, { taskAttemptsMax: 9 })], { storage }), hooks }
}

/** Runs `outer`, and `inner` at its `point`th call of the storage. Gives both answers, or nothing when there is no such point. */
async function cross<O, I>(
  hooks: { call: (verb: keyof Storage) => Promise<void> | void },
  point: number,
  outer: () => Promise<O>,
  inner: () => Promise<I>,
): Promise<{ readonly outer: O; readonly inner: I } | undefined> {
  let calls = 0
  let met: Promise<I> | undefined
  hooks.call = async () => {
    calls += 1
    if (calls !== point + 1 || met !== undefined) return
    met = inner()
    await met
  }
  const answer = await outer()
  hooks.call = () => undefined
  return met === undefined ? undefined : { outer: answer, inner: await met }
}

describe.each(['success', 'failure'] as const)(
  'a heartbeat that crosses the result of a task that it names: %s',
  (ending) => {
    const report = (worker: StageWorker, taskId: string) =>
      ending === 'success' ? worker.report(taskId) : worker.fail(taskId)

    test.each(['heartbeat', 'result'] as const)(
      '[E-03] never tells the worker to stop it, met in the middle of the %s',
      async (first) => {
        let points = 0
        for (;;) {
          const point = points
          points += 1
          const { stage, hooks } = hookedStage()
          const worker = await stage.worker('a', { concurrencyMax: 1 })
          await stage.begin('one')
          await stage.begin('one')
          const { taskId } = await worker.takeOne()
          const recalls: unknown[] = []
          stage.engine.desk.onRecall((recall) => recalls.push(recall))
          const beat = (): Promise<readonly string[]> => worker.heartbeat([taskId])
          const end = () => report(worker, taskId)
          const met =
            first === 'heartbeat' ? await cross(hooks, point, beat, end) : await cross(hooks, point, end, beat)
          if (met === undefined) break
          const told = first === 'heartbeat' ? met.outer : met.inner
          const receipt = first === 'heartbeat' ? met.inner : met.outer
          expect([point, told, receipt]).toMatchObject([point, [], { type: 'accepted' }])
          await settled()
          expect([point, recalls, await worker.heartbeat([taskId])]).toEqual([point, [], []])
          // Nor does it stay in its hands: there is room for the next one.
          expect([point, await worker.take()]).toMatchObject([point, [{ call: { type: 'work' } }]])
        }
        expect(points).toBeGreaterThan(3)
      },
    )

    test('[E-03] never tells it after a restart', async () => {
      const { stage } = hookedStage()
      const worker = await stage.worker('a')
      await stage.begin('one')
      const { taskId } = await worker.takeOne()
      await report(worker, taskId)
      await stage.restart()
      await stage.run()
      expect(await worker.heartbeat([taskId])).toEqual([])
      if (ending === 'success') return
      // Nor when the next try is in other hands.
      await stage.after(2_000)
      const other = await stage.worker('b')
      expect(await other.takeOne()).toMatchObject({ attempt: 2 })
      expect(await worker.heartbeat([taskId])).toEqual([])
    })

    test('[E-03] [I-01] never tells it at another instance', async () => {
      const [one, two] = await companyOf(2)
      const there = new StageWorker(two!, 'a')
      const here = await one!.worker('a')
      await settled()
      await one!.create('one')
      await settled()
      const { taskId } = await here.takeOne()
      expect(await there.heartbeat([taskId])).toEqual([])
      // Nobody hears the signals before the heartbeat: it has to be found in the storage.
      expect(await report(here, taskId)).toMatchObject({ type: 'accepted' })
      expect(await there.heartbeat([taskId])).toEqual([])
      await settled()
      expect([await there.heartbeat([taskId]), await here.heartbeat([taskId])]).toEqual([[], []])
    })
  },
)

describe('a heartbeat that names tasks whose results are here', () => {
  // Seed 268 of the simulator.
  test('[E-03] [I-01] never tells it when a later try is taken back, wherever that happens', async () => {
    for (const canceller of [0, 1]) {
      const company = await companyOf(2)
      const [one, two] = company
      const here = await one!.worker('a')
      await two!.worker('a')
      await settled()
      const jobId = await one!.create('one')
      await settled()
      const { taskId } = await here.takeOne()
      const told: unknown[] = []
      for (const { engine } of company) engine.desk.onRecall((recall) => told.push(recall))
      expect(await new StageWorker(two!, 'a').fail(taskId)).toMatchObject({ type: 'accepted' })
      await settled()
      await company[canceller]!.engine.cancelJob(jobId, 'test')
      await settled()
      expect([canceller, told, await here.heartbeat([taskId])]).toEqual([canceller, [], []])
    }
  })

  test('[E-03] [B-04] never tells it for the branches of a fan-out, while it lasts and after it', async () => {
    const stage = new Stage([fanOut()])
    const worker = await stage.worker('a', { concurrencyMax: 100 })
    await stage.begin('many', { initialData: { count: 80 } })
    const ids = (await worker.take(100)).map(({ taskId }) => taskId)
    for (const [index, id] of ids.entries()) {
      await worker.report(id)
      if (index % 40 !== 39) continue
      expect(await worker.heartbeat(ids)).toEqual([])
      await stage.restart()
      await stage.run()
      expect(await worker.heartbeat(ids)).toEqual([])
    }
  })

  test('[E-03] a result that the storage refused leaves the task in the worker’s hands', async () => {
    const { stage, hooks } = hookedStage()
    const worker = await stage.worker('a')
    await stage.begin('one')
    const { taskId } = await worker.takeOne()
    hooks.call = () => {
      throw new Error('The disk is gone.')
    }
    await expect(worker.report(taskId)).rejects.toThrow('The disk is gone.')
    hooks.call = () => undefined
    for (let beats = 0; beats < 5; beats += 1) {
      await stage.after(20_000)
      // Whether it names it or not.
      expect(await worker.heartbeat(beats % 2 === 0 ? undefined : [taskId])).toEqual([])
    }
    expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  })
})

describe('what was really taken back is named', () => {
  test('[C-05] a cancelled task, also after a restart and at another instance', async () => {
    const stage = new Stage([oneTask(), fanOut()])
    const worker = await stage.worker('a', { concurrencyMax: 10 })
    const jobs = [await stage.begin('one'), await stage.begin('many', { initialData: { count: 3 } })]
    const taken = await worker.take(10)
    const ids = taken.map(({ taskId }) => taskId)
    const done = taken.find(({ jobId }) => jobId === jobs[1])?.taskId ?? ''
    await worker.report(done)
    for (const jobId of jobs) await stage.engine.cancelJob(jobId, 'test')
    await stage.restart()
    expect((await worker.heartbeat(ids)).toSorted()).toEqual(ids.filter((id) => id !== done).toSorted())
  })

  // Seed 2134 of the simulator: a crash would undo the cancellation, and the worker would have stopped for nothing.
  test.each(['heartbeat', 'poll'] as const)('[C-05] [C-09] only once that is durable: %s', async (way) => {
    const { stage, hooks } = hookedStage()
    const worker = await stage.worker('a', { concurrencyMax: 2 })
    const jobId = await stage.begin('one')
    const { taskId } = await worker.takeOne()
    let writeToDisk = (): void => undefined
    const disk = new Promise<void>((resolve) => {
      writeToDisk = resolve
    })
    hooks.call = (verb) => (verb === 'sync' ? disk : undefined)
    const cancelled = stage.engine.cancelJob(jobId, 'test')
    await settled()
    const polled = { limit: 1, waitMs: 0, signal: NEVER, wantsCancelled: true }
    let isTold = false
    const told = (way === 'heartbeat' ? worker.heartbeat([taskId]) : stage.engine.desk.poll('a', polled)).then(
      (one) => {
        isTold = true
        return 'cancelled' in one ? one.cancelled : one
      },
    )
    await settled()
    expect(isTold).toBe(false)
    writeToDisk()
    await cancelled
    expect(await told).toEqual([taskId])
  })

  test('[C-04] a task that ran out of time, also when its next try waits, and after a restart', async () => {
    const stage = new Stage([oneTask({ runTimeout: '10s', retryTimeouts: true })])
    const worker = await stage.worker('a')
    const recalls: unknown[] = []
    stage.engine.desk.onRecall((recall) => recalls.push(recall))
    const jobId = await stage.begin('one')
    const { taskId } = await worker.takeOne()
    await stage.after(11_000)
    // Its socket hears of it, although the next try is placed already.
    expect(recalls).toEqual([{ workerId: 'a', taskId, jobId }])
    await stage.restart()
    expect(await worker.heartbeat([taskId])).toEqual([taskId])
  })

  test('[E-03] a task that another worker has got, and has ended, also after a restart', async () => {
    const stage = new Stage([oneTask()])
    const slow = await stage.worker('a')
    await stage.begin('one')
    const { taskId } = await slow.takeOne()
    await stage.after(31_000)
    const other = await stage.worker('b')
    const second = await other.takeOne()
    expect(await slow.heartbeat([taskId])).toEqual([taskId])
    await other.report(second.taskId)
    await stage.restart()
    expect([await slow.heartbeat([taskId]), await other.heartbeat([second.taskId])]).toEqual([[taskId], []])
  })

  test('[E-03] and nothing else: tasks of other orchestrators are none of our business', async () => {
    const stage = new Stage([oneTask()])
    const worker = await stage.worker('a')
    const foreign = ['nonsense', '3f0c', 'other-job.1.0.1.zz', 'task-8d0a1a4e-4be2-4b5c-9f57-0b0a4c1f9b1e']
    expect(await worker.heartbeat(foreign)).toEqual([])
  })
})

describe('a heartbeat that left before the answer to a poll came', () => {
  test.each([{ current: [] as string[] }, { load: 0 }])(
    '[E-03] leaves the new task in the worker’s hands: %o',
    async ({ current, load }) => {
      const stage = new Stage([oneTask()])
      const { desk } = stage.engine
      const worker = await stage.worker('a', { concurrencyMax: 1 })
      await stage.begin('one')
      await stage.begin('one')
      const beat = () => desk.heartbeat('a', { status: 'idle' }, current, load)
      await stage.after(15_000)
      await beat()
      const { taskId } = await worker.takeOne()
      // Two of them, one right after the other: newer workers beat whenever something changes.
      for (const ms of [10, 100]) {
        await stage.clock.advance(ms)
        expect((await beat()).cancelled).toEqual([])
        expect(await worker.take()).toEqual([])
      }
      await stage.clock.advance(20_000)
      expect(await worker.heartbeat([taskId])).toEqual([])
      expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
    },
  )

  test('[J-1] what the worker still does not name after that it never got', async () => {
    const stage = new Stage([oneTask()])
    const worker = await stage.worker('a', { concurrencyMax: 1 })
    const jobId = await stage.begin('one')
    await worker.takeOne()
    for (let beats = 0; beats < 3; beats += 1) {
      await stage.after(15_000)
      await worker.heartbeat([])
    }
    await stage.after(15_000)
    const { deliveries } = await stage.engine.desk.poll('a', { limit: 1, waitMs: 0, signal: NEVER })
    expect(deliveries).toMatchObject([{ jobId, delivery: 2 }])
  })
})
