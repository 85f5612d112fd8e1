import { describe, expect, test } from 'vitest'
import { didYouMean, nearWord } from './near-word.ts'

const KNOWN = ['render', 'rendered', 'publish_video', 'ok', 'no']

describe('[A-03] an unknown name', () => {
  test.each([
    ['rendr', 'render'],
    ['redner', 'render'],
    ['rendere', 'render'],
    ['Publish_Video', 'publish_video'],
    ['publish-vido', 'publish_video'],
    ['ko', 'ok'],
    ['', undefined],
    ['o', undefined],
    ['okay', undefined],
    ['transcode', undefined],
    ['x'.repeat(1_000_000), undefined],
  ])('%.20s: the nearest of the known ones is %s', (word, expected) => {
    expect(nearWord(word, KNOWN)).toBe(expected)
  })
  test('is followed by a suggestion, or by nothing', () => {
    expect(didYouMean('rendr', KNOWN)).toBe(' Did you mean "render"?')
    expect(didYouMean('archive', KNOWN)).toBe('')
  })
})
