import { expect, test } from 'vitest'
import { foldedText } from './folded-text.ts'

test('[H-01] letters that differ only in case fold into one', () => {
  for (const [a, b] of [
    ['ÄÖÜ', 'äöü'],
    ['Straße', 'STRASSE'],
    ['ὈΔΥΣΣΕΎΣ', 'ὀδυσσεύς'],
    ['ПРИВЕТ', 'привет'],
    ['e\u0301', 'É'],
  ] as const) {
    expect(foldedText(a)).toBe(foldedText(b))
  }
})

test('[H-01] what is no character becomes what the disk makes of it', () => {
  expect(foldedText('a\uD800b 😀')).toBe('a\uFFFDb 😀')
})
