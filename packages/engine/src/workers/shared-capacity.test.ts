import type { Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { companyOf } from '../company.fixture.ts'
import { NEVER, Stage, guarded, oneTask, settled } from '../stage.fixture.ts'
import type { Delivery } from './desk-messages.ts'

/** Two instances on one storage that know of each other, and a worker that is registered at both. */
async function pair(room: number): Promise<readonly [Stage, Stage]> {
  const [one, two] = await companyOf(2, { settings: { pickupMs: 5_000 } })
  for (const stage of [one!, two!]) await stage.worker('w', { concurrencyMax: room })
  await settled()
  return [one!, two!]
}

/** What the worker gets when it asks there now. */
async function ask(stage: Stage, limit = 1): Promise<readonly Delivery[]> {
  const { deliveries } = await stage.engine.desk.poll('w', { limit, waitMs: 0, signal: NEVER })
  return deliveries
}

const report = (stage: Stage, { taskId }: Delivery): Promise<unknown> =>
  stage.engine.desk.results('w', [{ taskId, status: 'success' }])

test('[I-01] a worker holds no more than it has room for, wherever it asks and wherever it reports', async () => {
  const [one, two] = await pair(1)
  for (const stage of [one, two, one]) await stage.create('one')
  await settled()
  const [first] = await ask(one)
  expect(first).toBeDefined()
  expect([await ask(two), await ask(one), await ask(two)]).toEqual([[], [], []])
  await report(two, first!)
  const [second] = await ask(two)
  expect(second).toBeDefined()
  expect([await ask(one), await ask(two)]).toEqual([[], []])
  await report(one, second!)
  expect(await ask(one)).toHaveLength(1)
})

test('[I-01] of two instances with a task for the last free place one hands it out', async () => {
  const [one, two] = await pair(3)
  for (let number = 0; number < 8; number += 1) await [one, two][number % 2]!.create('one')
  await settled()
  const [here, there] = await Promise.all([ask(one, 5), ask(two, 5)])
  expect(here.length + there.length).toBe(3)
  expect(new Set([...here, ...there].map(({ taskId }) => taskId)).size).toBe(3)
})

test('[I-01] a poll that waits with full hands goes on when the worker has reported elsewhere', async () => {
  const [one, two] = await pair(1)
  for (const stage of [one, two]) await stage.create('one')
  await settled()
  const [first] = await ask(one)
  const waiting = two.engine.desk.poll('w', { limit: 1, waitMs: 60_000, signal: NEVER })
  await settled()
  await report(one, first!)
  await one.clock.advance(1_000)
  expect((await waiting).deliveries).toHaveLength(1)
})

test('[D-05] [I-01] what lies before a worker that is full goes to another one, at any instance', async () => {
  const [one, two] = await pair(1)
  // Each counts for itself whom it gave what, so that both choose the same.
  for (const stage of [one, two]) await stage.create('one')
  await settled()
  expect(await ask(one)).toHaveLength(1)
  const helper = await two.worker('helper')
  const parked = helper.poll(1, 60_000)
  await one.clock.advance(7_000)
  expect((await parked).deliveries).toHaveLength(1)
})

test('[I-01] who has room for very many is counted by each instance for itself', async () => {
  const [one, two] = await pair(65)
  for (const stage of [one, two]) await stage.create('one')
  await settled()
  await ask(one, 5)
  await ask(two, 5)
  expect(await one.storage.read('hands', 'w')).toBeUndefined()
})

test('[I-01] a worker that begins anew has empty hands at every instance', async () => {
  const [one, two] = await pair(1)
  for (const stage of [one, two]) await stage.create('one')
  await settled()
  await ask(one)
  expect(await ask(two)).toEqual([])
  await one.worker('w', { concurrencyMax: 1 })
  await settled()
  expect(await ask(two)).toHaveLength(1)
  expect(await ask(one)).toEqual([])
})

test('[D-01] [I-01] each instance knows how busy a worker is, whoever gave it what and whoever took the result', async () => {
  const [one, two] = await pair(4)
  for (const stage of [one, two]) await stage.create('one')
  await settled()
  const deliveries = await ask(one, 4)
  await settled()
  const loads = (): readonly number[] => [one, two].map((stage) => stage.engine.dispatcher.loadOf('w'))
  expect([deliveries.length, loads()]).toEqual([2, [2, 2]])
  await report(two, deliveries[0]!)
  await settled()
  expect(loads()).toEqual([1, 1])
  await two.engine.cancelJob(deliveries[1]!.jobId, 'client')
  await settled()
  expect(loads()).toEqual([0, 0])
})

test('[I-01] an instance that hands out a task of another one reads its job once, for the task and for the result', async () => {
  const one = new Stage([oneTask()], { settings: { isShared: true } })
  let reads = 0
  const storage: Storage = {
    ...guarded(one.storage, () => {}),
    read: (kind, id) => {
      if (kind === 'job') reads += 1
      return one.storage.read(kind, id)
    },
  }
  const two = new Stage([oneTask()], { clock: one.clock, storage: () => storage, settings: { isShared: true } })
  const worker = await two.worker('w')
  const jobId = await one.begin('one')
  const { taskId } = await worker.takeOne()
  await two.engine.desk.results('w', [{ taskId, status: 'success' }])
  expect(reads).toBe(1)
  expect((await one.storage.read('job', jobId))?.value.status).toBe('finished')
})
