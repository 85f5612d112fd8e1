import { expect, test } from 'vitest'
import type { ScriptState } from '../blueprint/script.ts'
import { contradictions } from './invariants.ts'
import {
  aChild,
  aTask,
  approval,
  awaits,
  cancels,
  childEnds,
  chooses,
  decides,
  failsWith,
  fanOut,
  goTo,
  happens,
  open,
  play,
  reports,
  retries,
  says,
  sends,
  sleep,
  task,
} from './samples.ts'
import type { Cue, Scene } from './samples.ts'

const HANDLER: ScriptState = { kind: 'handler' }

/** The blueprint has the state `ship`, which the one of the samples has not. */
const withShip = (scene: Scene, ship: ScriptState = HANDLER): Scene => ({
  ...scene,
  script: { ...scene.script, state: (name) => (name === 'ship' ? ship : scene.script.state(name)) },
})

const charged = play(open(), chooses(goTo('charge')), chooses(task({ success: 'ship' })))
const held = play(charged, reports('success', { data: { receipt: 7 } }))
const discards = happens({ type: 'discarded', by: 'bob' })

test('[C-07] [C-04] a result that leads to a state which is gone is kept, and a retry goes on there without the task', () => {
  expect(held.job).toMatchObject({
    status: 'quarantined',
    state: 'charge',
    stateHistory: { receipt: 7 },
    error: { code: 'UNKNOWN_STATE', state: 'charge' },
  })
  expect(held.job.error?.message).toBe(
    'The blueprint "film" has no state "ship". Add the state, then retry the job: it goes on there, and "charge" is not repeated.',
  )
  expect(contradictions(held.job)).toEqual([])
  const { job, effects, entries } = play(withShip(held), retries)
  expect(job).toMatchObject({
    status: 'running',
    state: 'ship',
    visit: 3,
    stateHistory: { receipt: 7 },
    error: undefined,
  })
  expect(job.onward).toBeUndefined()
  expect(effects).toEqual([{ type: 'turn', visit: 3, delayMs: 0 }])
  expect(entries).toMatchObject([
    { event: 'job_retried' },
    { event: 'state_finished', state: 'charge', nextState: 'ship' },
    { event: 'state_started', state: 'ship', previousState: 'charge' },
  ])
  expect(job.undos).toEqual([{ state: 'charge', visit: 2, isCertain: true }])
})

test('[C-07] while the state is still gone a retry is refused and changes nothing', () => {
  expect(play(held, retries)).toMatchObject({ ignored: 'state_missing', job: held.job, effects: [] })
  const gone = play(open(), chooses(goTo('work')), chooses(goTo('nowhere')))
  const script = { ...gone.script, state: () => undefined }
  expect(play({ ...gone, script }, retries)).toMatchObject({ ignored: 'state_missing', job: gone.job })
})

test('[C-07] a retry with edited data goes on with it', () => {
  const edits = happens({ type: 'retried', by: 'bob', stateHistory: { receipt: 8 } })
  expect(play(withShip(held), edits).job).toMatchObject({ state: 'ship', stateHistory: { receipt: 8 } })
})

test('[B-13] [C-07] what was done before a state that is gone is undone when the job is given up', () => {
  for (const cue of [discards, cancels]) {
    const { job } = play(held, cue)
    expect(job).toMatchObject({ state: 'charge', compensation: { left: [{ state: 'charge', visit: 2 }] } })
    expect(job.onward).toBeUndefined()
  }
  const plain = play(open(), chooses(task({ success: 'ship' })), reports('success'), discards)
  expect(plain.job).toMatchObject({ status: 'failed' })
  expect(plain.job.onward).toBeUndefined()
})

const event = { id: 'e1', topic: 'paid' }
const FAR = { kind: 'aggregator' } as const

test.each<[string, readonly Cue[], object]>([
  ['a decision', [chooses(approval({ yes: 'ship' })), decides('yes')], { stateHistory: { decision: { by: 'bob' } } }],
  [
    'a rejection',
    [chooses(approval({ rejected: 'ship' })), decides('rejected')],
    { failure: { code: 'REJECTED', state: 'start' } },
  ],
  ['an event', [chooses(awaits('paid', { received: 'ship' })), sends('paid')], { event }],
  ['an event that came early', [sends('paid'), chooses(awaits('paid', { received: 'ship' }))], { event }],
  ['the end of a sleep', [chooses(sleep({ afterMs: 5 }, 'ship')), happens({ type: 'sleepEnded', visit: 1 })], {}],
  [
    'a child',
    [chooses({ type: 'child', call: aChild(), transitions: { success: 'ship' } }), childEnds('finished', { n: 1 })],
    { stateHistory: { trailer: { n: 1 } } },
  ],
  [
    'a fan-out',
    [chooses({ ...fanOut(aTask()), into: 'ship' } as never), reports('success', { data: { n: 1 } })],
    { aggregationResults: { 'j.1.0': { status: 'success', data: { n: 1 } } } },
  ],
  [
    'a worker’s event',
    [chooses({ type: 'task', call: aTask(), transitions: {}, eventTransitions: { half: 'ship' } }), says('half')],
    {},
  ],
  [
    'a failure',
    [chooses(task({ failure: 'ship' })), failsWith('PERMANENT_ERROR')],
    { failure: { code: 'PERMANENT_ERROR' }, error: { code: 'PERMANENT_ERROR', message: 'no light' } },
  ],
])('[C-07] what %s led to survives a state that is gone', (_, cues, expected) => {
  const stopped = play(open(), ...cues)
  expect(stopped.job).toMatchObject({ status: 'quarantined', state: 'start', error: { code: 'UNKNOWN_STATE' } })
  const { job, effects } = play(withShip(stopped, FAR), retries)
  expect(job).toMatchObject({ status: 'running', state: 'ship', visit: 2, ...expected })
  expect(effects).toEqual([{ type: 'turn', visit: 2, delayMs: 0 }])
})

test('[C-07] a wrong choice of a handler is made again after a retry', () => {
  const stopped = play(open(), chooses(goTo('ship')))
  expect(stopped.job.onward).toBeUndefined()
  expect(play(withShip(stopped), retries).job).toMatchObject({ state: 'start', visit: 2 })
  const empty = play(open(), chooses({ ...fanOut(), into: 'ship' } as never))
  expect(play(withShip(empty), retries).job).toMatchObject({ state: 'start', visit: 2 })
})
