import { expect, test } from 'vitest'
import { decisionsIn, idsIn, longForm, shortForm, stepKindOf, stepOfKind } from './step-kind.ts'

test('[M-02] a step keeps its id, condition and policies when it becomes one of another kind', () => {
  const step = { id: 'ask', uses: 'log', with: { message: 'x' }, if: 'a == 1', retry: 3 }
  const asking = stepOfKind('approval', step)
  expect(asking).toEqual({ id: 'ask', if: 'a == 1', retry: 3, approval: { message: '' } })
  expect(stepKindOf(asking)).toBe('approval')
  const parallel = stepOfKind('parallel', asking)
  expect(stepKindOf(parallel)).toBe('parallel')
  expect(idsIn([parallel])).toEqual(['ask', 'ask_1', 'ask_2'])
  const tool = stepOfKind('tool', parallel)
  expect(tool).toEqual({ id: 'ask', if: 'a == 1', retry: 3, uses: 'log', with: { message: '' } })
})

test('[M-02] short and long forms of a field are the same to the form', () => {
  expect(longForm(3, 'max_attempts')).toEqual({ max_attempts: 3 })
  expect(longForm({ max_attempts: 3, backoff: 'fixed' }, 'max_attempts')).toEqual({ max_attempts: 3, backoff: 'fixed' })
  expect(shortForm({ max_attempts: 3, backoff: undefined }, 'max_attempts')).toBe(3)
  expect(shortForm({ max_attempts: 3, backoff: 'fixed' }, 'max_attempts')).toEqual({
    max_attempts: 3,
    backoff: 'fixed',
  })
  expect(shortForm({ max_attempts: undefined, backoff: 'fixed' }, 'max_attempts')).toBeUndefined()
  expect(decisionsIn(' ship, hold ,')).toEqual(['ship', 'hold'])
  expect(decisionsIn(' ')).toBeUndefined()
})
