import type { Log, Storage } from '@impresario/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { storageGround } from '../../../../test/servers/storage-ground.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { MemoryRateLimiter } from './rate-limiter.ts'
import type { RateRule } from './rate-limiter.ts'
import { SharedRateLimiter } from './shared-rate-limiter.ts'

const START = 1_700_000_000_000

class Ground {
  now = START
  readonly storage = testStorage({ now: () => this.now })
  readonly warnings: string[] = []
  readonly log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message) => this.warnings.push(message),
    error: () => undefined,
  }

  limiter(storage: Storage = this.storage, bounds: { keysMax?: number; patienceMs?: number } = {}): SharedRateLimiter {
    return new SharedRateLimiter({ storage, log: this.log, ...bounds })
  }
}

/** Whoever counts on the storage that calls are made. */
function counted(storage: Storage, onCommit: () => Promise<void> | void): Storage {
  return new Proxy(storage, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return async (...given: readonly unknown[]): Promise<unknown> => {
        if (name === 'commit') await onCommit()
        return Reflect.apply(method, target, given) as unknown
      }
    },
  })
}

test('[H-04] three instances together allow what one would, to the last request', async () => {
  const ground = new Ground()
  const limiters = [ground.limiter(), ground.limiter(), ground.limiter()]
  const rule: RateRule = { limit: 10, periodMs: 60_000 }
  const verdicts = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => limiters[index % 3]!.take('a b', rule, 5 + (index % 3) * 1e6)),
  )
  expect(verdicts.filter(({ isAllowed }) => isAllowed)).toHaveLength(10)
  const refused = verdicts.find(({ isAllowed }) => !isAllowed)
  expect(refused).toMatchObject({ left: 0, retryMs: 6_000 })
  // Nobody asks the storage before that.
  expect(limiters[0]!.take('a b', rule, 5 + 5_999)).toMatchObject({ isAllowed: false, retryMs: 1 })
  ground.now += 6_000
  const later = await Promise.all(
    limiters.map(async (limiter, index) => limiter.take('a b', rule, 6_005 + index * 1e6)),
  )
  expect(later.filter(({ isAllowed }) => isAllowed)).toHaveLength(1)
  expect((await ground.limiter().take('another', rule, 1)).isAllowed).toBe(true)
})

test('[H-04] [J-10] whatever the rule, the clocks and the order: never more than one counter would allow', async () => {
  const rules = fc.record({
    limit: fc.constantFrom(1, 3, 10, 31, 32, 100, 1_000),
    periodMs: fc.integer({ min: 1_000, max: 60_000 }),
  })
  const steps = fc.array(
    fc.record({ at: fc.nat(2), pause: fc.oneof(fc.constant(0), fc.nat(3_000)), many: fc.nat(40) }),
    { minLength: 1, maxLength: 40 },
  )
  await fc.assert(
    fc.asyncProperty(rules, steps, async (rule, order) => {
      const ground = new Ground()
      const limiters = [ground.limiter(), ground.limiter(), ground.limiter()]
      const judge = new MemoryRateLimiter()
      let excess = 0
      for (const { at, pause, many } of order) {
        ground.now += pause
        for (let time = 0; time < many; time += 1) {
          const { isAllowed } = await limiters[at]!.take('k', rule, ground.now - at * 12_345)
          // From zero, where sums of fractions are exact enough.
          if (isAllowed && !judge.take('k', rule, ground.now - START).isAllowed) excess += 1
        }
      }
      expect(excess).toBe(0)
    }),
    // Each run opens a storage.
    { numRuns: storageGround().backend === 'memory' ? 60 : 6 },
  )
})

test('[H-04] most requests cost no call, and little is left over when the limit is reached', async () => {
  const ground = new Ground()
  let commits = 0
  const storage = counted(ground.storage, () => {
    commits += 1
  })
  const limiters = [ground.limiter(storage), ground.limiter(storage)]
  const rule: RateRule = { limit: 3_200, periodMs: 60_000 }
  let allowed = 0
  for (let round = 0; round < 4_000; round += 1) {
    allowed += (await limiters[round % 2]!.take('k', rule, 1_000)).isAllowed ? 1 : 0
  }
  expect(allowed).toBe(3_200)
  expect(commits).toBeLessThan(100)
})

test('[H-04] looking counts nothing and sees what others have counted', async () => {
  const ground = new Ground()
  const [one, two] = [ground.limiter(), ground.limiter()]
  const rule: RateRule = { limit: 2, periodMs: 10_000 }
  expect(await two.look('k', rule, 1)).toMatchObject({ isAllowed: true, left: 2, resetMs: 0 })
  await one.take('k', rule, 1)
  expect(await two.look('k', rule, 1)).toMatchObject({ isAllowed: true, left: 1 })
  await one.take('k', rule, 1)
  expect(await two.look('k', rule, 1)).toMatchObject({ isAllowed: false, left: 0, retryMs: 5_000 })
  expect(await one.take('k', rule, 1)).toMatchObject({ isAllowed: false })
  expect(one.look('k', rule, 1)).toMatchObject({ isAllowed: false, retryMs: 5_000 })
})

test('[H-04] a storage that fails or hangs locks nobody out: each instance counts for itself, and says so once', async () => {
  const ground = new Ground()
  let isBroken = true
  const storage = counted(ground.storage, () => {
    if (isBroken) throw new Error('the storage is gone')
    return undefined
  })
  const limiter = ground.limiter(storage, { patienceMs: 60_000 })
  const rule: RateRule = { limit: 2, periodMs: 600_000 }
  const take = async (nowMs: number): Promise<boolean> => (await limiter.take('k', rule, nowMs)).isAllowed
  expect([await take(1), await take(2), await take(3)]).toEqual([true, true, false])
  expect((await limiter.look('k', rule, 4)).isAllowed).toBe(false)
  // The next one to ask after a while tries again.
  expect(await take(70_000)).toBe(false)
  expect(ground.warnings).toHaveLength(1)
  isBroken = false
  expect(await take(140_000)).toBe(true)
  const hanging = counted(ground.storage, () => new Promise<void>(() => {}))
  expect((await ground.limiter(hanging, { patienceMs: 10 }).take('other', rule, 5_000)).isAllowed).toBe(true)
  expect(ground.warnings).toHaveLength(2)
})

test('[H-04] what nobody has asked for lately is forgotten, and a longer wait than the period is never asked for', async () => {
  const ground = new Ground()
  const limiter = ground.limiter(ground.storage, { keysMax: 8 })
  const rule: RateRule = { limit: 1, periodMs: 1_000 }
  for (let key = 0; key < 20; key += 1) expect((await limiter.take(`k${key}`, rule, 1)).isAllowed).toBe(true)
  expect((await limiter.take('k0', rule, 1)).isAllowed).toBe(false)
  const wide: RateRule = { limit: 1, periodMs: 1_000_000 }
  await limiter.take('k', wide, 1)
  expect(await ground.limiter().take('k', rule, 1)).toMatchObject({ isAllowed: false, retryMs: 1_000 })
  ground.now += 1_000_000
  expect(await ground.storage.read('limit', 'k')).toBeUndefined()
})
