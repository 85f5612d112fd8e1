import { expect, test } from 'vitest'
import {
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
  under,
} from './samples.ts'

const waiting = play(open(), chooses(task({ success: 'done' }), { frames: 1 }))
const aside = play(waiting, failsWith('PERMANENT_ERROR'))
const discards = happens({ type: 'discarded', by: 'bob' })
const strands = happens({
  type: 'stranded',
  error: { code: 'BLUEPRINT_GONE', message: 'Version 3 is gone.', state: 'start' },
})

test('[C-07] a quarantined job keeps everything that a person needs to mend it', () => {
  expect(aside.job).toMatchObject({
    status: 'quarantined',
    state: 'start',
    initialData: { title: 'x' },
    stateHistory: { frames: 1 },
    error: { code: 'PERMANENT_ERROR', message: 'no light', state: 'start' },
  })
  expect(aside.entries.at(-1)).toMatchObject({ event: 'job_quarantined', note: 'no light' })
})

test('[C-07] a retry starts again from the failed state', () => {
  const { job, effects, entries } = play(aside, retries)
  expect(job).toMatchObject({ status: 'running', state: 'start', visit: 2, failures: 0, error: undefined })
  expect(job).toMatchObject({ initialData: { title: 'x' }, stateHistory: { frames: 1 } })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries.map(({ event, note }) => [event, note])).toEqual([
    ['job_retried', 'by bob'],
    ['state_started', undefined],
  ])
})

test('[C-07] a retry may bring edited data', () => {
  const edits = happens({ type: 'retried', by: 'bob', initialData: { title: 'y' }, stateHistory: { frames: 2 } })
  expect(play(aside, edits).job).toMatchObject({ initialData: { title: 'y' }, stateHistory: { frames: 2 } })
})

test('[C-07] a discarded job has failed for the reason that it was quarantined for', () => {
  const { job, entries } = play(aside, discards)
  expect(job).toMatchObject({ status: 'failed', state: 'start', error: aside.job.error, endedAt: job.updatedAt })
  expect(entries).toMatchObject([{ event: 'job_discarded', note: 'by bob' }, { event: 'job_failed' }])
})

test('[C-07] nothing but a person or a cancellation moves a quarantined job', () => {
  const cues = [
    chooses(goTo('done')),
    throws('late'),
    reports('success'),
    expires('taken'),
    childEnds('finished'),
    decides('yes'),
    strands,
    happens({ type: 'migrated', version: 4, state: 'done', stateHistory: {} }),
  ]
  for (const cue of cues) expect(play(aside, cue)).toMatchObject({ ignored: 'job_quarantined', job: aside.job })
  expect(play(aside, cancels).job.status).toBe('cancelled')
})

test('[C-07] only a quarantined job can be retried or discarded', () => {
  for (const scene of [open(), waiting]) {
    expect(play(scene, retries).ignored).toBe('job_not_quarantined')
    expect(play(scene, discards).ignored).toBe('job_not_quarantined')
  }
})

test('[C-07] a retry counts once', () => {
  expect(play(aside, retries, retries).ignored).toBe('job_not_quarantined')
})

test('[C-07] a job that stopped before its end state ends when it is retried', () => {
  const loop = play(open({}, { transitionsMax: 1 }), chooses(goTo('done')))
  expect(loop.job).toMatchObject({ status: 'quarantined', state: 'done' })
  expect(play(loop, retries).job).toMatchObject({ status: 'finished', error: undefined })
})

test('[A-08] a job whose version is gone is quarantined with the reason', () => {
  const { job, effects } = play(open(), strands)
  expect(job).toMatchObject({ status: 'quarantined', blueprintVersion: 3, visit: 1 })
  expect(job.error).toEqual({ code: 'BLUEPRINT_GONE', message: 'Version 3 is gone.', state: 'start' })
  expect(effects).toEqual([])
  expect(play(under({ ...waiting, job }, {}), retries).job).toMatchObject({ status: 'running', state: 'start' })
})

test('[A-08] a migrated job goes on in the state and with the history that the migration gave', () => {
  const moves = happens({ type: 'migrated', version: 4, state: 'work', stateHistory: { shots: 1 } })
  const { job, effects, entries } = play(open(), moves)
  expect(job).toMatchObject({
    status: 'running',
    blueprintVersion: 4,
    state: 'work',
    visit: 2,
    stateHistory: { shots: 1 },
  })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries[0]).toMatchObject({ event: 'job_migrated', note: 'from version 3 to 4' })
})

test('[A-08] a migration takes back what the old version had sent out', () => {
  const moves = happens({ type: 'migrated', version: 4, state: 'work', stateHistory: {} })
  expect(play(waiting, moves).effects).toMatchObject([{ type: 'dropTask', visit: 1, branch: '0' }, { type: 'turn' }])
  expect(play(open(), chooses(child({})), moves).effects).toMatchObject([
    { type: 'mail', letter: { type: 'cancelled' } },
    { type: 'turn', visit: 2 },
  ])
})

test('[C-07] the stack that a worker sent with its failure is kept with the job, of the newest try that had one', () => {
  const stack = 'Error: no light\n    at lamp.js:3'
  expect(play(waiting, failsWith('PERMANENT_ERROR', { stack })).job.error).toEqual({
    code: 'PERMANENT_ERROR',
    message: 'no light',
    state: 'start',
    stack,
  })
  const tries = [failsWith('TRANSIENT_ERROR', { stack: 'old' }), failsWith('TRANSIENT_ERROR', { stack })]
  const tired = play(under(waiting, { taskAttemptsMax: 3 }), ...tries, failsWith('TRANSIENT_ERROR'))
  expect(tired.job).toMatchObject({ status: 'quarantined', error: { stack } })
  // It is for people: neither the blueprint nor a parent gets it.
  const branches = play(open(), chooses({ ...fanOut(aTask(), aTask()) }), failsWith('PERMANENT_ERROR', { stack }))
  expect(branches.job.branches['0']?.outcome).toEqual({
    status: 'failure',
    error: { code: 'PERMANENT_ERROR', message: 'no light' },
  })
})
