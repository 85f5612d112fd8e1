import { expect, test } from 'vitest'
import { approval, cancels, chooses, decides, happens, open, play, task } from './samples.ts'

const asked = play(open(), chooses(approval({ yes: 'done', no: 'work' })))
const hurried = play(open(), chooses(approval({ yes: 'done', expired: 'work' }, 500)))
const over = happens({ type: 'approvalExpired', visit: 1 })

test('[B-04] a job waits for a person, without end unless it says so', () => {
  expect(asked.job).toMatchObject({ status: 'waiting_for_human', wait: { kind: 'human', message: 'Is it good?' } })
  expect(asked.job.wait).not.toHaveProperty('expiresAt')
  expect(asked.effects).toEqual([])
  expect(asked.entries).toEqual([{ at: 2_000, event: 'approval_requested', state: 'start', note: 'Is it good?' }])
})

test('[B-04] the decision picks the next state and is kept with who made it', () => {
  const { job, effects, entries } = play(asked, decides('no', 'too dark'))
  expect(job).toMatchObject({ status: 'running', state: 'work', visit: 2, wait: undefined })
  expect(job.stateHistory).toEqual({ decision: { decision: 'no', by: 'bob', comment: 'too dark' } })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
  expect(entries[0]).toMatchObject({ event: 'decision_made', note: 'no by bob: too dark' })
  const silent = play(asked, decides('yes'))
  expect(silent.job).toMatchObject({ status: 'finished', stateHistory: { decision: { comment: null } } })
  expect(silent.entries[0]?.note).toBe('yes by bob')
})

test('[B-04] a decision that the blueprint does not know changes nothing', () => {
  for (const decision of ['maybe', '', '__proto__', 'constructor', 'toString']) {
    expect(play(asked, decides(decision))).toMatchObject({ ignored: 'unknown_decision', job: asked.job, entries: [] })
  }
})

test('[B-04] [C-09] a decision counts once', () => {
  expect(play(asked, decides('no'), decides('no')).ignored).toBe('not_waiting_for_human')
  expect(play(open(), decides('yes')).ignored).toBe('not_waiting_for_human')
  expect(play(open(), chooses(task({})), decides('yes')).ignored).toBe('not_waiting_for_human')
})

test('[B-04] an approval that may expire has a timer, which goes with the decision', () => {
  expect(hurried.job.wait).toMatchObject({ expiresAt: 2_500 })
  expect(hurried.effects).toEqual([{ type: 'timer', timer: 'approval', visit: 1, afterMs: 500 }])
  const drop = { type: 'dropTimer', timer: 'approval' }
  expect(play(hurried, decides('yes')).effects).toEqual([drop])
  expect(play(hurried, cancels).effects).toEqual([drop])
})

test('[B-04] when nobody decides in time, the decision is `expired`', () => {
  const { job, entries } = play(hurried, over)
  expect(job).toMatchObject({ status: 'running', state: 'work' })
  expect(entries[0]?.event).toBe('approval_expired')
})

test('[B-04] without a way for that, the job fails', () => {
  const { job } = play(open(), chooses(approval({ yes: 'done' }, 500)), over)
  expect(job).toMatchObject({ status: 'failed', state: 'failed' })
  expect(job.error).toEqual({ code: 'APPROVAL_EXPIRED', message: 'Nobody decided in time.', state: 'start' })
})

test('[B-04] the timer of an older approval is ignored', () => {
  const later = play(hurried, decides('expired'), chooses(approval({ yes: 'done' }, 500)))
  expect(later.job.visit).toBe(2)
  expect(play(later, over).ignored).toBe('not_waiting_for_human')
  expect(play(hurried, decides('expired'), over).ignored).toBe('not_waiting_for_human')
})
