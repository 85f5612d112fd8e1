import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import { wakeUps } from './invariants.ts'
import { approvalOf } from './outbox.ts'
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
  expect(entries[0]).toMatchObject({ event: 'decision_made', note: 'no by "bob": too dark' })
  const silent = play(asked, decides('yes'))
  expect(silent.job).toMatchObject({ status: 'finished', stateHistory: { decision: { comment: null } } })
  expect(silent.entries[0]?.note).toBe('yes by "bob"')
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
  expect(job.error).toEqual({ code: 'APPROVAL_EXPIRED', message: 'No decision was made in time.', state: 'start' })
})

test('[B-04] the timer of an older approval is ignored', () => {
  const later = play(hurried, over, chooses(approval({ yes: 'done' }, 500)))
  expect(later.job.visit).toBe(2)
  expect(play(later, over).ignored).toBe('not_waiting_for_human')
  expect(play(hurried, over, over).ignored).toBe('not_waiting_for_human')
})

test('[B-04] `expired` is what happens when nobody decides: nobody can choose it', () => {
  expect(play(hurried, decides('expired')).ignored).toBe('unknown_decision')
  expect(approvalOf(hurried.job)).toEqual({
    visit: 1,
    form: undefined,
    formFor: [],
    message: 'Is it good?',
    decisions: ['yes'],
    expiresAt: 2_500,
    reminders: 0,
  })
  expect(approvalOf(open().job)).toBeUndefined()
})

test('[B-04] a decision that names its request never decides a later one', () => {
  const first = decides('no', undefined, 1)
  const again = play(asked, first, chooses(approval({ yes: 'done', no: 'failed' })))
  expect(again.job).toMatchObject({ status: 'waiting_for_human', visit: 2 })
  expect(play(again, first)).toMatchObject({ ignored: 'stale_decision', job: again.job })
  expect(play(asked, first, first).ignored).toBe('stale_decision')
  expect(play(again, decides('yes', undefined, 2)).job.status).toBe('finished')
  expect(play(open(), decides('yes', undefined, 1)).ignored).toBe('not_waiting_for_human')
})

const due = happens({ type: 'reminderDue', visit: 1 })
const drop = { type: 'dropTimer', timer: 'reminder' }

test('[B-04] a person who was asked is reminded again and again, until somebody decides', () => {
  const patient = play(open(), chooses(approval({ yes: 'done' }, undefined, { remindEveryMs: 5_000 })))
  expect(patient.job.wait).toMatchObject({ remindAt: 7_000 })
  expect(patient.effects).toEqual([{ type: 'timer', timer: 'reminder', visit: 1, afterMs: 5_000 }])
  expect(wakeUps(patient.job).timers).toMatchObject([{ id: 'j.reminder', payload: { timer: 'reminder', visit: 1 } }])
  const reminded = play(patient, due)
  expect(reminded.job).toMatchObject({ status: 'waiting_for_human', wait: { reminders: 1, remindAt: 8_000 } })
  expect(reminded.entries).toMatchObject([{ event: 'approval_reminded', note: 'reminder 1: Is it good?' }])
  expect(reminded.effects).toEqual([{ type: 'timer', timer: 'reminder', visit: 1, afterMs: 5_000 }])
  expect(play(reminded, decides('yes'))).toMatchObject({ job: { status: 'finished' }, effects: [drop] })
  expect(play(reminded, cancels).effects).toEqual([drop])
  let scene = patient
  for (let count = 0; count < LIMITS.remindersMax; count += 1) scene = play(scene, due)
  expect(scene).toMatchObject({
    job: { wait: { reminders: LIMITS.remindersMax, remindAt: undefined } },
    effects: [drop],
  })
  expect(wakeUps(scene.job)).toMatchObject({ timers: [], isUpToPerson: true })
  expect(play(scene, due).ignored).toBe('not_waiting_for_human')
})

test('[B-04] one reminder, or a first one after another span; none when it would be too late', () => {
  const once = play(open(), chooses(approval({ yes: 'done' }, undefined, { remindAfterMs: 2_000 })))
  expect(once.job.wait).toMatchObject({ remindAt: 4_000 })
  expect(play(once, due)).toMatchObject({ job: { wait: { reminders: 1, remindAt: undefined } }, effects: [drop] })
  const both = play(open(), chooses(approval({ yes: 'done' }, 5_500, { remindAfterMs: 500, remindEveryMs: 3_000 })))
  expect(both.job.wait).toMatchObject({ remindAt: 2_500, expiresAt: 7_500 })
  const twice = play(both, due, due)
  expect(twice.job.wait).toMatchObject({ reminders: 2, remindAt: 7_000 })
  expect(play(twice, due)).toMatchObject({ job: { wait: { reminders: 3, remindAt: undefined } } })
  const late = play(open(), chooses(approval({ yes: 'done' }, 2_000, { remindEveryMs: 2_000 })))
  expect(late.job.wait).not.toHaveProperty('remindAt')
})

test('[B-04] the reminder of an older approval is ignored', () => {
  const patient = play(open(), chooses(approval({ yes: 'work' }, undefined, { remindEveryMs: 5_000 })))
  const later = play(patient, decides('yes'), chooses(approval({ yes: 'done' }, undefined, { remindEveryMs: 5_000 })))
  expect(play(later, due).ignored).toBe('not_waiting_for_human')
  expect(play(patient, decides('yes'), due).ignored).toBe('not_waiting_for_human')
})

test('[B-04] a question may ask for data, which is kept with the decision', () => {
  const form = { type: 'object', properties: { budget: { type: 'number' } } }
  const formed = play(open(), chooses(approval({ yes: 'done', no: 'work' }, undefined, { form, formFor: ['yes'] })))
  expect(formed.job.wait).toMatchObject({ kind: 'human', form, formFor: ['yes'] })
  const forNobody = play(open(), chooses(approval({ yes: 'done' }, undefined, { form })))
  expect(forNobody.job.wait).toMatchObject({ form, formFor: [] })
  const decided = play(formed, happens({ type: 'decisionMade', decision: 'yes', by: 'bob', data: { budget: 7 } }))
  expect(decided.job.stateHistory).toMatchObject({ decision: { decision: 'yes', data: { budget: 7 } } })
})
