import type { Job, TrailEntry } from '@impresario/core'
import { blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import type { WorkerMoment } from '../workers/roster.ts'
import { Stage, fanOut, oneTask } from '../stage.fixture.ts'

class ListHistory {
  readonly entries: (TrailEntry & { readonly jobId: string })[] = []
  readonly jobs: (Job | undefined)[] = []
  append(jobId: string, job: Job | undefined, entries: readonly TrailEntry[]): void {
    this.jobs.push(job)
    this.entries.push(...entries.map((entry) => ({ jobId, ...entry })))
  }
  readonly moments: WorkerMoment[] = []
  appendWorker(moment: WorkerMoment): void {
    this.moments.push(moment)
  }
  get events(): readonly string[] {
    return this.entries.map(({ event }) => event)
  }
}

const two = blueprint('two', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'work', transitions: { success: 'sum' } })),
  sum: state.handler((_context, actions) => actions.transitionTo('done')),
  done: state.end({ result: () => 42 }),
}))

test('[G-04] every step of a job reaches the history, with what is known of it', async () => {
  const history = new ListHistory()
  const stage = new Stage([two], { history })
  const worker = await stage.worker('w')
  const jobId = await stage.begin('two')
  const { taskId } = await worker.takeOne()
  await stage.clock.advance(700)
  await worker.report(taskId)
  await stage.run()
  expect(history.entries.map(({ event, state }) => `${event} ${state}`)).toEqual([
    'job_created ask',
    'state_started ask',
    'task_dispatched ask',
    'task_finished ask',
    'state_finished ask',
    'state_started sum',
    'state_finished sum',
    'state_started done',
    'state_finished done',
    'job_finished done',
  ])
  expect(history.entries[3]).toMatchObject({
    jobId,
    workerId: 'w',
    taskId: `${jobId}.1.0`,
    attempt: 1,
    durationMs: 700,
  })
  expect(history.entries[4]).toMatchObject({ nextState: 'sum', durationMs: 700 })
  expect(history.entries[5]).toMatchObject({ previousState: 'ask' })
  expect(history.entries[9]).toMatchObject({ durationMs: 700 })
  expect(history.jobs.at(-1)).toMatchObject({ id: jobId, status: 'finished', result: 42 })
  expect((await stage.job(jobId)).trail).not.toContainEqual(expect.objectContaining({ event: 'state_finished' }))
})

test('[G-04] [B-08] each branch of a fan-out has its own lines', async () => {
  const history = new ListHistory()
  const stage = new Stage([fanOut()], { history })
  const jobId = await stage.begin('many', { initialData: { count: 3 } })
  const sent = history.entries.filter(({ event }) => event === 'task_dispatched')
  expect(sent.map((entry) => entry.taskId)).toEqual(['0', '1', '2'].map((branch) => `${jobId}.1.${branch}`))
})

test('[C-04] [G-04] a late result is ignored, and the history says so', async () => {
  const history = new ListHistory()
  const stage = new Stage([oneTask()], { history })
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  // It falls silent: its lease ends, and another one has the task.
  await stage.after(40_000)
  const other = await stage.worker('other')
  const again = await other.takeOne()
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'stale_task' })
  const ignored = { event: 'result_ignored', jobId, workerId: 'w', taskId: `${jobId}.1.0`, attempt: 1 }
  expect(history.entries.at(-1)).toMatchObject({ ...ignored, note: expect.stringContaining('stale_task') as string })
  await stage.engine.cancelJob(jobId, 'client')
  await other.report(again.taskId)
  expect(history.entries.at(-1)).toMatchObject({ event: 'result_ignored', workerId: 'other' })
  expect(await worker.report('job-999999.1.0.1.a')).toMatchObject({ type: 'ignored' })
  expect(history.events.filter((event) => event === 'result_ignored')).toHaveLength(2)
})

test('[G-04] a history that fails is logged, and no job minds', async () => {
  const stage = new Stage([oneTask()], {
    history: {
      append: () => {
        throw new Error('disk full')
      },
      appendWorker: () => {
        throw new Error('disk full')
      },
    },
  })
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  await worker.report((await worker.takeOne()).taskId)
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
  expect(new Set(stage.log.errors)).toEqual(new Set(['the history could not be written']))
})

test('[G-04] a worker’s history: registered, what it says when it is new, its score, and when it is forgotten', async () => {
  const history = new ListHistory()
  const stage = new Stage([oneTask()], { history })
  const worker = await stage.worker('w')
  await worker.heartbeat(undefined, { status: 'idle', skills: ['work'] })
  await worker.heartbeat()
  expect(history.moments).toMatchObject([{ event: 'registered', worker: { id: 'w' } }])
  await worker.heartbeat(undefined, { status: 'busy', hotSkills: ['work'] })
  await worker.heartbeat(undefined, { status: 'busy' })
  expect(history.moments.slice(1)).toMatchObject([
    { event: 'status_update', changed: ['status', 'hotSkills'], worker: { status: 'busy' }, at: stage.clock.now() },
  ])
  await worker.heartbeat(undefined, { status: 'idle' })
  await stage.begin('one')
  await worker.fail((await worker.takeOne()).taskId, 'PERMANENT_ERROR')
  await stage.after(10_000)
  expect(history.moments.at(-1)).toMatchObject({ event: 'reputation', worker: { id: 'w', reputation: 0.95 } })
  await stage.clock.advance(2 * 86_400_000)
  await stage.run()
  await stage.after(60_000)
  expect(history.moments.map(({ event }) => event)).toEqual([
    'registered',
    'status_update',
    'status_update',
    'reputation',
    'removed',
  ])
})
