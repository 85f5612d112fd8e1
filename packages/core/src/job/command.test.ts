import { expect, test } from 'vitest'
import { isRepeated } from './command.ts'
import type { EventOf } from './event.ts'
import { approval, cancels, chooses, decides, failsWith, happens, open, play, retries, task } from './samples.ts'

const asked = play(open(), chooses(approval({ yes: 'done', no: 'work' })))
const aside = play(open(), chooses(task({})), failsWith('PERMANENT_ERROR'))
type Decision = EventOf<'decisionMade'>
const decision = (more: Partial<Decision> = {}): Decision => ({
  type: 'decisionMade',
  at: 9,
  decision: 'no',
  by: 'bob',
  ...more,
})

test('[B-04] [C-08] a decision is known again by the question, the answer and the person', () => {
  const { job } = play(asked, decides('no'))
  expect(isRepeated(job, decision())).toBe(true)
  expect(isRepeated(job, decision({ visit: 1 }))).toBe(true)
  expect(isRepeated(job, decision({ comment: 'once more' }))).toBe(true)
  expect(isRepeated(job, decision({ visit: 2 }))).toBe(false)
  expect(isRepeated(job, decision({ visit: 0 }))).toBe(true)
  expect(isRepeated(job, decision({ visit: 0, decision: 'yes' }))).toBe(false)
  expect(isRepeated(job, decision({ decision: 'yes' }))).toBe(false)
  expect(isRepeated(job, decision({ by: 'ann' }))).toBe(false)
  expect(isRepeated(asked.job, decision())).toBe(false)
  expect(isRepeated(open().job, decision())).toBe(false)
  // Also when the decision has ended the job.
  expect(isRepeated(play(asked, decides('yes')).job, decision({ decision: 'yes' }))).toBe(true)
})

test('[B-04] [C-08] a decision with other data is another one', () => {
  const data = { budget: 7 }
  const { job } = play(asked, happens({ type: 'decisionMade', decision: 'no', by: 'bob', data }))
  expect(isRepeated(job, decision({ data }))).toBe(true)
  expect(isRepeated(job, decision({ data: { budget: 8 } }))).toBe(false)
  expect(isRepeated(job, decision())).toBe(false)
})

test('[B-04] what answered an earlier question is no answer to the one that is open now, unless it says so', () => {
  const again = play(asked, decides('no'), chooses(approval({ no: 'done' })))
  expect(again.job.status).toBe('waiting_for_human')
  expect(isRepeated(again.job, decision())).toBe(false)
  expect(isRepeated(again.job, decision({ visit: 1 }))).toBe(true)
})

test('[C-08] a job that is cancelled has what a repeated cancellation asks for', () => {
  const { job } = play(asked, cancels)
  expect(isRepeated(job, { type: 'cancelled', at: 9, by: 'somebody else' })).toBe(true)
  expect(isRepeated(asked.job, { type: 'cancelled', at: 9, by: 'ann' })).toBe(false)
})

test('[C-08] a retry is known again by its data, and a discard by the person', () => {
  expect(aside.job.status).toBe('quarantined')
  const retried = play(aside, retries).job
  const retry = (more: Partial<EventOf<'retried'>> = {}): EventOf<'retried'> => ({
    type: 'retried',
    at: 9,
    by: 'bob',
    ...more,
  })
  expect(isRepeated(retried, retry())).toBe(true)
  expect(isRepeated(retried, retry({ by: 'ann' }))).toBe(false)
  expect(isRepeated(retried, retry({ initialData: { n: 1 } }))).toBe(false)
  const edited = play(aside, happens({ type: 'retried', by: 'bob', initialData: { n: 1 }, stateHistory: { m: 2 } })).job
  expect(isRepeated(edited, retry({ initialData: { n: 1 }, stateHistory: { m: 2 } }))).toBe(true)
  expect(isRepeated(edited, retry({ initialData: { n: 2 }, stateHistory: { m: 2 } }))).toBe(false)
  expect(isRepeated(edited, retry())).toBe(false)
  const discarded = play(aside, happens({ type: 'discarded', by: 'bob' })).job
  expect(isRepeated(discarded, { type: 'discarded', at: 9, by: 'bob' })).toBe(true)
  expect(isRepeated(discarded, { type: 'discarded', at: 9, by: 'ann' })).toBe(false)
})

test('[C-08] only the newest commands are kept', () => {
  let scene = asked
  for (let round = 0; round < 12; round += 1) {
    scene = play(scene, decides('no'), chooses(approval({ yes: 'done', no: 'work' })))
  }
  expect(scene.job.commands).toHaveLength(8)
})
