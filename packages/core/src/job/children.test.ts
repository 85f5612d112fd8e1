import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import {
  aChild,
  aTask,
  cancels,
  child,
  childEnds,
  chooses,
  fanOut,
  goTo,
  open,
  play,
  reports,
  task,
  throws,
} from './samples.ts'

const waiting = play(open(), chooses(child({ success: 'done', failure: 'work' })))
const bare = play(open(), chooses(child({})))
const parent = { jobId: 'p', visit: 4, branch: '2' }

test('[B-05] a child is created by mail, for the same client, one level deeper', () => {
  const tracing = { traceparent: '00-a' }
  const { job, effects, entries } = play(open({ priority: 3, tracing, depth: 1 }), chooses(child({ success: 'done' })))
  expect(job).toMatchObject({ status: 'waiting_for_child', wait: { kind: 'child' } })
  expect(effects).toEqual([
    {
      type: 'mail',
      to: 'j-1-0',
      letterId: 'j-1-0.order',
      letter: {
        type: 'create',
        request: {
          blueprint: 'trailer',
          client: { id: 'ann' },
          initialData: { scene: 1 },
          priority: 3,
          parent: { jobId: 'j', visit: 1, branch: '0' },
          depth: 2,
          tracing,
        },
      },
    },
  ])
  expect(entries).toMatchObject([{ event: 'child_started', note: 'trailer j-1-0' }])
  expect(job.trail.at(-1)).toMatchObject({ event: 'child_started', note: 'trailer' })
})

test("[B-05] the child's result reaches the parent, which goes on", () => {
  const { job, effects, entries } = play(waiting, childEnds('finished', { cut: 7 }))
  expect(job).toMatchObject({ status: 'finished', stateHistory: { trailer: { cut: 7 } }, error: undefined })
  expect(effects).toEqual([])
  expect(entries[0]).toMatchObject({ event: 'child_ended', note: 'trailer finished' })
  expect(play(waiting, childEnds('finished')).job.stateHistory).toEqual({})
})

test('[B-05] a child that does not finish is a failure of which the parent knows the reason', () => {
  const error = { code: 'TIMEOUT_ERROR', message: 'too slow' }
  const { job } = play(waiting, childEnds('failed', { cut: 1 }, { error }))
  expect(job).toMatchObject({ state: 'work', status: 'running', stateHistory: { trailer: { cut: 1 } } })
  expect(job.error).toEqual({ code: 'CHILD_FAILED', message: '"trailer": too slow', state: 'start' })
  expect(play(waiting, childEnds('cancelled')).job).toMatchObject({
    state: 'work',
    error: { message: '"trailer": The child job ended as cancelled.' },
  })
})

test('[B-05] without a way for it the parent fails with that reason', () => {
  for (const outcome of ['failed', 'cancelled', 'error'] as const) {
    expect(play(bare, childEnds(outcome)).job).toMatchObject({
      status: 'failed',
      state: 'failed',
      error: { code: 'CHILD_FAILED', message: `"trailer": The child job ended as ${outcome}.`, state: 'start' },
    })
  }
  expect(play(bare, childEnds('finished')).job.error?.code).toBe('UNHANDLED_STATUS')
})

test('[B-05] a transition for the very outcome comes first', () => {
  const exact = play(
    open(),
    chooses(child({ finished: 'review', cancelled: 'done', success: 'work', failure: 'work' })),
  )
  expect(play(exact, childEnds('finished')).job.state).toBe('review')
  expect(play(exact, childEnds('cancelled')).job.state).toBe('done')
  expect(play(exact, childEnds('failed')).job.state).toBe('work')
})

test('[B-05] a quarantined child may still be mended: the parent waits, unless the blueprint has a way for it', () => {
  const patient = play(waiting, childEnds('quarantined'))
  expect(patient.job).toMatchObject({ status: 'waiting_for_child', visit: 1 })
  expect(patient.entries).toMatchObject([{ event: 'child_quarantined' }])
  expect(play(patient, childEnds('finished')).job.status).toBe('finished')
  const hasty = play(open(), chooses(child({ success: 'done', quarantined: 'work' })), childEnds('quarantined'))
  expect(hasty.job).toMatchObject({ status: 'running', state: 'work' })
  expect(hasty.effects).toMatchObject([{ type: 'mail', to: 'j-1-0', letter: { type: 'cancelled' } }, { type: 'turn' }])
})

test('[B-05] [C-05] cancelling the parent cancels the child, in the place of a creation that is still on its way', () => {
  const { effects } = play(waiting, cancels)
  expect(effects).toEqual([
    {
      type: 'mail',
      to: 'j-1-0',
      letterId: 'j-1-0.order',
      letter: { type: 'cancelled', at: 3_000, by: 'job j', reason: 'The job that started it went on without it.' },
    },
  ])
  expect(waiting.effects).toMatchObject([{ letterId: 'j-1-0.order' }])
})

test('[C-05] a child that has ended is not cancelled again', () => {
  const half = play(open(), chooses(fanOut(aChild(), aChild())), childEnds('finished'))
  expect(play(half, cancels).effects).toMatchObject([{ type: 'mail', to: 'j-1-1' }])
})

test('[C-09] the end of a child counts once, and only for the visit that started it', () => {
  const ended = childEnds('failed')(waiting.job)
  const once = play(waiting, () => ended)
  expect(play(once, () => ended).ignored).toBe('stale_child')
  expect(play(waiting, childEnds('finished', 1, { visit: 0 })).ignored).toBe('stale_child')
  const half = play(open(), chooses(fanOut(aChild(), aTask())), childEnds('finished'))
  expect(play(half, childEnds('failed')).ignored).toBe('stale_child')
})

test('[C-09] the end of a child that was never started is ignored, whatever its name', () => {
  for (const branch of ['1', '__proto__', 'constructor', 'toString']) {
    expect(play(waiting, childEnds('finished', 1, { branch })).ignored).toBe('stale_child')
  }
  expect(play(open(), chooses(task({})), childEnds('finished')).ignored).toBe('stale_child')
  expect(play(open(), chooses(fanOut(aTask())), childEnds('finished')).ignored).toBe('stale_child')
  expect(play(waiting, reports('success')).ignored).toBe('stale_task')
})

test('[B-05] a job tells its parent how it ended', () => {
  const letter = { type: 'childEnded', at: 2_000, visit: 4, branch: '2', error: undefined }
  const done = play(open({ parent }), chooses(goTo('done'), { n: 1 }))
  expect(done.effects).toEqual([
    { type: 'mail', to: 'p', letterId: 'j.ended', letter: { ...letter, outcome: 'finished', result: { n: 1 } } },
  ])
  expect(play(open({ parent }), cancels).effects).toMatchObject([
    { to: 'p', letter: { outcome: 'cancelled', error: { code: 'CANCELLED', message: 'Cancelled by ann.' } } },
  ])
})

test('[B-05] a job that is quarantined asks its parent for patience, each time anew, and never sends its stack', () => {
  const aside = play(open({ parent }, { handlerAttemptsMax: 1 }), throws('boom', 'at x'))
  expect(aside.effects).toEqual([
    {
      type: 'mail',
      to: 'p',
      letterId: 'j.quarantined.1',
      letter: {
        type: 'childEnded',
        at: 2_000,
        visit: 4,
        branch: '2',
        outcome: 'quarantined',
        result: undefined,
        error: { code: 'HANDLER_FAILED', message: 'The handler of "start" failed once: boom' },
      },
    },
  ])
})

test('[B-05] [C-06] children that start children without end are stopped, before anything is sent out', () => {
  const deep = open({ depth: LIMITS.childDepthMax })
  for (const action of [child({ success: 'done' }), fanOut(aTask(), aChild())]) {
    const { job, effects } = play(deep, chooses(action))
    expect(job).toMatchObject({
      status: 'quarantined',
      branches: {},
      error: { code: 'CHILD_TOO_DEEP', state: 'start' },
    })
    expect(effects).toEqual([])
  }
  expect(play(deep, chooses(fanOut(aTask()))).job.status).toBe('waiting_for_parallel')
  expect(play(open({ depth: LIMITS.childDepthMax - 1 }), chooses(child({}))).job.status).toBe('waiting_for_child')
})
