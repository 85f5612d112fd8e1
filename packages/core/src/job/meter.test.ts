import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import type { JobEvent } from './event.ts'
import { aTask, cancels, chooses, open, play, reports } from './samples.ts'

const waiting = play(open(), chooses({ type: 'task', call: aTask(), transitions: { success: 'done' } }))

const used =
  (eventId: string, usd: number, more: object = {}) =>
  (): JobEvent => ({
    type: 'metered',
    at: 1_000,
    visit: 1,
    branch: '0',
    attempt: 1,
    eventId,
    usage: { usd, tokens: 10, seconds: 0 },
    ...more,
  })

test('[K-16] what a task has used is added up in its job, to the billionth', () => {
  const { job, effects } = play(waiting, used('a', 0.1), used('b', 0.2))
  expect(job).toMatchObject({ status: 'waiting_for_worker', usage: { usd: 0.3, tokens: 20, seconds: 0 } })
  expect(effects).toEqual([])
  expect(play(waiting, used('a', 1), reports('success')).job).toMatchObject({ status: 'finished', usage: { usd: 1 } })
})

test('[K-16] a report that comes twice counts once, and one for a task that is over counts nothing', () => {
  const twice = play(waiting, used('a', 1), used('a', 1))
  expect(twice).toMatchObject({ ignored: 'repeated_event', job: { usage: { usd: 1 } } })
  expect(play(waiting, used('a', 1, { attempt: 2 })).ignored).toBe('stale_task')
  expect(play(waiting, used('a', 1, { visit: 2 })).ignored).toBe('stale_task')
  expect(play(waiting, cancels, used('a', 1)).ignored).toBe('job_ended')
})

test('[K-16] only the newest ids of reports are kept', () => {
  const many = Array.from({ length: LIMITS.workerEventIdsMax + 5 }, (_, at) => used(`id ${at}`, 1))
  const { job } = play(waiting, ...many)
  expect(job.branches['0']?.metered).toHaveLength(LIMITS.workerEventIdsMax)
  expect(job.usage?.usd).toBe(many.length)
})
