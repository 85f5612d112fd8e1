import { expect, test } from 'vitest'
import { foldLookalikes } from './homoglyphs.ts'
import { termOf } from './stemming.ts'
import { nameTerms, termsOf, tokensOf } from './tokens.ts'

const terms = (text: string): readonly string[] => [...tokensOf(text)].map(({ term }) => term)

test('[L-04] forms of a word have one term, in Russian and in English', () => {
  for (const forms of [
    ['договор', 'договора', 'договору', 'договором', 'договоры', 'договоров', 'ДОГОВОРАМ'],
    ['документация', 'документации', 'документацию'],
    ['running', 'runs', 'run', 'RUN'],
    ['agreement', 'agreements', 'Agreement'],
  ]) {
    expect(new Set(forms.map(termOf)).size).toBe(1)
  }
})

test('[L-04] ё is е, accents and soft hyphens do not count, й keeps its breve', () => {
  expect(termOf('Ёлка')).toBe(termOf('елка'))
  expect(termOf('за\u0301мок')).toBe(termOf('замок'))
  expect(termOf('доку\u00ADмент')).toBe(termOf('документ'))
  expect(termOf('и\u0306од')).toBe(termOf('йод'))
  expect(termOf('résumé')).toBe(termOf('resume'))
  expect(termOf('йод')).not.toBe(termOf('иод'))
})

test('[L-04] letters of the other script that look the same are folded', () => {
  expect(foldLookalikes('сoвет')).toBe('совет')
  expect(foldLookalikes('rеport')).toBe('report')
  expect(termOf('А113')).toBe(termOf('A113'))
  expect(foldLookalikes('дом7')).toBe('дом7')
})

test('[L-04] numbers and codes stay whole, and their parts are found', () => {
  expect(terms('Счёт AB-123/4 от 15.03.2024, сумма 1,5')).toEqual([
    termOf('счет'),
    'ab-123/4',
    'от',
    '15.03.2024',
    termOf('сумма'),
    '1,5',
  ])
  expect(termsOf('ГОСТ-12.1.004').parts.split(' ')).toEqual([termOf('ГОСТ'), '12', '1', '004'])
})

test('[L-04] compounds of words are several tokens, cells of a table never one', () => {
  expect(terms('северо-западный и/или e-mail')).toEqual(['север', termOf('западный'), 'и', termOf('или'), 'e', 'mail'])
  expect(terms('Иванов,Пётр,42')).toEqual([termOf('иванов'), termOf('петр'), '42'])
})

test('[L-04] tokens say where they stand in the text', () => {
  const text = 'Ёлка — AB-1.'
  expect([...tokensOf(text)].map(({ start, end }) => text.slice(start, end))).toEqual(['Ёлка', 'AB-1'])
})

test('[L-04] a file is found by the words of its name', () => {
  expect(nameTerms('Отчет_2024-финал.docx').split(' ')).toEqual(
    expect.arrayContaining([termOf('отчет'), '2024', termOf('финал')]),
  )
})

test('[L-04] encoded data gives no terms, and no text makes the tokenizer slow', () => {
  expect(terms('A'.repeat(5_000))).toEqual([])
  const odd = `${'a-'.repeat(50_000)}1 ${'\u0301'.repeat(50_000)}${'1,'.repeat(50_000)}`
  expect(() => termsOf(odd)).not.toThrow()
})
