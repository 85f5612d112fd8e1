import type { Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { companyOf } from '../company.fixture.ts'
import { Stage, VirtualClock, guarded, oneTask } from '../stage.fixture.ts'

const DAY_MS = 86_400_000

async function pass(stage: Stage, ms: number): Promise<void> {
  await stage.clock.advance(ms)
  await stage.run()
}

test('[F-03] a worker that is silent for a day is forgotten, one that was heard of is not', async () => {
  const stage = new Stage([oneTask()])
  await stage.worker('gone')
  const alive = await stage.worker('alive')
  await pass(stage, DAY_MS)
  expect(await stage.storage.read('worker', 'gone')).toBeDefined()
  await alive.heartbeat()
  await pass(stage, 60_000)
  await stage.clock.advance(1)
  expect((await stage.storage.list('worker', { limit: 9 })).map(({ id }) => id)).toEqual(['alive'])
  expect(stage.log.lines.map(({ fields }) => fields)).toContainEqual(
    expect.objectContaining({ worker_id: 'gone', tasks_left_to_others: 0 }),
  )
  await expect(stage.engine.desk.heartbeat('gone', {}, [])).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' })
})

test('[F-03] a sign of life that comes in the last moment wins', async () => {
  const clock = new VirtualClock()
  const inner = testStorage({ now: clock.now })
  let meanwhile: (() => Promise<unknown>) | undefined
  const storage: Storage = guarded(inner, async (verb) => {
    if (verb !== 'commit' || meanwhile === undefined) return
    const act = meanwhile
    meanwhile = undefined
    await act()
  })
  const stage = new Stage([oneTask()], { clock, storage: () => storage })
  const worker = await stage.worker('a')
  await stage.run()
  await clock.advance(DAY_MS + 60_000)
  // The leads have to be taken again first.
  meanwhile = () => worker.heartbeat()
  await stage.run()
  await clock.advance(120_000)
  expect((await inner.read('worker', 'a'))?.value.seenAt).toBe(clock.now() - 120_000)
})

test('[F-03] tasks in the queue of a dead worker go to whoever fits, however long it takes for one to come', async () => {
  const stage = new Stage([oneTask()])
  const dead = await stage.worker('dead', { concurrencyMax: 2 })
  const [untaken, taken] = [await stage.begin('one'), await stage.begin('one')]
  const [held] = await dead.take()
  expect([untaken, taken]).toContain(held?.jobId)
  await pass(stage, 3 * DAY_MS)
  await stage.clock.advance(1)
  expect(await stage.storage.read('worker', 'dead')).toBeUndefined()
  const [explained] = await stage.engine.explainJob(await stage.job(untaken))
  expect([explained?.where, explained?.worker]).toEqual(['waiting', undefined])
  const heir = await stage.worker('heir', { concurrencyMax: 2 })
  const deliveries = await heir.take(2)
  expect(deliveries.map(({ jobId }) => jobId).sort()).toEqual([untaken, taken].sort())
  for (const { taskId } of deliveries) await heir.report(taskId)
  await stage.run()
  expect([await stage.statusOf(untaken), await stage.statusOf(taken)]).toEqual(['finished', 'finished'])
})

test('[F-03] a worker that comes back after it was forgotten registers and finds its tasks', async () => {
  const stage = new Stage([oneTask()])
  await stage.worker('a')
  const jobId = await stage.begin('one')
  await pass(stage, 2 * DAY_MS)
  const again = await stage.worker('a')
  expect((await again.takeOne()).jobId).toBe(jobId)
})

test('[F-03] [F-05] of two instances one removes what is dead', async () => {
  const [first, second] = await companyOf(2)
  await first!.clock.advance(1_000)
  const leaders = [first!, second!].filter(({ engine }) => engine.leadership.isLeading('health-checker'))
  expect(leaders).toHaveLength(1)
  await first!.engine.stop()
  // At once, but for the few milliseconds after which a storage that others use too may ask to be asked again.
  await second!.clock.advance(50)
  expect(second!.engine.leadership.isLeading('health-checker')).toBe(true)
  await second!.engine.stop()
})
