import { expect, test } from 'vitest'
import type { JobEvent } from './event.ts'
import type { Outcome } from './job.ts'
import {
  aChild,
  aTask,
  approval,
  cancels,
  child,
  childEnds,
  chooses,
  begins,
  decides,
  expires,
  falls,
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

const limited = open({ executionTimeoutMs: 5_000 })
const timeRunsOut = happens({ type: 'timeRanOut' })

const places = [
  ['pending', open()],
  ['running', play(open(), chooses(goTo('work')))],
  ['waiting for its next try', play(open(), throws('once'))],
  ['waiting_for_worker', play(open(), chooses(task({ success: 'done' })))],
  ['waiting_for_human', play(open(), chooses(approval({ yes: 'done' }, 500)))],
  ['waiting_for_child', play(open(), chooses(child({ success: 'done' })))],
  ['waiting_for_parallel', play(open(), chooses(fanOut(aTask(), aChild())))],
  ['quarantined', play(open(), chooses(goTo('nowhere')))],
] as const

test.each(places)('[C-05] a job that is %s can be cancelled', (_, scene) => {
  const { job, entries } = play(scene, cancels)
  expect(job).toMatchObject({ status: 'cancelled', branches: {}, wait: undefined, endedAt: job.updatedAt })
  expect(job.error).toEqual({ code: 'CANCELLED', message: 'Cancelled by ann.', state: scene.job.state })
  expect(entries).toMatchObject([{ event: 'job_cancelled', note: 'Cancelled by ann.' }])
})

test('[C-05] a cancellation may say why', () => {
  const why = happens({ type: 'cancelled', by: 'ann', reason: 'Wrong film.' })
  expect(play(open(), why).job.error?.message).toBe('Wrong film.')
})

test('[C-05] cancelling takes back what is still open, and only that', () => {
  const fan = play(open(), chooses(fanOut(aTask(), aTask(), aChild())), reports('success'))
  expect(play(fan, cancels).effects).toMatchObject([
    { type: 'dropTask', visit: 1, branch: '1', attempt: 1 },
    { type: 'mail', to: 'j-1-2', letter: { type: 'cancelled' } },
  ])
})

const late: readonly JobEvent[] = [
  chooses(goTo('done')),
  throws('late'),
  begins(),
  reports('success'),
  expires('taken'),
  falls,
  childEnds('finished'),
  decides('yes'),
  cancels,
  retries,
  timeRunsOut,
  happens({ type: 'progressed', visit: 1, branch: '0', attempt: 1, fraction: 1 }),
  happens({ type: 'approvalExpired', visit: 1 }),
  happens({ type: 'discarded', by: 'bob' }),
  happens({ type: 'migrated', version: 4, state: 'done', stateHistory: {} }),
  happens({ type: 'stranded', error: { code: 'BLUEPRINT_GONE', message: 'gone', state: 'start' } }),
].map((cue) => cue(open().job))

test.each(places)('[C-05] [J-3] a job that was %s and is cancelled never becomes anything else', (_, scene) => {
  const cancelled = play(scene, cancels)
  for (const event of late) {
    const after = play(cancelled, () => event)
    expect(after).toMatchObject({ ignored: 'job_ended', effects: [] })
    expect(after.job).toBe(cancelled.job)
  }
})

test('[C-05] what the worker of a cancelled job sends leaves no more than a note', () => {
  const waiting = play(open(), chooses(task({ success: 'done' })))
  const after = play(waiting, cancels, reports('success', { data: { frames: 3 } }))
  expect(after).toMatchObject({ ignored: 'job_ended', job: { status: 'cancelled', stateHistory: {} } })
  expect(after.entries).toMatchObject([{ event: 'result_ignored', note: 'success of j.1.0, try 1, by w1: job_ended' }])
})

test.each<[Outcome, string]>([
  ['finished', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'aborted'],
])('[C-09] a job that has %s takes nothing more', (status, state) => {
  const ended = play(open(), chooses(goTo(state)))
  expect(ended.job.status).toBe(status)
  for (const event of late) expect(play(ended, () => event).ignored).toBe('job_ended')
})

test('[C-04] a job that does not end in its time fails, wherever it is', () => {
  const { job, effects } = play(limited, chooses(task({ success: 'done' })), timeRunsOut)
  expect(job).toMatchObject({ status: 'failed', state: 'start' })
  expect(job.error).toEqual({
    code: 'EXECUTION_TIMEOUT',
    message: 'The job did not end within its 5 s.',
    state: 'start',
  })
  expect(effects).toEqual([
    { type: 'dropTask', visit: 1, branch: '0', attempt: 1 },
    { type: 'dropTimer', timer: 'life' },
  ])
})

test('[C-04] a job that ends in time takes its timer with it', () => {
  const drop = { type: 'dropTimer', timer: 'life' }
  expect(play(limited, chooses(goTo('done'))).effects).toEqual([drop])
  expect(play(limited, cancels).effects).toEqual([drop])
  expect(play(limited, chooses(goTo('work'))).effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
})

test('[C-04] a job without a time limit does not run out of time', () => {
  expect(play(open(), timeRunsOut).ignored).toBe('no_time_limit')
})

test('[C-04] [C-07] time stands still in quarantine and begins anew with a retry', () => {
  const aside = play(limited, chooses(goTo('nowhere')))
  expect(aside.effects).toEqual([{ type: 'dropTimer', timer: 'life' }])
  expect(play(aside, timeRunsOut).ignored).toBe('job_quarantined')
  expect(play(aside, retries).effects).toEqual([
    { type: 'turn', visit: 2, delayMs: 0 },
    { type: 'timer', timer: 'life', visit: 2, afterMs: 5_000 },
  ])
})
