import { ImpresarioError } from '@impresario/protocol'
import { expect, test } from 'vitest'

test('packages are tested from their sources, not from an older build', () => {
  let callers = ''
  // The constructor reads `details`; at that moment its file is on the stack.
  const options = {
    get details() {
      callers = new Error('where').stack ?? ''
      return {}
    },
  }
  expect(new ImpresarioError('NOT_FOUND', 'Nothing here.', options).code).toBe('NOT_FOUND')
  expect(callers).toMatch(/packages[\\/]protocol[\\/]src[\\/]errors\.ts/)
})
