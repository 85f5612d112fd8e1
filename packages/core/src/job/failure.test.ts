import { expect, test } from 'vitest'
import {
  aChild,
  approval,
  aTask,
  cancels,
  child,
  childEnds,
  chooses,
  decides,
  expires,
  failsWith,
  fanOut,
  goTo,
  happens,
  open,
  play,
  reports,
  retries,
  task,
  throws,
} from './samples.ts'

const ways = { success: 'done', failure: 'work', timeout: 'review', cancelled: 'work' }
const sent = play(open(), chooses(task(ways)))
const failsTwice = [failsWith('TRANSIENT_ERROR'), failsWith('TRANSIENT_ERROR')]

test('[B-10] the state that a task\u2019s failure led to is told its code, its message and its tries', () => {
  const { job } = play(sent, ...failsTwice, failsWith('TRANSIENT_ERROR'))
  expect(job).toMatchObject({ state: 'work', status: 'running' })
  expect(job.failure).toEqual({
    code: 'TRANSIENT_ERROR',
    message: '"render" failed 3 times: no light',
    state: 'start',
    attempts: 3,
    task: { id: 'j.1.0', type: 'render' },
  })
})

test('[B-10] a timeout and a worker that cancels are failures too', () => {
  const timeout = play(sent, expires('untaken'))
  expect(timeout.job).toMatchObject({ state: 'review', failure: { code: 'TIMEOUT_ERROR', attempts: 1 } })
  const cancelled = play(sent, reports('cancelled'))
  expect(cancelled.job).toMatchObject({ state: 'work', failure: { code: 'CANCELLED', task: { type: 'render' } } })
})

test('[B-10] a status without a transition is told to `failed`, with the stack left out', () => {
  const { job } = play(sent, reports('odd'))
  expect(job).toMatchObject({ state: 'failed', failure: { code: 'UNHANDLED_STATUS', task: { type: 'render' } } })
  const stacked = play(open(), chooses(task({})), failsWith('INVALID_INPUT_ERROR', { stack: 'at x' }))
  expect(stacked.job.error?.stack).toBe('at x')
  expect(stacked.job.failure).not.toHaveProperty('stack')
})

test('[B-10] a child that did not finish is named, with the code of its own error', () => {
  const waiting = play(open(), chooses(child({ success: 'done', failure: 'work', quarantined: 'review' })))
  const error = { code: 'LOOP_LIMIT', message: 'round and round' }
  expect(play(waiting, childEnds('failed', undefined, { error })).job.failure).toEqual({
    code: 'CHILD_FAILED',
    message: '"trailer": round and round',
    state: 'start',
    attempts: 1,
    child: { jobId: 'j-1-0', blueprint: 'trailer', status: 'failed', code: 'LOOP_LIMIT' },
  })
  expect(play(waiting, childEnds('cancelled')).job.failure?.child).toEqual({
    jobId: 'j-1-0',
    blueprint: 'trailer',
    status: 'cancelled',
  })
  expect(play(waiting, childEnds('quarantined', undefined, { error })).job).toMatchObject({
    state: 'review',
    failure: { code: 'CHILD_QUARANTINED', message: '"trailer" is quarantined: round and round' },
  })
  expect(play(waiting, childEnds('quarantined')).job.failure?.message).toContain('a person is asked')
  const unmapped = play(open(), chooses(child({})), childEnds('finished'))
  expect(unmapped.job.failure).toMatchObject({ code: 'UNHANDLED_STATUS', child: { status: 'finished' } })
})

test('[B-10] a rejection and a question that expired are failures; other decisions are not', () => {
  const asked = play(open(), chooses(approval({ approved: 'work', rejected: 'work', expired: 'work' }, 5_000)))
  expect(play(asked, decides('rejected', 'too dark')).job.failure).toEqual({
    code: 'REJECTED',
    message: 'Rejected by "bob": too dark',
    state: 'start',
    attempts: 1,
  })
  expect(play(asked, decides('rejected')).job.failure?.message).toBe('Rejected by "bob".')
  expect(play(asked, decides('approved')).job.failure).toBeUndefined()
  const late = play(asked, happens({ type: 'approvalExpired', visit: 1 }))
  expect(late.job).toMatchObject({ state: 'work', failure: { code: 'APPROVAL_EXPIRED' } })
})

test('[B-10] a branch that cut a fan-out short is told to the aggregator; one of several results is not', () => {
  const calls = fanOut(aTask({ attemptsMax: 1 }), aChild())
  const fast = play(open(), chooses({ ...calls, policy: 'fail_fast' } as typeof calls))
  expect(play(fast, failsWith('PERMANENT_ERROR')).job).toMatchObject({
    state: 'gather',
    failure: { code: 'PERMANENT_ERROR', task: { id: 'j.1.0' } },
  })
  const byChild = play(fast, childEnds('failed', undefined, { branch: '1' }))
  expect(byChild.job.failure).toMatchObject({ code: 'CHILD_FAILED', child: { jobId: 'j-1-1' } })
  const all = play(open(), chooses(calls), failsWith('PERMANENT_ERROR'), childEnds('finished', 1, { branch: '1' }))
  expect(all.job).toMatchObject({ state: 'gather' })
  expect(all.job.failure).toBeUndefined()
  const byCode = play(open(), chooses({ ...calls, policy: 'by_code' } as typeof calls))
  expect(play(byCode, failsWith('INVALID_INPUT_ERROR')).job.failure).toMatchObject({ code: 'INVALID_INPUT_ERROR' })
})

test('[B-10] it is gone when the job goes on, and stays through retries, quarantine and migration', () => {
  const failed = play(sent, failsWith('INVALID_INPUT_ERROR'))
  expect(play(failed, chooses(goTo('review'))).job.failure).toBeUndefined()
  expect(play(failed, throws('a'), throws('b')).job.failure?.code).toBe('INVALID_INPUT_ERROR')
  const retried = play(failed, throws('a'), throws('b'), throws('c'), retries)
  expect(retried.job).toMatchObject({ state: 'work', status: 'running', failure: { code: 'INVALID_INPUT_ERROR' } })
  const moved = play(failed, happens({ type: 'migrated', version: 4, state: 'review', stateHistory: {} }))
  expect(moved.job.failure?.code).toBe('INVALID_INPUT_ERROR')
  expect(play(sent, cancels).job.failure).toBeUndefined()
})
