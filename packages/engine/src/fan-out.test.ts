import { blueprint, child } from '@impresario/core'
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

const page = blueprint('page', { start: 'done' }, (state) => ({ done: state.end({ result: () => ({ link: 'l' }) }) }))
const named = blueprint('named', { start: 'cut' }, (state) => ({
  cut: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'cut', params: { value: 'cut' }, transitions: { success: 'spread' } }),
  ),
  spread: state.handler((_context, actions) =>
    actions.dispatchParallel(
      {
        poster: { type: 'work', params: { value: 'poster' } },
        stills: ['first', 'second'].map((value) => ({ type: 'work', params: { value } })),
        page: child('page', {}),
      },
      { into: 'join' },
    ),
  ),
  join: state.aggregator({ poster: 'work', stills: ['work'], page: 'page' }, ({ results }, actions) =>
    actions.transitionTo('again', { results }),
  ),
  again: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'cut', params: { value: 'again' }, transitions: { success: 'done' } }),
  ),
  done: state.end({
    result: ({ written, resultOf }) => ({
      ...written('results', 'value'),
      first: resultOf('cut', { from: 'cut' }),
      last: resultOf('cut'),
    }),
  }),
}))

test('[B-14] [A-05] results are found by the names of their branches and states, whatever their order', async () => {
  const stage = new Stage([named, page])
  const worker = await stage.worker('w', { skills: ['work', 'cut'], concurrencyMax: 5 })
  const jobId = await stage.begin('named')
  const work = async (count: number): Promise<void> => {
    const taken = await worker.take(count)
    for (const { taskId, call } of taken.toReversed()) {
      await worker.report(taskId, { data: { value: call.params['value'] ?? null } })
    }
    await stage.run()
  }
  await work(1)
  await work(3)
  await work(1)
  const { status, result } = await stage.job(jobId)
  expect(status).toBe('finished')
  expect(result).toEqual({
    results: {
      poster: { status: 'success', data: { value: 'poster' } },
      stills: [
        { status: 'success', data: { value: 'first' } },
        { status: 'success', data: { value: 'second' } },
      ],
      page: { status: 'success', data: { link: 'l' } },
    },
    first: { value: 'cut' },
    last: { value: 'again' },
    value: 'again',
  })
})
