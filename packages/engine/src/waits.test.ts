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
