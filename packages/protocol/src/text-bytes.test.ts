import fc from 'fast-check'
import { expect, test } from 'vitest'
import { utf8Bytes } from './text-bytes.ts'

test('[C-10] a text has as many bytes as UTF-8 takes for it', () => {
  expect(['', 'abc', 'ä', '€', '😀', '\uD83D', '\uD83Da', '\uDE00'].map(utf8Bytes)).toEqual([0, 3, 2, 3, 4, 3, 4, 3])
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => utf8Bytes(text) === new TextEncoder().encode(text).length),
  )
})
