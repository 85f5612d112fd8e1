import { expect, test } from 'vitest'
import { NO_DEEDS, STANDING_WINDOW_MS, countDeeds, deedOf, judge } from './standing.ts'
import type { Deeds, Standing } from './standing.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW = 1_700_000_000_000

function deeds(some: Partial<Deeds>): Deeds {
  return { ...NO_DEEDS, ...some }
}

function standing(score: number, some: Partial<Deeds>, at = NOW): Standing {
  return { ...countDeeds(undefined, deeds(some), at), score }
}

test('[F-02] what a result says of its worker', () => {
  expect(deedOf('success', undefined)).toBe('succeeded')
  expect(deedOf('needs_review', undefined)).toBe('succeeded')
  expect(deedOf('failure', undefined)).toBe('failed')
  expect(deedOf('failure', 'TRANSIENT_ERROR')).toBe('failed')
  expect(deedOf('failure', 'PERMANENT_ERROR')).toBe('permanent')
  expect(deedOf('failure', 'CONTRACT_VIOLATION_ERROR')).toBe('violated')
  expect(deedOf('failure', 'TIMEOUT_ERROR')).toBe('timedOut')
})

test('[F-02] neither a cancelled task nor wrong data of the caller counts', () => {
  expect(deedOf('cancelled', undefined)).toBeUndefined()
  expect(deedOf('failure', 'INVALID_INPUT_ERROR')).toBeUndefined()
  expect(deedOf('failure', 'INTEGRITY_MISMATCH_ERROR')).toBeUndefined()
})

test('[F-02] grave failures and successes move the score at once, and it stays between 0.1 and 1', () => {
  expect(countDeeds(undefined, deeds({ permanent: 1 }), NOW).score).toBe(0.95)
  expect(countDeeds(undefined, deeds({ timedOut: 2 }), NOW).score).toBe(0.9)
  expect(countDeeds(undefined, deeds({ violated: 1 }), NOW).score).toBe(0.8)
  expect(countDeeds(undefined, deeds({ violated: 9 }), NOW).score).toBe(0.1)
  expect(countDeeds(undefined, deeds({ failed: 9 }), NOW).score).toBe(1)
  expect(countDeeds(undefined, deeds({ succeeded: 9 }), NOW).score).toBe(1)
  expect(countDeeds({ score: 0.5, tallies: [] }, deeds({ succeeded: 3 }), NOW).score).toBe(0.503)
})

test('[F-02] outcomes are counted in stretches of six hours, and those of the last seven days are kept', () => {
  const first = countDeeds(undefined, deeds({ succeeded: 1, failed: 1, permanent: 1, violated: 1, timedOut: 1 }), NOW)
  const at = Math.floor(NOW / (6 * HOUR_MS)) * 6 * HOUR_MS
  expect(first.tallies).toEqual([{ at, succeeded: 1, failed: 3, timedOut: 1 }])
  const second = countDeeds(first, deeds({ succeeded: 2 }), NOW + 1)
  expect(second.tallies).toEqual([{ at, succeeded: 3, failed: 3, timedOut: 1 }])
  // A clock that stands behind.
  expect(countDeeds(second, deeds({ succeeded: 1 }), NOW - DAY_MS).tallies).toHaveLength(1)
  const third = countDeeds(second, deeds({ succeeded: 1 }), NOW + 6 * HOUR_MS)
  expect(third.tallies.map((tally) => tally.succeeded)).toEqual([3, 1])
  let long = third
  for (let hours = 0; hours < 24 * 30; hours += 1) {
    long = countDeeds(long, deeds({ succeeded: 1 }), NOW + hours * HOUR_MS)
    expect(long.tallies.length).toBeLessThanOrEqual(29)
  }
})

test('[F-02] the rate of the window and the present score are blended, timeouts being failures', () => {
  expect(judge(standing(1, { succeeded: 6, failed: 2, timedOut: 2 }), NOW + HOUR_MS).score).toBe(0.72)
  expect(judge(standing(0.2, { succeeded: 10 }), NOW + HOUR_MS).score).toBe(0.76)
  expect(judge(standing(0.1, { failed: 10 }), NOW + HOUR_MS).score).toBe(0.1)
  expect(judge(standing(0.5, { succeeded: 1, failed: 5 }), NOW + HOUR_MS).score).toBe(0.2667)
})

test('[F-02] without a history, or with one of a few tasks, the score stays', () => {
  expect(judge({ score: 1, tallies: [] }, NOW).score).toBe(1)
  expect(judge(standing(0.6, { failed: 4 }), NOW + HOUR_MS).score).toBe(0.6)
})

test('[F-02] the same news is judged once', () => {
  const judged = judge(standing(1, { succeeded: 5, failed: 5 }), NOW + HOUR_MS)
  expect(judged.score).toBe(0.65)
  expect(judge(judged, NOW + 2 * HOUR_MS).score).toBe(0.65)
})

test('[F-02] a worker that nobody asks for a day gets its trust back little by little', () => {
  const judged = judge(standing(0.1, { failed: 10 }), NOW + HOUR_MS)
  expect(judge(judged, NOW + DAY_MS).score).toBe(0.1)
  expect(judge(judged, NOW + DAY_MS + 5 * HOUR_MS).score).toBe(0.15)
  const later = judge(judge(judged, NOW + DAY_MS + 5 * HOUR_MS), NOW + 2 * DAY_MS)
  expect(later.score).toBe(0.34)
  expect(judge(later, NOW + 30 * DAY_MS).score).toBe(1)
})

test('[F-02] what is older than the window is forgotten', () => {
  const old = standing(0.5, { failed: 100 })
  const fresh = countDeeds(old, deeds({ succeeded: 5 }), NOW + STANDING_WINDOW_MS + DAY_MS)
  expect(judge(fresh, NOW + STANDING_WINDOW_MS + DAY_MS + HOUR_MS).score).toBe(0.8515)
})
