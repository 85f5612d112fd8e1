import { blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { JOB_LINES_MAX, JOB_LINES_MS } from './job-log.ts'
import { ListLog, Stage, oneTask } from '../stage.fixture.ts'

const linesOf = ({ log }: Stage, level: string) =>
  log.lines.filter((line) => line.level === level && line.fields?.['job_id'] !== undefined)
const summariesOf = ({ log }: Stage) => log.lines.filter(({ message }) => message.startsWith('more lines'))

const broken = blueprint('broken', { start: 'try', handlerAttemptsMax: 1 }, (state) => ({
  try: state.handler((context, actions) => {
    if (context.initialData['works'] !== true) throw new Error('No such film.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

test('[I-05] a job that goes into quarantine is told with its task and its worker', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
  const named = {
    job_id: jobId,
    task_id: `${jobId}.1.0`,
    worker_id: 'a',
    blueprint: 'one',
    state: 'ask',
    code: 'PERMANENT_ERROR',
    attempt: 1,
  }
  expect(linesOf(stage, 'warn')).toMatchObject([
    { message: 'a task failed', fields: { ...named, message: 'work PERMANENT_ERROR: a reports PERMANENT_ERROR' } },
    { message: 'a job was put into quarantine', fields: { ...named, message: 'a reports PERMANENT_ERROR' } },
  ])
})

test('[I-05] [C-04] timeouts are told: of a task, and of a job', async () => {
  const stage = new Stage([oneTask({ resultTimeout: '10s' }), oneTask({ dispatchTimeout: '1s' }, {}, 'two')])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  await worker.takeOne()
  await worker.heartbeat([], { status: 'offline' })
  const untaken = await stage.begin('two')
  const mortal = await stage.begin('two', { executionTimeoutMs: 500 })
  await stage.after(500)
  await stage.after(9_500)
  const lines = linesOf(stage, 'warn').map(({ message, fields }) => [message, fields?.['job_id'], fields?.['code']])
  expect(lines).toEqual([
    ['a job failed', mortal, 'EXECUTION_TIMEOUT'],
    ['no worker took a task in time', untaken, 'TIMEOUT_ERROR'],
    ['a job failed', untaken, 'TIMEOUT_ERROR'],
    ['a task failed', jobId, 'TIMEOUT_ERROR'],
    ['a job failed', jobId, 'TIMEOUT_ERROR'],
  ])
  expect(linesOf(stage, 'warn').at(-1)?.fields).toMatchObject({ task_id: `${jobId}.1.0`, worker_id: 'a' })
})

test('[I-05] [C-03] a handler that throws is told, without its stack', async () => {
  const stage = new Stage([broken])
  const jobId = await stage.begin('broken')
  const [failed, aside] = linesOf(stage, 'warn')
  expect(failed).toMatchObject({ message: 'a handler failed', fields: { job_id: jobId, message: 'No such film.' } })
  expect(aside).toMatchObject({ message: 'a job was put into quarantine', fields: { code: 'HANDLER_FAILED' } })
  expect(JSON.stringify(stage.log.lines)).not.toContain('job-log.test.ts')
})

test('[I-05] [C-10] a flood of failures is ten lines in a minute, and then a count', async () => {
  const stage = new Stage([broken, oneTask({ attemptsMax: 1 })])
  for (let jobs = 0; jobs < 200; jobs += 1) await stage.begin('broken')
  // Two kinds: of the handler, and of the job.
  expect(linesOf(stage, 'warn')).toHaveLength(2 * JOB_LINES_MAX)
  // Something else that fails is told all the same.
  const worker = await stage.worker('a')
  await stage.begin('one')
  await worker.fail((await worker.takeOne()).taskId)
  expect(linesOf(stage, 'warn')).toHaveLength(2 * JOB_LINES_MAX + 2)
  expect(summariesOf(stage)).toEqual([])
  await stage.after(JOB_LINES_MS)
  expect(summariesOf(stage)).toMatchObject([
    { level: 'warn', fields: { event: 'state_failed', blueprint: 'broken', count: 190, seconds: 60 } },
    {
      level: 'warn',
      fields: { event: 'job_quarantined', blueprint: 'broken', code: 'HANDLER_FAILED', count: 190, seconds: 60 },
    },
  ])
  await stage.begin('broken')
  expect(linesOf(stage, 'warn')).toHaveLength(2 * JOB_LINES_MAX + 4)
})

test('[I-05] a stop tells what was left out so far', async () => {
  const stage = new Stage([broken])
  await stage.engine.start()
  for (let jobs = 0; jobs < 15; jobs += 1) await stage.begin('broken')
  await stage.engine.stop()
  expect(summariesOf(stage).map(({ fields }) => fields?.['count'])).toEqual([5, 5])
})

test('[I-05] what people do, and results that no longer count, are told at the level `info`', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  await stage.engine.cancelJob(jobId, 'ann')
  await worker.report(taskId)
  expect(linesOf(stage, 'info')).toMatchObject([
    { message: 'a job was cancelled', fields: { job_id: jobId, code: 'CANCELLED', message: 'Cancelled by ann.' } },
    {
      message: 'a result no longer counts and was ignored',
      fields: { job_id: jobId, task_id: `${jobId}.1.0`, worker_id: 'a', code: 'job_ended' },
    },
  ])
})

test('[I-05] the rest of a job’s life is for those who debug, and costs others nothing', async () => {
  const quiet = new Stage([oneTask()])
  const worker = await quiet.worker('a')
  await quiet.begin('one')
  await worker.report((await worker.takeOne()).taskId)
  expect(linesOf(quiet, 'debug')).toEqual([])

  const stage = new Stage([oneTask()], { log: new ListLog({ isDebug: true }) })
  const busy = await stage.worker('a')
  const jobId = await stage.begin('one')
  await busy.report((await busy.takeOne()).taskId)
  const told = linesOf(stage, 'debug').filter(({ fields }) => fields?.['job_id'] === jobId)
  expect(told.map(({ fields }) => fields?.['event'])).toEqual([
    'job_created',
    'state_started',
    'task_dispatched',
    'task_finished',
    'state_finished',
    'job_finished',
  ])
  expect(told[3]?.fields).toMatchObject({ task_id: `${jobId}.1.0`, worker_id: 'a', attempt: 1, state: 'ask' })
})

test('[I-05] [C-10] of a long message only the beginning is told', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('a')
  await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const error = { code: 'PERMANENT_ERROR', message: 'x'.repeat(1_000_000) } as const
  await stage.engine.desk.results('a', [{ taskId, status: 'failure', error }])
  for (const { fields } of linesOf(stage, 'warn')) expect(String(fields?.['message']).length).toBeLessThanOrEqual(500)
})
