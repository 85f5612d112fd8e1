import { resolve } from 'node:path'
import fc from 'fast-check'
import { fileNameProblem } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { keyOfPath, pathOfKey } from './local-path.ts'

test('[J-01] every key has a path of its own inside of the directory, which tells the key again', () => {
  const key = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 400 })
    .filter((text) => fileNameProblem(text) === undefined)
  const dots = fc.array(fc.constantFrom('.', '..', 'a', '~', '+', '%', 'b'.repeat(199), '/'), {
    minLength: 1,
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      fc.oneof(
        key,
        dots.map((parts) => parts.join('')),
      ),
      (text) => {
        fc.pre(fileNameProblem(text) === undefined)
        const path = pathOfKey(text)
        expect(keyOfPath(path)).toBe(text)
        expect(resolve('/root/files', path)).toBe(`/root/files/${path}`)
        expect(path.split('/').filter((part) => part.startsWith('.') || part.length > 255 || part === '')).toEqual([])
      },
    ),
    { numRuns: 5_000 },
  )
})

test('[J-01] what lies in the directory and is none of ours has no key', () => {
  for (const path of ['.uploads/x', 'jobs/1', 'a%2', 'a b', '%41', 'x+/~/y']) expect(keyOfPath(path)).toBeUndefined()
})
