import { expect, test } from 'vitest'
import { columnsIn, columnsText, gridOf, USUAL_COLUMNS } from './job-columns.ts'

test('[M-02] the address keeps the columns of the job list, and says nothing about the usual ones', () => {
  expect(columnsIn(undefined)).toEqual(USUAL_COLUMNS)
  expect(columnsIn('nonsense')).toEqual(USUAL_COLUMNS)
  expect(columnsIn('owner,status,__proto__')).toEqual(['status', 'owner'])
  expect(columnsText(['owner', 'status'])).toBe('status,owner')
  expect(columnsText(USUAL_COLUMNS)).toBeUndefined()
  expect(columnsText([])).toBeUndefined()
  expect(gridOf(['status', 'took'])).toBe('9.5rem 6.5rem')
})
