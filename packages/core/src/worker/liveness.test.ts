import { expect, test } from 'vitest'
import { assess } from './liveness.ts'
import { newWorkerRecord } from './registration.ts'

test('[E-03] a worker is live until it has been silent for longer than its time', () => {
  const worker = newWorkerRecord({ id: 'w' }, 1_000)
  expect(assess(worker, 1_000, 500)).toBe('live')
  expect(assess(worker, 1_500, 500)).toBe('live')
  expect(assess(worker, 1_501, 500)).toBe('silent')
})
