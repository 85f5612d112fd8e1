import { expect, test } from 'vitest'
import { ANNA, BEN, Office } from './office.fixture.ts'
import { RunBook } from './run-book.ts'

const MINUTE = 60_000
const EVERY_MINUTE = { triggers: [{ cron: '* * * * *' }] }

test('[K-07] by default one run waits for the other, and nothing is lost', async () => {
  const office = new Office()
  const { id } = await office.create(EVERY_MINUTE)
  office.isWorking = false
  await office.after(3 * MINUTE, MINUTE / 4)
  expect(await office.runs(id)).toHaveLength(1)
  office.isWorking = true
  await office.settle()
  const runs = await office.runs(id)
  expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded'])
  expect(office.calls.map(({ text }) => text)).toEqual([
    '2026-03-02T08:01:00Z',
    '2026-03-02T08:02:00Z',
    '2026-03-02T08:03:00Z',
  ])
})

test('[K-07] a run that waits finds its place also where no signal tells of it', async () => {
  const office = new Office()
  const { id } = await office.create({})
  office.isWorking = false
  const first = await office.automations.runNow(id, ANNA)
  const second = await office.automations.runNow(id, ANNA)
  expect([first.type, second.type]).toEqual(['started', 'waiting'])
  await office.settle()
  const other = new Office({ storage: office.storage, clock: office.clock, instance: 1 })
  await other.settle()
  expect(await office.isOver(first.runId ?? '')).toBe(true)
  await other.after(2_000)
  expect(await office.isOver(second.runId ?? '')).toBe(true)
})

test('[K-11] a run that waits for its place can be read by the id that was handed out, by its owner', async () => {
  const office = new Office()
  const { id } = await office.create({ title: 'Slow', params: { a: 1, b: 2 } })
  office.isWorking = false
  await office.automations.runNow(id, ANNA)
  const { runId = '' } = await office.automations.runNow(id, ANNA, { b: 3 })
  const runs = new RunBook(office.parts)
  expect(await runs.read(runId, ANNA)).toMatchObject({
    id: runId,
    automationId: id,
    title: 'Slow',
    owner: 'anna',
    status: 'waiting',
    steps: [],
    trigger: { kind: 'manual', by: 'anna' },
    context: { params: { a: 1, b: 3 }, steps: 1 },
    endedAt: undefined,
  })
  await expect(runs.read(runId, BEN)).rejects.toThrow('not found')
  office.isWorking = true
  await office.settle()
  expect(await runs.read(runId, ANNA)).toMatchObject({ id: runId, status: 'succeeded' })
})

test('[K-07] overlap "skip" leaves out what comes while a run is open, with the run in its place', async () => {
  const office = new Office()
  const { id } = await office.create({ ...EVERY_MINUTE, overlap: 'skip' })
  office.isWorking = false
  await office.after(3 * MINUTE, MINUTE)
  const runs = await office.runs(id)
  expect(runs).toHaveLength(1)
  const skips = await office.skips(id)
  expect(skips).toHaveLength(2)
  expect(skips[0]).toMatchObject({ reason: 'overlap', instead: runs[0]?.id })
})

test('[K-07] overlap "restart" cancels the open run', async () => {
  const office = new Office()
  const { id } = await office.create({ ...EVERY_MINUTE, overlap: 'restart' })
  office.isWorking = false
  await office.after(2 * MINUTE, MINUTE)
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(['canceled', 'running'])
})

test('[K-07] overlap "parallel" lets all of them run', async () => {
  const office = new Office()
  const { id } = await office.create({ ...EVERY_MINUTE, overlap: 'parallel' })
  office.isWorking = false
  await office.after(3 * MINUTE, MINUTE)
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(['running', 'running', 'running'])
})

test('[K-07] a concurrency key counts the runs of several automations together, on two instances', async () => {
  const first = new Office()
  const second = new Office({ storage: first.storage, clock: first.clock, instance: 1 })
  const concurrency = { key: 'printer', limit: 2 }
  const ids: string[] = []
  for (let count = 0; count < 3; count += 1) ids.push((await first.create({ concurrency })).id)
  first.isWorking = false
  second.isWorking = false
  const launched = await Promise.all(
    ids.flatMap((id) => [first.automations.runNow(id, ANNA), second.automations.runNow(id, ANNA)]),
  )
  expect(launched.filter(({ type }) => type === 'started')).toHaveLength(2)
  expect(launched.filter(({ type }) => type === 'waiting')).toHaveLength(4)
  for (let rounds = 0; rounds < 4; rounds += 1) {
    await first.settle()
    const all = (await Promise.all(ids.map((id) => first.runs(id)))).flat()
    expect(all.filter(({ status }) => status === 'running').length).toBeLessThanOrEqual(2)
    first.isWorking = true
    first.clock.time += 2_000
  }
  await first.settle()
  const all = (await Promise.all(ids.map((id) => first.runs(id)))).flat()
  expect(all.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'succeeded'))
})

test('[K-02] within its window a dedupe key starts one run, and a skip names it', async () => {
  const office = new Office()
  const dedupe = { key: 'order-${params.order}', window_seconds: 60 }
  const { id } = await office.create({ dedupe, params: { order: 7 }, overlap: 'parallel' })
  const first = await office.automations.runNow(id, ANNA)
  const second = await office.automations.runNow(id, ANNA)
  const other = await office.automations.runNow(id, ANNA, { order: 8 })
  expect(second).toEqual({ type: 'skipped', reason: 'deduplicated', runId: first.runId })
  expect(other.type).toBe('started')
  await office.settle()
  office.clock.time += 61_000
  expect((await office.automations.runNow(id, ANNA)).type).toBe('started')
})

test('[K-16] a budget of runs per day skips what goes beyond it, until the next day', async () => {
  const office = new Office()
  const { id } = await office.create({ budget: { runs_per_day: 2 }, overlap: 'parallel' })
  const outcomes = []
  for (let count = 0; count < 3; count += 1) outcomes.push((await office.automations.runNow(id, ANNA)).type)
  expect(outcomes).toEqual(['started', 'started', 'skipped'])
  expect(await office.skips(id)).toMatchObject([{ reason: 'budget' }])
  await office.settle()
  office.clock.time += 86_400_000
  expect((await office.automations.runNow(id, ANNA)).type).toBe('started')
})

test('[K-07] [K-13] a gate that nobody is in is gone after a day, one with a run in it stays, and it excludes as before', async () => {
  const office = new Office()
  const concurrency = { key: 'printer', limit: 1 }
  const [first, second] = [await office.create({ concurrency }), await office.create({ concurrency })]
  const gate = () => office.storage.read('gate', 'key/anna/printer')
  await office.automations.runNow(first.id, ANNA)
  await office.settle()
  expect(await gate()).toMatchObject({ value: { open: [], waiting: [] } })
  office.isWorking = false
  const { runId = '' } = await office.automations.runNow(first.id, ANNA)
  office.clock.time += 3 * 86_400_000
  expect(await gate()).toMatchObject({ value: { open: [runId], waiting: [] } })
  expect(await office.automations.runNow(second.id, ANNA)).toMatchObject({ type: 'waiting' })
  office.isWorking = true
  await office.after(60_000)
  expect(await gate()).toMatchObject({ value: { open: [], waiting: [] } })
  office.clock.time += 86_400_001
  expect(await gate()).toBeUndefined()
  office.isWorking = false
  const again = [await office.automations.runNow(first.id, ANNA), await office.automations.runNow(second.id, ANNA)]
  expect(again.map(({ type }) => type)).toEqual(['started', 'waiting'])
})
