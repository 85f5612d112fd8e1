import { expect, test } from 'vitest'
import type { TaskCall } from './job.ts'
import type { Scene } from './samples.ts'
import { aTask, chooses, expires, failsWith, fanOut, open, play, reports, task } from './samples.ts'

const ON = { success: 'done' }
const sent = (call: Partial<TaskCall>, policy = {}) => play(open({}, policy), chooses(task(ON, call)))
const errorOf = ({ job }: Scene) => [job.status, job.error?.code, job.error?.message]
const tries = ({ effects }: Scene) => effects.flatMap((effect) => (effect.type === 'task' ? [effect] : []))

const MINUTE = { resultTimeoutMs: 60_000 }

test('[C-04] a task that nobody takes within its dispatch timeout fails the job', () => {
  const scene = play(sent({ dispatchTimeoutMs: 10_000 }), expires('untaken'))
  const message = 'No worker took "render" within its dispatch timeout of 10 s.'
  expect(errorOf(scene)).toEqual(['failed', 'TIMEOUT_ERROR', message])
  expect(scene.effects).toEqual([{ type: 'dropTask', visit: 1, branch: '0', attempt: 1 }])
  expect(scene.entries[0]).toMatchObject({ event: 'task_expired', note: message })
})

test('[C-04] a result that does not come before its deadline fails the job, without another try', () => {
  const scene = play(sent(MINUTE), expires('taken', { at: 62_000, workerId: 'w1' }))
  const message = 'No result of "render" came within its result timeout of 60 s from its first dispatch.'
  expect(errorOf(scene)).toEqual(['failed', 'TIMEOUT_ERROR', message])
  expect(tries(scene)).toEqual([])
  expect(scene.entries[0]).toMatchObject({ event: 'task_failed', workerId: 'w1', taskId: 'j.1.0' })
})

test('[C-04] the deadline counts from the first dispatch: a later try has what is left of it', () => {
  const first = sent(MINUTE)
  expect(tries(first)).toMatchObject([{ attempt: 1, delayMs: 0, resultMs: 60_000 }])
  expect(first.job.branches['0']).toMatchObject({ sentAt: 2_000, deadlineAt: 62_000 })
  const second = play(first, failsWith('TRANSIENT_ERROR', { at: 42_000 }))
  expect(tries(second)).toMatchObject([{ attempt: 2, delayMs: 750, resultMs: 19_250 }])
  expect(second.job.branches['0']).toMatchObject({ sentAt: 42_000, deadlineAt: 62_000 })
  const late = play(second, expires('taken', { at: 62_000 }))
  expect(errorOf(late)).toEqual([
    'failed',
    'TIMEOUT_ERROR',
    'No result of "render" came within its result timeout of 60 s from its first dispatch. ' +
      'The try before it failed: no light',
  ])
})

test('[C-04] a try for which the deadline leaves no time is not made', () => {
  const scene = play(sent(MINUTE), failsWith('TRANSIENT_ERROR', { at: 61_500 }))
  expect(tries(scene)).toEqual([])
  expect(errorOf(scene)).toEqual([
    'failed',
    'TIMEOUT_ERROR',
    '"render" failed, and its result timeout leaves no time for another try. The error was: no light',
  ])
})

test('[C-04] a clock that went back gives a later try no more than the whole time', () => {
  const scene = play(sent(MINUTE), failsWith('TRANSIENT_ERROR', { at: 500 }))
  expect(tries(scene)).toMatchObject([{ resultMs: 60_000 - 750 }])
})

test('[C-04] a later try that nobody took says what ran out: never a dispatch timeout that was not set', () => {
  const second = play(sent(MINUTE), failsWith('TRANSIENT_ERROR'))
  expect(play(second, expires('untaken', { at: 62_000 })).job.error?.message).toBe(
    'No result of "render" came within its result timeout of 60 s from its first dispatch. ' +
      'No worker had it at the end. The try before it failed: no light',
  )
  const both = play(sent({ ...MINUTE, dispatchTimeoutMs: 5_000 }), failsWith('TRANSIENT_ERROR'))
  expect(play(both, expires('untaken', { at: 8_750 })).job.error?.message).toBe(
    'No worker took "render" within its dispatch timeout of 5 s. The try before it failed: no light',
  )
})

test('[C-04] a worker that holds a task for too long fails the job', () => {
  const message = 'The worker "w1" did not finish "render" within its run timeout of 300 s.'
  expect(errorOf(play(sent({}), expires('taken', { workerId: 'w1' })))).toEqual(['failed', 'TIMEOUT_ERROR', message])
  expect(play(sent({}), expires('taken')).job.error?.message).toMatch(/^The worker did not finish "render"/)
})

test('[C-04] of a run timeout and a deadline the message names the one that has passed', () => {
  const both = sent({ runTimeoutMs: 1_000, resultTimeoutMs: 5_000 })
  expect(play(both, expires('taken', { at: 3_500 })).job.error?.message).toMatch(/run timeout of 1 s/)
  expect(play(both, expires('taken', { at: 7_000 })).job.error?.message).toMatch(/result timeout of 5 s/)
})

test('[C-04] a worker that says itself that it took too long fails the job like a timeout that we found', () => {
  const scene = play(sent({}), failsWith('TIMEOUT_ERROR'))
  expect(errorOf(scene)).toEqual(['failed', 'TIMEOUT_ERROR', 'no light'])
})

test('[C-04] a `timeout` transition is for every timeout, else the `failure` transition', () => {
  const prepared = play(open(), chooses(task({ timeout: 'work', failure: 'done' })))
  expect(play(prepared, expires('untaken')).job.state).toBe('work')
  expect(play(prepared, expires('taken')).job.state).toBe('work')
  expect(play(prepared, failsWith('PERMANENT_ERROR')).job.state).toBe('done')
  expect(play(open(), chooses(task({ failure: 'done' })), expires('taken')).job.state).toBe('done')
})

test('[C-04] timeouts are tried again only where the task or its blueprint says so, and then the job fails', () => {
  const retried = sent({ retryTimeouts: true })
  const second = play(retried, expires('taken', { workerId: 'w1' }))
  expect(second.job.branches['0']).toMatchObject({
    attempt: 2,
    failedWorkers: ['w1'],
    lastError: { code: 'TIMEOUT_ERROR' },
  })
  expect(play(retried, expires('taken')).job.branches['0']?.failedWorkers).toEqual([])
  expect(errorOf(play(second, expires('taken'), expires('taken')))).toEqual([
    'failed',
    'TIMEOUT_ERROR',
    expect.stringMatching(/^"render" failed 3 times: The worker did not finish/),
  ])
  const policy = { retryTimeouts: true }
  expect(play(sent({}, policy), expires('taken')).job.branches['0']?.attempt).toBe(2)
  expect(play(sent({ retryTimeouts: false }, policy), expires('taken')).job.status).toBe('failed')
})

test('[C-04] with timeouts that are tried again the result timeout is that of each try', () => {
  const first = sent({ ...MINUTE, retryTimeouts: true })
  expect(first.job.branches['0']).not.toHaveProperty('deadlineAt')
  const second = play(first, expires('taken', { at: 62_000 }))
  expect(tries(second)).toMatchObject([{ attempt: 2, resultMs: 60_000 }])
  expect(second.job.branches['0']?.lastError?.message).toBe(
    'No result of "render" came within its result timeout of 60 s from the dispatch of this try.',
  )
  const untaken = sent({ ...MINUTE, dispatchTimeoutMs: 70_000, retryTimeouts: true })
  expect(tries(play(untaken, expires('untaken')))).toHaveLength(1)
  const dispatched = sent({ ...MINUTE, dispatchTimeoutMs: 50_000, retryTimeouts: true })
  expect(play(dispatched, expires('untaken')).job.status).toBe('failed')
})

test('[C-04] a branch that runs out of time fails for itself', () => {
  const fan = play(open(), chooses(fanOut(aTask(MINUTE), aTask())))
  const { job } = play(fan, expires('taken', { at: 62_000 }), reports('success', { branch: '1' }))
  expect(job.aggregationResults?.['j.1.0']).toMatchObject({ status: 'failure', error: { code: 'TIMEOUT_ERROR' } })
  expect(job.aggregationResults?.['j.1.1']).toMatchObject({ status: 'success' })
})

test('[C-04] what an older try ran into no longer matters', () => {
  const second = play(sent({}), failsWith('TRANSIENT_ERROR'))
  expect(play(second, expires('taken', { attempt: 1 }))).toMatchObject({ ignored: 'stale_task', entries: [] })
})

test('[C-04] a job that was stored before tries had a time or a deadline goes on', () => {
  const scene = sent({ runTimeoutMs: 1_000, resultTimeoutMs: 5_000 })
  const call = aTask({ runTimeoutMs: 1_000, resultTimeoutMs: 5_000 })
  const older = { ...scene, job: { ...scene.job, branches: { 0: { call, attempt: 1 } } } }
  expect(play(older, expires('taken')).job.error?.message).toMatch(/run timeout of 1 s/)
  expect(tries(play(older, failsWith('TRANSIENT_ERROR')))).toMatchObject([{ resultMs: 5_000 }])
  const none = { ...scene, job: { ...scene.job, branches: { 0: { call: aTask(), attempt: 1 } } } }
  expect(play(none, expires('untaken')).job.error?.message).toBe(
    'No result of "render" came within its result timeout from its first dispatch. No worker had it at the end.',
  )
})
