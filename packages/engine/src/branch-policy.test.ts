import { blueprint, child } from '@impresario/core'
import type { BranchPolicy, RunnableBlueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage, fanOut, oneTask } from './stage.fixture.ts'

const CODES = ['PERMANENT_ERROR', 'INVALID_INPUT_ERROR'] as const

/** A parent with two children, each of one task. */
function parent(policy: BranchPolicy): RunnableBlueprint {
  return blueprint('parent', { start: 'split' }, (state) => ({
    split: state.handler((_context, actions) =>
      actions.dispatchParallel([child('one', {}), child('one', {})], { into: 'join', policy }),
    ),
    join: state.aggregator((context, actions) => {
      const results = Object.values(context.aggregationResults)
      return actions.transitionTo('done', { results: results.map(({ status, error }) => error?.code ?? status) })
    }),
    done: state.end(),
  }))
}

/** Two branches are with the worker; the first one fails with the code. */
async function firstFails(stage: Stage, name: string, code: (typeof CODES)[number]) {
  const worker = await stage.worker('a', { concurrencyMax: 2 })
  const jobId = await stage.begin(name, { initialData: { count: 2 } })
  const [first, second] = await worker.take(2)
  await worker.fail(first?.taskId ?? '', code)
  await stage.run()
  return { worker, jobId, second: second?.taskId ?? '' }
}

test.each(CODES)('[B-08] [C-02] wait_all: a branch with %s leaves the others alone', async (code) => {
  const stage = new Stage([fanOut('wait_all')])
  const { worker, jobId, second } = await firstFails(stage, 'many', code)
  expect(await stage.statusOf(jobId)).toBe('waiting_for_parallel')
  await worker.report(second)
  await stage.run()
  expect((await stage.job(jobId)).result).toEqual({ statuses: ['failure', 'success'] })
})

test.each(CODES)('[B-08] [C-02] fail_fast: a branch with %s takes the others back', async (code) => {
  const stage = new Stage([fanOut('fail_fast')])
  const { worker, jobId, second } = await firstFails(stage, 'many', code)
  expect((await stage.job(jobId)).result).toEqual({ statuses: ['failure', 'cancelled'] })
  expect(await worker.heartbeat([second])).toEqual([second])
})

test.each([
  ['PERMANENT_ERROR', 'quarantined'],
  ['INVALID_INPUT_ERROR', 'failed'],
] as const)(
  '[B-08] [C-02] by_code: a branch with %s makes the job %s and takes the others back',
  async (code, status) => {
    const stage = new Stage([fanOut('by_code')])
    const { worker, jobId, second } = await firstFails(stage, 'many', code)
    const job = await stage.job(jobId)
    expect([job.status, job.error?.code]).toEqual([status, code])
    expect(await worker.heartbeat([second])).toEqual([second])
    expect(await worker.report(second)).toMatchObject({ type: 'ignored' })
  },
)

test('[B-08] [B-05] a child that fails counts by the policy of its parent', async () => {
  const all = new Stage([parent('wait_all'), oneTask()])
  const first = await firstFails(all, 'parent', 'INVALID_INPUT_ERROR')
  await first.worker.report(first.second)
  await all.run()
  expect((await all.job(first.jobId)).result).toEqual({ results: ['INVALID_INPUT_ERROR', 'success'] })

  const fast = new Stage([parent('fail_fast'), oneTask()])
  const { jobId } = await firstFails(fast, 'parent', 'INVALID_INPUT_ERROR')
  expect((await fast.job(jobId)).result).toEqual({ results: ['INVALID_INPUT_ERROR', 'cancelled'] })

  const coded = new Stage([parent('by_code'), oneTask()])
  const last = await firstFails(coded, 'parent', 'INVALID_INPUT_ERROR')
  const { status, error } = await coded.job(last.jobId)
  expect([status, error?.code]).toEqual(['failed', 'CHILD_FAILED'])
  expect(await last.worker.heartbeat([last.second])).toEqual([last.second])
})

test.each(['wait_all', 'fail_fast', 'by_code'] as const)(
  '[B-08] [C-07] %s: a child in quarantine keeps its parent waiting until a person has decided',
  async (policy) => {
    const stage = new Stage([parent(policy), oneTask()])
    const { worker, jobId, second } = await firstFails(stage, 'parent', 'PERMANENT_ERROR')
    expect(await stage.statusOf(jobId)).toBe('waiting_for_parallel')
    const [aside] = await stage.engine.listJobs({ status: 'quarantined', limit: 2 })
    await stage.engine.retryJob(aside?.value.id ?? '', 'ann')
    await stage.run()
    await worker.report(second)
    await worker.report((await worker.takeOne()).taskId)
    await stage.run()
    expect((await stage.job(jobId)).result).toEqual({ results: ['success', 'success'] })
  },
)
