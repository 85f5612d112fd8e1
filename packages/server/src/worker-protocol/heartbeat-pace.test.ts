import { expect, test } from 'vitest'
import { HeartbeatPace } from './heartbeat-pace.ts'

function paceAt(start: number): { pace: HeartbeatPace; move: (ms: number) => void } {
  let now = start
  const pace = new HeartbeatPace({ now: () => now, sleep: () => Promise.resolve() })
  return {
    pace,
    move: (ms) => {
      now += ms
    },
  }
}

const ids = Array.from({ length: 1_000 }, (_one, index) => `worker-${index}`)

test('[E-03] a few heartbeats are left alone', () => {
  const { pace, move } = paceAt(1_000_000)
  for (const id of ids.slice(0, 200)) {
    expect(pace.jitterFor(id)).toBeUndefined()
    move(100)
  }
})

test('[E-03] a crowd is spread over some seconds, evenly, and the same way each time it is looked at', () => {
  const { pace, move } = paceAt(1_000_000)
  move(120_000)
  const told = ids.map((id) => pace.jitterFor(id)).filter((jitter) => jitter !== undefined)
  expect(told).toHaveLength(900)
  expect(Math.min(...told)).toBeGreaterThan(0)
  expect(Math.max(...told)).toBeLessThanOrEqual(5_000)
  const buckets = Array.from(
    { length: 5 },
    (_one, second) => told.filter((jitter) => Math.floor((jitter - 1) / 1_000) === second).length,
  )
  for (const bucket of buckets) expect(bucket).toBeGreaterThan(100)
  const other = paceAt(1_000_000)
  other.move(120_000)
  expect(ids.map((id) => other.pace.jitterFor(id)).filter((jitter) => jitter !== undefined)).toEqual(told)
})

test('[E-03] after a restart fewer are a crowd, and the next minute spreads them differently', () => {
  const { pace, move } = paceAt(1_000_000)
  const first = ids.slice(0, 40).map((id) => pace.jitterFor(id))
  expect(first.filter((jitter) => jitter !== undefined)).toHaveLength(20)
  move(59_000)
  const second = ids.slice(0, 40).map((id) => pace.jitterFor(id))
  expect(second).not.toEqual(first)
})
