import { expect, test } from 'vitest'
import { printed } from './examples.fixture.ts'

test('[B-04] a job goes on as a person decides, and as its blueprint says when nobody does', async () => {
  expect(await printed(() => import('./04-approval.ts'))).toEqual([
    '20 euros paid back',
    '900 euros paid back',
    'failed in "refused"',
  ])
})
