import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { isSameEvent } from './event-wait.ts'
import { contradictions, wakeUps } from './invariants.ts'
import { awaits, cancels, chooses, goTo, happens, open, play, retries, sends, sleep, throws } from './samples.ts'
import type { Cue } from './samples.ts'

const ways = { received: 'work', timeout: 'review' }
const waiting = play(open(), chooses(awaits('paid', ways, { timeoutMs: 60_000, key: 'o1' })))
const expires = (visit: number): Cue => happens({ type: 'eventWaitExpired', visit })

test('[B-12] a job that waits for an event says for which, by which key and until when', () => {
  const { job, effects } = waiting
  expect(job).toMatchObject({
    status: 'waiting_for_event',
    wait: { kind: 'event', topic: 'paid', key: 'o1', expiresAt: 62_000 },
  })
  expect(effects).toEqual([
    { type: 'timer', timer: 'event', visit: 1, afterMs: 60_000 },
    { type: 'listen', visit: 1, topic: 'paid', key: 'o1' },
  ])
  expect(job.trail.at(-1)).toMatchObject({ event: 'event_awaited', note: 'paid for o1' })
  expect(contradictions(job)).toEqual([])
  expect(wakeUps(job)).toMatchObject({ items: [], timers: [{ id: 'j.event' }], isUpToPerson: true })
  const bare = play(open(), chooses(awaits('paid')))
  expect(bare.effects).toEqual([])
  expect(wakeUps(bare.job).timers).toEqual([])
})

test('[B-12] the event leads on, with its payload for that state and under its topic, once', () => {
  const paid = play(waiting, sends('paid'))
  expect(paid.job).toMatchObject({
    status: 'running',
    state: 'work',
    stateHistory: { paid: { n: 1 } },
    event: { id: 'e1', topic: 'paid', payload: { n: 1 } },
  })
  expect(paid.effects).toEqual([
    { type: 'dropTimer', timer: 'event' },
    { type: 'unlisten', visit: 1, topic: 'paid', key: 'o1' },
    { type: 'turn', visit: 2, delayMs: 0 },
  ])
  expect(play(paid, sends('paid')).ignored).toBe('repeated_event')
  expect(play(paid, chooses(goTo('review'))).job.event).toBeUndefined()
  const aside = play(paid, throws('a'), throws('b'), throws('c'))
  expect(play(aside, retries).job.event).toMatchObject({ id: 'e1' })
})

test('[B-12] an event that comes before the wait is kept, in order, and taken when the job waits', () => {
  const early = play(
    open(),
    sends('paid'),
    sends('other', { id: 'e2' }),
    sends('paid', { id: 'e3', payload: { n: 3 } }),
  )
  expect(early.job).toMatchObject({ status: 'pending', events: { kept: [{ id: 'e1' }, { id: 'e2' }, { id: 'e3' }] } })
  const first = play(early, chooses(awaits('paid')))
  expect(first.job).toMatchObject({
    state: 'work',
    event: { id: 'e1' },
    events: { kept: [{ id: 'e2' }, { id: 'e3' }] },
  })
  const second = play(first, chooses(awaits('paid', { received: 'review' })))
  expect(second.job).toMatchObject({ state: 'review', event: { id: 'e3' }, stateHistory: { paid: { n: 3 } } })
  expect(play(second, chooses(awaits('paid'))).job.status).toBe('waiting_for_event')
  expect(play(second, cancels).job.events).toMatchObject({ kept: [], known: [{}, {}, {}] })
})

test('[B-12] also while it sleeps, waits for something else, or stands aside in quarantine', () => {
  const asleep = play(open(), chooses(sleep({ afterMs: 9 })), sends('paid'))
  expect(asleep.job).toMatchObject({ status: 'waiting_for_time', events: { kept: [{ id: 'e1' }] } })
  const other = play(open(), chooses(awaits('shipped')), sends('paid'))
  expect(other.job).toMatchObject({ status: 'waiting_for_event', events: { kept: [{ id: 'e1' }] } })
  const aside = play(open(), throws('a'), throws('b'), throws('c'), sends('paid'))
  expect(aside.job).toMatchObject({ status: 'quarantined', events: { kept: [{ id: 'e1' }] } })
  expect(play(aside, retries, chooses(awaits('paid'))).job.state).toBe('work')
  expect(play(open(), cancels, sends('paid')).ignored).toBe('job_ended')
})

test('[B-12] what is kept is bounded in number and in bytes', () => {
  const many = Array.from({ length: LIMITS.keptEventsMax }, (_, index) => sends('paid', { id: `e${index}` }))
  const full = play(open(), ...many)
  expect(full.job.events?.kept).toHaveLength(LIMITS.keptEventsMax)
  expect(play(full, sends('paid', { id: 'x' })).ignored).toBe('too_many_events')
  const large = { payload: { text: 'x'.repeat(60_000) } }
  const heavy = play(open(), sends('paid', { id: 'a', ...large }), sends('paid', { id: 'b', ...large }))
  expect(play(heavy, sends('paid', { id: 'c', ...large })).ignored).toBe('too_many_events')
})

test('[B-12] an event that the state history cannot hold is refused, or asks a person if it was kept', () => {
  const history = { much: 'x'.repeat(LIMITS.contextBytesMax - 100) }
  const large = { payload: { text: 'x'.repeat(200) } }
  const waits = play(open(), chooses(awaits('paid', ways, { key: 'o1' }), history))
  expect(play(waits, sends('paid', large)).ignored).toBe('too_large')
  const byKey = play(waits, sends('paid', { ...large, key: 'o1' }, 1))
  expect(byKey.job).toMatchObject({ status: 'waiting_for_event' })
  expect(byKey.job.trail.at(-1)).toMatchObject({ event: 'event_refused' })
  const kept = play(open(), sends('paid', large), chooses(awaits('paid'), history))
  expect(kept.job).toMatchObject({ status: 'quarantined', error: { code: 'LIMIT_EXCEEDED_ERROR' } })
})

test('[B-12] what came by key is for the wait that it was sent to, and for no later one', () => {
  expect(play(waiting, sends('paid', { key: 'o1' }, 1)).job.state).toBe('work')
  const later = play(waiting, sends('paid', { id: 'e0' }), chooses(awaits('paid', ways, { key: 'o1' })))
  expect(play(later, sends('paid', { key: 'o1' }, 1)).ignored).toBe('not_waiting_for_event')
  expect(play(open(), sends('paid', { key: 'o1' }, 1)).ignored).toBe('not_waiting_for_event')
})

test('[B-12] an event that does not come in time is a failure', () => {
  expect(play(waiting, expires(1)).job).toMatchObject({
    state: 'review',
    failure: { code: 'EVENT_TIMEOUT', message: 'The event "paid" did not come in time.' },
  })
  const bare = play(open(), chooses(awaits('paid', { received: 'work' }, { timeoutMs: 1 })))
  expect(play(bare, expires(1)).job).toMatchObject({ status: 'failed', error: { code: 'EVENT_TIMEOUT' } })
  expect(play(waiting, expires(2)).ignored).toBe('not_waiting_for_event')
  expect(play(open(), expires(1)).ignored).toBe('not_waiting_for_event')
})

test('[B-12] an event without a way is not lost without a word', () => {
  const odd = play(open(), chooses(awaits('paid', { timeout: 'work' })), sends('paid'))
  expect(odd.job).toMatchObject({ status: 'failed', error: { code: 'UNHANDLED_STATUS' } })
})

test('[B-12] the same event is told from another one under the same id', () => {
  const { job } = play(waiting, sends('paid'))
  const again = { id: 'e1', topic: 'paid', payload: { n: 1 } }
  expect(isSameEvent(job, again)).toBe(true)
  expect(isSameEvent(job, { ...again, payload: { n: 2 } })).toBe(false)
  expect(isSameEvent(job, { ...again, id: 'e2' })).toBe(false)
  expect(isSameEvent(open().job, again)).toBe(false)
})
