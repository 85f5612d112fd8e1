import { expect, test } from 'vitest'
import { shardSuffix } from './shard-suffix.ts'

test('[G-02] a text always has the same four digits', () => {
  expect(shardSuffix('ann/order-1')).toBe(shardSuffix('ann/order-1'))
  expect(shardSuffix('')).toMatch(/^[0-9a-f]{4}$/)
})

test('[G-02] texts that are alike are spread evenly', () => {
  const counts = new Map<number, number>()
  for (let index = 0; index < 8_000; index += 1) {
    const place = Number.parseInt(shardSuffix(`client/order-${index}`), 16) % 8
    counts.set(place, (counts.get(place) ?? 0) + 1)
  }
  expect(counts.size).toBe(8)
  for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(150)
})
