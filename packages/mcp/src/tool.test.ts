import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { cutText } from './tool.ts'

test('[K-12] a text is cut at a bound in bytes, and never inside a character', () => {
  expect(cutText('äöü', 6)).toBe('äöü')
  expect(cutText('äöü', 5)).toBe('äö')
  expect(cutText('a\u{1F600}', 4)).toBe('a')
})

test('[C-10] a text is cut in one pass, whatever it is made of', () => {
  const text = `${'\uFFFD'.repeat(2_000_000)}ab`
  // Looked through from each of its characters, it would take the better part of an hour. The time only ends that.
  const cut: unknown = runInNewContext('cut()', { cut: () => cutText(text, 6_000_001) }, { timeout: 30_000 })
  expect(cut).toBe(`${'\uFFFD'.repeat(2_000_000)}a`)
})
