import { expect, test } from 'vitest'
import { printed } from './examples.fixture.ts'

test('[B-08, E-07] three workers in the process share a fan-out, and a failed branch is told to the aggregator', async () => {
  expect(await printed(() => import('./03-fan-out.ts'))).toEqual([{ total: 12, failed: 1 }])
})
