import { expect, test } from 'vitest'
import type { Action } from './action.ts'
import { isRepeated } from './command.ts'
import { abandonCompensation, finishUndo, nextUndo } from './compensation.ts'
import { openDraft } from './draft.ts'
import { contradictions, wakeUps } from './invariants.ts'
import { waitReason } from './reason.ts'
import {
  aChild,
  aTask,
  cancels,
  childEnds,
  chooses,
  expires,
  failsWith,
  goTo,
  happens,
  open,
  play,
  reports,
  retries,
  sends,
  task,
  throws,
} from './samples.ts'
import type { Scene } from './samples.ts'

const undone = chooses({ type: 'undone' })
const undoTask: Action = { type: 'task', call: aTask({ attemptsMax: 1 }), transitions: {} }
const undoChild: Action = { type: 'child', call: aChild(), transitions: {} }

/** Charged and booked, and now at work. */
const done = play(open(), chooses(goTo('charge')), chooses(goTo('book')), chooses(goTo('work')))
const events = ({ job }: Scene): readonly string[] => job.trail.map(({ event }) => event)

test('[B-13] what was done is undone in reverse order, each in a turn of its own, before the job ends', () => {
  expect(done.job.undos).toEqual([
    { state: 'charge', visit: 2, isCertain: true },
    { state: 'book', visit: 3, isCertain: true },
  ])
  const begun = play(done, chooses(goTo('failed')))
  expect(begun.job).toMatchObject({
    status: 'running',
    state: 'book',
    visit: 6,
    undos: undefined,
    compensation: { outcome: 'failed', state: 'failed', left: [{ state: 'book' }, { state: 'charge' }], undone: [] },
  })
  expect(begun.effects).toEqual([{ type: 'turn', visit: 6, delayMs: 0 }])
  expect(contradictions(begun.job)).toEqual([])
  expect(waitReason(begun.job)).toBe('It undoes "book" before it ends as failed.')
  const first = play(begun, undone)
  expect(first.job).toMatchObject({ state: 'charge', compensation: { left: [{ state: 'charge' }], undone: ['book'] } })
  expect(
    play(first, happens({ type: 'turnTaken', visit: 6, action: { type: 'undone' }, stateHistory: {} })).ignored,
  ).toBe('stale_turn')
  const ended = play(first, undone)
  expect(ended.job).toMatchObject({
    status: 'failed',
    state: 'failed',
    compensation: { left: [], undone: ['book', 'charge'] },
  })
  expect(events(ended).slice(-6)).toEqual([
    'compensation_started',
    'undo_started',
    'undo_finished',
    'undo_started',
    'undo_finished',
    'job_failed',
  ])
  expect(play(done, chooses(goTo('done'))).job).toMatchObject({ status: 'finished', undos: undefined })
})

test('[B-13] a cancelled job is undone too, and says so; its parent and its webhook hear of the end', () => {
  const parent = { jobId: 'p', visit: 1, branch: '0' }
  const made = play(
    open({ parent, webhookUrl: 'https://hear.example/me', executionTimeoutMs: 60_000 }),
    chooses(goTo('charge')),
    chooses(goTo('work')),
  )
  const begun = play(made, cancels)
  expect(begun.job).toMatchObject({ status: 'running', state: 'charge', error: { code: 'CANCELLED' } })
  expect(begun.effects).toEqual([
    { type: 'dropTimer', timer: 'life' },
    { type: 'turn', visit: 4, delayMs: 0 },
  ])
  expect(wakeUps(begun.job).timers).toEqual([])
  const ended = play(begun, undone)
  expect(ended.job).toMatchObject({ status: 'cancelled', state: 'work', error: { code: 'CANCELLED' } })
  expect(ended.effects.map(({ type }) => type)).toEqual(expect.arrayContaining(['mail', 'webhook']))
})

test('[B-13] a state that failed was not done; one that timed out, or was under way, may have been', () => {
  const charging = play(
    open(),
    chooses(goTo('charge')),
    chooses(task({ success: 'work', failure: 'work', timeout: 'work' })),
  )
  expect(play(charging, failsWith('INVALID_INPUT_ERROR')).job.undos).toBeUndefined()
  expect(play(charging, expires('untaken')).job.undos).toEqual([{ state: 'charge', visit: 2, isCertain: false }])
  const cut = play(charging, cancels)
  expect(cut.job).toMatchObject({ state: 'charge', compensation: { left: [{ state: 'charge', isCertain: false }] } })
  expect(cut.effects.map(({ type }) => type)).toEqual(['dropTask', 'turn'])
  expect(play(open(), chooses(goTo('charge')), cancels).job.status).toBe('cancelled')
  expect(play(open(), chooses(task({})), cancels).job.status).toBe('cancelled')
})

test('[B-13] an undo may send a task, or run a child', () => {
  const begun = play(done, chooses(goTo('failed')))
  const sent = play(begun, chooses(undoTask))
  expect(sent.job).toMatchObject({ status: 'waiting_for_worker', state: 'book' })
  expect(waitReason(sent.job)).toBe('It undoes "book" before it ends as failed. It waits for "render".')
  const next = play(sent, reports('success', { data: { a: 1 } }))
  expect(next.job).toMatchObject({ state: 'charge', stateHistory: {}, compensation: { undone: ['book'] } })
  const child = play(next, chooses(undoChild))
  expect(child.job.status).toBe('waiting_for_child')
  expect(play(child, childEnds('quarantined')).job.status).toBe('waiting_for_child')
  expect(play(child, childEnds('finished', 1)).job).toMatchObject({ status: 'failed', compensation: { left: [] } })
})

test('[B-13] an undo that fails for good asks a person, who lets it try again or gives it up', () => {
  const begun = play(done, chooses(goTo('failed')))
  const sent = play(begun, chooses(undoTask))
  for (const cue of [
    failsWith('PERMANENT_ERROR'),
    failsWith('INVALID_INPUT_ERROR'),
    reports('cancelled'),
    expires('untaken'),
  ]) {
    expect(play(sent, cue).job).toMatchObject({ status: 'quarantined', state: 'book', compensation: { undone: [] } })
  }
  expect(play(begun, chooses(undoChild), childEnds('failed')).job.status).toBe('quarantined')
  const aside = play(begun, throws('a'), throws('b'), throws('c'))
  expect(aside.job).toMatchObject({ status: 'quarantined', error: { code: 'HANDLER_FAILED' } })
  const again = play(aside, retries)
  expect(again.job).toMatchObject({ status: 'running', state: 'book', visit: 7, error: undefined })
  expect(again.effects).toEqual([{ type: 'turn', visit: 7, delayMs: 0 }])
  const ended = play(again, undone, undone)
  expect(ended.job).toMatchObject({ status: 'failed', compensation: { undone: ['book', 'charge'] } })
  const given = play(aside, happens({ type: 'discarded', by: 'bob' }))
  expect(given.job).toMatchObject({ status: 'failed', compensation: { left: [], undone: [] } })
  expect(events(given)).toContain('compensation_abandoned')
})

test('[B-13] nothing cuts an undo short: no cancel, no time limit, no event', () => {
  const begun = play(done, cancels)
  for (const cue of [cancels, happens({ type: 'timeRanOut' }), sends('paid')]) {
    expect(play(begun, cue).ignored).toBe('compensating')
  }
  const aside = play(begun, throws('a'), throws('b'), throws('c'))
  expect(play(aside, cancels).ignored).toBe('compensating')
  expect(isRepeated(begun.job, { type: 'cancelled', at: 1, by: 'ann' })).toBe(true)
})

test('[B-13] a person who gives up a quarantined job lets it undo what it did', () => {
  const aside = play(done, throws('a'), throws('b'), throws('c'))
  const given = play(aside, happens({ type: 'discarded', by: 'bob' }))
  expect(given.job).toMatchObject({ status: 'running', state: 'book', compensation: { outcome: 'failed' } })
  expect(play(given, undone, undone).job).toMatchObject({ status: 'failed', error: { code: 'HANDLER_FAILED' } })
})

test('[B-13] under another version the undo that is under way begins again', () => {
  const begun = play(done, chooses(goTo('failed')), chooses(undoTask))
  const moved = play(begun, happens({ type: 'migrated', version: 4, state: 'review', stateHistory: { a: 1 } }))
  expect(moved.job).toMatchObject({ state: 'book', status: 'running', blueprintVersion: 4, stateHistory: { a: 1 } })
  expect(moved.effects.map(({ type }) => type)).toEqual(['dropTask', 'turn'])
})

test('[B-13] the time limit of a job ends it after its undos', () => {
  const limited = play(open({ executionTimeoutMs: 5_000 }), chooses(goTo('charge')), chooses(goTo('work')))
  const begun = play(limited, happens({ type: 'timeRanOut' }))
  expect(begun.job).toMatchObject({ state: 'charge', compensation: { error: { code: 'EXECUTION_TIMEOUT' } } })
  expect(play(begun, undone).job).toMatchObject({ status: 'failed', error: { code: 'EXECUTION_TIMEOUT' } })
})

test('[B-13] the result that was worked out before the undos is the result', () => {
  const totalled = play(done, chooses(goTo('aborted')), undone, undone)
  expect(totalled.job).toMatchObject({ status: 'cancelled', result: {} })
})

test('[B-13] what does not undo anything has nothing to undo', () => {
  const draft = openDraft(done.script, done.job, 1)
  nextUndo(draft)
  finishUndo(draft)
  abandonCompensation(draft)
  expect(draft.effects).toEqual([])
  expect(play(done, undone).job).toMatchObject({ status: 'quarantined', error: { code: 'HANDLER_FAILED' } })
  const begun = play(done, chooses(goTo('failed')))
  expect(play(begun, chooses(goTo('done'))).job).toMatchObject({ status: 'quarantined', compensation: { undone: [] } })
})

test('[B-13] [C-09] an undo ends the job by no transition of its own: a failed one waits for a person', () => {
  const begun = play(done, chooses(goTo('failed')))
  const ways = { cancelled: 'aborted', failure: 'done', success: 'done' }
  const atChild = play(begun, chooses({ ...undoChild, transitions: ways }))
  const failed = play(atChild, happens({ type: 'childEnded', visit: 6, branch: '0', outcome: 'cancelled' }))
  expect(failed.job).toMatchObject({ status: 'quarantined', state: 'book', compensation: { undone: [] } })
  expect(contradictions(failed.job)).toEqual([])
  const atTask = play(begun, chooses({ ...undoTask, transitions: ways }), reports('success'))
  expect(atTask.job).toMatchObject({ status: 'running', state: 'charge', compensation: { undone: ['book'] } })
})

test('[B-13] a job that ended with something left to undo contradicts itself', () => {
  const { job } = play(done, chooses(goTo('failed')))
  expect(contradictions({ ...job, status: 'failed', endedAt: 1 })).toContain('It has ended and not undone what it did.')
})
