import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import type { Action } from './action.ts'
import { aTask, cancels, chooses, failsWith, fanOut, open, play, reports, says } from './samples.ts'

const listening: Action = {
  type: 'task',
  call: aTask(),
  transitions: { success: 'done' },
  eventTransitions: { spotted: 'review', over: 'done' },
}
const waiting = play(open(), chooses(listening, { kept: 1, found: 0 }))
const drop = { type: 'dropTask', visit: 1, branch: '0', attempt: 1 }

test('[E-01] an event with a way of its own: the job leaves the task at once, with the payload in its history', () => {
  const { job, effects, entries } = play(waiting, says('spotted', { payload: { found: 3 }, eventId: 'e1' }))
  expect(job).toMatchObject({ status: 'running', state: 'review', visit: 2, branches: {}, workerEvents: undefined })
  expect(job.stateHistory).toEqual({ kept: 1, found: 3 })
  expect(effects).toEqual([drop, { type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries[0]).toMatchObject({
    event: 'worker_event:spotted',
    note: '{"found":3}',
    workerId: 'w1',
    taskId: 'j.1.0',
    attempt: 1,
  })
})

test('[E-01] [C-04] what the worker sends for the task that the job has left is ignored', () => {
  const gone = play(waiting, says('spotted'))
  expect(play(gone, says('spotted', { visit: 1 })).ignored).toBe('stale_task')
  expect(play(gone, reports('success', { visit: 1 }))).toMatchObject({
    ignored: 'stale_task',
    entries: [{ event: 'result_ignored' }],
  })
  expect(play(waiting, says('over'), says('over', { visit: 1 })).ignored).toBe('job_ended')
  expect(play(waiting, cancels, says('spotted')).ignored).toBe('job_ended')
})

test('[E-01] an event without a way is noted, and the job waits on', () => {
  const noted = play(waiting, says('warming up'))
  expect(noted.job).toMatchObject({ status: 'waiting_for_worker', visit: 1, stateHistory: { found: 0 } })
  expect(noted).toMatchObject({ effects: [], entries: [{ event: 'worker_event:warming up' }] })
  expect(noted.entries[0]?.note).toBeUndefined()
  for (const name of ['__proto__', 'constructor', 'toString', '']) {
    expect(play(waiting, says(name)).job.visit).toBe(1)
  }
  const plain = play(open(), chooses({ type: 'task', call: aTask(), transitions: { success: 'done' } }))
  expect(play(plain, says('spotted')).job.visit).toBe(1)
  const long = play(waiting, says('x', { payload: { text: 'y'.repeat(500) } })).entries[0]?.note
  expect(long).toHaveLength(200)
})

test('[E-01] [H-07] a webhook is told of a long payload without it', () => {
  const told = (chars: number) => {
    const heard = play(open({ webhookUrl: 'https://hear.example/me' }), chooses(listening))
    const { effects } = play(heard, says('x', { payload: { text: 'y'.repeat(chars) } }))
    return effects.map((effect) => (effect.type === 'webhook' ? effect.details : undefined))
  }
  const frame = '{"text":""}'.length
  const most = LIMITS.webhookResultCharsMax - frame
  expect(told(most)).toMatchObject([{ payload: { text: 'y'.repeat(most) } }])
  expect(told(most + 1)).toMatchObject([{ payload: null, payload_omitted: true }])
})

test('[E-01] a branch of a fan-out only notes its events', () => {
  const fan = play(open(), chooses(fanOut(aTask(), aTask())))
  const noted = play(fan, says('spotted', { branch: '1' }))
  expect(noted.job).toMatchObject({ status: 'waiting_for_parallel', visit: 1, workerEvents: { count: 1 } })
  expect(noted.entries).toMatchObject([{ event: 'worker_event:spotted', taskId: 'j.1.1' }])
})

test('[E-01] [C-09] a sender that repeats itself is heard once', () => {
  const once = play(waiting, says('a', { eventId: 'e1' }))
  expect(play(once, says('a', { eventId: 'e1' }))).toMatchObject({ ignored: 'repeated_event', job: once.job })
  expect(play(once, says('spotted', { eventId: 'e1' })).ignored).toBe('repeated_event')
  expect(play(once, says('a', { eventId: 'e2' })).job.workerEvents).toEqual({ count: 2, ids: ['0/e1', '0/e2'] })
  expect(play(once, says('a'), says('a')).job.workerEvents).toEqual({ count: 3, ids: ['0/e1'] })
  const retried = play(once, failsWith('TRANSIENT_ERROR'))
  expect(play(retried, says('a', { eventId: 'e1' })).ignored).toBe('repeated_event')
  expect(play(retried, says('a', { attempt: 1, eventId: 'e2' })).ignored).toBe('stale_task')
})

test('[E-01] the same id in two branches is two events', () => {
  const fan = play(open(), chooses(fanOut(aTask(), aTask())), says('a', { eventId: '1' }))
  expect(play(fan, says('a', { eventId: '1', branch: '1' })).job.workerEvents?.count).toBe(2)
})

test('[E-01] ids are remembered, and events taken, only so far; an event with a way is always taken', () => {
  let scene = waiting
  for (let count = 1; count <= LIMITS.workerEventsMax; count += 1) {
    scene = play(scene, says('tick', { eventId: String(count) }))
  }
  expect(scene.job.workerEvents?.ids).toHaveLength(LIMITS.workerEventIdsMax)
  expect(scene.job.workerEvents?.ids.at(-1)).toBe(`0/${LIMITS.workerEventsMax}`)
  expect(play(scene, says('tick')).ignored).toBe('too_many_events')
  expect(play(scene, says('spotted')).job.state).toBe('review')
})

test('[C-10] an event whose payload the state history cannot take is refused, and the job waits on', () => {
  const large = 'x'.repeat(LIMITS.contextBytesMax)
  const refused = play(waiting, says('spotted', { payload: { large } }))
  expect([refused.ignored, refused.job]).toEqual(['too_large', waiting.job])
})
