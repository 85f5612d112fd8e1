import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import { decide } from './decide.ts'
import type { JobOrigin } from './event.ts'
import { OUTCOMES, isEnded } from './job.ts'
import {
  aScript,
  approval,
  begins,
  cancels,
  child,
  chooses,
  fanOut,
  aTask,
  goTo,
  happens,
  open,
  play,
  task,
  throws,
  under,
} from './samples.ts'

test('[B-09] a new job is pending in the start state and has a turn', () => {
  const { job, effects, entries } = open()
  expect(job).toMatchObject({
    id: 'j',
    blueprint: 'film',
    blueprintVersion: 3,
    status: 'pending',
    state: 'start',
    visit: 1,
    priority: 0,
    depth: 0,
    createdAt: 1_000,
    updatedAt: 1_000,
    stateHistory: {},
    initialData: { title: 'x' },
  })
  expect(effects).toEqual([{ type: 'turn', visit: 1, delayMs: 0 }])
  const created = { at: 1_000, event: 'job_created', state: 'start' }
  expect(entries).toEqual([created, { at: 1_000, event: 'state_started', state: 'start' }])
  expect(job.trail).toEqual([created])
})

test('[B-09] a new job keeps what its client asked for', () => {
  const request = {
    priority: 5,
    depth: 2,
    parent: { jobId: 'p', visit: 1, branch: '0' },
    dispatchTimeoutMs: 1,
    resultTimeoutMs: 2,
    tracing: { traceparent: '00-a' },
    metadata: { a: 1 },
    webhookUrl: 'https://example.org',
  }
  expect(open(request).job).toMatchObject(request)
})

test('[C-04] the execution timeout is a timer: of the request, else of the blueprint', () => {
  const timer = { type: 'timer', timer: 'life', visit: 1 }
  expect(open({ executionTimeoutMs: 7 }, { executionTimeoutMs: 9 }).effects).toContainEqual({ ...timer, afterMs: 7 })
  expect(open({}, { executionTimeoutMs: 9 }).effects).toContainEqual({ ...timer, afterMs: 9 })
})

test('[C-09] a job is created once: the second creation is ignored', () => {
  const { job } = open()
  const request = { blueprint: 'film', client: { id: 'ann' }, initialData: {} }
  const again = decide(aScript(), job, { type: 'created', at: 2, id: 'j', request })
  expect(again).toEqual({ type: 'ignored', reason: 'job_exists', entries: [] })
})

test('[C-09] what happens to a job that is not there is ignored', () => {
  const lost = { type: 'ignored', reason: 'job_not_found', entries: [] }
  expect(decide(aScript(), undefined, { type: 'timeRanOut', at: 1 })).toEqual(lost)
  expect(
    decide(aScript(), undefined, {
      type: 'taskEnded',
      at: 1,
      visit: 1,
      branch: '0',
      attempt: 1,
      workerId: 'w1',
      status: 'success',
      chance: 0,
    }),
  ).toEqual(lost)
})

test('[A-01] [B-02] a handler picks the next state, which gets its turn at once', () => {
  const { job, effects, entries } = play(open(), chooses(goTo('work'), { seen: true }))
  expect(job).toMatchObject({
    status: 'running',
    state: 'work',
    visit: 2,
    stateHistory: { seen: true },
    updatedAt: 2_000,
  })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries).toEqual([
    { at: 2_000, event: 'state_finished', state: 'start', durationMs: 1_000, nextState: 'work', visit: 1 },
    { at: 2_000, event: 'state_started', state: 'work', previousState: 'start' },
  ])
  expect(job.trail.at(-1)).toEqual({ at: 2_000, event: 'state_started', state: 'work' })
})

test('[A-01] [J-19] an end state with nothing to run ends the job, with the whole state history as its result', () => {
  const { job, effects } = play(open(), chooses(goTo('done'), { frames: 3 }))
  expect(job).toMatchObject({
    status: 'finished',
    state: 'done',
    result: { frames: 3 },
    endedAt: 2_000,
    error: undefined,
  })
  expect(effects).toEqual([])
  expect(isEnded(job)).toBe(true)
})

test('[A-01] an end state says how the job ends', () => {
  expect(play(open(), chooses(goTo('failed'))).job.status).toBe('failed')
  expect(play(open(), chooses(goTo('aborted'))).job.status).toBe('cancelled')
  expect(OUTCOMES).toEqual(['finished', 'failed', 'cancelled', 'error'])
})

test('[A-01] [J-19] an end state that computes its result has a turn of its own first', () => {
  const total = play(open(), chooses(goTo('total'), { sum: 1 }))
  expect(total.job).toMatchObject({ status: 'running', state: 'total' })
  expect(total.effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
  expect(play(total, chooses({ type: 'end', result: 42 })).job).toMatchObject({ status: 'finished', result: 42 })
  expect(play(total, chooses({ type: 'end', result: null })).job).toMatchObject({ status: 'finished', result: null })
  expect(play(total, chooses({ type: 'end' })).job).toMatchObject({ status: 'finished', result: { sum: 1 } })
})

test('[A-01] a job that ends anywhere else is finished', () => {
  expect(play(open(), chooses({ type: 'end', result: 'early' })).job).toMatchObject({
    status: 'finished',
    result: 'early',
  })
})

test('[A-01] [C-07] a state that the blueprint does not have quarantines the job where the choice was made', () => {
  for (const name of ['nowhere', '__proto__', 'constructor', 'toString']) {
    const { job, effects } = play(open(), chooses(goTo(name)))
    expect(job).toMatchObject({
      status: 'quarantined',
      state: 'start',
      error: { code: 'UNKNOWN_STATE', state: 'start' },
    })
    expect(job.error?.message).toContain(`has no state "${name}"`)
    expect(effects).toEqual([])
  }
})

test('[C-09] a turn counts once: what a second run of the same visit chose is ignored', () => {
  const first = open()
  const cue = chooses(goTo('work'))
  const again = play(play(first, cue), () => cue(first.job))
  expect(again).toMatchObject({ ignored: 'stale_turn', effects: [] })
  expect(play(play(first, cue), () => throws('late')(first.job)).ignored).toBe('stale_turn')
})

test('[C-09] a handler that ran while its job waits is ignored', () => {
  const waiting = play(open(), chooses(task({ success: 'done' })))
  expect(play(waiting, chooses(goTo('done'))).ignored).toBe('stale_turn')
  expect(play(waiting, throws('late')).ignored).toBe('stale_turn')
})

test('[C-03] a handler that throws runs again after a while that grows', () => {
  const first = play(open(), throws('no film'))
  expect(first.job).toMatchObject({ status: 'running', state: 'start', visit: 1, failures: 1 })
  expect(first.effects).toEqual([{ type: 'turn', visit: 1, delayMs: 750 }])
  const failed = { at: 2_000, event: 'state_failed', state: 'start', note: 'no film' }
  expect(first.entries).toEqual([{ ...failed, attempt: 1, durationMs: 1_000 }])
  expect(first.job.trail.at(-1)).toEqual({ ...failed, durationMs: 1_000 })
  expect(play(first, throws('no film')).effects).toEqual([{ type: 'turn', visit: 1, delayMs: 1_250 }])
})

test('[C-03] a handler that keeps throwing quarantines its job, with the error and the stack', () => {
  const { job, effects, entries } = play(open(), throws('a'), throws('b'), throws('no film', 'Error: no film\n  at x'))
  expect(job).toMatchObject({ status: 'quarantined', state: 'start', failures: 3 })
  expect(job.error).toEqual({
    code: 'HANDLER_FAILED',
    message: 'The handler of "start" failed 3 times: no film',
    state: 'start',
    stack: 'Error: no film\n  at x',
  })
  expect(effects).toEqual([])
  expect(entries.map(({ event }) => event)).toEqual(['state_failed', 'job_quarantined'])
  expect(play(open({}, { handlerAttemptsMax: 1 }), throws('a')).job.error).not.toHaveProperty('stack')
})

test('[C-03] a new state starts with no failures', () => {
  expect(play(open(), throws('a'), throws('b'), chooses(goTo('work'))).job.failures).toBe(0)
})

test('[C-11] a handler that was begun again and again and never ended waits for a person', () => {
  const first = play(open(), begins())
  expect(first.job).toMatchObject({ status: 'pending', visit: 1, begun: 1 })
  expect([first.effects, first.entries]).toEqual([[], []])
  const second = play(first, begins())
  expect(second.job).toMatchObject({ status: 'pending', begun: 2 })
  const { job, effects } = play(second, begins())
  expect(job).toMatchObject({ status: 'quarantined', state: 'start', visit: 1 })
  expect(job.error).toMatchObject({ code: 'HANDLER_NEVER_ENDED', state: 'start' })
  expect(job.error?.message).toContain('was begun 3 times and never ended')
  expect(effects).toEqual([])
})

test('[C-11] a run that returned and was lost is counted apart from those that never returned', () => {
  const lost = play(open(), begins(2, 0, true))
  expect(lost.job).toMatchObject({ begun: 0, lost: 1, begunBy: 7 })
  expect(play(lost, begins(), begins(2, 0, true)).job).toMatchObject({ begun: 1, lost: 2 })
  expect(play(lost, chooses(task({ success: 'done' }))).job).toMatchObject({ begunBy: undefined, lost: undefined })
  const { job } = play(lost, begins(2, 0, true), begins(2, 0, true))
  expect(job).toMatchObject({ status: 'quarantined', state: 'start' })
  expect(job.error?.code).toBe('HANDLER_NEVER_ENDED')
  expect(job.error?.message).toContain('returned 3 times, and each time the process ended')
})

test('[C-11] an end of any sort ends the count of runs without one', () => {
  const begun = play(open(), begins(), begins())
  expect(play(begun, throws('after all')).job).toMatchObject({ status: 'running', failures: 1, begun: 0 })
  expect(play(begun, throws('after all'), begins()).job.begun).toBe(1)
  expect(play(begun, chooses(goTo('work'))).job.begun).toBeUndefined()
  expect(play(begun, chooses(task({ success: 'done' }))).job.begun).toBeUndefined()
  expect(play(open(), throws('a')).job.begun).toBeUndefined()
  const retried = play(begun, begins(), happens({ type: 'retried', by: 'bob' }))
  expect(retried.job).toMatchObject({ status: 'running', visit: 2 })
  expect(retried.job.begun).toBeUndefined()
})

test('[C-11] only a turn of the present visit can begin', () => {
  expect(play(open(), begins(2, 1)).ignored).toBe('stale_turn')
  expect(play(play(open(), chooses(task({ success: 'done' }))), begins()).ignored).toBe('stale_turn')
})

test('[C-06] a job that enters too many states is quarantined', () => {
  const loop = open({}, { transitionsMax: 3 })
  const third = play(loop, chooses(goTo('work')), chooses(goTo('start')))
  expect(third.job).toMatchObject({ status: 'running', visit: 3 })
  const { job, effects } = play(third, chooses(goTo('work')))
  expect(job).toMatchObject({ status: 'quarantined', state: 'work', error: { code: 'LOOP_LIMIT', state: 'work' } })
  expect(effects).toEqual([])
})

test('[C-06] [C-07] a retry counts the transitions anew', () => {
  const loop = play(open({}, { transitionsMax: 2 }), chooses(goTo('work')), chooses(goTo('start')))
  expect(loop.job.status).toBe('quarantined')
  const retried = play(loop, (job) => ({ type: 'retried', at: job.updatedAt, by: 'bob' }))
  expect(retried.job).toMatchObject({ status: 'running', state: 'start', error: undefined })
  expect(play(retried, chooses(goTo('work'))).job.status).toBe('running')
  expect(play(retried, chooses(goTo('work')), chooses(goTo('start'))).job.error?.code).toBe('LOOP_LIMIT')
})

test('[B-09] each wait has its status', () => {
  const start = open()
  expect(play(start, chooses(task({ success: 'done' }))).job.status).toBe('waiting_for_worker')
  expect(play(start, chooses(child({ success: 'done' }))).job.status).toBe('waiting_for_child')
  expect(play(start, chooses(fanOut(aTask(), aTask()))).job.status).toBe('waiting_for_parallel')
  expect(play(start, chooses(approval({ yes: 'done' }))).job.status).toBe('waiting_for_human')
  expect(play(start, cancels).job.status).toBe('cancelled')
})

test('[B-09] the record keeps the newest moments and drops the oldest', () => {
  let scene = under(open(), { transitionsMax: 1_000 })
  for (let turn = 0; turn < LIMITS.trailEntriesMax + 5; turn += 1) scene = play(scene, chooses(goTo('work')))
  expect(scene.job.trail).toHaveLength(LIMITS.trailEntriesMax)
  expect(scene.job.trail.at(-1)).toMatchObject({ at: scene.job.updatedAt, event: 'state_started' })
})

test('[A-03] [M-02] a job can take over from an earlier one in any of its states', () => {
  const results = [{ state: 'start', call: 'render', keys: ['film'] }] as unknown as NonNullable<JobOrigin['results']>
  const { job, effects, entries } = open({ from: { jobId: 'old', state: 'work', stateHistory: { film: 1 }, results } })
  expect(job).toMatchObject({ state: 'work', visit: 1, status: 'pending', stateHistory: { film: 1 }, results })
  expect(effects).toContainEqual({ type: 'turn', visit: 1, delayMs: 0 })
  expect(entries[0]).toMatchObject({ event: 'job_created', state: 'work', note: 'again from state work of old' })
  const bare = open({ from: { jobId: 'old', state: 'work', stateHistory: {} } })
  expect(bare.job.results).toBeUndefined()
})
