import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FirstInOrder } from './first-in-order.ts'

const ascending = (a: number, b: number): number => a - b

test('[C-10] the first of many are those that sorting all of them would give', () => {
  const lists = fc.array(fc.integer(), { maxLength: 4_000, size: 'max' })
  fc.assert(
    fc.property(lists, fc.integer({ min: 0, max: 1_500 }), (items, limit) => {
      const chosen = new FirstInOrder(limit, ascending)
      for (const item of items) chosen.add(item)
      expect(chosen.first()).toEqual(items.toSorted(ascending).slice(0, limit))
      expect(chosen.count).toBe(items.length)
    }),
    { numRuns: 50 },
  )
})
