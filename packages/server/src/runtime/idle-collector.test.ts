import { expect, test } from 'vitest'
import { IdleCollector, OF_THIS_PROCESS } from './idle-collector.ts'

const MB = 1_048_576

/** A heap of which every full collection frees so much. */
class FakeHeap {
  busy = 0
  totalBytes = 400 * MB
  usedBytes = 50 * MB
  done = 0
  readonly #freed: number[]

  constructor(...freedMb: readonly number[]) {
    this.#freed = freedMb.map((mb) => mb * MB)
  }

  collector(): IdleCollector {
    return new IdleCollector({
      busyShare: () => this.busy,
      heap: () => this,
      collect: () => {
        this.done += 1
        this.totalBytes -= this.#freed.shift() ?? 0
      },
    })
  }
}

test('[C-10] memory is given back when the load is over, step by step until little more is taken than is in use', () => {
  const heap = new FakeHeap(100, 150, 0, 90)
  const collector = heap.collector()
  collector.look()
  collector.look()
  expect(heap.done).toBe(0)
  for (let looks = 0; looks < 10; looks += 1) collector.look()
  expect(heap.done).toBe(4)
})

test('[C-10] nothing is collected under load, nor after a moment without it', () => {
  const heap = new FakeHeap(100)
  const collector = heap.collector()
  for (const busy of [0.9, 0.1, 0.1, 0.9, 0.1, 0.1, 0.5, 0.1, 0.1]) {
    heap.busy = busy
    collector.look()
  }
  expect(heap.done).toBe(0)
  collector.look()
  expect(heap.done).toBe(1)
})

test('[C-10] a load that comes back ends the collection', () => {
  const heap = new FakeHeap(100, 100, 100)
  const collector = heap.collector()
  for (let looks = 0; looks < 3; looks += 1) collector.look()
  heap.busy = 0.9
  collector.look()
  heap.busy = 0
  collector.look()
  collector.look()
  expect(heap.done).toBe(1)
})

test('[C-10] an idle server is left alone as long as its heap stays as it is, and one whose heap is in use too', () => {
  const heap = new FakeHeap(300)
  const collector = heap.collector()
  for (let looks = 0; looks < 10; looks += 1) collector.look()
  const steps = heap.done
  heap.totalBytes += 30 * MB
  for (let looks = 0; looks < 10; looks += 1) collector.look()
  expect(heap.done).toBe(steps)
  heap.totalBytes += 600 * MB
  heap.usedBytes = 500 * MB
  for (let looks = 0; looks < 10; looks += 1) collector.look()
  expect(heap.done).toBe(steps)
})

test('[C-10] a heap that grows slowly is collected once a minute at most, one that grew under a load at once', () => {
  const heap = new FakeHeap(340, 40, 130)
  const collector = heap.collector()
  for (let looks = 0; looks < 10; looks += 1) collector.look()
  expect(heap.done).toBe(1)
  heap.totalBytes += 40 * MB
  for (let looks = 0; looks < 40; looks += 1) collector.look()
  expect(heap.done).toBe(1)
  for (let looks = 0; looks < 20; looks += 1) collector.look()
  expect(heap.done).toBe(2)
  heap.totalBytes += 130 * MB
  collector.look()
  expect(heap.done).toBe(3)
})

test('[C-10] a heap that does not shrink is not collected again and again', () => {
  const heap = new FakeHeap()
  const collector = heap.collector()
  for (let looks = 0; looks < 30; looks += 1) collector.look()
  expect(heap.done).toBe(6)
})

test('[C-10] the collector of this process collects', async () => {
  const heap = new FakeHeap()
  const { collect } = OF_THIS_PROCESS
  const idle = new IdleCollector({ busyShare: () => 0, heap: () => heap, collect })
  // Several, because a value may stay on the stack.
  const refs = Array.from({ length: 10 }, () => new WeakRef({ large: 'x'.repeat(100) }))
  // What was made in this turn of the event loop is kept to its end.
  await new Promise((resolve) => setImmediate(resolve))
  for (let looks = 0; looks < 3; looks += 1) idle.look()
  expect(refs.filter((ref) => ref.deref() === undefined).length).toBeGreaterThan(5)
  expect(OF_THIS_PROCESS.heap().totalBytes).toBeGreaterThan(OF_THIS_PROCESS.heap().usedBytes / 2)
  expect(OF_THIS_PROCESS.busyShare()).toBeLessThanOrEqual(1)
})
