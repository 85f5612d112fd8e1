import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemoryRateLimiter } from './rate-limiter.ts'

const RULE = { limit: 3, periodMs: 3_000 }

describe('the limiter in memory', () => {
  test('[H-04] a whole burst is allowed at once, then one after the other as time goes by', () => {
    const limiter = new MemoryRateLimiter()
    const take = (now: number) => limiter.take('a', RULE, now)
    expect([take(0), take(0), take(0)].map(({ isAllowed, left }) => [isAllowed, left])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
    ])
    expect(take(0)).toMatchObject({ isAllowed: false, retryMs: 1_000, left: 0 })
    expect(take(999)).toMatchObject({ isAllowed: false, retryMs: 1 })
    expect(take(1_000).isAllowed).toBe(true)
    expect(limiter.take('b', RULE, 1_000).isAllowed).toBe(true)
  })

  test('[J-10] a request a second against three in three seconds is never blocked for good: refusals cost nothing', () => {
    const limiter = new MemoryRateLimiter()
    for (let hit = 0; hit < 50; hit += 1) limiter.take('a', RULE, 0)
    const outcomes = Array.from({ length: 20 }, (_, second) => limiter.take('a', RULE, (second + 1) * 1_000).isAllowed)
    expect(outcomes).toEqual(outcomes.map(() => true))
  })

  test('[J-11] whoever waits as long as he is told is let in, whatever the rule and whatever happened before', () => {
    const rules = fc.record({
      limit: fc.integer({ min: 1, max: 5_000 }),
      periodMs: fc.integer({ min: 1_000, max: 90_000 }),
    })
    fc.assert(
      fc.property(rules, fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 60 }), (rule, pauses) => {
        const limiter = new MemoryRateLimiter()
        let now = 1_700_000_000_000
        for (const pause of pauses) {
          now += pause
          const verdict = limiter.take('k', rule, now)
          if (verdict.isAllowed) continue
          now += Math.ceil(verdict.retryMs / 1_000) * 1_000
          expect(limiter.take('k', rule, now).isAllowed).toBe(true)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('[H-04] never more than the limit in one moment, and never more than twice the limit in one period', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 50, maxLength: 300 }), (pauses) => {
        const limiter = new MemoryRateLimiter()
        const rule = { limit: 10, periodMs: 1_000 }
        const taken: number[] = []
        let now = 0
        for (const pause of pauses) {
          now += pause < 150 ? 0 : pause
          if (limiter.take('k', rule, now).isAllowed) taken.push(now)
        }
        for (const start of taken) {
          expect(taken.filter((at) => at === start).length).toBeLessThanOrEqual(10)
          expect(taken.filter((at) => at >= start && at < start + 1_000).length).toBeLessThanOrEqual(20)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('[H-04] its memory is bounded: what is paid off goes first, then what was not used for the longest time', () => {
    const limiter = new MemoryRateLimiter(80)
    for (let key = 0; key < 40; key += 1) limiter.take(`old ${key}`, RULE, 0)
    limiter.take('busy', { limit: 1, periodMs: 60_000 }, 0)
    for (let key = 0; key < 41; key += 1) limiter.take(`new ${key}`, RULE, 5_000)
    expect(limiter.size).toBeLessThanOrEqual(80)
    expect(limiter.look('busy', { limit: 1, periodMs: 60_000 }, 5_000).isAllowed).toBe(false)
    for (let key = 0; key < 10_000; key += 1) limiter.take(`flood ${key}`, RULE, 5_000)
    expect(limiter.size).toBeLessThanOrEqual(80)
  })

  test('[H-04] looking counts nothing', () => {
    const limiter = new MemoryRateLimiter()
    for (let look = 0; look < 10; look += 1) expect(limiter.look('a', RULE, 0).left).toBe(3)
    expect(limiter.size).toBe(0)
  })
})
