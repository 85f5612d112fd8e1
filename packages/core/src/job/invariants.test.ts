import { expect, test } from 'vitest'
import { contradictions, wakeUps } from './invariants.ts'
import type { Job } from './job.ts'
import { aChild, aTask, approval, chooses, fanOut, failsWith, goTo, open, play, reports, task } from './samples.ts'

const begun = open({ executionTimeoutMs: 5_000 })
const life = { queue: 'timers', id: 'j.life', payload: { jobId: 'j', timer: 'life' } }
const nothing = { items: [], timers: [], children: [], isUpToPerson: false }

test('[C-09] a job that may run has a turn of its visit', () => {
  const turn = (visit: number): object => ({ queue: 'turns', id: 'j', payload: { visit } })
  expect(wakeUps(open().job)).toEqual({ ...nothing, items: [turn(1)] })
  expect(wakeUps(play(begun, chooses(goTo('work'))).job)).toEqual({ ...nothing, items: [turn(2)], timers: [life] })
})

test('[C-09] a job that waits for workers and children has an item for each that is still open', () => {
  const fan = play(open(), chooses(fanOut(aTask(), aTask(), aTask(), aChild(), aChild())))
  const { job } = play(fan, reports('success'), failsWith('TRANSIENT_ERROR', { branch: '1' }), (now) => ({
    type: 'childEnded',
    at: now.updatedAt,
    visit: 1,
    branch: '3',
    outcome: 'finished',
  }))
  const item = (branch: string, attempt: number): object => ({
    queue: 'tasks',
    id: `j.1.${branch}`,
    payload: { jobId: 'j', visit: 1, branch, attempt, type: 'render' },
  })
  expect(wakeUps(job)).toEqual({
    ...nothing,
    items: [item('1', 2), item('2', 1)],
    children: [{ jobId: 'j-1-4', letters: ['j-1-4.order', 'j-1-4.ended'] }],
  })
})

test('[B-04] [C-09] a job that waits for a person is up to that person, with a timer when it may expire', () => {
  const approvalTimer = { queue: 'timers', id: 'j.approval', payload: { jobId: 'j', timer: 'approval', visit: 1 } }
  expect(wakeUps(play(open(), chooses(approval({}))).job)).toEqual({ ...nothing, isUpToPerson: true })
  expect(wakeUps(play(begun, chooses(approval({}, 500))).job)).toEqual({
    ...nothing,
    timers: [life, approvalTimer],
    isUpToPerson: true,
  })
})

test('[C-07] [C-09] a quarantined job waits for a person alone, an ended one for nothing', () => {
  expect(wakeUps(play(begun, chooses(goTo('nowhere'))).job)).toEqual({ ...nothing, isUpToPerson: true })
  expect(wakeUps(play(begun, chooses(goTo('done'))).job)).toEqual(nothing)
})

const { job: pending } = open()
const { job: waiting } = play(open(), chooses(task({})))
const { job: parallel } = play(open(), chooses(fanOut(aTask())))
const { job: finished } = play(open(), chooses(goTo('done')))
const { job: quarantined } = play(open(), chooses(goTo('nowhere')))
const error = { code: 'LOOP_LIMIT', message: 'x', state: 'start' } as const
const call = { call: aTask(), attempt: 1 }

test('[C-09] a sound record contradicts nothing', () => {
  for (const job of [pending, waiting, parallel, finished, quarantined]) expect(contradictions(job)).toEqual([])
})

test.each<[string, Job, readonly string[]]>([
  [
    'waits for nothing',
    { ...pending, status: 'waiting_for_worker' },
    ['It is "waiting_for_worker" and waits for nothing.'],
  ],
  [
    'waits for two things',
    { ...waiting, status: 'waiting_for_human' },
    ['It is "waiting_for_human" and waits for task.'],
  ],
  ['has lost its calls', { ...parallel, branches: {} }, ['Nothing will move it.']],
  ['has lost its call', { ...waiting, branches: {} }, ['Nothing will move it.', 'It waits for 0 calls at once.']],
  ['has a call too many', { ...waiting, branches: { 0: call, 1: call } }, ['It waits for 2 calls at once.']],
  ['keeps old calls', { ...pending, branches: { 0: call } }, ['It is "pending" and keeps 1 calls.']],
  ['ended too early', { ...pending, endedAt: 5 }, ['It is "pending" and ended at 5.']],
  ['never ended', { ...finished, endedAt: undefined }, ['It is "finished" and ended at no time.']],
  ['has no reason', { ...quarantined, error: undefined }, ['It is quarantined without a reason.']],
  ['is held and open', { ...pending, onward: { state: 'x' } }, ['It is "pending" and held before a state.']],
  ['is finished in spite of an error', { ...finished, error }, ['It is finished with an error.']],
])('[C-09] a record that %s is found', (_, job, found) => {
  expect(contradictions(job)).toEqual(found)
})
