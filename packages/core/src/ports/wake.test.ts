import { expect, test } from 'vitest'
import { WOKEN } from './wake.ts'

test('a sleep that is ended early has a reason that is no exception', () => {
  const controller = new AbortController()
  controller.abort(WOKEN)
  expect(controller.signal.reason).toBe('woken')
})
