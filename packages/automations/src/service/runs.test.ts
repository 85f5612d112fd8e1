import { expect, test } from 'vitest'
import { ADMIN, ANNA, Office } from './office.fixture.ts'
import { RunBook } from './run-book.ts'

const TWO_STEPS = [
  { id: 'first', uses: 'echo', with: { text: '${params.name}' }, save_as: 'said' },
  { id: 'second', uses: 'echo', with: { text: '${steps.said.text}!' }, if: "steps.said.text == 'Ada'" },
  { id: 'third', uses: 'echo', with: {}, if: "params.name == 'Bob'" },
]

test('[K-09] a run goes over its steps, and each is on record with what it got, gave and looked at', async () => {
  const office = new Office()
  const { id } = await office.create({ params: { name: 'Ada' }, pipeline: TWO_STEPS })
  const launched = await office.automations.runNow(id, ANNA)
  expect(launched.type).toBe('started')
  await office.settle()
  const [run] = await office.runs(id)
  expect(run).toMatchObject({ id: launched.runId, status: 'succeeded', attempt: 1, output: { text: 'Ada!' } })
  expect(run?.steps.map((step) => [step.id, step.status, step.output])).toEqual([
    ['first', 'succeeded', { text: 'Ada' }],
    ['second', 'succeeded', { text: 'Ada!' }],
    ['third', 'skipped', null],
  ])
  expect(run?.steps[2]?.condition).toMatchObject({ holds: false, values: { 'params.name': 'Ada' } })
  expect(office.calls).toEqual([{ text: 'Ada' }, { text: 'Ada!' }])
})

test('[K-08] steps are chosen in the commit before them, for an automation that never ran as for one that did', async () => {
  const office = new Office()
  for (let made = 0; made < 4; made += 1) {
    const { id } = await office.create({ title: `learned from ${made}` })
    await office.automations.runNow(id, ANNA)
    await office.settle()
  }
  const { storage } = office
  const commit = storage.commit.bind(storage)
  const queues: string[][] = []
  storage.commit = (batch) => {
    const { put = [], enqueue = [] } = batch
    if (put.some(({ kind }) => kind === 'job')) queues.push(enqueue.map(({ queue }) => queue))
    return commit(batch)
  }
  const { id } = await office.create({ params: { name: 'Ada' }, pipeline: TWO_STEPS, overlap: 'parallel' })
  await office.automations.runNow(id, ANNA)
  await office.settle()
  expect((await office.runs(id))[0]?.status).toBe('succeeded')
  // The run with its first call, the result with the second call, the result with the end.
  expect(queues).toEqual([['tasks'], ['tasks'], []])
})

test('[K-09] a run that was interrupted between two steps goes on at the second one in another process', async () => {
  const office = new Office()
  const { id } = await office.create({ params: { name: 'Ada' }, pipeline: TWO_STEPS })
  await office.automations.runNow(id, ANNA)
  office.isWorking = false
  await office.settle()
  const other = new Office({ storage: office.storage, clock: office.clock, instance: 1 })
  await other.settle()
  expect(other.calls).toEqual([{ text: 'Ada' }, { text: 'Ada!' }])
  expect((await other.runs(id))[0]?.status).toBe('succeeded')
})

test('[K-07] a run that failed begins again after a pause, as its next attempt, with the first one on record', async () => {
  const office = new Office()
  const retry = { max_retries: 2, backoff: 'fixed', initial_seconds: 60 }
  const { id } = await office.create({ retry })
  office.answer = () => ({ code: 'TRANSIENT_ERROR' })
  const { runId = '' } = await office.automations.runNow(id, ANNA)
  await office.settle()
  const waiting = await office.run(runId)
  expect(waiting).toMatchObject({ status: 'running', attempt: 2, attempts: [{ attempt: 1 }] })
  await office.after(59_000)
  expect(office.calls).toHaveLength(1)
  office.answer = (input) => ({ output: input })
  await office.after(1_000)
  expect(office.calls).toHaveLength(2)
  expect(await office.run(runId)).toMatchObject({ status: 'succeeded', attempt: 2 })
})

test('[K-07] a run fails for good when its retries are used up, and at once when trying again would not help', async () => {
  const office = new Office()
  const { id } = await office.create({ retry: { max_retries: 1, backoff: 'fixed', initial_seconds: 1 } })
  office.answer = () => ({ code: 'TRANSIENT_ERROR' })
  const first = await office.automations.runNow(id, ANNA)
  await office.settle()
  await office.after(1_000)
  expect(await office.run(first.runId ?? '')).toMatchObject({ status: 'failed', attempt: 2 })
  office.answer = () => ({ code: 'PERMANENT_ERROR' })
  const second = await office.automations.runNow(id, ANNA)
  await office.settle()
  const failed = await office.run(second.runId ?? '')
  expect(failed).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'PERMANENT_ERROR' } })
})

test('[K-09] a loop runs its items as parts, and lists of runs do not show them', async () => {
  const office = new Office()
  const each = {
    id: 'each',
    uses: 'echo',
    with: { text: '${item}' },
    for_each: { items: 'params.names', concurrency: 2 },
  }
  const { id } = await office.create({ params: { names: ['a', 'b', 'c'] }, pipeline: [each] })
  await office.automations.runNow(id, ANNA)
  await office.settle()
  const runs = await office.runs(id)
  expect(runs).toHaveLength(1)
  expect(runs[0]).toMatchObject({ status: 'succeeded', output: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] })
})

test('[K-09] a step may sleep and ask a person, and the run goes on with the decision', async () => {
  const office = new Office()
  const { id } = await office.create({
    pipeline: [
      { id: 'pause', uses: 'delay', with: { seconds: 3_600 } },
      { id: 'ask', approval: { message: 'Send it?', decisions: ['yes', 'no'] }, save_as: 'said' },
      { id: 'send', uses: 'echo', with: { text: '${steps.said.decision}' } },
    ],
  })
  const { runId = '' } = await office.automations.runNow(id, ANNA)
  await office.settle()
  expect((await office.engine.readJob(runId))?.value.status).toBe('waiting_for_time')
  await office.after(3_600_000)
  expect((await office.engine.readJob(runId))?.value.status).toBe('waiting_for_human')
  await office.engine.decideApproval(runId, 'yes', 'carol')
  await office.settle()
  expect(await office.run(runId)).toMatchObject({ status: 'succeeded', output: { text: 'yes' } })
})

test('[K-11] a run that is cancelled stops at its step, and says so', async () => {
  const office = new Office()
  const { id } = await office.create({})
  office.isWorking = false
  const { runId = '' } = await office.automations.runNow(id, ANNA)
  await office.settle()
  await office.engine.cancelJob(runId, 'anna')
  const run = await office.run(runId)
  expect(run).toMatchObject({
    status: 'canceled',
    steps: [{ id: 'say', status: 'failed', error: { code: 'CANCELLED' } }],
  })
})

test('[K-11] [K-13] a run that is cancelled is in the audit log with who and why, once, whichever way it was cancelled', async () => {
  const office = new Office()
  const runs = new RunBook(office.parts)
  const { id } = await office.create({})
  office.isWorking = false
  const first = (await office.automations.runNow(id, ANNA)).runId ?? ''
  const second = (await office.automations.runNow(id, ANNA)).runId ?? ''
  await office.settle()
  const forAda = { ...ANNA, onBehalfOf: 'ada' }
  await runs.cancel(second, forAda, 'not needed')
  await runs.cancel(first, forAda)
  await runs.cancel(first, forAda)
  const entries = (await office.audit(id)).filter(({ action }) => action === 'run.canceled')
  expect(entries).toMatchObject([
    { actor: 'anna', onBehalfOf: 'ada', owner: 'anna', details: { run_id: second, reason: 'not needed' } },
    { actor: 'anna', onBehalfOf: 'ada', owner: 'anna', details: { run_id: first } },
  ])
  const third = (await office.automations.runNow(id, ANNA)).runId ?? ''
  const stored = await office.engine.readJob(third)
  if (stored === undefined) throw new Error('There is no third run.')
  expect(await runs.cancelJob(stored.value, ADMIN, 'stop')).toMatchObject({ type: 'applied' })
  expect((await office.audit(id)).at(-1)).toMatchObject({
    action: 'run.canceled',
    actor: 'admin',
    details: { run_id: third, reason: 'stop' },
  })
})

test('[K-01] [K-10] an owner that has lost the scope of a tool does not run it: the run fails and says which scope', async () => {
  const office = new Office()
  const { id } = await office.create({ pipeline: [{ id: 'a', uses: 'echo', on_error: 'continue' }] })
  office.lost = ['jobs:write']
  await office.automations.runNow(id, ANNA)
  await office.settle()
  expect(office.calls).toEqual([])
  const [run] = await office.runs(id)
  expect(run).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'SCOPE_MISSING' } })
  expect(run?.error?.message).toContain('The tool "echo" needs the scope jobs:write')
  office.lost = []
  await office.automations.runNow(id, ANNA)
  await office.settle()
  expect((await office.runs(id))[1]).toMatchObject({ status: 'succeeded' })
})

test('[K-10] a run whose tool is gone fails and says which, and one with an unknown tool is refused', async () => {
  const office = new Office()
  await expect(office.create({ pipeline: [{ id: 'x', uses: 'ecko', with: {} }] })).rejects.toThrow(/ecko.*echo/)
  const { id } = await office.create({ pipeline: [{ id: 'x', uses: 'gone', with: {} }] })
  await office.automations.runNow(id, ADMIN)
  await office.settle()
  expect((await office.runs(id))[0]).toMatchObject({ status: 'failed', error: { code: 'TOOL_GONE' } })
})

test('[K-09] outputs that do not fit together fail the run instead of growing without end', async () => {
  const office = new Office()
  office.answer = () => ({ output: 'x'.repeat(150_000) })
  const { id } = await office.create({
    pipeline: [
      { id: 'a', uses: 'echo' },
      { id: 'b', uses: 'echo' },
    ],
  })
  await office.automations.runNow(id, ANNA)
  await office.settle()
  expect((await office.runs(id))[0]).toMatchObject({ status: 'failed', error: { code: 'LIMIT_EXCEEDED' } })
})

test('[K-09] a number of 64 bits keeps its digits through templates, steps and results', async () => {
  const office = new Office()
  const step = {
    id: 'a',
    uses: 'echo',
    with: { text: 'id ${params.id}', list: '${to_json(params)}', id: '${params.id}' },
  }
  const { id } = await office.create({ params: { id: 9_223_372_036_854_775_807n }, pipeline: [step] })
  await office.automations.runNow(id, ANNA)
  await office.settle()
  const [run] = await office.runs(id)
  expect(run).toMatchObject({
    status: 'succeeded',
    output: { text: 'id 9223372036854775807', id: 9_223_372_036_854_775_807n },
  })
  expect(run?.output).toMatchObject({ list: '{"id":9223372036854775807}' })
})
