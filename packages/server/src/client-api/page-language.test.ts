import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { DOCS_LABELS } from './docs-labels.ts'
import { DARK, LIGHT } from './page-frame.ts'
import { pageLanguage } from './page-language.ts'

test.for([
  [undefined, 'en'],
  ['', 'en'],
  ['ru-RU,ru;q=0.9,en;q=0.5', 'ru'],
  ['de, es-MX;q=0.8, en;q=0.7', 'es'],
  ['en;q=0.2, ES;q=0.9', 'es'],
  ['ru;q=0, en', 'en'],
  ['ru;q=bad, es;q=0.1', 'es'],
  ['russian, espanol', 'en'],
  [`${'de,'.repeat(5_000)}ru`, 'en'],
] as const)('[M-02] [M-07] the language of %s is %s', ([header, language]) => {
  expect(pageLanguage(header)).toBe(language)
})

test('[M-02] pages outside of the dashboard have its colours', async () => {
  const style = await readFile(new URL('../../../dashboard/src/style.css', import.meta.url), 'utf8')
  const [light = '', dark = ''] = [/:root \{([^}]+)\}/, /\[data-theme='dark'\] \{([^}]+)\}/].map(
    (block) => block.exec(style)?.[1] ?? '',
  )
  for (const [ours, theirs] of [
    [LIGHT, light],
    [DARK, dark],
  ] as const) {
    const colours = ours.match(/--[\w-]+: #\w+;/g) ?? []
    expect(colours.length).toBeGreaterThan(10)
    for (const colour of colours) expect(theirs).toContain(colour)
  }
})

test('[M-02] [M-07] the documentation page has the same labels in both other languages', () => {
  expect(Object.keys(DOCS_LABELS.es)).toEqual(Object.keys(DOCS_LABELS.ru))
})
