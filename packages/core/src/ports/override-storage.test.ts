import { expect, test } from 'vitest'
import { overrideStorage } from './override-storage.ts'
import type { Storage } from './storage.ts'

const METHODS = {
  now: [],
  read: ['job', 'a'],
  list: ['job', { limit: 1 }],
  counts: ['job', {}],
  peek: ['tasks', ['a']],
  held: ['tasks'],
  lanes: ['tasks'],
  oldest: ['tasks', 'lane'],
  claim: ['tasks', { limit: 1, leaseMs: 1 }],
  claimExpired: ['tasks', { limit: 1, leaseMs: 1 }],
  renew: [[], 1],
  commit: [{}],
  sync: [],
  watch: ['tasks', () => {}],
  close: [],
} as const satisfies Readonly<Record<keyof Storage, readonly unknown[]>>

type Method = (...given: readonly unknown[]) => unknown

test('[G-01] a storage with a replaced method has all others, with what they are given and what they answer', () => {
  const plain = Object.fromEntries(
    Object.keys(METHODS).map((name): [string, Method] => [name, (...given) => [name, ...given]]),
  ) as unknown as Storage
  const same = overrideStorage(plain, {}) as unknown as Record<string, Method>
  const mine = { sync: () => 'mine' } as unknown as Partial<Storage>
  const changed = overrideStorage(plain, mine) as unknown as Record<string, Method>
  for (const [name, given] of Object.entries(METHODS)) {
    const answer = [name, ...given]
    expect(same[name]?.(...given)).toEqual(answer)
    expect(changed[name]?.(...given)).toEqual(name === 'sync' ? 'mine' : answer)
  }
})
