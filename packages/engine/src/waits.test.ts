import { blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage } from './stage.fixture.ts'

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
  await stage.engine.decideApproval(jobId, 'rejected', 'anna', 'too dark')
  await stage.after(10_000)
  expect(await stage.job(jobId)).toMatchObject({
    status: 'finished',
    failure: undefined,
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
