import type { StoredEvent } from '@impresario/history'
import { HOUR_MS, LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import type { Caller } from '../http/access.ts'
import type { HistoryParts } from './history-operations.ts'
import { durations } from './duration-operations.ts'

const NOW = Date.parse('2026-03-30T10:00:00Z')
const admin: Caller = { client: { id: 'root' }, role: 'admin' }
const client: Caller = { client: { id: 'acme' }, role: 'client' }

type Asked = Parameters<HistoryParts['history']['list']>[0]

/** A history that has these events, and keeps what it was asked for. */
function historyOf(events: readonly Partial<StoredEvent>[]): {
  readonly parts: Pick<HistoryParts, 'history' | 'clock'>
  readonly asked: Asked[]
} {
  const asked: Asked[] = []
  const all = events.map((event, index) => ({ id: events.length - index, at: NOW, ...event })) as readonly StoredEvent[]
  const list = async (query: Asked): Promise<readonly StoredEvent[]> => {
    asked.push(query)
    const { before, limit } = query
    return all.filter(({ id }) => before === undefined || id < before.id).slice(0, limit)
  }
  // The boundary of a stand-in: durations only list events and read the time.
  const parts = { history: { list }, clock: { now: () => NOW } } as unknown as Pick<HistoryParts, 'history' | 'clock'>
  return { parts, asked }
}

const state = (name: string, durationMs: number): Partial<StoredEvent> => ({
  event: 'state_finished',
  blueprint: 'film',
  state: name,
  durationMs,
})

test('[M-02] durations of jobs and states are figures that were measured, the most frequent first', async () => {
  const cut = Array.from({ length: 100 }, (_, index) => state('cut', index + 1))
  const { parts } = historyOf([
    state('shoot', 7),
    ...cut,
    { event: 'job_finished', blueprint: 'film', durationMs: 400, at: NOW - 60_000 },
    { event: 'job_failed', blueprint: 'film', durationMs: 9_000, at: NOW - 60_000 },
  ])
  const found = await durations(parts, admin, { spans: 60 })
  expect(found.states).toEqual([
    { blueprint: 'film', state: 'cut', count: 100, p50_ms: 50, p95_ms: 95, max_ms: 100 },
    { blueprint: 'film', state: 'shoot', count: 1, p50_ms: 7, p95_ms: 7, max_ms: 7 },
  ])
  // A job that failed counts, and its time does not: it would hide how long success takes.
  expect(found.blueprints).toEqual([{ blueprint: 'film', failed: 1, count: 1, p50_ms: 400, p95_ms: 400, max_ms: 400 }])
  expect(found.spans).toHaveLength(60)
  expect(found.spans.filter(({ finished }) => finished > 0)).toMatchObject([{ finished: 1, failed: 1, p50_ms: 400 }])
  expect(found.spans[0]).toMatchObject({ finished: 0, p50_ms: null, p95_ms: null })
  expect(found).toMatchObject({ since: (NOW + 1 - HOUR_MS) / 1_000, is_partial: false })
})

test('[M-02] [H-01] a client gets the durations of its own jobs, and may not ask for those of others', async () => {
  const { parts, asked } = historyOf([])
  const found = await durations(parts, client, { blueprint: 'film' })
  expect(asked[0]).toMatchObject({ owner: 'acme', blueprint: 'film' })
  expect(found).toMatchObject({ blueprints: [], states: [], spans: [] })
  await expect(durations(parts, client, { owner: 'other' })).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(durations(parts, client, { since: '20', until: '10' })).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
  })
})

test('[M-02] with more events than are looked at, the newest count, and it says from when on', async () => {
  const many = Array.from({ length: LIMITS.durationEventsMax + 500 }, (_, index) => ({
    ...state('cut', 1),
    at: NOW - index,
  }))
  const { parts } = historyOf(many)
  const found = await durations(parts, admin, {})
  expect(found.is_partial).toBe(true)
  expect(found.states[0]?.count).toBe(LIMITS.durationEventsMax)
  expect(found.since).toBe((NOW - LIMITS.durationEventsMax + 1) / 1_000)
})
