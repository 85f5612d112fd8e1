import type { OutboxMessage } from '@impresario/core'
import { blueprint } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

const webhookUrl = 'https://hear.example/me'
const approval = blueprint('approval', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'Go on?',
      transitions: { yes: 'again', no: 'failed', expired: 'failed' },
      expires: '1h',
      remindEvery: '10m',
    }),
  ),
  again: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Really?', transitions: { yes: 'done', no: 'failed' } }),
  ),
  done: state.end(),
}))

/** What lies in the outbox now, claimed as a sender would. */
async function outbox(stage: Stage): Promise<readonly OutboxMessage[]> {
  const { leases } = await stage.storage.claim('outbox', { limit: 100, leaseMs: 1 })
  for (const lease of leases) {
    const message = lease.payload as OutboxMessage
    expect(lease).toMatchObject({ id: message.messageId, lane: message.clientId })
    expect(message.messageId).not.toContain('.')
    await stage.storage.commit({ settle: lease })
  }
  return leases.map(({ payload }) => payload as OutboxMessage)
}

/** Lets minutes pass, and what follows from them. */
async function minutes(stage: Stage, count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    await stage.clock.advance(60_000)
    await stage.run()
  }
}

test('[H-07] a message is in the log of deliveries before anybody has tried to send it', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one', { webhookUrl })
  await worker.report((await worker.takeOne()).taskId, { data: { n: 1 } })
  const [noted, ...others] = await stage.storage.list('delivery', { owner: 'client', status: 'pending', limit: 10 })
  expect(others).toEqual([])
  expect(noted).toMatchObject({
    id: `msg_${jobId}_2_finished`,
    version: 1,
    value: { jobId, url: webhookUrl, status: 'pending', attempts: [], tries: 0 },
  })
})

test('[H-07] a job ends as ever where a record of its message is there already, of one with the same name before it', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one', { webhookUrl })
  const { taskId } = await worker.takeOne()
  const old = { kind: 'delivery', id: `msg_${jobId}_2_finished`, version: 1, value: { status: 'delivered' } } as const
  await stage.storage.commit({ put: [old] })
  await worker.report(taskId, { data: { n: 1 } })
  expect((await stage.storage.read('job', jobId))?.value.status).toBe('finished')
  expect((await outbox(stage)).map(({ messageId }) => messageId)).toEqual([old.id])
})

test('[H-07] the end of a job and the message about it are one commit', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one', { webhookUrl })
  expect(await outbox(stage)).toEqual([])
  await worker.report((await worker.takeOne()).taskId, { data: { n: 1 } })
  const at = stage.clock.now()
  expect(await outbox(stage)).toEqual([
    {
      messageId: `msg_${jobId}_2_finished`,
      url: webhookUrl,
      clientId: 'client',
      jobId,
      event: 'job_finished',
      at,
      body: {
        event: 'job_finished',
        job_id: jobId,
        status: 'finished',
        result: { n: 1 },
        error: null,
        timestamp: at / 1_000,
      },
    },
  ])
})

test('[H-07] [E-01] events of a worker and a failure of its task are told', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  await stage.begin('one', { webhookUrl })
  const { taskId } = await worker.takeOne()
  await worker.say(taskId, 'half way', { n: 1 }, 'e1')
  await worker.say(taskId, 'half way', { n: 1 }, 'e1')
  await worker.fail(taskId, 'PERMANENT_ERROR')
  const messages = await outbox(stage)
  expect(messages.map(({ event }) => event)).toEqual(['worker_event:half way', 'job_quarantined'])
  expect(messages[0]?.body).toMatchObject({ payload: { n: 1 }, status: 'waiting_for_worker', worker_id: 'w' })
  expect(messages[1]?.body).toMatchObject({ error: { code: 'PERMANENT_ERROR' } })
})

test('[H-07] [B-04] a request for approval is told, reminded of, and answered only by a decision about it', async () => {
  const stage = new Stage([approval])
  const jobId = await stage.begin('approval', { webhookUrl })
  const [asked] = await outbox(stage)
  expect(asked?.body).toMatchObject({
    event: 'approval_requested',
    status: 'waiting_for_human',
    message: 'Go on?',
    decisions: ['yes', 'no'],
    visit: 1,
  })
  await minutes(stage, 21)
  expect((await outbox(stage)).map(({ event, body }) => [event, body['reminders']])).toEqual([
    ['approval_reminder', 1],
    ['approval_reminder', 2],
  ])
  await stage.engine.decideApproval(jobId, 'yes', 'anna', { visit: 1 })
  await stage.run()
  expect(await stage.engine.decideApproval(jobId, 'yes', 'anna', { visit: 1 })).toMatchObject({ type: 'repeated' })
  const other = await stage.engine.decideApproval(jobId, 'no', 'anna', { visit: 1 })
  expect(other).toMatchObject({ type: 'ignored', reason: 'stale_decision' })
  expect(await stage.job(jobId)).toMatchObject({ status: 'waiting_for_human', state: 'again' })
  await minutes(stage, 70)
  expect((await outbox(stage)).map(({ body }) => body['message'])).toEqual(['Really?'])
  await stage.engine.decideApproval(jobId, 'yes', 'anna', { visit: 2 })
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[B-04] reminders and expiry survive a restart', async () => {
  const stage = new Stage([approval])
  const jobId = await stage.begin('approval')
  await minutes(stage, 12)
  await stage.restart()
  await minutes(stage, 12)
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'approval_reminded')).toHaveLength(2)
  await minutes(stage, 37)
  expect(await stage.job(jobId)).toMatchObject({ status: 'failed', state: 'failed' })
})

test('[H-01] jobs are found by what people know of them', async () => {
  const stage = new Stage([oneTask(), approval])
  const metadata = { order: 'No. 4711', tags: ['Winter Sale'], deep: { note: 'x'.repeat(900) }, late: 'cut off' }
  const jobId = await stage.begin('one', { metadata })
  await stage.begin('approval')
  const found = async (search: string): Promise<readonly string[]> =>
    (await stage.engine.listJobs({ owner: 'client', search, limit: 10 })).map(({ id }) => id)
  for (const words of [jobId, '4711', 'winter sale', 'ONE ask']) expect(await found(words)).toEqual([jobId])
  expect(await found('cut off')).toEqual([])
  const worker = await stage.worker('w')
  await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
  expect(await found('permanent_error')).toEqual([jobId])
  const short = await stage.begin('one')
  await worker.fail((await worker.takeOne()).taskId, 'SECURITY_ERROR')
  expect(await found('w reports security')).toEqual([short])
  expect(LIMITS.searchTextCharsMax).toBe(500)
})

test('[G-05] ended jobs go after their time, quarantined ones stay; without a setting all stay', async () => {
  const kept = new Stage([oneTask()])
  const stage = new Stage([oneTask()], { settings: { retention: { endedJobMs: 60_000 } } })
  for (const one of [kept, stage]) {
    const worker = await one.worker('w')
    const ended = await one.begin('one')
    await worker.report((await worker.takeOne()).taskId)
    const aside = await one.begin('one')
    await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
    const open = await one.begin('one')
    await one.clock.advance(59_999)
    expect(await one.engine.readJob(ended)).toBeDefined()
    await one.clock.advance(2)
    expect((await one.engine.readJob(ended)) === undefined).toBe(one === stage)
    expect(await one.statusOf(aside)).toBe('quarantined')
    expect(await one.statusOf(open)).toBe('waiting_for_worker')
    await one.engine.discardJob(aside, 'client')
    await one.clock.advance(60_001)
    expect((await one.engine.readJob(aside)) === undefined).toBe(one === stage)
  }
})

test('[G-05] [B-05] a parent gets the result of a child whose record is gone', async () => {
  const parent = blueprint('parent', { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.runBlueprint({ name: 'quick', transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
  const quick = blueprint('quick', { start: 'go' }, (state) => ({
    go: state.handler((_context, actions) => actions.transitionTo('done', { n: 7 })),
    done: state.end(),
  }))
  const stage = new Stage([parent, quick], { settings: { retention: { endedJobMs: 1 } } })
  const jobId = await stage.create('parent')
  const { executor } = stage.engine
  // The child ends, and its letter lies in the mail while its record goes.
  await executor.tick()
  await stage.engine.tick()
  await executor.tick()
  expect(await stage.statusOf(`${jobId}-1-0`)).toBe('finished')
  await stage.clock.advance(5)
  await stage.run()
  expect(await stage.engine.readJob(`${jobId}-1-0`)).toBeUndefined()
  expect(await stage.job(jobId)).toMatchObject({ status: 'finished', result: { quick: { n: 7 } } })
})

test('[C-08] [H-05] the keys of two clients never meet, whatever the clients are called', async () => {
  const stage = new Stage([oneTask()])
  const create = (id: string, idempotencyKey: string) => stage.create('one', { client: { id }, idempotencyKey })
  const ids = [await create('a', 'b/c'), await create('a/b', 'c'), await create('a%2Fb', 'c'), await create('b', 'b/c')]
  expect(new Set(ids).size).toBe(4)
  expect(await create('a/b', 'c')).toBe(ids[1])
})

test('[C-08] [G-05] an idempotency key is known for a day, or for as long as the retention says', async () => {
  for (const [settings, knownMs] of [
    [{}, 86_400_000],
    [{ retention: { keyMs: 5_000 } }, 5_000],
  ] as const) {
    const stage = new Stage([oneTask()], { settings })
    const first = await stage.create('one', { idempotencyKey: 'k' })
    // A turn that waits for a day would be taken for an overload.
    await stage.run()
    await stage.clock.advance(knownMs - 1)
    expect(await stage.create('one', { idempotencyKey: 'k' })).toBe(first)
    await stage.clock.advance(2)
    const second = await stage.create('one', { idempotencyKey: 'k' })
    expect(second).not.toBe(first)
    expect(await stage.create('one', { idempotencyKey: 'k' })).toBe(second)
  }
})
