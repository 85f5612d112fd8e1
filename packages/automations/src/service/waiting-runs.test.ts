import type { Batch, Storage } from '@impresario/core'
import { jsonSize } from '@impresario/core'
import { expect, test } from 'vitest'
import { asWaitingRun, waitItemId } from './waiting-run.ts'
import { ANNA, BEN, Office } from './office.fixture.ts'
import { RunBook } from './run-book.ts'

/*
 * One client let the runs of 500 automations wait with 20 events of 60 kB each, 1.2 MB in all. Each run that waited had the
 * whole event in its item, and wrote it again every two seconds: 570 MB, which ended a server with a heap of 512 MB.
 */

const DAY = 86_400_000
const LARGE = 'x'.repeat(60_000)

async function waiting({ storage }: Office, gateId: string): Promise<readonly string[]> {
  const gate = await storage.read('gate', gateId)
  return (gate?.value['waiting'] ?? []) as readonly string[]
}

/** The items of what waits for an automation. */
async function itemsOf(office: Office, automationId: string) {
  const ids = await waiting(office, `automation/${automationId}`)
  const items = await office.storage.peek('firings', ids.map(waitItemId))
  return items.filter((item) => item !== undefined)
}

/** What is written to the queue from now on, in bytes. */
function watchWrites(storage: Storage): { bytes: number } {
  const written = { bytes: 0 }
  const commit = storage.commit.bind(storage)
  storage.commit = (batch: Batch) => {
    for (const { payload } of batch.enqueue ?? []) written.bytes += jsonSize(payload)
    return commit(batch)
  }
  return written
}

test('[C-10] [K-07] runs that wait with one large event share it, looks write little, and each run reads it whole', async () => {
  const office = new Office()
  office.isWorking = false
  const written = watchWrites(office.storage)
  const ids: string[] = []
  for (let count = 0; count < 10; count += 1) ids.push((await office.create({ triggers: [{ event: 'a.b' }] })).id)
  for (let count = 0; count < 5; count += 1) {
    await office.events.publish({ topic: 'a.b', payload: { count, text: LARGE } }, ANNA)
  }
  await office.settle()
  const items = (await Promise.all(ids.map((id) => itemsOf(office, id)))).flat()
  expect(items).toHaveLength(40)
  for (const { payload } of items) expect(jsonSize(payload)).toBeLessThan(1_000)
  await office.after(60_000, 2_000)
  // Before, 40 items of 60 kB were written 31 times.
  expect(written.bytes).toBeLessThan(1_000_000)
  const [first] = items
  const { runId, automationId } = asWaitingRun(first?.payload as never)
  const view = await new RunBook(office.parts).read(runId, ANNA)
  expect(view).toMatchObject({ status: 'waiting', context: { event: { payload: { text: LARGE } } } })
  office.isWorking = true
  await office.settle()
  const runs = (await Promise.all(ids.map((id) => office.runs(id)))).flat()
  expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 'succeeded'))
  for (const { context } of runs) expect(context.event).toMatchObject({ payload: { text: LARGE } })
  expect((await office.run(runId)).context.event).toEqual(view.context.event)
  expect(await waiting(office, `automation/${automationId}`)).toEqual([])
})

test('[K-07] only the first of a line looks often, and who is behind it is called when it leaves', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({})
  const ids: string[] = []
  for (let count = 0; count < 12; count += 1) ids.push((await office.automations.runNow(id, ANNA)).runId ?? '')
  const due = async (): Promise<readonly number[]> => (await itemsOf(office, id)).map(({ dueInMs }) => dueInMs)
  const [first = 0, ...others] = await due()
  expect(first).toBeLessThanOrEqual(2_000)
  expect(Math.max(...others)).toBeGreaterThan(100_000)
  // Time does not pass: all of them run one after the other because each is called.
  await new RunBook(office.parts).cancel(ids[1] ?? '', ANNA)
  office.isWorking = true
  await office.settle()
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(Array.from({ length: 11 }, () => 'succeeded'))
})

test('[K-07] a run that is looked at just when its place becomes free is called again', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({})
  for (let count = 0; count < 2; count += 1) await office.automations.runNow(id, ANNA)
  office.clock.time += 2_000
  const { leases } = await office.storage.claim('firings', { limit: 1, leaseMs: 30_000 })
  office.isWorking = true
  await office.settle()
  expect(await office.runs(id)).toHaveLength(1)
  // Who looked saw that the place was taken.
  for (const lease of leases) {
    const { queue, lane, priority, payload } = lease
    const item = { queue, id: lease.id, lane, priority, payload, delayMs: 60_000 }
    await office.storage.commit({ settle: lease, enqueue: [item] })
  }
  await office.settle()
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded'])
})

test('[C-10] [K-04] a run that waits for two months has its event, which nobody can remove meanwhile', async () => {
  const office = new Office()
  office.isWorking = false
  const ids: string[] = []
  for (let count = 0; count < 2; count += 1) ids.push((await office.create({ triggers: [{ event: 'a.b' }] })).id)
  for (const id of ids) await office.automations.runNow(id, ANNA)
  const event = await office.events.publish({ topic: 'a.b', payload: { text: LARGE } }, ANNA)
  await office.settle()
  const all = { owner: ANNA.id, before: office.clock.time + DAY, limit: 100 }
  expect(await office.events.remove(all, ANNA)).toBe(0)
  await office.after(60 * DAY, DAY)
  expect(await office.events.remove({ ...all, before: office.clock.time }, ANNA)).toBe(0)
  office.isWorking = true
  await office.settle()
  for (const id of ids) {
    const [, run] = await office.runs(id)
    expect(run).toMatchObject({ trigger: { eventId: event.id }, context: { event: { payload: { text: LARGE } } } })
  }
  // It does not stay for ever.
  office.clock.time += 31 * DAY
  await expect(office.events.read(event.id, ANNA)).rejects.toThrow('not found')
})

test('[K-07] a run whose event is gone after all is skipped, with the reason, and holds up no other', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({ triggers: [{ event: 'a.b' }] })
  await office.automations.runNow(id, ANNA)
  const event = await office.events.publish({ topic: 'a.b', payload: { text: LARGE } }, ANNA)
  await office.settle()
  await office.automations.runNow(id, ANNA)
  await office.storage.commit({ drop: [{ kind: 'event', id: event.id }] })
  office.isWorking = true
  await office.settle()
  expect(await office.skips(id)).toMatchObject([
    { event_id: event.id, message: expect.stringContaining('its event was gone') as unknown },
  ])
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded'])
})

test('[C-10] runs of all automations of one owner that wait are bounded in bytes, on two instances', async () => {
  const first = new Office({ waitingBytesMax: 1_000_000 })
  const second = new Office({ storage: first.storage, clock: first.clock, instance: 1, waitingBytesMax: 1_000_000 })
  for (const office of [first, second]) office.isWorking = false
  const outcomes: string[] = []
  const ids: string[] = []
  for (let count = 0; count < 20; count += 1) {
    const { id } = await first.create({})
    ids.push(id)
    // What the other one has let in is seen after a second.
    first.clock.time += 1_000
    const office = count % 2 === 0 ? first : second
    await office.automations.runNow(id, ANNA)
    outcomes.push((await office.automations.runNow(id, ANNA, { text: 'x'.repeat(100_000) })).type)
  }
  const letIn = outcomes.filter((type) => type === 'waiting').length
  expect(letIn).toBeGreaterThanOrEqual(7)
  expect(letIn).toBeLessThanOrEqual(10)
  expect(outcomes.slice(letIn).every((type) => type === 'skipped')).toBe(true)
  expect(JSON.stringify(await first.skips(ids.at(-1) ?? ''))).toContain('The runs of anna that wait for their place')
  // Others are not concerned.
  const other = await first.create({}, BEN)
  await first.automations.runNow(other.id, BEN)
  expect(await first.automations.runNow(other.id, BEN, { text: LARGE })).toMatchObject({ type: 'waiting' })
  // What has begun makes room.
  for (const office of [first, second]) office.isWorking = true
  await first.settle()
  await first.after(60_000)
  for (const office of [first, second]) office.isWorking = false
  const [id = ''] = ids
  await first.automations.runNow(id, ANNA)
  expect(await first.automations.runNow(id, ANNA, { text: LARGE })).toMatchObject({ type: 'waiting' })
  expect(await first.storage.counts('gate', { owner: ANNA.id })).not.toEqual({})
  first.isWorking = true
  await first.settle()
  expect(await first.storage.counts('gate', { owner: ANNA.id })).toEqual({})
})

test('[K-07] a run that an older version let wait begins with what its item holds', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({})
  const { runId = '' } = await office.automations.runNow(id, ANNA)
  const gate = `automation/${id}`
  const version = (await office.storage.read('gate', gate))?.version ?? 0
  const old = `${runId.slice(0, -8)}aaaa${runId.slice(-4)}`
  const trigger = { kind: 'event', eventId: 'long-gone' }
  const payload = {
    kind: 'waiting',
    automationId: id,
    runId: old,
    gate,
    trigger,
    event: { payload: LARGE },
    params: {},
  }
  const item = { queue: 'firings', id: waitItemId(old), lane: ANNA.id, priority: 0, delayMs: 2_000, payload } as const
  const value = { open: [runId], waiting: [old] }
  await office.storage.commit({ put: [{ kind: 'gate', id: gate, value, version: version + 1 }], enqueue: [item] })
  await office.after(10_000, 1_000)
  expect(await waiting(office, gate)).toEqual([old])
  office.isWorking = true
  await office.settle()
  expect(await office.run(old)).toMatchObject({ status: 'succeeded', context: { event: { payload: LARGE } } })
})
