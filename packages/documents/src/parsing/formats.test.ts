import { expect, test } from 'vitest'
import { tokensOf } from '../text/tokens.ts'
import { BufferSource } from './byte-source.ts'
import {
  docx,
  eml,
  encodeAs,
  epub,
  html,
  openDocument,
  PARAGRAPHS,
  pdf,
  pptx,
  rtf,
  TEXT,
  TITLE,
  xlsx,
} from './files.fixture.ts'
import { readDocument } from './formats.ts'
import { msg } from './outlook.fixture.ts'
import type { Parsed } from './parsed.ts'
import { zipOf } from './zip.fixture.ts'

const LIMITS = { textCharsMax: 1_000_000, unpackedBytesMax: 64_000_000 }
const read = (bytes: Uint8Array, name: string): Promise<Parsed> => readDocument(new BufferSource(bytes), name, LIMITS)

/** The share of the words of one text that another has. */
function recall(of: string, inText: string): number {
  const wanted = [...tokensOf(of)].map(({ term }) => term)
  const found = new Map<string, number>()
  for (const { term } of tokensOf(inText)) found.set(term, (found.get(term) ?? 0) + 1)
  const hit = wanted.filter((term) => {
    const left = found.get(term) ?? 0
    found.set(term, left - 1)
    return left > 0
  })
  return hit.length / wanted.length
}

const FILES: readonly (readonly [name: string, kind: string, title: string, bytes: Buffer])[] = [
  ['a.txt', 'txt', '', Buffer.from(TEXT)],
  ['a.md', 'md', TITLE, Buffer.from(`# ${TITLE}\n\n${TEXT}`)],
  ['a.html', 'html', TITLE, html()],
  ['a.pdf', 'pdf', '', pdf()],
  ['a.docx', 'docx', TITLE, docx()],
  ['a.xlsx', 'xlsx', '', xlsx()],
  ['a.pptx', 'pptx', '', pptx()],
  ['a.odt', 'odt', TITLE, openDocument('text')],
  ['a.ods', 'ods', TITLE, openDocument('spreadsheet')],
  ['a.odp', 'odp', TITLE, openDocument('presentation')],
  ['a.rtf', 'rtf', TITLE, rtf('cp1251')],
  ['b.rtf', 'rtf', TITLE, rtf('unicode')],
  ['a.eml', 'eml', TITLE, eml(encodable('koi8-r'))],
  ['a.msg', 'msg', TITLE, msg()],
  ['a.csv', 'csv', '', Buffer.from(PARAGRAPHS.map((line) => `"${line}";1`).join('\n'))],
  ['a.json', 'json', TITLE, Buffer.from(JSON.stringify({ title: TITLE, lines: PARAGRAPHS, deep: { number: 7 } }))],
  [
    'a.xml',
    'xml',
    '',
    Buffer.from(
      `<?xml version="1.0"?><a>${PARAGRAPHS.map((line) => `<p n="x">${line.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`).join('')}</a>`,
    ),
  ],
  ['a.epub', 'epub', TITLE, epub()],
  ['a.zip', 'zip', TITLE, zipOf([{ name: 'inside/letter.docx', content: docx() }])],
]

function encodable(charset: string): string {
  return new TextDecoder(charset).decode(encodeAs(charset, TEXT))
}

test.for(FILES)('[L-02] the words of %s are read', async ([name, kind, title, bytes]) => {
  const parsed = await read(bytes, name)
  expect({ kind: parsed.kind, title: parsed.title }).toEqual({ kind, title })
  const wanted = name === 'a.eml' ? encodable('koi8-r') : TEXT
  expect(recall(wanted, parsed.text)).toBeGreaterThanOrEqual(0.97)
})

test.for(FILES)('[L-02] %s is known by its content, whatever its name', async ([name, kind, , bytes]) => {
  if (['md', 'csv', 'json'].includes(kind)) return
  expect((await read(bytes, `${name}.unknown`)).kind).toBe(kind)
})

const RUSSIAN = PARAGRAPHS.filter((line) => /[а-я]/.test(line)).join('\n')

test.for(['windows-1251', 'koi8-r', 'ibm866', 'iso-8859-5', 'x-mac-cyrillic', 'utf-16le', 'utf-16be'])(
  '[L-02] text in %s is recognised',
  async (charset) => {
    for (const text of [RUSSIAN, RUSSIAN.slice(0, 80), TEXT, RUSSIAN.toUpperCase()]) {
      const bytes = encodeAs(charset, text)
      const expected = new TextDecoder(charset).decode(bytes)
      expect((await read(bytes, 'a.txt')).text).toBe(expected)
    }
  },
)

test('[L-02] Western text, UTF-8 that is cut in a character, and marks of byte order are recognised', async () => {
  const western = 'Les élèves français ont été reçus à Besançon; naïve façade.'
  expect((await read(encodeAs('windows-1252', western), 'a.txt')).text).toBe(western)
  expect((await read(Buffer.from(RUSSIAN).subarray(0, 62), 'a.txt')).text).toBe(
    Buffer.from(RUSSIAN).subarray(0, 61).toString(),
  )
  for (const [mark, charset] of [
    ['fffe', 'utf-16le'],
    ['feff', 'utf-16be'],
  ] as const) {
    const bytes = Buffer.concat([Buffer.from(mark, 'hex'), encodeAs(charset, 'Привет')])
    expect((await read(bytes, 'a.txt')).text).toBe('Привет')
  }
  expect((await read(Buffer.from('\uFEFFПривет'), 'a.txt')).text).toBe('Привет')
})

test('[L-02] a page in cp1251 says so itself; scripts, styles and deleted text are no text', async () => {
  const page = await read(html('windows-1251'), 'a.html')
  expect(recall(RUSSIAN, page.text)).toBe(1)
  expect(page.text).toContain('«Конец»')
  expect(page.text).not.toMatch(/скрыто|спрятано/)
  const word = await read(docx(), 'a.docx')
  expect(word.text).not.toMatch(/вычеркнуто|PAGEREF/)
})

test('[L-02] a sheet shows its name, its strings, its numbers and its dates', async () => {
  const { text } = await read(xlsx(), 'a.xlsx')
  expect(text).toContain('Смета')
  expect(text).toContain('встроенная строка')
  expect(text).toContain('2024-03-15')
  expect(text).toContain('7.5')
})

test('[L-02] attachments of a message are read too', async () => {
  const { text } = await read(eml(), 'a.eml')
  expect(text).toContain('protocol.docx')
  expect(text).toContain('протокол разногласий')
  expect(text).toContain('Иван ivan@example.org')
})

test('[L-02] words that a line break parts are whole in a PDF', async () => {
  const { text } = await read(pdf(['Это документа-', 'ция системы']), 'a.pdf')
  expect(text).toContain('документация')
})

test('[L-02] a text beyond the limit is cut, and says so', async () => {
  const small = { ...LIMITS, textCharsMax: 100 }
  for (const file of FILES) {
    const [name] = file
    const bytes = file[3]
    const parsed = await readDocument(new BufferSource(bytes), name, small)
    expect({ name, chars: parsed.text.length <= 100, isTruncated: parsed.isTruncated }).toEqual({
      name,
      chars: true,
      isTruncated: true,
    })
  }
})
