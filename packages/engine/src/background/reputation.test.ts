import type { Storage, WorkerPatch } from '@impresario/core'
import type { TaskErrorCode } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, VirtualClock, guarded, oneTask } from '../stage.fixture.ts'
import type { StageOptions, StageWorker } from '../stage.fixture.ts'

const HOUR_MS = 3_600_000
const FLUSH_MS = 5_000

/** Lets time pass, and then what follows; workers stay alive. */
async function pass(stage: Stage, ms: number, ...alive: readonly StageWorker[]): Promise<void> {
  await stage.clock.advance(ms)
  for (const worker of alive) await worker.heartbeat()
  await stage.run()
}

async function scoreOf(stage: Stage, id: string): Promise<readonly (number | undefined)[]> {
  const standing = await stage.storage.read('standing', id)
  const worker = await stage.storage.read('worker', id)
  return [standing?.value.score, worker?.value.reputation, stage.engine.dispatcher.worker(id)?.reputation]
}

/** A task for this worker alone, and how it ends. */
async function work(stage: Stage, worker: StageWorker, code?: TaskErrorCode): Promise<void> {
  await stage.begin('one')
  const delivery = await worker.takeOne()
  if (code === undefined) await worker.report(delivery.taskId)
  else await worker.fail(delivery.taskId, code)
  await stage.run()
}

const once = oneTask({ strategy: 'best_value', attemptsMax: 1 })

function stageOf(options: StageOptions = {}): Stage {
  return new Stage([once], options)
}

test('[F-02] what becomes of tasks is counted, and written some seconds later in one go', async () => {
  const stage = stageOf()
  const worker = await stage.worker('a')
  for (let count = 0; count < 3; count += 1) await work(stage, worker)
  await work(stage, worker, 'TRANSIENT_ERROR')
  expect(await stage.storage.read('standing', 'a')).toBeUndefined()
  await pass(stage, FLUSH_MS)
  const stored = await stage.storage.read('standing', 'a')
  expect(stored?.version).toBe(1)
  expect(stored?.value.tallies).toMatchObject([{ succeeded: 3, failed: 1, timedOut: 0 }])
})

test('[F-02] a permanent failure and a broken contract cost at once; what the caller did wrong costs nothing', async () => {
  const stage = stageOf()
  const worker = await stage.worker('a')
  await work(stage, worker, 'PERMANENT_ERROR')
  await pass(stage, FLUSH_MS)
  expect(await scoreOf(stage, 'a')).toEqual([0.95, 0.95, 0.95])
  await work(stage, worker, 'CONTRACT_VIOLATION_ERROR')
  await pass(stage, FLUSH_MS)
  expect(await scoreOf(stage, 'a')).toEqual([0.75, 0.75, 0.75])
  await work(stage, worker, 'INVALID_INPUT_ERROR')
  await pass(stage, FLUSH_MS)
  expect(await scoreOf(stage, 'a')).toEqual([0.75, 0.75, 0.75])
})

test('[F-02] how long outcomes are gathered can be set', async () => {
  const stage = stageOf({ settings: { reputationFlushMs: 100 } })
  const worker = await stage.worker('a')
  await work(stage, worker, 'PERMANENT_ERROR')
  await pass(stage, 99)
  expect(await stage.storage.read('standing', 'a')).toBeUndefined()
  await pass(stage, 1)
  expect(await scoreOf(stage, 'a')).toEqual([0.95, 0.95, 0.95])
})

test('[F-02] a task that runs out of time counts as a failure of the worker that had it', async () => {
  const stage = new Stage([oneTask({ attemptsMax: 1, runTimeout: 1_000 })])
  await stage.worker('a').then((worker) => stage.begin('one').then(() => worker.takeOne()))
  await pass(stage, 2_000)
  await pass(stage, FLUSH_MS)
  expect((await stage.storage.read('standing', 'a'))?.value).toMatchObject({
    score: 0.95,
    tallies: [{ succeeded: 0, failed: 0, timedOut: 1 }],
  })
})

test('[F-02] a worker that falls silent over a task has failed it; one whose task nobody took has not', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })])
  const silent = await stage.worker('a', { costPerSecond: 1 })
  const other = await stage.worker('b', { costPerSecond: 9 })
  await stage.begin('one')
  await silent.takeOne()
  await pass(stage, 40_000, other)
  await other.takeOne()
  await pass(stage, FLUSH_MS, other)
  expect((await stage.storage.read('standing', 'a'))?.value.tallies).toMatchObject([{ timedOut: 1 }])
  // Chosen, but never picked up: the task is stolen, and nobody is to blame.
  await stage.begin('one')
  await pass(stage, 6_000, other)
  await other.heartbeat([])
  await pass(stage, FLUSH_MS, other)
  expect((await stage.storage.read('standing', 'a'))?.value.tallies).toMatchObject([{ timedOut: 1 }])
})

test('[F-02] every hour the leader works the scores out from the rate', async () => {
  const stage = stageOf()
  const worker = await stage.worker('a')
  for (let count = 0; count < 6; count += 1) await work(stage, worker)
  for (let count = 0; count < 4; count += 1) await work(stage, worker, 'TRANSIENT_ERROR')
  await pass(stage, FLUSH_MS, worker)
  expect(await scoreOf(stage, 'a')).toEqual([1, 1, 1])
  await pass(stage, HOUR_MS, worker)
  expect(await scoreOf(stage, 'a')).toEqual([0.72, 0.72, 0.72])
  // The same news is not judged twice, whoever leads.
  await stage.restart()
  await pass(stage, HOUR_MS, worker)
  expect((await scoreOf(stage, 'a')).slice(0, 2)).toEqual([0.72, 0.72])
})

// ── The record of the worker ─────────────────────────────────────────────────

test('[F-02] [J-22] a score is no sign of life: the dead stay dead', async () => {
  const stage = stageOf({ settings: { workerTtlMs: 60_000 } })
  const worker = await stage.worker('a')
  const { seenAt } = (await stage.storage.read('worker', 'a'))!.value
  for (let count = 0; count < 5; count += 1) await work(stage, worker, 'TRANSIENT_ERROR')
  await pass(stage, FLUSH_MS)
  await pass(stage, HOUR_MS)
  const stored = await stage.storage.read('worker', 'a')
  expect([stored?.value.reputation, stored?.value.seenAt]).toEqual([0.3, seenAt])
  expect(stage.engine.dispatcher.worker('a')).toBeUndefined()
  await stage.begin('one')
  expect(stage.engine.dispatcher.loadOf('a')).toBe(0)
})

test('[F-02] the score survives another registration, also of a worker whose record is gone', async () => {
  const stage = stageOf()
  const worker = await stage.worker('a')
  await work(stage, worker, 'CONTRACT_VIOLATION_ERROR')
  await pass(stage, FLUSH_MS)
  await stage.worker('a', { reputation: 1 })
  expect(await scoreOf(stage, 'a')).toEqual([0.8, 0.8, 0.8])
  await stage.storage.commit({ drop: [{ kind: 'worker', id: 'a' }] })
  await stage.restart()
  await stage.worker('a', { reputation: 1 })
  expect(await scoreOf(stage, 'a')).toEqual([0.8, 0.8, 0.8])
})

test('[F-02] heartbeats that come in between neither lose the score nor are lost', async () => {
  const clock = new VirtualClock()
  const storage = testStorage({ now: clock.now })
  let meanwhile: (() => Promise<unknown>) | undefined
  const busy = guarded(storage, async (verb) => {
    if (verb !== 'commit' || meanwhile === undefined) return
    const act = meanwhile
    meanwhile = undefined
    await act()
  })
  const stage = stageOf({ clock, storage: () => busy })
  const worker = await stage.worker('a')
  await work(stage, worker, 'PERMANENT_ERROR')
  await clock.advance(FLUSH_MS)
  meanwhile = () => worker.heartbeat(undefined, { status: 'draining', reputation: 1 } satisfies WorkerPatch)
  await stage.run()
  const stored = await storage.read('worker', 'a')
  expect([stored?.value.reputation, stored?.value.status]).toEqual([0.95, 'draining'])
})

test('[F-02] what could not be written is kept and written later', async () => {
  const clock = new VirtualClock()
  let isBroken = false
  const shaky = (inner: Storage): Storage =>
    guarded(inner, (verb) => {
      if (isBroken && verb === 'commit') throw new Error('The disk is gone.')
    })
  const stage = stageOf({ clock, storage: () => shaky(testStorage({ now: clock.now })) })
  const worker = await stage.worker('a')
  await work(stage, worker, 'PERMANENT_ERROR')
  isBroken = true
  await pass(stage, FLUSH_MS)
  isBroken = false
  await work(stage, worker, 'PERMANENT_ERROR')
  await pass(stage, FLUSH_MS)
  expect((await scoreOf(stage, 'a'))[0]).toBe(0.9)
})

test('[F-02] a stop writes what was counted', async () => {
  const stage = stageOf()
  const worker = await stage.worker('a')
  await stage.engine.start()
  await stage.clock.advance(1)
  await stage.create('one')
  await stage.clock.advance(1)
  await worker.report((await worker.takeOne()).taskId)
  await stage.engine.stop()
  expect((await stage.storage.read('standing', 'a'))?.value.tallies).toMatchObject([{ succeeded: 1 }])
})

test('[F-02] of many workers some are written at a time, the bad news first', async () => {
  const stage = new Stage([oneTask({ strategy: 'least_connections', attemptsMax: 1 })])
  const count = 250
  const workers: StageWorker[] = []
  for (let index = 0; index < count; index += 1) workers.push(await stage.worker(`w${String(index).padStart(3, '0')}`))
  for (let index = 0; index < count; index += 1) await stage.create('one')
  await stage.run()
  for (const [index, worker] of workers.entries()) {
    const { taskId } = await worker.takeOne()
    await (index === count - 1 ? worker.fail(taskId, 'PERMANENT_ERROR') : worker.report(taskId))
  }
  await stage.clock.advance(FLUSH_MS)
  await stage.engine.tick()
  expect(await stage.storage.list('standing', { limit: 500 })).toHaveLength(200)
  expect((await scoreOf(stage, `w${count - 1}`))[0]).toBe(0.95)
  await pass(stage, FLUSH_MS)
  expect(await stage.storage.list('standing', { limit: 500 })).toHaveLength(count)
})

// ── What it is for ───────────────────────────────────────────────────────────

test('[F-02] [D-03] best_value moves work away from an unreliable worker, and back once it has recovered', async () => {
  const stage = stageOf()
  const cheap = await stage.worker('cheap', { costPerSecond: 2, concurrencyMax: 9 })
  const good = await stage.worker('good', { costPerSecond: 3, concurrencyMax: 9 })
  const whoGetsIt = async (): Promise<string> => {
    await stage.begin('one')
    for (const worker of [cheap, good]) {
      const [delivery] = await worker.take()
      if (delivery === undefined) continue
      await worker.report(delivery.taskId)
      return worker.id
    }
    throw new Error('Nobody got it.')
  }
  expect(await whoGetsIt()).toBe('cheap')
  for (let count = 0; count < 9; count += 1) await work(stage, cheap, 'TRANSIENT_ERROR')
  await pass(stage, FLUSH_MS, cheap, good)
  await pass(stage, HOUR_MS, cheap, good)
  expect((await scoreOf(stage, 'cheap'))[2]).toBe(0.37)
  expect(await whoGetsIt()).toBe('good')
  // While the good one is away it proves itself.
  await good.heartbeat([], { status: 'draining' })
  for (let count = 0; count < 90; count += 1) expect(await whoGetsIt()).toBe('cheap')
  await good.heartbeat([], { status: 'idle' })
  await pass(stage, FLUSH_MS, cheap, good)
  await pass(stage, HOUR_MS, cheap, good)
  expect((await scoreOf(stage, 'cheap'))[2]).toBeGreaterThan(0.7)
  expect(await whoGetsIt()).toBe('cheap')
})

test('[F-02] below the least reputation a worker stands back, but does what nobody else has room for', async () => {
  const stage = new Stage([oneTask({ strategy: 'cheapest' })], { settings: { reputationMin: 0.3 } })
  const shaky = await stage.worker('a', { costPerSecond: 1, reputation: 0.2 })
  const steady = await stage.worker('b', { costPerSecond: 9 })
  await stage.begin('one')
  await stage.begin('one')
  expect([(await steady.take()).length, (await shaky.take()).length]).toEqual([1, 1])
})
