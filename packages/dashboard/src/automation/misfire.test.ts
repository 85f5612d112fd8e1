import { expect, test } from 'vitest'
import { misfireOf, withMisfire } from './misfire.ts'

test('[K-02] what becomes of missed times is read and written as the API has it', () => {
  expect(misfireOf({})).toEqual({ kind: 'run_once', most: 10 })
  expect(misfireOf({ misfire: 'skip' })).toEqual({ kind: 'skip', most: 10 })
  expect(misfireOf({ misfire: 'catch_up' })).toEqual({ kind: 'catch_up', most: 10 })
  expect(misfireOf({ misfire: { catch_up: { max: 3, spread_seconds: 60 } } })).toEqual({ kind: 'catch_up', most: 3 })
  const draft = { title: 'a', misfire: { catch_up: { max: 3, spread_seconds: 60 } } }
  expect(withMisfire(draft, 'run_once')).toEqual({ title: 'a' })
  expect(withMisfire(draft, 'skip')).toEqual({ title: 'a', misfire: 'skip' })
  expect(withMisfire(draft, 'catch_up', 5)).toEqual({
    title: 'a',
    misfire: { catch_up: { max: 5, spread_seconds: 60 } },
  })
  expect(withMisfire({ title: 'a', misfire: 'skip' }, 'catch_up')).toEqual({ title: 'a', misfire: { catch_up: {} } })
})
