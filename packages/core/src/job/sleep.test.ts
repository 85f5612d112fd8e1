import { expect, test } from 'vitest'
import { contradictions, wakeUps } from './invariants.ts'
import { cancels, chooses, happens, open, play, sleep } from './samples.ts'

const asleep = play(open(), chooses(sleep({ afterMs: 60_000 })))
const wakes = (visit: number): ReturnType<typeof happens> => happens({ type: 'sleepEnded', visit })

test('[B-11] a job that sleeps says until when, and its timer is what will move it', () => {
  const { job, effects } = asleep
  expect(job).toMatchObject({
    status: 'waiting_for_time',
    state: 'start',
    wait: { kind: 'sleep', until: 62_000, to: 'work' },
  })
  expect(effects).toEqual([{ type: 'timer', timer: 'sleep', visit: 1, afterMs: 60_000 }])
  expect(job.trail.at(-1)).toMatchObject({ event: 'sleep_started', note: 'until 1970-01-01T00:01:02Z' })
  expect(wakeUps(job)).toEqual({
    items: [{ queue: 'timers', id: 'j.sleep', payload: { jobId: 'j', timer: 'sleep', visit: 1 } }],
    timers: [],
    children: [],
    isUpToPerson: false,
  })
  expect(contradictions(job)).toEqual([])
})

test('[B-11] a moment that has passed is no reason to wait', () => {
  expect(play(open(), chooses(sleep({ until: 90_000 }))).effects).toMatchObject([{ afterMs: 88_000 }])
  expect(play(open(), chooses(sleep({ until: 500 }))).effects).toMatchObject([{ timer: 'sleep', afterMs: 0 }])
  expect(play(open(), chooses(sleep({}))).effects).toMatchObject([{ timer: 'sleep', afterMs: 0 }])
})

test('[B-11] when it has slept it goes on, once', () => {
  const awake = play(asleep, wakes(1))
  expect(awake.job).toMatchObject({ status: 'running', state: 'work', visit: 2, wait: undefined })
  expect(awake.effects).toEqual([
    { type: 'dropTimer', timer: 'sleep' },
    { type: 'turn', visit: 2, delayMs: 0 },
  ])
  expect(play(awake, wakes(1)).ignored).toBe('not_sleeping')
  const again = play(awake, chooses(sleep({ afterMs: 1 })))
  expect(play(again, wakes(1)).ignored).toBe('not_sleeping')
  expect(play(again, wakes(2)).job.state).toBe('work')
})

test('[B-11] a sleep ends with its job', () => {
  const { job, effects } = play(asleep, cancels)
  expect(job.status).toBe('cancelled')
  expect(effects).toContainEqual({ type: 'dropTimer', timer: 'sleep' })
})

test('[B-11] nobody sleeps for more than two years', () => {
  const { job, effects } = play(open(), chooses(sleep({ until: 3 * 365 * 86_400_000 })))
  expect(job).toMatchObject({ status: 'quarantined', error: { code: 'HANDLER_FAILED' } })
  expect(job.error?.message).toContain('sleeps until 1972-12-31T00:00:00Z')
  expect(effects.map(({ type }) => type)).not.toContain('timer')
})
