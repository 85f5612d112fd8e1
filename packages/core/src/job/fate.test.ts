import { expect, test } from 'vitest'
import { fateOf } from './fate.ts'
import type { Fate } from './fate.ts'
import {
  aTask,
  cancels,
  chooses,
  expires,
  failsWith,
  falls,
  fanOut,
  open,
  play,
  reports,
  says,
  task,
} from './samples.ts'
import type { Scene } from './samples.ts'

const ON = { success: 'work', failure: 'review' }
const waiting = play(open(), chooses(task(ON)))

const fate = ({ job }: Scene, visit: number, branch: string, attempt: number, token: number): Fate =>
  fateOf(job, { jobId: 'j', visit, branch, attempt, token })

test('[E-03] a delivery that its own result ended is answered, however the job went on', () => {
  for (const end of [
    reports('success', { token: 40 }),
    reports('cancelled', { token: 40 }),
    failsWith('PERMANENT_ERROR', { token: 40 }),
    failsWith('TRANSIENT_ERROR', { token: 40 }),
  ]) {
    const ended = play(waiting, end)
    expect(fate(ended, 1, '0', 1, 40)).toBe('answered')
    expect(fate(play(ended, cancels), 1, '0', 1, 40)).toBe('answered')
    // The delivery before it went to another worker.
    expect(fate(ended, 1, '0', 1, 39)).toBe('taken back')
  }
})

test('[C-04] [C-05] what was cancelled, ran out of time or was given up is taken back', () => {
  expect(fate(play(waiting, cancels), 1, '0', 1, 40)).toBe('taken back')
  expect(fate(play(waiting, expires('taken')), 1, '0', 1, 40)).toBe('taken back')
  expect(fate(play(waiting, expires('untaken')), 1, '0', 1, 40)).toBe('taken back')
  expect(fate(play(waiting, falls), 1, '0', 1, 40)).toBe('taken back')
  const left = play(open(), chooses({ ...task(ON), eventTransitions: { hurry: 'work' } } as never), says('hurry'))
  expect(fate(left, 1, '0', 1, 40)).toBe('taken back')
  // A later try that was taken back says nothing of the one before it.
  const second = play(waiting, failsWith('TRANSIENT_ERROR', { token: 40 }), cancels)
  expect([fate(second, 1, '0', 1, 40), fate(second, 1, '0', 2, 41)]).toEqual(['answered', 'taken back'])
})

test('[B-04] of a fan-out that is cancelled only the open branches are taken back, however large it was', () => {
  const calls = Array.from({ length: 200 }, () => aTask())
  const begun = play(open(), chooses(fanOut(...calls)))
  const most = Array.from({ length: 150 }, (_unused, branch) =>
    reports('success', { branch: String(branch), token: branch }),
  )
  const cancelled = play(begun, ...most, cancels)
  const fates = calls.map((_call, branch) => fate(cancelled, 1, String(branch), 1, branch))
  // The record has forgotten the first ones: nobody is told to stop what may have been answered.
  expect(new Set(fates.slice(0, 80))).toEqual(new Set(['unknown']))
  expect(new Set(fates.slice(100, 150))).toEqual(new Set(['answered']))
  expect(new Set(fates.slice(150))).toEqual(new Set(['taken back']))
})

test('[E-03] what the record does not tell of is unknown', () => {
  expect(fateOf(undefined, { jobId: 'j', visit: 1, branch: '0', attempt: 1, token: 40 })).toBe('unknown')
  expect(fate(waiting, 1, '0', 1, 40)).toBe('unknown')
  expect(fate(play(waiting, reports('success', { token: 40 })), 2, '0', 1, 41)).toBe('unknown')
})
