import { expect, test } from 'vitest'
import { ANNA, BEN, Office } from './office.fixture.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const HOURLY = { triggers: [{ cron: '0 * * * *' }], overlap: 'parallel' }

/** The occurrences that ran, as times of day. */
async function ranAt(office: Office, id: string): Promise<readonly string[]> {
  const runs = await office.runs(id)
  return runs.map(({ trigger }) => new Date(trigger.scheduledFor ?? 0).toISOString().slice(11, 16))
}

/** How many occurrences are told of in the log of skips. */
async function skipped(office: Office, id: string, reason: string): Promise<number> {
  const skips = await office.skips(id)
  return skips.filter((skip) => skip['reason'] === reason).reduce((sum, skip) => sum + Number(skip['count'] ?? 1), 0)
}

test('[K-03] the next run is visible at once, and each occurrence of a cron trigger runs once', async () => {
  const office = new Office()
  const created = await office.create(HOURLY)
  expect(created.next?.scheduledFor).toBe(Date.parse('2026-03-02T09:00:00Z'))
  await office.after(3 * HOUR, HOUR / 4)
  expect(await ranAt(office, created.id)).toEqual(['09:00', '10:00', '11:00'])
  expect((await office.automations.read(created.id, ANNA)).next?.scheduledFor).toBe(Date.parse('2026-03-02T12:00:00Z'))
  expect(office.calls[0]).toEqual({ text: '2026-03-02T09:00:00Z' })
  expect(office.log.errors).toEqual([])
})

test('[K-03] a trigger of one time fires once and leaves nothing behind; one in the past is refused', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ once: '2026-03-02T09:30:00+01:00' }] })
  await office.after(DAY, HOUR)
  expect(await ranAt(office, id)).toEqual(['08:30'])
  expect((await office.automations.read(id, ANNA)).next).toBeUndefined()
  await expect(office.create({ triggers: [{ once: '2025-12-25T09:00:00+02:00' }] })).rejects.toThrow('never fires')
})

test('[K-03] several triggers of one automation each have their times', async () => {
  const office = new Office()
  const { id } = await office.create({
    triggers: [{ cron: '30 9 * * *' }, { cron: '0 11 * * *' }],
    overlap: 'parallel',
  })
  await office.after(4 * HOUR, HOUR / 2)
  expect(await ranAt(office, id)).toEqual(['09:30', '11:00'])
})

test.each([
  ['skip', [], { missed: 5 }],
  ['run_once', ['13:00'], { merged: 4 }],
  [{ catch_up: { max: 3 } }, ['11:00', '12:00', '13:00'], { over_max: 2 }],
] as const)(
  '[K-03] after a time without a server, %j decides, and each occurrence is a run or a logged skip',
  async (misfire, ran, skips) => {
    const office = new Office()
    const { id } = await office.create({ ...HOURLY, misfire })
    office.clock.time += 5 * HOUR + HOUR / 2
    await office.settle()
    expect(await ranAt(office, id)).toEqual(ran)
    for (const [reason, count] of Object.entries(skips)) expect(await skipped(office, id, reason)).toBe(count)
    await office.after(HOUR, HOUR / 2)
    expect((await ranAt(office, id)).slice(ran.length)).toEqual(['14:00'])
    const runs = await office.runs(id)
    const allSkipped = await Promise.all(['missed', 'merged', 'over_max'].map((reason) => skipped(office, id, reason)))
    expect(runs.length + allSkipped.reduce((sum, count) => sum + count, 0)).toBe(6)
  },
)

test('[K-03] what is made good is spread over the time that the policy names', async () => {
  const office = new Office()
  const misfire = { catch_up: { max: 4, spread_seconds: 600 } }
  const { id } = await office.create({ ...HOURLY, misfire })
  office.clock.time += 4 * HOUR + HOUR / 2
  await office.settle()
  expect(await ranAt(office, id)).toEqual(['09:00'])
  await office.after(140_000, 10_000)
  expect(await ranAt(office, id)).toHaveLength(1)
  await office.after(460_000, 10_000)
  expect(await ranAt(office, id)).toEqual(['09:00', '10:00', '11:00', '12:00'])
})

test('[K-03] jitter delays a run by the same time whenever it is asked, and the run is not lost', async () => {
  const office = new Office()
  const { id, next } = await office.create({ ...HOURLY, jitter_seconds: 600, misfire: { catch_up: { max: 2 } } })
  const delay = (next?.runAt ?? 0) - (next?.scheduledFor ?? 0)
  expect(delay).toBeGreaterThan(0)
  expect(delay).toBeLessThanOrEqual(600_000)
  office.clock.time = (next?.runAt ?? 0) - 1_000
  await office.settle()
  expect(await ranAt(office, id)).toEqual([])
  await office.after(1_000)
  expect(await ranAt(office, id)).toEqual(['09:00'])
  office.clock.time += 5 * HOUR
  await office.settle()
  await office.after(HOUR, 60_000)
  expect(new Set(await ranAt(office, id)).size).toBe((await office.runs(id)).length)
})

test('[K-08] [K-17] defect 10: two instances share what is due, and each occurrence has one run', async () => {
  const first = new Office()
  const second = new Office({ storage: first.storage, clock: first.clock, instance: 1 })
  const ids: string[] = []
  for (let count = 0; count < 10; count += 1) ids.push((await first.create(HOURLY)).id)
  for (let hours = 0; hours < 3; hours += 1) {
    first.clock.time += HOUR
    await Promise.all([first.firings.tick(), second.firings.tick()])
    await Promise.all([first.settle(), second.settle()])
  }
  for (const id of ids) expect(await ranAt(first, id)).toEqual(['09:00', '10:00', '11:00'])
  expect([...first.log.errors, ...second.log.errors]).toEqual([])
})

test('[K-08] [K-17] defect 10: a crash before the commit of a firing loses nothing: another instance serves it when the lease ends', async () => {
  const office = new Office()
  const { id } = await office.create(HOURLY)
  office.clock.time += HOUR
  const { leases } = await office.storage.claim('firings', { limit: 10, leaseMs: 30_000 })
  expect(leases).toHaveLength(1)
  await office.settle()
  expect(await ranAt(office, id)).toEqual([])
  await office.after(30_000)
  expect(await ranAt(office, id)).toEqual(['09:00'])
})

test('[K-05] snooze moves the run that stands in the queue, and says who did it and why', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ cron: '0 9 * * *' }], misfire: 'skip' })
  const snoozed = await office.automations.snooze(id, 2 * 3_600, ANNA, 'still asleep')
  expect(snoozed.next?.runAt).toBe(Date.parse('2026-03-02T11:00:00Z'))
  await office.after(2.5 * HOUR, HOUR / 4)
  expect(await ranAt(office, id)).toEqual([])
  await office.after(HOUR, HOUR / 4)
  expect(await ranAt(office, id)).toEqual(['09:00'])
  const entry = (await office.audit(id)).find(({ action }) => action === 'automation.snoozed')
  expect(entry).toMatchObject({ actor: 'anna', details: { reason: 'still asleep', until: '2026-03-02T11:00:00Z' } })
  expect(await office.automations.read(id, ANNA)).toMatchObject({
    next: { scheduledFor: Date.parse('2026-03-03T09:00:00Z') },
  })
})

test('[K-05] a paused automation does not run, and what it left out is on record when it goes on', async () => {
  const office = new Office()
  const { id } = await office.create(HOURLY)
  await office.automations.pause(id, ANNA)
  await office.after(3 * HOUR, HOUR)
  expect(await ranAt(office, id)).toEqual([])
  const resumed = await office.automations.resume(id, ANNA)
  expect(resumed.next?.scheduledFor).toBe(Date.parse('2026-03-02T12:00:00Z'))
  expect(await skipped(office, id, 'paused')).toBe(3)
  await office.after(HOUR)
  expect(await ranAt(office, id)).toEqual(['12:00'])
})

test('[K-05] cancelling is for good', async () => {
  const office = new Office()
  const { id } = await office.create(HOURLY)
  await office.automations.cancel(id, ANNA)
  await office.after(2 * HOUR, HOUR)
  expect(await ranAt(office, id)).toEqual([])
  await expect(office.automations.resume(id, ANNA)).rejects.toThrow('for good')
  await expect(office.automations.runNow(id, ANNA)).rejects.toThrow('for good')
})

test('[K-02] [K-13] a changed definition counts from the change on, and its runs keep the pipeline they began with', async () => {
  const office = new Office()
  const { id } = await office.create(HOURLY)
  await office.after(HOUR)
  const pipeline = [{ id: 'other', uses: 'echo', with: { text: 'new' } }]
  const body = { title: 'Other', triggers: [{ cron: '30 * * * *' }], pipeline }
  const updated = await office.automations.update(id, body, ANNA)
  expect(updated).toMatchObject({ revision: 2, next: { scheduledFor: Date.parse('2026-03-02T09:30:00Z') } })
  await office.after(HOUR / 2)
  const runs = await office.runs(id)
  expect(runs.map(({ steps }) => steps[0]?.id)).toEqual(['say', 'other'])
  expect((await office.audit(id)).map(({ action }) => action)).toEqual([
    'automation.created',
    'run.started',
    'automation.updated',
    'run.started',
  ])
})

test('[K-01] what is another owner’s is not there', async () => {
  const office = new Office()
  const { id } = await office.create(HOURLY)
  const asBen = [
    office.automations.read(id, BEN),
    office.automations.pause(id, BEN),
    office.automations.update(id, { title: 'x', pipeline: [] }, BEN),
    office.automations.runNow(id, BEN),
    office.automations.remove(id, BEN),
  ]
  for (const attempt of asBen) await expect(attempt).rejects.toThrow('Automation not found')
  expect(await office.automations.read(id, { id: 'root', isAdmin: true })).toMatchObject({ owner: 'anna' })
  expect((await office.automations.list({ owner: 'ben', limit: 10 })).items).toEqual([])
})

test('[K-02] what has an open run is not deleted, and what is deleted leaves only its audit log', async () => {
  const office = new Office()
  const { id } = await office.create({ ...HOURLY, triggers: [{ cron: '0 * * * *' }, { event: 'a.b' }] })
  office.isWorking = false
  await office.automations.runNow(id, ANNA)
  await expect(office.automations.remove(id, ANNA)).rejects.toThrow('is open')
  office.isWorking = true
  await office.settle()
  await office.automations.remove(id, ANNA)
  await expect(office.automations.read(id, ANNA)).rejects.toThrow('not found')
  await office.events.publish({ topic: 'a.b', payload: {} }, ANNA)
  await office.after(2 * HOUR, HOUR)
  expect(await office.runs(id)).toHaveLength(1)
  expect((await office.audit(id)).at(-1)).toMatchObject({ action: 'automation.deleted', actor: 'anna' })
})

test('[K-02] a source of webhooks that is not there is refused, and not kept in silence', async () => {
  const body = { triggers: [{ kind: 'webhook', source: 'github' }] }
  await expect(new Office().create(body)).rejects.toThrow('no source of webhooks "github"')
})

test('[K-08] an owner with many firings at once does not hold up another', async () => {
  const office = new Office()
  office.isWorking = false
  for (let count = 0; count < 150; count += 1) await office.create({ triggers: [{ every: 60 }], priority: 1 })
  const { id } = await office.create({ triggers: [{ every: 60 }] }, BEN)
  office.clock.time += 60_000
  // One round takes a hundred of them.
  await office.firings.tick()
  expect(await office.runs(id)).toHaveLength(1)
})
