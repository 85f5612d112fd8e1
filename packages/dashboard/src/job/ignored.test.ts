import { expect, test } from 'vitest'
import { IGNORED_MAX, questionKey, readIgnored, withIgnored } from './ignored.ts'

test('[M-02] the newest ignored questions are kept, each once', () => {
  expect(withIgnored(withIgnored(['a/1'], 'b/1'), 'a/1')).toEqual(['a/1', 'b/1'])
  const full = Array.from({ length: IGNORED_MAX }, (_, index) => `${index}/1`)
  expect(withIgnored(full, 'new/1')).toEqual(['new/1', ...full.slice(0, -1)])
})

test('[M-02] a job that asks again is not ignored for what it asked before', () => {
  expect(questionKey('j', 2)).not.toBe(questionKey('j', 1))
})

test.each([
  [null, []],
  ['', []],
  ['{', []],
  ['{"a":1}', []],
  ['["a/1",2,null]', ['a/1']],
])('[M-02] whatever the browser has stored is read: %s', (text, keys) => {
  expect(readIgnored(text)).toEqual(keys)
})
