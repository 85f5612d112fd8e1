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
  pdfOf,
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
  const codes = Array.from('\uFEFFПривет 🎉', (char) => char.codePointAt(0) ?? 0)
  const wide = Buffer.concat(codes.map((code) => Buffer.from(Uint32Array.of(code).buffer)))
  expect((await read(wide, 'a.txt')).text).toBe('Привет 🎉')
  expect((await read(Buffer.from(wide).swap32(), 'a.txt')).text).toBe('Привет 🎉')
  expect((await read(Buffer.from('N\bNA\bAME\u0007'), 'a.txt')).text).toBe('N\bNA\bAME\u0007')
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

test('[L-02] what was filled into a form and written onto a page is read, but for passwords', async () => {
  const hex = (text: string): string => `<feff${Buffer.from(text, 'utf16le').swap16().toString('hex')}>`
  const box = '/Rect [10 10 200 30] /P 3 0 R'
  const { text } = await read(
    pdfOf([
      '<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R 5 0 R 6 0 R] >> >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Annots [4 0 R 5 0 R 6 0 R 7 0 R] >>',
      `<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V ${hex('Пётр Ильич')} ${box} >>`,
      `<< /Type /Annot /Subtype /Widget /FT /Ch /T (city) /V (Samara) /Opt [(Samara) (Perm)] ${box} >>`,
      `<< /Type /Annot /Subtype /Widget /FT /Tx /Ff 8192 /T (secret) /V (hunter2) ${box} >>`,
      `<< /Type /Annot /Subtype /FreeText /Contents ${hex('Проверить сумму')} /DA (/Helv 9 Tf) ${box} >>`,
    ]),
    'a.pdf',
  )
  expect(text.split('\n').filter(Boolean).toSorted()).toEqual(['Samara', 'Проверить сумму', 'Пётр Ильич'])
})

const OPENING = '<a xmlns:w="w" xmlns:a="a" xmlns:c="c">'

test('[L-02] a document of Word may be put together from pieces of other formats, with charts and other documents in it', async () => {
  const mht = 'MIME-Version: 1.0\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n'
  const { kind, text } = await read(
    zipOf([
      { name: String.raw`word\document2.xml`, content: `${OPENING}<w:p><w:t>начало</w:t></w:p></a>` },
      {
        name: 'word/afchunk1.mht',
        content: Buffer.concat([Buffer.from(mht), encodeAs('windows-1251', '<p>середина</p>')]),
      },
      { name: 'word/htmlDoc.html', content: '<p>страница</p>' },
      { name: 'word/embeddings/Book1.xlsx', content: xlsx(['вложенная смета']) },
      {
        name: 'word/charts/chart1.xml',
        content: `${OPENING}<a:p><a:t>Продажи</a:t></a:p><c:strCache><c:pt><c:v>Самара</c:v></c:pt></c:strCache><c:numCache><c:pt><c:v>777</c:v></c:pt></c:numCache></a>`,
      },
    ]),
    'a.docx',
  )
  expect(kind).toBe('docx')
  for (const word of ['начало', 'середина', 'страница', 'вложенная смета', 'Продажи', 'Самара']) {
    expect(text).toContain(word)
  }
  expect(text).not.toContain('777')
})

test('[L-02] sheets are found under any name, with their comments and text boxes; slides with theirs', async () => {
  const sheet = `${OPENING}<row><c t="s"><v>0</v></c></row></a>`
  const book = await read(
    zipOf([
      { name: 'xl/Workbook.xml', content: '<workbook><sheets><sheet name="Итоги"/></sheets></workbook>' },
      { name: 'xl/SharedStrings.xml', content: '<sst><si><t>общая строка</t></si></sst>' },
      { name: 'xl/worksheets/Лист.xml', content: sheet },
      {
        name: 'xl/comments1.xml',
        content: '<comments><comment><text><r><t>замечание</t></r></text></comment></comments>',
      },
      { name: 'xl/drawings/drawing1.xml', content: `${OPENING}<a:p><a:t>надпись</a:t></a:p></a>` },
    ]),
    'a.xlsx',
  )
  expect({ kind: book.kind, lines: book.text.split(/\s*\n/).filter(Boolean) }).toEqual({
    kind: 'xlsx',
    lines: ['Итоги', 'общая строка', 'замечание', 'надпись'],
  })
  const show = await read(
    zipOf([
      { name: 'ppt/presentation.xml', content: '<p/>' },
      { name: 'ppt/slides/slide1.xml', content: `${OPENING}<a:p><a:t>слайд</a:t></a:p></a>` },
      { name: 'ppt/comments/comment1.xml', content: '<p:cmLst><p:cm><p:text>правка</p:text></p:cm></p:cmLst>' },
      { name: 'ppt/diagrams/data1.xml', content: `${OPENING}<a:p><a:t>схема</a:t></a:p></a>` },
    ]),
    'a.pptx',
  )
  expect(show.text.split('\n').filter(Boolean)).toEqual(['слайд', 'правка', 'схема'])
})

test('[L-02] the edges of the pages of a text document are read', async () => {
  const { text } = await read(
    zipOf([
      { name: 'mimetype', content: 'application/vnd.oasis.opendocument.text', isStored: true },
      { name: 'content.xml', content: '<office:document-content><text:p>тело</text:p></office:document-content>' },
      {
        name: 'styles.xml',
        content:
          '<s><style:default><text:p>стиль</text:p></style:default><office:master-styles><style:header><text:p>шапка</text:p></style:header></office:master-styles></s>',
      },
    ]),
    'a.odt',
  )
  expect(text.split('\n').filter(Boolean)).toEqual(['тело', 'шапка'])
})

test('[L-02] every mail of an mbox file is read, with encoded headers and attachments', async () => {
  const line = 'From ivan@example.org Mon Jan  5 10:00:00 2026'
  const first = `${line}\nSubject: =?koi8-r?B?${encodeAs('koi8-r', 'Первое письмо').toString('base64')}?=\n\nтело\nFrom here on it is still the first.\n`
  const bytes = Buffer.concat([
    Buffer.from(`${first}\n${line}\n`),
    eml(),
    Buffer.from(`\n\n${line}\r\nSubject: last\r\n\r\nконец\r\n`),
  ])
  for (const name of ['archive.mbox', 'archive']) {
    const { kind, text } = await read(bytes, name)
    expect(kind).toBe('mbox')
    for (const words of ['Первое письмо', 'From here on', 'протокол разногласий', 'Subject: last', 'конец']) {
      expect(text).toContain(words)
    }
  }
})

test('[L-02] JSON keeps every digit, and may be lines of values, cut off, or no JSON at all', async () => {
  const long = '12345678901234567890'
  expect(
    (await read(Buffer.from(`{"счёт": ${long}, "a": {"title": "нет", "b": [true, null, -1.50]}}`), 'a.json')).text,
  ).toBe(`счёт: ${long}\ntitle: нет\nb: true\nb: -1.50\n`)
  expect((await read(Buffer.from('{"n": "раз"}\n{"n": "\\u0434ва"'), 'a.json')).text).toBe('n: раз\nn: два\n')
  expect((await read(Buffer.from('not json: at all'), 'a.json')).text).toBe('not json: at all')
})

test('[L-02] a mark in the middle of a group of RTF hides nothing', async () => {
  const { text } = await read(Buffer.from(String.raw`{\rtf1{\*\gone x}{\f2\*\cs7 quick {\*\bkmkstart y}fox}}`), 'a.rtf')
  expect(text).toBe('quick fox')
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
