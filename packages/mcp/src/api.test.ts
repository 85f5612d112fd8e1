import { expect, test } from 'vitest'
import { ApiError, pathTo } from './api.ts'

test('[K-12] an id from an assistant stays one part of the path', () => {
  expect(pathTo('jobs', 'a/b?c#d', 'cancel')).toBe('/jobs/a%2Fb%3Fc%23d/cancel')
  expect(pathTo('jobs', '\uD800')).toBe('/jobs/%EF%BF%BD')
  for (const id of ['.', '..', '']) expect(() => pathTo('jobs', id, 'cancel')).toThrow(ApiError)
})
