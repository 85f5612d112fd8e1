import { expect, test } from 'vitest'
import { companyOf } from '../company.fixture.ts'
import { Stage, oneTask, settled } from '../stage.fixture.ts'

test('[M-02] what came into a queue and left it in the last minute is counted by type', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w1')
  await stage.begin('one')
  await stage.begin('one')
  expect(stage.engine.company.taskRates).toEqual([{ type: 'work', placed: 2, taken: 0 }])
  await stage.clock.advance(30_000)
  await worker.takeOne()
  expect(stage.engine.company.taskRates).toEqual([{ type: 'work', placed: 2, taken: 1 }])
  // What came is older than a minute now, what went is not.
  await stage.clock.advance(31_000)
  expect(stage.engine.company.taskRates).toEqual([{ type: 'work', placed: 0, taken: 1 }])
  await stage.clock.advance(61_000)
  expect(stage.engine.company.taskRates).toEqual([])
})

test('[M-02] [I-01] every instance knows the sum over all of them', async () => {
  const [one, two, three] = await companyOf(3)
  await one!.begin('one')
  await two!.begin('one')
  await two!.begin('one')
  const sums = (): readonly unknown[] => [one, two, three].map((stage) => stage?.engine.company.taskRates[0]?.placed)
  // A few hellos later; how many depends on how fast the storage tells of them.
  for (let seconds = 0; seconds < 45 && sums().some((sum) => sum !== 3); seconds += 1) {
    await one!.clock.advance(1_000)
    await settled()
  }
  expect(sums()).toEqual([3, 3, 3])
  // What others said counts no more when they are gone. Whose turn a job was is up to the storage.
  for (const stage of [one, two, three]) await stage!.engine.stop()
  await one!.clock.advance(16_000)
  expect(sums().reduce((sum: number, count) => sum + Number(count ?? 0), 0)).toBe(3)
})
