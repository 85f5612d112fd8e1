import { expect, test } from 'vitest'
import { newJobId } from './job-id.ts'

test('[C-08] ids of jobs are UUIDv7, differ, and sort in the order in which they were made', () => {
  const ids = Array.from({ length: 20_000 }, newJobId)
  for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.toSorted()).toEqual(ids)
})
