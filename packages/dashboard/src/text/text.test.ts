import { expect, test } from 'vitest'
import { en } from './en.ts'
import { es } from './es.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'
import type { Texts } from './translate.ts'

const LANGUAGES: Readonly<Record<'es' | 'ru', Texts>> = { es, ru }

test.for(Object.entries(LANGUAGES))(
  '[M-07] every text exists in %s, with the same values in it',
  ([language, texts]) => {
    expect(Object.keys(texts)).toEqual(Object.keys(en))
    const valuesIn = (text: string): readonly string[] => [...new Set(text.match(/\{\w+\}/g))].toSorted()
    for (const [key, text] of Object.entries(en)) {
      const translated = texts[key as keyof typeof en]
      expect({ key, values: valuesIn(translated) }).toEqual({ key, values: valuesIn(text) })
      expect(translated.trim()).not.toBe('')
      const forms = text.includes('|') ? (language === 'ru' ? 3 : 2) : 1
      expect({ key, forms: translated.split('|').length }).toEqual({ key, forms })
    }
  },
)

test('[M-07] numbers choose the form that the language wants', () => {
  const say = translator('ru', ru)
  expect([1, 2, 5, 21].map((n) => say('count.jobs', { n }))).toEqual([
    '1 задание',
    '2 задания',
    '5 заданий',
    '21 задание',
  ])
  expect(translator('en', en)('count.jobs', { n: 1 })).toBe('1 job')
  expect(translator('es', es)('count.jobs', { n: 1_234 })).toBe('1234 trabajos')
})
