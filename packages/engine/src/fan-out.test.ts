import { blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage } from './stage.fixture.ts'

const COUNT = 40

/** The same work in the two ways that a handler can ask for it. */
const repeated = blueprint('repeated', { start: 'split' }, (state) => ({
  split: state.handler((_context, actions) =>
    Array.from({ length: COUNT }, (_unused, index) =>
      actions.dispatchTask({ type: 'work', params: { index }, transitions: { success: 'join' } }),
    ),
  ),
  join: state.aggregator((context, actions) =>
    actions.transitionTo('done', { results: Object.values(context.aggregationResults) }),
  ),
  done: state.end(),
}))
const parallel = blueprint('parallel', { start: 'split' }, (state) => ({
  split: state.handler((_context, actions) =>
    actions.dispatchParallel(
      Array.from({ length: COUNT }, (_unused, index) => ({ type: 'work', params: { index } })),
      { into: 'join' },
    ),
  ),
  join: state.aggregator((context, actions) =>
    actions.transitionTo('done', { results: Object.values(context.aggregationResults) }),
  ),
  done: state.end(),
}))

test.each([
  ['repeated dispatchTask', repeated],
  ['dispatchParallel', parallel],
])('[B-08] [J-5] [J-16] a fan-out by %s completes, whatever the order of its results', async (_way, script) => {
  const stage = new Stage([script])
  const worker = await stage.worker('w', { concurrencyMax: COUNT })
  const jobId = await stage.begin(script.name)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_parallel')
  const deliveries = await worker.take(COUNT)
  expect(deliveries).toHaveLength(COUNT)
  const [first, ...others] = deliveries
  await Promise.all(
    others
      .toReversed()
      .map(({ taskId, call }) => worker.report(taskId, { data: { index: call.params['index'] ?? -1 } })),
  )
  expect(await stage.statusOf(jobId)).toBe('waiting_for_parallel')
  expect(await worker.fail(first?.taskId ?? '', 'INVALID_INPUT_ERROR')).toMatchObject({ type: 'accepted' })
  await stage.run()
  const { status, result } = await stage.job(jobId)
  expect(status).toBe('finished')
  expect(result).toMatchObject({
    results: Array.from({ length: COUNT }, (_unused, index) =>
      index === first?.call.params['index']
        ? { status: 'failure', error: { code: 'INVALID_INPUT_ERROR' } }
        : { status: 'success', data: { index } },
    ),
  })
  expect((await stage.eventsOf(jobId)).filter((event) => event === 'state_started')).toHaveLength(1)
})
