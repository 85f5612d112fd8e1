import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import {
  aTask,
  approval,
  chooses,
  failsWith,
  falls,
  fanOut,
  goTo,
  happens,
  open,
  play,
  reports,
  throws,
  task,
} from './samples.ts'

const ON = { success: 'done', retake: 'work' }
const waiting = play(open(), chooses(task(ON)))
const drop = { type: 'dropTask', visit: 1, branch: '0', attempt: 1 }

test('[B-03] a handler sends a task, and the job pauses until its result', () => {
  const call = { params: { scene: 1 }, priority: 7, strategy: 'cheapest', maxCost: 2, requirements: { cpuCores: 4 } }
  const { job, effects, entries } = play(open(), chooses(task(ON, call)))
  expect(job).toMatchObject({ status: 'waiting_for_worker', wait: { kind: 'task', transitions: ON } })
  const sent = { ...aTask(call), runTimeoutMs: 300_000 }
  expect(job.branches).toEqual({ 0: { call: sent, attempt: 1, sentAt: 2_000 } })
  expect(effects).toEqual([
    { type: 'task', visit: 1, branch: '0', attempt: 1, delayMs: 0, call: sent, failedWorkers: [] },
  ])
  const dispatched = { at: 2_000, event: 'task_dispatched', state: 'start', note: 'render' }
  expect(entries).toEqual([{ ...dispatched, taskId: 'j.1.0', attempt: 1 }])
  expect(job.trail.at(-1)).toEqual(dispatched)
})

test('[B-03] [C-04] time limits: of the call, else of the job, else of the blueprint', () => {
  const job = { dispatchTimeoutMs: 10, resultTimeoutMs: 20 }
  const own = play(open(job), chooses(task(ON, { dispatchTimeoutMs: 1, resultTimeoutMs: 2 })))
  expect(own.effects).toMatchObject([{ call: { dispatchTimeoutMs: 1, resultTimeoutMs: 2 } }])
  expect(play(open(job), chooses(task(ON))).effects).toMatchObject([{ call: job }])
  const script = play(open({}, { resultTimeoutMs: 30 }), chooses(task(ON)))
  expect(script.effects).toMatchObject([{ call: { resultTimeoutMs: 30 } }])
})

test('[D-04] [C-04] a task that nobody gave a deadline has none while it waits, and the time of its run once it is taken', () => {
  expect(waiting.effects).toMatchObject([{ call: { runTimeoutMs: 300_000 } }])
  expect(waiting.effects[0]).not.toHaveProperty('call.resultTimeoutMs')
  expect(waiting.effects[0]).not.toHaveProperty('call.dispatchTimeoutMs')
})

test('[C-04] the time of a run: of the call, else of the blueprint unless call or job name a deadline for the result', () => {
  const callOf = (job: object, policy: object, call: object) =>
    play(open(job, policy), chooses(task(ON, call))).job.branches['0']?.call
  const deadline = { resultTimeoutMs: 900_000 }
  expect(callOf({}, {}, { runTimeoutMs: 5 })).toEqual(aTask({ runTimeoutMs: 5 }))
  expect(callOf({}, {}, { runTimeoutMs: 5, ...deadline })).toEqual(aTask({ runTimeoutMs: 5, ...deadline }))
  expect(callOf(deadline, {}, { runTimeoutMs: 5 })).toEqual(aTask({ runTimeoutMs: 5, ...deadline }))
  expect(callOf({}, {}, deadline)).toEqual(aTask(deadline))
  expect(callOf(deadline, {}, {})).toEqual(aTask(deadline))
  expect(callOf({}, { runTimeoutMs: 7, ...deadline }, {})).toEqual(aTask({ runTimeoutMs: 7, ...deadline }))
})

test('[B-03] [B-07] the status picks the next state, and the data is merged into the state history', () => {
  const history = play(open(), chooses(task(ON), { kept: 1, frames: 0 }))
  const { job, effects, entries } = play(history, reports('retake', { data: { frames: 3 } }))
  expect(job).toMatchObject({ status: 'running', state: 'work', visit: 2, branches: {}, wait: undefined })
  expect(job.stateHistory).toEqual({ kept: 1, frames: 3 })
  expect(effects).toEqual([drop, { type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries.map(({ event, note }) => [event, note])).toEqual([
    ['task_finished', 'render retake by w1'],
    ['state_finished', undefined],
    ['state_started', undefined],
  ])
  // Who did it and how long it took stands in the record too.
  expect(job.trail.slice(-2)).toEqual([
    {
      at: 3_000,
      event: 'task_finished',
      state: 'start',
      note: 'render retake by w1',
      workerId: 'w1',
      durationMs: 1_000,
    },
    { at: 3_000, event: 'state_started', state: 'work' },
  ])
  expect(entries[0]).toMatchObject({ workerId: 'w1', taskId: 'j.1.0', attempt: 1, durationMs: 1_000 })
})

test('[B-07] data that is no object is kept under the type of its task; no data changes nothing', () => {
  const history = (data: Parameters<typeof reports>[1]): unknown =>
    play(waiting, reports('retake', data)).job.stateHistory
  expect(history({ data: [1, 2] })).toEqual({ render: [1, 2] })
  expect(history({ data: 'text' })).toEqual({ render: 'text' })
  expect(history({ data: null })).toEqual({})
  expect(history({})).toEqual({})
})

test('[B-07] a key like `__proto__` in the data stays data', () => {
  const data = { ['__proto__']: { polluted: true } }
  expect(Object.keys(data)).toEqual(['__proto__'])
  const { job } = play(waiting, reports('retake', { data }))
  expect(Object.keys(job.stateHistory)).toEqual(['__proto__'])
  expect(Object.getPrototypeOf(job.stateHistory)).toBe(Object.prototype)
})

test('[B-07] a status without an entry in transitions leads to the state `failed`', () => {
  for (const status of ['odd', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const { job } = play(waiting, reports(status, { data: { kept: 1 } }))
    expect(job).toMatchObject({
      status: 'failed',
      state: 'failed',
      error: { code: 'UNHANDLED_STATUS', state: 'start' },
    })
    expect(job.error?.message).toBe(`"start" has no transition for the status "${status}".`)
    expect(job.stateHistory).toEqual({ kept: 1 })
  }
})

test('[B-07] `success` needs its transition like every other status', () => {
  expect(play(open(), chooses(task({})), reports('success')).job.error?.code).toBe('UNHANDLED_STATUS')
})

test('[C-05] a worker that cancelled its task cancels the job, unless the blueprint has a way for it', () => {
  expect(play(waiting, reports('cancelled')).job).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } })
  const prepared = play(open(), chooses(task({ cancelled: 'work' })))
  expect(play(prepared, reports('cancelled')).job).toMatchObject({ status: 'running', state: 'work' })
})

test('[C-02] [J-6] a transient error is tried again after a while, with another worker if there is one', () => {
  const { job, effects, entries } = play(waiting, failsWith('TRANSIENT_ERROR'))
  expect(job).toMatchObject({ status: 'waiting_for_worker', visit: 1, progress: undefined })
  const lastError = { code: 'TRANSIENT_ERROR', message: 'no light' }
  const call = aTask({ runTimeoutMs: 300_000 })
  expect(job.branches['0']).toEqual({ call, attempt: 2, sentAt: 3_000, failedWorkers: ['w1'], lastError })
  expect(effects).toMatchObject([drop, { type: 'task', branch: '0', attempt: 2, delayMs: 750, failedWorkers: ['w1'] }])
  const facts = { taskId: 'j.1.0', attempt: 1, workerId: 'w1', durationMs: 1_000 }
  expect(entries).toMatchObject([
    { event: 'task_failed', note: 'render TRANSIENT_ERROR: no light', ...facts },
    { event: 'task_dispatched', taskId: 'j.1.0', attempt: 2 },
  ])
})

test('[C-02] the next try remembers every worker that failed, the newest last', () => {
  const policy = { taskAttemptsMax: 9 }
  const third = play(
    open({}, policy),
    chooses(task(ON)),
    failsWith('TRANSIENT_ERROR'),
    failsWith('TRANSIENT_ERROR', { workerId: 'w2' }),
  )
  expect(third.job.branches['0']?.failedWorkers).toEqual(['w1', 'w2'])
  expect(play(third, failsWith('TRANSIENT_ERROR')).effects).toMatchObject([
    { ...drop, attempt: 3 },
    { failedWorkers: ['w2', 'w1'] },
  ])
})

test('[C-02] a failure without an error is transient', () => {
  expect(play(waiting, reports('failure')).job.branches['0']).toMatchObject({
    attempt: 2,
    lastError: { code: 'TRANSIENT_ERROR' },
  })
})

test('[C-02] a task that fails too often is quarantined with its last error', () => {
  const { job, effects } = play(
    waiting,
    failsWith('TRANSIENT_ERROR'),
    failsWith('TRANSIENT_ERROR'),
    failsWith('INTERNAL_ERROR'),
  )
  expect(job).toMatchObject({ status: 'quarantined', state: 'start', branches: {}, wait: undefined })
  expect(job.error).toEqual({ code: 'INTERNAL_ERROR', message: '"render" failed 3 times: no light', state: 'start' })
  expect(effects).toEqual([{ ...drop, attempt: 3 }])
})

test('[C-02] a call may name its own number of tries', () => {
  const once = play(open(), chooses(task(ON, { attemptsMax: 1 })))
  expect(play(once, failsWith('TRANSIENT_ERROR')).job).toMatchObject({
    status: 'quarantined',
    error: { message: '"render" failed once: no light' },
  })
})

test('[C-02] a permanent error goes to quarantine at once', () => {
  for (const code of ['PERMANENT_ERROR', 'SECURITY_ERROR', 'DEPENDENCY_ERROR', 'CONTRACT_VIOLATION_ERROR'] as const) {
    expect(play(waiting, failsWith(code)).job).toMatchObject({ status: 'quarantined', error: { code, state: 'start' } })
  }
})

test('[C-02] invalid input moves the job to `failed` at once', () => {
  for (const code of ['INVALID_INPUT_ERROR', 'INTEGRITY_MISMATCH_ERROR'] as const) {
    expect(play(waiting, failsWith(code)).job).toMatchObject({ status: 'failed', state: 'failed', error: { code } })
  }
})

test('[C-02] [B-07] when a task is given up, a `failure` transition is followed, and the error stays known', () => {
  for (const code of ['PERMANENT_ERROR', 'INVALID_INPUT_ERROR'] as const) {
    const { job } = play(open(), chooses(task({ failure: 'work' })), failsWith(code))
    expect(job).toMatchObject({
      status: 'running',
      state: 'work',
      error: { code, message: 'no light', state: 'start' },
    })
    expect(play({ ...waiting, job }, chooses(goTo('failed'))).job.error?.code).toBe(code)
    expect(play({ ...waiting, job }, chooses(goTo('done'))).job.error).toBeUndefined()
  }
})

test('[C-02] a task that silences every worker is quarantined', () => {
  const { job, effects } = play(waiting, falls)
  expect(job).toMatchObject({ status: 'quarantined', error: { code: 'PERMANENT_ERROR' } })
  expect(job.error?.message).toBe('"render" was handed out 10 times, and every worker that had it fell silent.')
  expect(effects).toEqual([drop])
})

test('[C-04] [C-09] what an older try or visit sends is ignored, and a late result leaves a note', () => {
  const second = play(waiting, failsWith('TRANSIENT_ERROR'))
  const late = play(second, reports('success', { attempt: 1 }))
  expect(late).toMatchObject({ ignored: 'stale_task', job: second.job })
  expect(late.entries).toEqual([
    {
      at: 4_000,
      event: 'result_ignored',
      state: 'start',
      note: 'success of j.1.0, try 1, by w1: stale_task',
      workerId: 'w1',
      taskId: 'j.1.0',
      attempt: 1,
      code: 'stale_task',
    },
  ])
  expect(play(second, falls).ignored).toBe('stale_task')
  expect(play(second, reports('success', { visit: 0 })).ignored).toBe('stale_task')
  expect(play(second, reports('success', { attempt: 3 })).ignored).toBe('stale_task')
})

test('[C-09] a result is applied at most once', () => {
  const cue = reports('retake')(waiting.job)
  const once = play(waiting, () => cue)
  expect(play(once, () => cue).ignored).toBe('stale_task')
  const fan = play(open(), chooses(fanOut(aTask(), aTask())))
  const branch = reports('success', { data: 1 })(fan.job)
  const half = play(fan, () => branch)
  const other = reports('success', { data: 2 })(fan.job)
  expect(play(half, () => other)).toMatchObject({ ignored: 'stale_task', job: half.job })
})

test('[C-09] a result for a branch that was never sent is ignored, whatever its name', () => {
  for (const branch of ['1', '', '__proto__', 'constructor', 'toString']) {
    expect(play(waiting, reports('success', { branch })).ignored).toBe('stale_task')
  }
  expect(play(open(), chooses(approval({ yes: 'done' })), reports('success')).ignored).toBe('stale_task')
})

test('[B-03] progress shows in the record until the try is over', () => {
  const ref = { type: 'progressed', visit: 1, branch: '0', attempt: 1 } as const
  const half = play(waiting, happens({ ...ref, fraction: 0.5, message: 'half' }))
  expect(half.job.progress).toEqual({ fraction: 0.5, message: 'half' })
  expect(half).toMatchObject({ effects: [], entries: [] })
  expect(play(waiting, happens({ ...ref, fraction: 0.7 })).job.progress).toEqual({ fraction: 0.7 })
  expect(play(half, failsWith('TRANSIENT_ERROR')).job.progress).toBeUndefined()
  expect(play(half, reports('retake')).job.progress).toBeUndefined()
  expect(play(half, happens({ ...ref, attempt: 2, fraction: 1 })).ignored).toBe('stale_task')
})

test('[G-04] a job that was stored before states and tries had a time goes on; what is not known is left out', () => {
  const { enteredAt: _entered, ...job } = waiting.job
  const branch = { call: aTask(), attempt: 1 }
  const older = { ...waiting, job: { ...job, branches: { 0: branch } } }
  const { entries } = play(older, reports('retake'))
  expect(entries).toMatchObject([
    { event: 'task_finished', durationMs: undefined },
    { event: 'state_finished', durationMs: 2_000 },
    { event: 'state_started' },
  ])
  const { enteredAt: _begun, ...fresh } = open().job
  expect(play({ ...open(), job: fresh }, throws('x')).entries).toMatchObject([{ durationMs: 1_000 }])
})

test('[C-10] a result that the state history cannot take is refused, and the task stays where it is', () => {
  const large = 'x'.repeat(LIMITS.contextBytesMax)
  const half = 'x'.repeat(LIMITS.contextBytesMax / 2)
  for (const data of [large, { large }, [large]]) {
    const refused = play(waiting, reports('success', { data }))
    expect([refused.ignored, refused.job]).toEqual(['too_large', waiting.job])
  }
  const begun = play(open(), chooses(task(ON), { half }))
  expect(play(begun, reports('success', { data: { other: half } })).ignored).toBe('too_large')
  // It replaces what was there, or adds nothing, or is a failure.
  expect(play(begun, reports('success', { data: { half: large.slice(20) } })).ignored).toBeUndefined()
  expect(play(begun, reports('success')).ignored).toBeUndefined()
  expect(play(begun, failsWith('PERMANENT_ERROR', { data: { large } })).ignored).toBeUndefined()
})
