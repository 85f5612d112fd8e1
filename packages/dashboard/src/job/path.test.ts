import type { HistoryBody } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { fingerprint } from './fingerprint.ts'
import { groupedRows, isGroup } from './groups.ts'
import { pathOf, spansOf } from './path.ts'
import { reachableFrom } from './reachable.ts'

function event(type: string, state: string, timestamp: number, more: Partial<HistoryBody> = {}): HistoryBody {
  return {
    event_id: `${timestamp} ${type}`,
    job_id: 'j',
    timestamp,
    time: '',
    event_type: type,
    state,
    previous_state: null,
    next_state: null,
    worker_id: null,
    task_id: null,
    attempt_number: null,
    duration_ms: null,
    note: null,
    context_snapshot: null,
    ...more,
  }
}

test('[M-02] the path of a job has its visits, how often each step was taken, and how long each state lasted', () => {
  const events = [
    event('job_created', 'plan', 10),
    event('state_started', 'work', 11),
    event('task_finished', 'work', 14, { duration_ms: 2_000, worker_id: 'w', note: 'render success by w' }),
    event('state_started', 'plan', 15),
    event('state_started', 'work', 16),
  ]
  const path = pathOf({ created_at: 10, current_state: 'work' }, events, 20)
  expect([...path.steps]).toEqual([
    ['plan → work', 2],
    ['work → plan', 1],
  ])
  expect(path.byState.get('work')).toEqual({ count: 2, seconds: 8, isOpen: true })
  const spans = spansOf(path, events)
  expect(spans.map(({ kind, name, from, until }) => [kind, name, from, until])).toEqual([
    ['state', 'plan', 10, 11],
    ['state', 'work', 11, 15],
    ['task', 'render', 12, 14],
    ['state', 'plan', 15, 16],
    ['state', 'work', 16, undefined],
  ])
})

test('[M-02] a path whose oldest events are gone ends in the present state all the same', () => {
  const path = pathOf({ created_at: 10, current_state: 'end', ended_at: 30 }, [], 40)
  expect(path.visits).toEqual([{ state: 'end', from: 10, until: 30 }])
})

test('[C-07] errors of the same cause have the same fingerprint', () => {
  const of = (order: string): string => fingerprint(`No rate for order "${order}" after 3 tries in 12.5 s.`)
  expect(of('A-1')).toBe(of('B-77'))
  expect(of('A-1')).not.toBe(fingerprint('Something else.'))
})

test('[M-02] the first state counts once, though the history says twice that it began', () => {
  const events = [event('job_created', 'a', 1), event('state_started', 'a', 1), event('state_started', 'b', 2)]
  const path = pathOf({ created_at: 1, current_state: 'b' }, events, 3)
  expect(path.visits.map(({ state }) => state)).toEqual(['a', 'b'])
})

test('[M-02] what runs when a job begins in another state is known before', () => {
  const states = [
    { name: 'a', transitions: [{ to: 'b' }] },
    { name: 'b', transitions: [{ to: 'c' }, { to: 'b' }, { to: 'nowhere' }] },
    { name: 'c', transitions: [] },
  ]
  expect(reachableFrom(states, 'b')).toEqual({ runs: ['b', 'c'], skipped: ['a'] })
  expect(reachableFrom(states, 'gone')).toEqual({ runs: [], skipped: ['a', 'b', 'c'] })
})

test('[M-02] a fan-out is one row until it is opened; other tasks of the same stay have their own', () => {
  const done = Array.from({ length: 1_000 }, (_, at) =>
    event('task_finished', 'work', 12 + at / 1_000, {
      event_id: `render ${at}`,
      duration_ms: 500,
      note: `render ${at === 7 ? 'failure' : 'success'} by w`,
    }),
  )
  const events = [
    event('job_created', 'plan', 10),
    event('state_started', 'work', 11),
    ...done,
    event('task_finished', 'work', 13.5, { duration_ms: 100, note: 'join success by w' }),
    event('state_started', 'end', 14),
  ]
  const path = pathOf({ created_at: 10, current_state: 'end', ended_at: 14 }, events, 20)
  const spans = spansOf(path, events)
  const rows = groupedRows(spans, new Set())
  expect(rows.map(({ name }) => name)).toEqual(['plan', 'work', 'render', 'join', 'end'])
  const group = rows.find(isGroup)
  expect(group).toMatchObject({ kind: 'task', from: 11.5, until: 12.999, failed: 1, isBad: false })
  const opened = groupedRows(spans, new Set([group?.id ?? '']))
  expect(opened).toHaveLength(1_005)
  expect(opened[3]).toMatchObject({ id: 'render 0' })
})
