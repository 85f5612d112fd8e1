import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import type { Action } from './action.ts'
import { BRANCH_POLICIES } from './job.ts'
import type { BranchPolicy, ChildCall, TaskCall } from './job.ts'
import {
  aChild,
  aTask,
  childEnds,
  chooses,
  expires,
  failsWith,
  falls,
  fanOut,
  goTo,
  open,
  play,
  reports,
  retries,
  throws,
} from './samples.ts'

const fan = play(open(), chooses(fanOut(aTask(), aTask({ type: 'mix' }), aTask())))
const quick: Action = { type: 'parallel', calls: [aTask(), aTask(), aChild()], into: 'gather', policy: 'fail_fast' }

test('[B-08] [J-16] a fan-out sends all its tasks at once', () => {
  expect(fan.job).toMatchObject({ status: 'waiting_for_parallel', wait: { kind: 'parallel', into: 'gather' } })
  expect(fan.effects).toMatchObject([
    { type: 'task', branch: '0', attempt: 1, call: { type: 'render' } },
    { type: 'task', branch: '1', attempt: 1, call: { type: 'mix' } },
    { type: 'task', branch: '2', attempt: 1, call: { type: 'render' } },
  ])
  expect(fan.job.trail.at(-1)).toMatchObject({ event: 'task_dispatched', note: '3 branches: render, mix' })
  expect(fan.entries).toMatchObject([
    { event: 'task_dispatched', note: 'render', taskId: 'j.1.0' },
    { event: 'task_dispatched', note: 'mix', taskId: 'j.1.1' },
    { event: 'task_dispatched', note: 'render', taskId: 'j.1.2' },
  ])
})

test('[A-05] [B-08] [J-5] the aggregator runs once, after the last branch, with every result by task id', () => {
  const two = play(fan, reports('success', { branch: '2', data: { n: 2 } }), reports('odd', { branch: '0', data: 0 }))
  expect(two.job).toMatchObject({ status: 'waiting_for_parallel', state: 'start', visit: 1 })
  expect(two.effects).toEqual([{ type: 'dropTask', visit: 1, branch: '0', attempt: 1 }])
  const { job, effects } = play(two, failsWith('PERMANENT_ERROR', { branch: '1' }))
  expect(job).toMatchObject({ status: 'running', state: 'gather', visit: 2, branches: {} })
  expect(job.aggregationResults).toEqual({
    'j.1.0': { status: 'odd', data: 0, error: undefined },
    'j.1.1': { status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'no light' } },
    'j.1.2': { status: 'success', data: { n: 2 }, error: undefined },
  })
  expect(effects).toEqual([
    { type: 'dropTask', visit: 1, branch: '1', attempt: 1 },
    { type: 'turn', visit: 2, delayMs: 0 },
  ])
  expect(job.stateHistory).toEqual({})
})

test('[B-08] [C-02] a branch is tried again like a single task; what is given up is recorded', () => {
  const once = play(fan, failsWith('TRANSIENT_ERROR', { branch: '1' }))
  expect(once.effects).toMatchObject([{ type: 'dropTask' }, { type: 'task', branch: '1', attempt: 2, delayMs: 750 }])
  const lost = play(once, falls, expires('untaken', { branch: '2' }), reports('cancelled', { branch: '1' }))
  expect(lost.job.aggregationResults).toMatchObject({
    'j.1.0': { status: 'failure', error: { code: 'PERMANENT_ERROR' } },
    'j.1.1': { status: 'cancelled' },
    'j.1.2': { status: 'failure', error: { code: 'TIMEOUT_ERROR' } },
  })
  expect(lost.job.state).toBe('gather')
})

test('[B-08] `fail fast`: the first failure ends the other branches and enters the aggregator', () => {
  const started = play(open(), chooses(quick))
  const { job, effects } = play(started, reports('success'), failsWith('INVALID_INPUT_ERROR', { branch: '1' }))
  expect(job).toMatchObject({ state: 'gather', status: 'running' })
  expect(job.aggregationResults).toEqual({
    'j.1.0': { status: 'success', data: undefined, error: undefined },
    'j.1.1': { status: 'failure', error: { code: 'INVALID_INPUT_ERROR', message: 'no light' } },
    'j.1.2': { status: 'cancelled' },
  })
  expect(effects).toMatchObject([
    { type: 'dropTask', branch: '1' },
    { type: 'mail', to: 'j-1-2', letter: { type: 'cancelled' } },
    { type: 'turn', visit: 2 },
  ])
})

test('[B-08] `fail fast` waits while nothing has failed for good', () => {
  const started = play(open(), chooses(quick))
  expect(play(started, failsWith('TRANSIENT_ERROR')).job.status).toBe('waiting_for_parallel')
  expect(play(started, reports('cancelled')).job.status).toBe('waiting_for_parallel')
})

test('[B-08] a blueprint can be a branch, and its end is a result like others', () => {
  const mixed = play(open(), chooses(fanOut(aTask(), aChild())))
  expect(mixed.effects).toMatchObject([
    { type: 'task', branch: '0' },
    { type: 'mail', to: 'j-1-1' },
  ])
  const ended = play(mixed, childEnds('finished', { cut: 1 }, { branch: '1' }))
  expect(ended.job.status).toBe('waiting_for_parallel')
  expect(play(ended, reports('success')).job).toMatchObject({
    state: 'gather',
    stateHistory: {},
    aggregationResults: { 'j.1.1': { status: 'success', data: { cut: 1 } } },
  })
  const failed = play(mixed, reports('success'), childEnds('cancelled', undefined, { branch: '1' }))
  expect(failed.job.aggregationResults?.['j.1.1']).toEqual({
    status: 'failure',
    data: undefined,
    error: { code: 'PERMANENT_ERROR', message: 'The child job ended as cancelled.' },
  })
})

test('[B-08] a child in quarantine may still be mended: the fan-out waits on', () => {
  const mixed = play(open(), chooses(fanOut(aChild())))
  const aside = play(mixed, childEnds('quarantined'))
  expect(aside.job).toMatchObject({ status: 'waiting_for_parallel', branches: mixed.job.branches })
  expect(aside.entries).toMatchObject([{ event: 'child_quarantined', note: 'trailer' }])
  expect(play(aside, childEnds('finished')).job.state).toBe('gather')
})

test('[B-08] a fan-out of nothing enters its aggregator at once, with no results', () => {
  const { job, effects } = play(open(), chooses(fanOut()))
  expect(job).toMatchObject({ state: 'gather', status: 'running', aggregationResults: {} })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
})

test('[B-08] a fan-out over the limit is refused as a whole', () => {
  const calls = Array.from({ length: LIMITS.fanOutMax + 1 }, () => aTask())
  const { job, effects } = play(open(), chooses(fanOut(...calls)))
  expect(job).toMatchObject({
    status: 'quarantined',
    branches: {},
    error: { code: 'FAN_OUT_TOO_LARGE', state: 'start' },
  })
  expect(effects).toEqual([])
  expect(play(open(), chooses(fanOut(...calls.slice(1)))).effects).toHaveLength(LIMITS.fanOutMax)
})

test('[A-05] results live as long as aggregators follow one another', () => {
  const gathered = play(open(), chooses(fanOut(aTask())), reports('success', { data: 1 }))
  const results = { 'j.1.0': { status: 'success', data: 1, error: undefined } }
  expect(gathered.job.aggregationResults).toEqual(results)
  expect(play(gathered, throws('once')).job.aggregationResults).toEqual(results)
  expect(play(gathered, chooses(goTo('regather'))).job.aggregationResults).toEqual(results)
  expect(play(gathered, chooses(goTo('work'))).job.aggregationResults).toBeUndefined()
  expect(play(gathered, chooses(goTo('done'))).job.aggregationResults).toBeUndefined()
})

test('[A-05] [C-07] an aggregator that is retried has its results again', () => {
  const gathered = play(open({}, { handlerAttemptsMax: 1 }), chooses(fanOut(aTask())), reports('success', { data: 1 }))
  for (const cue of [throws('boom'), chooses(goTo('nowhere'))]) {
    const aside = play(gathered, cue)
    expect(aside.job).toMatchObject({ status: 'quarantined', state: 'gather' })
    expect(play(aside, retries).job).toMatchObject({
      status: 'running',
      state: 'gather',
      aggregationResults: { 'j.1.0': { data: 1 } },
    })
  }
})

test('[B-08] branches leave only so much data in their job; one that is over the limit fails alone', () => {
  const big = 'x'.repeat(LIMITS.branchResultsBytesMax - 100)
  const started = play(open(), chooses(fanOut(aTask(), aTask({ type: 'mix' }), aChild(), aTask())))
  const full = play(
    started,
    reports('success', { data: big }),
    reports('success', { branch: '1', data: { text: 'y'.repeat(200) } }),
    childEnds('finished', 'z'.repeat(200), { branch: '2' }),
  )
  expect(full.job.wait).toMatchObject({ kind: 'parallel', resultBytes: big.length + 2 })
  expect(full.entries).toMatchObject([{ event: 'child_ended' }, { event: 'branch_result_refused' }])
  const { job } = play(full, reports('success', { branch: '3', data: { n: 1 } }))
  expect(job).toMatchObject({ status: 'running', state: 'gather' })
  const limit = `The branches of this fan-out may leave ${LIMITS.branchResultsBytesMax} bytes together; `
  const refused = (what: string) => ({
    status: 'failure',
    error: {
      code: 'LIMIT_EXCEEDED_ERROR',
      message: `${limit}the ${what} are too many and were dropped. Return a reference to a file instead.`,
    },
  })
  expect(job.aggregationResults).toMatchObject({
    'j.1.0': { status: 'success', data: big },
    'j.1.1': refused('211 bytes of "mix"'),
    'j.1.2': refused('202 bytes of "trailer"'),
    'j.1.3': { status: 'success', data: { n: 1 } },
  })
  expect(job.aggregationResults?.['j.1.1']).not.toHaveProperty('data')
})

test('[B-08] `fail fast` counts a refused result as a failure', () => {
  const data = 'x'.repeat(LIMITS.branchResultsBytesMax)
  const { job } = play(play(open(), chooses(quick)), reports('success', { data }))
  expect(job).toMatchObject({ state: 'gather', aggregationResults: { 'j.1.1': { status: 'cancelled' } } })
})

// ── Error codes of branches ──────────────────────────────────────────────────

const CODES = ['PERMANENT_ERROR', 'INVALID_INPUT_ERROR'] as const
const failure = (code: string) => ({ status: 'failure', error: { code, message: 'no light' } })
const branches = (policy: BranchPolicy, ...calls: readonly (TaskCall | ChildCall)[]) =>
  play(open(), chooses({ type: 'parallel', calls, into: 'gather', policy }))

test('[B-08] [C-02] `wait_all`: whatever the code of a branch, the others go on, and the aggregator sees it', () => {
  for (const code of CODES) {
    const half = play(branches('wait_all', aTask(), aTask()), failsWith(code))
    expect(half.job).toMatchObject({ status: 'waiting_for_parallel', error: undefined })
    expect(half.effects).toEqual([{ type: 'dropTask', visit: 1, branch: '0', attempt: 1 }])
    const { job } = play(half, reports('success', { branch: '1' }))
    expect(job).toMatchObject({ status: 'running', state: 'gather' })
    expect(job.aggregationResults).toMatchObject({ 'j.1.0': failure(code), 'j.1.1': { status: 'success' } })
  }
})

test('[B-08] [C-02] `fail_fast`: whatever the code of a branch, the others are taken back and the aggregator runs', () => {
  for (const code of CODES) {
    const { job, effects } = play(branches('fail_fast', aTask(), aTask()), failsWith(code))
    expect(job).toMatchObject({ status: 'running', state: 'gather' })
    expect(job.aggregationResults).toMatchObject({ 'j.1.0': failure(code), 'j.1.1': { status: 'cancelled' } })
    expect(effects).toContainEqual({ type: 'dropTask', visit: 1, branch: '1', attempt: 1 })
  }
})

test('[B-08] [C-02] `by_code`: the code of a branch decides about the job, as that of a single task would', () => {
  const started = branches('by_code', aTask(), aTask(), aChild())
  const ends = [
    [failsWith('PERMANENT_ERROR'), 'quarantined', 'PERMANENT_ERROR'],
    [failsWith('INVALID_INPUT_ERROR'), 'failed', 'INVALID_INPUT_ERROR'],
    [expires('taken'), 'failed', 'TIMEOUT_ERROR'],
    [falls, 'quarantined', 'PERMANENT_ERROR'],
  ] as const
  for (const [cue, status, code] of ends) {
    const { job, effects } = play(started, cue)
    expect(job).toMatchObject({ status, branches: {}, error: { code, state: 'start' } })
    expect(effects).toMatchObject([
      { type: 'dropTask', branch: '0' },
      { type: 'dropTask', branch: '1' },
      { type: 'mail', to: 'j-1-2', letter: { type: 'cancelled' } },
    ])
  }
  const tried = play(started, failsWith('TRANSIENT_ERROR'))
  expect(tried.job.status).toBe('waiting_for_parallel')
  const used = play(tried, failsWith('TRANSIENT_ERROR'), failsWith('TRANSIENT_ERROR'))
  expect(used.job).toMatchObject({ status: 'quarantined', error: { code: 'TRANSIENT_ERROR' } })
})

test('[B-08] `by_code`: branches that end well, or with a status of their own, enter the aggregator', () => {
  const odd = reports('odd', { error: { code: 'PERMANENT_ERROR', message: 'said beside a status' } })
  const { job } = play(branches('by_code', aTask(), aTask()), odd, reports('success', { branch: '1' }))
  expect(job).toMatchObject({ status: 'running', state: 'gather' })
})

test('[B-08] [C-07] `by_code`: a job that comes back from quarantine sends all its branches again', () => {
  const aside = play(
    branches('by_code', aTask(), aTask()),
    reports('success'),
    failsWith('PERMANENT_ERROR', { branch: '1' }),
  )
  const back = play(aside, retries)
  expect(back.job).toMatchObject({ status: 'running', state: 'start', visit: 2 })
  const again = play(back, chooses(fanOut(aTask(), aTask())))
  expect(again.effects).toMatchObject([{ branch: '0' }, { branch: '1' }])
})

test('[B-08] [B-05] a parent with children: a child that failed counts by the policy, one in quarantine is waited for', () => {
  for (const code of CODES) {
    const ended = childEnds('failed', undefined, { error: { code, message: 'no light' } })
    const all = play(branches('wait_all', aChild(), aTask()), ended, reports('success', { branch: '1' }))
    expect(all.job).toMatchObject({ state: 'gather', aggregationResults: { 'j.1.0': failure(code) } })
    const fast = play(branches('fail_fast', aChild(), aTask()), ended)
    expect(fast.job).toMatchObject({ state: 'gather', aggregationResults: { 'j.1.1': { status: 'cancelled' } } })
    const coded = play(branches('by_code', aChild(), aTask()), ended)
    expect(coded.job).toMatchObject({
      status: 'failed',
      error: { code: 'CHILD_FAILED', message: '"trailer": no light', state: 'start' },
    })
  }
  for (const policy of BRANCH_POLICIES) {
    const waiting = play(branches(policy, aChild(), aTask()), childEnds('quarantined'))
    expect(waiting.job).toMatchObject({ status: 'waiting_for_parallel', visit: 1 })
  }
})

test('[B-05] a child that failed for a reason that tasks do not have counts as a permanent error', () => {
  const error = { code: 'EXECUTION_TIMEOUT', message: 'too slow' }
  const { job } = play(branches('wait_all', aChild()), childEnds('failed', undefined, { error }))
  expect(job.aggregationResults?.['j.1.0']?.error).toEqual({ code: 'PERMANENT_ERROR', message: 'too slow' })
})
