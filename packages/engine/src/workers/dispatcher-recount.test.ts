import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Engine } from '../engine.ts'
import { NEVER, Stage, guarded, oneTask, registryOf } from '../stage.fixture.ts'

// The simulator found these (seeds 1 and 5 with three instances): a worker filled up with tasks that had long ended.

test('[D-01] a task that ended at another instance no longer fills its worker', async () => {
  const stage = new Stage([oneTask()], { settings: { isShared: true } })
  const { storage, clock, random, log } = stage
  const other = new Engine({ storage, clock, random, log, blueprints: registryOf([oneTask()]) })
  await stage.worker('w')
  await stage.begin('one')
  expect(stage.engine.dispatcher.loadOf('w')).toBe(1)
  const { deliveries } = await other.desk.poll('w', { limit: 1, waitMs: 0, signal: NEVER })
  await other.desk.results('w', [{ taskId: deliveries[0]?.taskId ?? '', status: 'success' }])
  await stage.after(5_000)
  expect(stage.engine.dispatcher.loadOf('w')).toBe(0)
})

test('[D-01] a task whose end was written without an answer no longer fills its worker', async () => {
  let isLost = false
  const stage = new Stage([oneTask()], {
    storage: ({ now }) =>
      guarded(
        testStorage({ now }),
        () => undefined,
        (verb) => {
          if (isLost && verb === 'commit') throw new Error('The answer is lost.')
        },
      ),
  })
  const worker = await stage.worker('w')
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  isLost = true
  await expect(worker.report(taskId)).rejects.toThrow('lost')
  isLost = false
  expect(stage.engine.dispatcher.loadOf('w')).toBe(1)
  await stage.after(5_000)
  expect(stage.engine.dispatcher.loadOf('w')).toBe(0)
})

test('[D-01] a task that is held stays counted, for the worker that holds it', async () => {
  const stage = new Stage([oneTask()], { settings: { isShared: true } })
  const worker = await stage.worker('w')
  await stage.begin('one')
  await worker.takeOne()
  await stage.after(9_000)
  expect(stage.engine.dispatcher.loadOf('w')).toBe(1)
})
