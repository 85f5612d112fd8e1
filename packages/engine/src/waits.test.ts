import { blueprint, newWorkerRecord } from '@impresario/core'
import { eventType, isImpresarioError, LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { oneTask, Stage } from './stage.fixture.ts'
import type { StageWorker } from './stage.fixture.ts'

test('[B-10] the handler that a rejection led to is told of it, also when it runs again', async () => {
  let runs = 0
  const asking = blueprint('asking', { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'Publish it?', transitions: { approved: 'done', rejected: 'explain' } }),
    ),
    explain: state.handler((context, actions) => {
      runs += 1
      if (runs === 1) throw new Error('not yet')
      return actions.transitionTo('done', { failure: { ...context.failure } })
    }),
    done: state.end(),
  }))
  const stage = new Stage([asking])
  const jobId = await stage.begin('asking')
  await stage.engine.decideApproval(jobId, 'rejected', 'anna', { comment: 'too dark' })
  await stage.after(10_000)
  const job = await stage.job(jobId)
  expect(job.failure).toBeUndefined()
  expect(job).toMatchObject({
    status: 'finished',
    result: { failure: { code: 'REJECTED', message: 'Rejected by "anna": too dark', state: 'ask', attempts: 1 } },
  })
})

const napping = blueprint('napping', { start: 'rest', executionTimeout: '9d' }, (state) => ({
  rest: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
  done: state.end(),
}))

test('[B-11] a job sleeps without holding anything, survives a restart, and goes on when it is time', async () => {
  const stage = new Stage([napping])
  const jobId = await stage.begin('napping')
  const until = stage.clock.now() + 3 * 86_400_000
  expect(await stage.job(jobId)).toMatchObject({ status: 'waiting_for_time', wait: { kind: 'sleep', until } })
  await stage.restart()
  await stage.after(until - stage.clock.now() - 1_000)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_time')
  await stage.after(2_000)
  expect(await stage.job(jobId)).toMatchObject({ status: 'finished' })
  expect(await stage.eventsOf(jobId)).toEqual(['job_created', 'sleep_started', 'sleep_ended', 'job_finished'])
})

test('[B-11] a sleeping job can be cancelled, and its timer is gone with it', async () => {
  const stage = new Stage([napping])
  const jobId = await stage.begin('napping')
  expect(await stage.storage.peek('timers', [`${jobId}.sleep`, `${jobId}.life`])).toMatchObject([{}, {}])
  await stage.engine.cancelJob(jobId, 'anna')
  expect(await stage.statusOf(jobId)).toBe('cancelled')
  expect(await stage.storage.peek('timers', [`${jobId}.sleep`, `${jobId}.life`])).toEqual([undefined, undefined])
})

test('[B-11] the time limit of a job ends its sleep', async () => {
  const short = blueprint('short', { start: 'rest', executionTimeout: '1m' }, (state) => ({
    rest: state.handler((context, actions) =>
      actions.sleep(new Date(Number(context.initialData['until'])), { to: 'done' }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([short])
  const jobId = await stage.begin('short', { initialData: { until: stage.clock.now() + 600_000 } })
  expect(await stage.job(jobId)).toMatchObject({ wait: { until: stage.clock.now() + 600_000 } })
  await stage.after(61_000)
  expect(await stage.job(jobId)).toMatchObject({ status: 'failed', error: { code: 'EXECUTION_TIMEOUT' } })
})

const paid = eventType('order.paid', z.object({ sum: z.number(), note: z.string().default('-') }))
const orderInput = z.object({ order: z.string().default('none') })
const order = blueprint('order', { input: orderInput, start: 'wait', events: [paid] }, (state) => ({
  wait: state.handler((context, actions) =>
    actions.waitForEvent(paid, {
      transitions: { received: 'done', timeout: 'late' },
      timeout: '1h',
      match: context.initialData.order,
    }),
  ),
  done: state.end({ result: (context) => ({ ...context.eventOf(paid), id: context.event?.id }) }),
  late: state.end({ outcome: 'failed', result: (context) => context.failure }),
}))
const ofOrder = (id: string): { initialData: { order: string } } => ({ initialData: { order: id } })

describe('[B-12] events', () => {
  test('a job that waits for an event goes on with it, and the same event again changes nothing', async () => {
    const stage = new Stage([order])
    const jobId = await stage.begin('order')
    expect(await stage.statusOf(jobId)).toBe('waiting_for_event')
    const event = { topic: 'order.paid', payload: { sum: 7 }, eventId: 'e1' }
    expect(await stage.engine.sendEvent(jobId, event)).toMatchObject({ eventId: 'e1', isNew: true })
    await stage.run()
    expect(await stage.job(jobId)).toMatchObject({ status: 'finished', result: { sum: 7, note: '-', id: 'e1' } })
    expect(await stage.engine.sendEvent(jobId, event)).toMatchObject({ isNew: false })
    await expect(stage.engine.sendEvent(jobId, { ...event, payload: { sum: 8 } })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
    await expect(stage.engine.sendEvent(jobId, { ...event, eventId: 'e2' })).rejects.toMatchObject({
      code: 'NOT_WAITING',
    })
  })

  test('what does not fit is refused at the door', async () => {
    const stage = new Stage([order])
    const jobId = await stage.begin('order')
    const refusal = (topic: string, payload: JsonObject, eventId?: string): Promise<string> =>
      stage.engine.sendEvent(jobId, { topic, payload, eventId }).then(
        () => 'nothing',
        (error: unknown) => (isImpresarioError(error) ? error.code : String(error)),
      )
    expect(await refusal('order.paid', { sum: 'much' })).toBe('INPUT_REFUSED')
    expect(await refusal('order.sent', {})).toBe('INPUT_REFUSED')
    expect(await refusal('not a topic', {})).toBe('INVALID_REQUEST')
    expect(await refusal('order.paid', { sum: 1 }, '')).toBe('INVALID_REQUEST')
    expect(await refusal('order.paid', { sum: 1, note: 'x'.repeat(70_000) })).toBe('LIMIT_EXCEEDED')
    await expect(stage.engine.sendEvent('nobody', { topic: 'order.paid', payload: {} })).rejects.toMatchObject({
      code: 'JOB_NOT_FOUND',
    })
    await expect(stage.engine.publishEvent('client', 'k', { topic: 'order.paid', payload: {} })).rejects.toMatchObject({
      code: 'INPUT_REFUSED',
    })
    await expect(stage.engine.publishEvent('client', '', { topic: 'order.paid', payload: {} })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
    expect(await stage.statusOf(jobId)).toBe('waiting_for_event')
  })

  test('by key an event reaches every job of its client that waits for it, and nobody else', async () => {
    const stage = new Stage([order])
    const both = [await stage.begin('order', ofOrder('o1')), await stage.begin('order', ofOrder('o1'))]
    const other = await stage.begin('order', ofOrder('o2'))
    const foreign = await stage.begin('order', { ...ofOrder('o1'), client: { id: 'stranger' } })
    const event = { topic: 'order.paid', payload: { sum: 7 }, eventId: 'e1' }
    expect(await stage.engine.publishEvent('client', 'o1', event)).toEqual({ eventId: 'e1', isNew: true })
    expect(await stage.engine.publishEvent('client', 'o1', event)).toEqual({ eventId: 'e1', isNew: false })
    await expect(stage.engine.publishEvent('client', 'o1', { ...event, payload: { sum: 8 } })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
    await stage.run()
    for (const jobId of both) expect(await stage.job(jobId)).toMatchObject({ status: 'finished', result: { sum: 7 } })
    expect(await stage.statusOf(other)).toBe('waiting_for_event')
    expect(await stage.statusOf(foreign)).toBe('waiting_for_event')
    expect(await stage.storage.list('listener', { limit: 10 })).toHaveLength(2)
  })

  test('by key too, an event that comes before the wait is kept, for a day', async () => {
    const stage = new Stage([order])
    await stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { sum: 1 } })
    await stage.run()
    const first = await stage.begin('order', ofOrder('o1'))
    expect(await stage.job(first)).toMatchObject({ status: 'finished', result: { sum: 1 } })
    await stage.clock.advance(1)
    // One that another job has had is not for a job that came later.
    const second = await stage.begin('order', ofOrder('o1'))
    expect(await stage.statusOf(second)).toBe('waiting_for_event')
    await stage.engine.publishEvent('client', 'o3', { topic: 'order.paid', payload: { sum: 3 } })
    await stage.clock.advance(LIMITS.keptEventMs)
    const late = await stage.begin('order', ofOrder('o3'))
    expect(await stage.statusOf(late)).toBe('waiting_for_event')
  })

  test('a job that was there when the event came gets it when it begins to wait, though others had it', async () => {
    const slow = blueprint('slow', { start: 'rest' }, (state) => ({
      rest: state.handler((_context, actions) => actions.sleep('10s', { to: 'wait' })),
      wait: state.handler((_context, actions) =>
        actions.waitForEvent('order.paid', { transitions: { received: 'again' }, match: 'o1' }),
      ),
      again: state.handler((_context, actions) =>
        actions.waitForEvent('order.paid', { transitions: { received: 'done' }, match: 'o1' }),
      ),
      done: state.end(),
    }))
    const stage = new Stage([order, slow])
    const early = await stage.begin('order', ofOrder('o1'))
    const late = await stage.begin('slow')
    await stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { sum: 1 } })
    await stage.run()
    expect(await stage.statusOf(early)).toBe('finished')
    await stage.after(12_000)
    // Once: its second wait is for another event.
    expect(await stage.job(late)).toMatchObject({ status: 'waiting_for_event', state: 'again' })
    await stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { sum: 2 } })
    await stage.run()
    expect(await stage.job(late)).toMatchObject({ status: 'finished', result: { 'order.paid': { sum: 2 } } })
  })

  test('an event that does not come in time is a failure, and nothing is left behind', async () => {
    const stage = new Stage([order])
    const jobId = await stage.begin('order')
    await stage.after(3_600_000 + 2_000)
    expect(await stage.job(jobId)).toMatchObject({ status: 'failed', result: { code: 'EVENT_TIMEOUT' } })
    expect(await stage.storage.list('listener', { limit: 10 })).toEqual([])
    expect(await stage.storage.peek('timers', [`${jobId}.event`])).toEqual([undefined])
  })

  test('one event reaches more jobs than fit into one step', async () => {
    const stage = new Stage([order])
    const requests = Array.from({ length: LIMITS.eventReachStep + 30 }, () => ({
      blueprint: 'order',
      client: { id: 'client' },
      ...ofOrder('o1'),
    }))
    await stage.engine.createJobs(requests)
    await stage.run()
    await stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { sum: 7 } })
    await stage.run()
    expect(await stage.storage.counts('job', {})).toEqual({ finished: requests.length })
  })

  test('an inbox that is full of what no job has had refuses more', async () => {
    const stage = new Stage([order])
    const send = (sum: number): Promise<unknown> =>
      stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { sum } })
    for (let sum = 0; sum < LIMITS.keptEventsMax; sum += 1) await send(sum)
    await expect(send(-1)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  })

  test('an event that fits another blueprint of the same topic does not move the job', async () => {
    const odd = blueprint(
      'odd',
      { start: 'end', events: [eventType('order.paid', z.object({ odd: z.string() }))] },
      (state) => ({
        end: state.end(),
      }),
    )
    const stage = new Stage([order, odd])
    const jobId = await stage.begin('order', ofOrder('o1'))
    await stage.engine.publishEvent('client', 'o1', { topic: 'order.paid', payload: { odd: 'x' } })
    await stage.run()
    expect(await stage.statusOf(jobId)).toBe('waiting_for_event')
    expect(stage.log.lines).toContainEqual(expect.objectContaining({ level: 'warn' }))
  })
})

describe('[B-13] compensation', () => {
  const trip = blueprint(
    'trip',
    { history: z.object({ refunded: z.boolean() }), start: 'flight', backoffMs: 1_000 },
    (state) => ({
      flight: state.withUndo(
        state.handler((_context, actions) => actions.dispatchTask({ type: 'work', transitions: { success: 'hotel' } })),
        (context, actions) =>
          actions.dispatchTask({ type: 'work', params: { undo: context.undo.state }, attemptsMax: 1 }),
      ),
      hotel: state.withUndo(
        state.handler((_context, actions) => actions.runBlueprint({ name: 'one', transitions: { success: 'pay' } })),
        (_context, actions) => actions.runBlueprint({ name: 'one' }),
      ),
      pay: state.withUndo(
        state.handler((_context, actions) => actions.transitionTo('wait')),
        (context) => {
          context.stateHistory.refunded = context.undo.isCertain
        },
      ),
      wait: state.handler((_context, actions) => actions.sleep('1d', { to: 'done' })),
      done: state.end(),
    }),
  )

  /** A worker that does whatever there is, until there is nothing. */
  async function work(stage: Stage, worker: StageWorker): Promise<readonly unknown[]> {
    const done: unknown[] = []
    for (;;) {
      await stage.run()
      const deliveries = await worker.take(10)
      if (deliveries.length === 0) return done
      for (const { taskId, call } of deliveries) {
        done.push(call.params)
        await worker.report(taskId)
      }
    }
  }

  test('a cancelled job undoes what it did, newest first: by code, by a child, by a worker', async () => {
    const stage = new Stage([trip, oneTask()])
    const worker = await stage.worker('w')
    const jobId = await stage.begin('trip')
    await work(stage, worker)
    expect(await stage.job(jobId)).toMatchObject({ status: 'waiting_for_time', undos: [{}, {}, {}] })
    expect(await stage.engine.cancelJob(jobId, 'anna')).toMatchObject({ type: 'applied' })
    expect(await stage.engine.cancelJob(jobId, 'anna')).toMatchObject({ type: 'repeated' })
    await stage.restart()
    await stage.engine.desk.register(newWorkerRecord({ id: 'w', skills: ['work'] }, stage.clock.now()))
    expect(await work(stage, worker)).toEqual([{}, { undo: 'flight' }])
    expect(await stage.job(jobId)).toMatchObject({
      status: 'cancelled',
      state: 'wait',
      error: { code: 'CANCELLED' },
      stateHistory: { refunded: true },
      compensation: { left: [], undone: ['pay', 'hotel', 'flight'] },
    })
  })

  test('an undo that fails for good waits for a person, and goes on where it was', async () => {
    const stage = new Stage([trip, oneTask()])
    const worker = await stage.worker('w')
    const jobId = await stage.begin('trip')
    await worker.report((await worker.takeOne()).taskId)
    await stage.run()
    await stage.engine.cancelJob(jobId, 'anna')
    await stage.run()
    // The hotel was under way: it is undone too, by the child that the worker does next.
    const child = await worker.takeOne()
    await worker.report(child.taskId)
    await stage.run()
    await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
    await stage.run()
    expect(await stage.job(jobId)).toMatchObject({ status: 'quarantined', state: 'flight' })
    await stage.engine.retryJob(jobId, 'bob')
    await stage.run()
    await worker.report((await worker.takeOne()).taskId)
    await stage.run()
    expect(await stage.job(jobId)).toMatchObject({
      status: 'cancelled',
      compensation: { undone: ['hotel', 'flight'], left: [] },
    })
  })
})
