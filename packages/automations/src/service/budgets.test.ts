import { newWorkerRecord } from '@impresario/core'
import type { Delivery } from '@impresario/engine'
import { NO_USAGE } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import type { BudgetState } from './budgets.ts'
import { ANNA, Office, StillClock } from './office.fixture.ts'
import { RunBook } from './run-book.ts'

const DAY = 86_400_000
const AGENT = { id: '01990000-0000-7000-8000-00000000abcd', isAdmin: false }

async function started(office: Office, id: string, actor = ANNA): Promise<string> {
  const launched = await office.automations.runNow(id, actor)
  expect(launched.type).toBe('started')
  return launched.runId ?? ''
}

async function used(office: Office, id: string): Promise<BudgetState> {
  return (await office.automations.budgets.state(await office.automations.read(id, { ...ANNA, isAdmin: true })))
    .automation
}

/** A worker of the test, which takes the call of the tool and keeps it. */
async function taken(office: Office, worker = 'mine'): Promise<Delivery> {
  const { desk } = office.engine
  await desk.register(newWorkerRecord({ id: worker, skills: ['tool:echo'], concurrencyMax: 50 }, office.clock.now()))
  const { deliveries } = await desk.poll(worker, { limit: 1, waitMs: 0, signal: new AbortController().signal })
  const [delivery] = deliveries
  if (delivery === undefined) throw new Error('There is nothing to do.')
  return delivery
}

/** An agent with a budget, as the server keeps it. */
async function addAgent(office: Office, budget: DataObject): Promise<void> {
  await office.storage.commit({ put: [{ kind: 'agent', id: AGENT.id, version: 1, value: { budget } as never }] })
}

test.each([
  ['usd_per_day', { usd: 2.5 }, 5],
  ['tokens_per_day', { tokens: 500 }, 1_000],
  ['gpu_seconds_per_day', { seconds: 30 }, 60],
])('[K-16] %s: when it is spent the next run is skipped, until the next day', async (name, each, limit) => {
  const office = new Office()
  office.answer = () => ({ output: 'ok', used: each })
  const { id } = await office.create({ budget: { [name]: limit } })
  for (let count = 0; count < 2; count += 1) {
    await started(office, id)
    await office.settle()
  }
  expect((await office.runs(id)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded'])
  expect(await office.automations.runNow(id, ANNA)).toMatchObject({ type: 'skipped', reason: 'budget' })
  expect(await office.skips(id)).toMatchObject([
    {
      reason: 'budget',
      message: `The budget is spent: ${name} of the automation is ${limit}, and ${limit} were used today (UTC).`,
    },
  ])
  office.clock.time += DAY
  await started(office, id)
})

test('[K-16] a run that passes the limit is stopped: its task is taken back, and the audit log says why', async () => {
  const office = new Office()
  const pipeline = [
    { id: 'a', uses: 'echo', with: {} },
    { id: 'b', uses: 'echo', with: {} },
  ]
  office.answer = () => ({ output: 'ok', used: { usd: 3 } })
  const { id } = await office.create({ pipeline, budget: { usd_per_day: 5 } })
  const runId = await started(office, id)
  await office.settle()
  expect(await office.run(runId)).toMatchObject({
    status: 'canceled',
    error: { message: expect.stringContaining('usd_per_day of the automation is 5, and 6 were used') as unknown },
  })
  const entries = (await office.audit(id)).filter(({ action }) => action === 'run.stopped')
  expect(entries).toMatchObject([{ actor: 'impresario', details: { run_id: runId, reason: 'budget' } }])
  expect(await used(office, id)).toMatchObject({ usd: { used: 6, limit: 5 }, tokens: { used: 0, limit: undefined } })
})

test('[K-16] a report that is sent again counts once, and only the holder of the task is heard', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({ budget: { usd_per_day: 100 } })
  await started(office, id)
  await office.settle()
  const { taskId } = await taken(office)
  const { budgets } = office.automations
  const report = { usage: { ...NO_USAGE, usd: 1 }, eventId: 'first' }
  expect(await budgets.meter('mine', taskId, report)).toMatchObject({ type: 'accepted' })
  expect(await budgets.meter('mine', taskId, report)).toMatchObject({ type: 'ignored', reason: 'repeated_event' })
  expect(await budgets.meter('other', taskId, { ...report, eventId: 'x' })).toMatchObject({ reason: 'worker_mismatch' })
  expect(await budgets.meter('mine', 'nonsense', report)).toMatchObject({ reason: 'stale_task' })
  await Promise.all(
    Array.from({ length: 20 }, (_, at) => budgets.meter('mine', taskId, { ...report, eventId: `more ${at}` })),
  )
  expect(await used(office, id)).toMatchObject({ usd: { used: 21 } })
})

test('[K-16] what parts of a run use counts for the run, and two instances count together', async () => {
  const clock = new StillClock()
  const storage = testStorage({ now: clock.now })
  const first = new Office({ storage, clock, instance: 1 })
  const second = new Office({ storage, clock, instance: 2 })
  first.isWorking = false
  const pipeline = [{ id: 'each', for_each: { items: '[1, 2, 3, 4, 5, 6]', concurrency: 6 }, uses: 'echo', with: {} }]
  const { id } = await first.create({ pipeline, budget: { tokens_per_day: 1_000 } })
  const runId = await started(first, id)
  await first.settle()
  const deliveries: { readonly office: Office; readonly worker: string; readonly taskId: string }[] = []
  for (let count = 0; count < 6; count += 1) {
    const office = count % 2 === 0 ? first : second
    const worker = `worker ${count}`
    deliveries.push({ office, worker, taskId: (await taken(office, worker)).taskId })
  }
  await Promise.all(
    deliveries.map(({ office, worker, taskId }) =>
      office.automations.budgets.meter(worker, taskId, { usage: { ...NO_USAGE, tokens: 7 }, eventId: 'one' }),
    ),
  )
  expect(await used(second, id)).toMatchObject({ tokens: { used: 42 } })
  expect(await new RunBook(second.parts).read(runId, ANNA)).toMatchObject({
    usage: { tokens: 42 },
  })
})

test('[K-16] the budget of an agent is for all its automations together', async () => {
  const office = new Office()
  await addAgent(office, { usdPerDay: 4, runsPerDay: 3 })
  office.answer = () => ({ output: 'ok', used: { usd: 2 } })
  const one = await office.create({}, AGENT)
  const two = await office.create({}, AGENT)
  for (const { id } of [one, two]) {
    await started(office, id, AGENT)
    await office.settle()
  }
  expect(await office.automations.runNow(one.id, AGENT)).toMatchObject({ type: 'skipped', reason: 'budget' })
  expect(await office.skips(one.id)).toMatchObject([
    { message: expect.stringContaining('of the agent is 4') as unknown },
  ])
  const { automation, agent } = await office.automations.budgets.state(one)
  expect(automation).toMatchObject({ usd: { used: 2, limit: undefined }, runs: { used: undefined } })
  expect(agent).toMatchObject({ usd: { used: 4, limit: 4 }, runs: { used: 2, limit: 3 } })
  office.clock.time += DAY
  office.answer = () => ({ output: 'ok' })
  for (const id of [one.id, two.id, one.id]) await started(office, id, AGENT).then(() => office.settle())
  expect(await office.automations.runNow(two.id, AGENT)).toMatchObject({ type: 'skipped', reason: 'budget' })
})

test('[K-16] a run that waits for its place does not begin once the budget is spent, and holds up no other', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({ budget: { usd_per_day: 1 } })
  await started(office, id)
  expect(await office.automations.runNow(id, ANNA)).toMatchObject({ type: 'waiting' })
  office.isWorking = true
  office.answer = () => ({ output: 'ok', used: { usd: 1 } })
  await office.settle()
  await office.after(5_000, 1_000)
  expect(await office.runs(id)).toHaveLength(1)
  expect(await office.skips(id)).toMatchObject([{ reason: 'budget' }])
  office.clock.time += DAY
  await started(office, id)
})

test('[K-16] what a task outside of automations uses is on record with its job alone', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({})
  const runId = await started(office, id)
  await office.settle()
  const { taskId } = await taken(office)
  await office.storage.commit({ drop: [{ kind: 'automation', id }] })
  const report = { usage: { ...NO_USAGE, usd: 2 }, eventId: 'a' }
  expect(await office.automations.budgets.meter('mine', taskId, report)).toMatchObject({ type: 'accepted' })
  expect((await office.engine.readJob(runId))?.value.usage).toEqual(report.usage)
})
