import { expect, test } from 'vitest'
import type { Decision, Effect } from './effect.ts'
import { approval, awaits, chooses, fanOut, aTask, goTo, open, play, task } from './samples.ts'
import type { Scene } from './samples.ts'
import { asksForTurnNow, followedBy } from './sequel.ts'

const decisionOf = ({ job, effects, entries }: Scene): Decision => ({ type: 'decided', job, effects, entries })

function both(first: Scene, ...cues: Parameters<typeof play> extends [Scene, ...infer C] ? C : never): Decision {
  return followedBy(decisionOf(first), decisionOf(play(first, ...cues)))
}

test('[C-01] a turn that is taken at once is not asked for any more, and all moments are told in order', () => {
  const first = open()
  const whole = both(first, chooses(task({ success: 'done' })))
  expect(whole.job).toMatchObject({ status: 'waiting_for_worker', state: 'start', visit: 1 })
  expect(whole.effects.map(({ type }) => type)).toEqual(['task'])
  expect(whole.entries.map(({ event }) => event)).toEqual(['job_created', 'state_started', 'task_dispatched'])
})

test('[C-04] what the first sent and the second took back was never sent', () => {
  const first = open({ executionTimeoutMs: 9_000 })
  expect(first.effects.map(({ type }) => type)).toEqual(['turn', 'timer'])
  const whole = both(first, chooses(goTo('done')))
  expect(whole.job.status).toBe('finished')
  expect(whole.effects).toEqual([{ type: 'dropTimer', timer: 'life' }])
})

test('[B-12] a wait that follows from what came before is heard with it', () => {
  const whole = both(open(), chooses(awaits('paid', { received: 'done' }, { key: 'k' })))
  expect(whole.effects).toEqual([{ type: 'listen', visit: 1, topic: 'paid', key: 'k' }])
})

test('[C-04] what the first took back and the second sends again is taken back and sent', () => {
  const first = play(open(), chooses(approval({ approved: 'work' }, 5_000)), (job) => ({
    type: 'decisionMade',
    at: job.updatedAt,
    decision: 'approved',
    by: 'ann',
  }))
  const whole = both(first, chooses(approval({ approved: 'done' }, 7_000)))
  const timers = whole.effects.filter(({ type }) => type === 'timer' || type === 'dropTimer')
  expect(timers.map(({ type }) => type)).toEqual(['dropTimer', 'timer'])
})

test('[B-08] tasks of the state before stay taken back when the next one sends out its own', () => {
  const first = play(open(), chooses(fanOut(aTask(), aTask())), (job) => ({
    type: 'cancelled',
    at: job.updatedAt,
    by: 'ann',
  }))
  const again: Decision = { type: 'decided', job: first.job, effects: everyKind(), entries: [] }
  const whole = followedBy(again, again)
  // Each sent once; what cannot be taken back again, mail and webhooks, stays as it was.
  expect(whole.effects.map(({ type }) => type)).toEqual([
    'dropTask',
    'dropTimer',
    'mail',
    'webhook',
    ...everyKind().map(({ type }) => type),
  ])
})

test('[H-07] a turn now may be taken in the same commit, but for one later, and when a webhook is told of this moment', () => {
  const of = (...effects: Effect[]): boolean => asksForTurnNow({ ...decisionOf(open()), effects })
  const turn = { type: 'turn', visit: 1, delayMs: 0 } as const
  const webhook = { type: 'webhook', event: 'job_started', messageId: 'm' } as const
  expect([of(turn), of(), of({ ...turn, delayMs: 1 }), of(turn, webhook)]).toEqual([true, false, false, false])
})

function everyKind(): Effect[] {
  return [
    { type: 'turn', visit: 1, delayMs: 5 },
    {
      type: 'task',
      visit: 1,
      branch: '0',
      attempt: 1,
      delayMs: 0,
      call: aTask(),
      failedWorkers: [],
      resultMs: undefined,
    },
    { type: 'dropTask', visit: 0, branch: '0', attempt: 1 },
    { type: 'timer', timer: 'life', visit: 1, afterMs: 1 },
    { type: 'dropTimer', timer: 'approval' },
    { type: 'mail', to: 'k', letterId: 'l', letter: { type: 'cancelled', at: 1, by: 'ann' } },
    { type: 'webhook', event: 'job_finished', messageId: 'm' },
  ]
}
