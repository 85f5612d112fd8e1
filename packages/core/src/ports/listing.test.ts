import { expect, test } from 'vitest'
import { listingOf, nextPage } from './listing.ts'

test('[C-10] a page says where to go on only where it ended before its limit', () => {
  const records = [{ id: 'a', version: 1, value: { at: 1 } }]
  expect(listingOf<'nonce'>(records, undefined)).toEqual(records)
  expect(listingOf<'nonce'>(records, undefined).next).toBeUndefined()
  const cut = listingOf<'nonce'>(records, 'a')
  expect([cut.next, cut.length, cut[0]]).toEqual(['a', 1, records[0]])
})

test('[C-10] the next page begins where this one says, or behind its last record', () => {
  const records = [{ id: 'b', version: 1, value: { at: 1 } }]
  expect(nextPage<'nonce'>(records, 1)).toBe('b')
  expect(nextPage<'nonce'>(records, 2)).toBeUndefined()
  expect(nextPage(listingOf<'nonce'>(records, 'a'), 2)).toBe('a')
})
