import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AlarmHeap } from './alarm-heap.ts'
import type { Alarm } from './alarm-heap.ts'
import { entryOf } from './entry.ts'
import type { Entry } from './entry.ts'
import { item } from './records.fixture.ts'

const entry = entryOf(item('i1'), 1, 0)

test('[G-01] alarms ring in order, and those that were cancelled do not ring', () => {
  const step = fc.record({ at: fc.nat(50), cancel: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const heap = new AlarmHeap<Entry>()
      const kept: number[] = []
      const cancelled: Alarm<Entry>[] = []
      for (const { at, cancel } of steps) {
        const alarm = heap.push(at, entry)
        if (cancel) cancelled.push(alarm)
        else kept.push(at)
      }
      for (const alarm of cancelled) heap.cancel(alarm)
      const rung: number[] = []
      for (let first = heap.first(); first !== undefined; first = heap.first()) {
        rung.push(first.at)
        heap.dropFirst()
      }
      expect(rung).toEqual(kept.toSorted((a, b) => a - b))
    }),
  )
})

test('[G-01] cancelled alarms are never more than half of a large heap', () => {
  const heap = new AlarmHeap<Entry>()
  for (let round = 0; round < 10_000; round++) heap.cancel(heap.push(round, entry))
  expect(heap.size).toBeLessThan(200)
})
