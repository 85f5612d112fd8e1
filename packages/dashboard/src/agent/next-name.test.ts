import { expect, test } from 'vitest'
import { nextName } from './next-name.ts'

test('[M-02] what takes the place of a token gets a name that is free', () => {
  expect(nextName('laptop', ['laptop'])).toBe('laptop 2')
  expect(nextName('laptop 2', ['laptop', 'laptop 2'])).toBe('laptop 3')
  expect(nextName('laptop 2', ['laptop 2', 'laptop 3'])).toBe('laptop 4')
  expect(nextName('x'.repeat(100), [])).toHaveLength(92)
})
