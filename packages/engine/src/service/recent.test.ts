import { expect, test } from 'vitest'
import { Recent } from './recent.ts'

test('[C-10] what was set last is remembered, within a bound', () => {
  const recent = new Recent<number>(10)
  for (let number = 0; number < 100; number += 1) {
    recent.set(`k${number}`, number)
    for (let last = Math.max(0, number - 4); last <= number; last += 1) expect(recent.get(`k${last}`)).toBe(last)
    expect(recent.get(`k${number - 10}`)).toBeUndefined()
  }
  recent.set('k98', -1)
  expect(recent.get('k98')).toBe(-1)
  recent.delete('k98')
  expect(recent.get('k98')).toBeUndefined()
})
