import { expect, test } from 'vitest'
import type { Caller } from '../http/access.ts'
import { countQueryOf } from './history-query.ts'

const admin: Caller = { client: { id: 'root' }, role: 'admin' }
const iso = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')

function edges(query: Parameters<typeof countQueryOf>[1], timeZone = 'Europe/Berlin'): readonly string[] {
  const now = Date.parse('2026-03-30T10:30:00Z')
  return countQueryOf(admin, query, { now, timeZone }).edges.map(iso)
}

test('[G-04] days are counted as clocks show them, also where one is an hour short', () => {
  const days = edges({ per: 'day', since: '2026-03-28T12:00:00Z', until: '2026-03-30T12:00:00Z' })
  expect(days).toEqual(['2026-03-27T23:00:00Z', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z', '2026-03-30T12:00:00Z'])
})

test('[G-04] hours begin where clocks show a full one', () => {
  const span = { since: '2026-03-30T10:10:00Z', until: '2026-03-30T12:00:00Z' }
  expect(edges({ per: 'hour', ...span })).toEqual([
    '2026-03-30T10:00:00Z',
    '2026-03-30T11:00:00Z',
    '2026-03-30T12:00:00Z',
  ])
  expect(edges({ per: 'hour', ...span }, 'Asia/Kathmandu')).toEqual([
    '2026-03-30T09:15:00Z',
    '2026-03-30T10:15:00Z',
    '2026-03-30T11:15:00Z',
    '2026-03-30T12:00:00Z',
  ])
})

test('[G-04] without times: the last day, or the last thirty of them, up to now', () => {
  const [from, to, ...none] = edges({})
  expect([from, to, none]).toEqual(['2026-03-29T10:30:00.001Z', '2026-03-30T10:30:00.001Z', []])
  expect(edges({ per: 'day' })).toHaveLength(32)
})
