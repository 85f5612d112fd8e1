import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { BufferSource } from './byte-source.ts'
import { docx, eml, epub, html, openDocument, pdf, pdfOf, pptx, rtf, xlsx } from './files.fixture.ts'
import { readDocument } from './formats.ts'
import { compoundFile, msg } from './outlook.fixture.ts'
import { UnreadableError } from './parsed.ts'
import { zipOf } from './zip.fixture.ts'

const LIMITS = { textCharsMax: 1_000_000, unpackedBytesMax: 2_000_000 }

async function outcome(bytes: Uint8Array, name: string): Promise<string> {
  try {
    const { kind } = await readDocument(new BufferSource(bytes), name, LIMITS)
    return kind
  } catch (error) {
    if (error instanceof UnreadableError) return error.code
    throw error
  }
}

test('[L-02] a zip bomb is bounded', async () => {
  const zeros = Buffer.alloc(1_500_000)
  expect(
    await outcome(
      zipOf([
        { name: 'a.txt', content: zeros },
        { name: 'b.txt', content: zeros },
      ]),
      'a.zip',
    ),
  ).toBe('TOO_LARGE')
  const document = zipOf([
    { name: 'word/document.xml', content: Buffer.concat([Buffer.from('<a>'), Buffer.alloc(3_000_000, ' ')]) },
  ])
  expect(await outcome(document, 'a.docx')).toBe('TOO_LARGE')
})

test('[L-02] archives in archives end', async () => {
  let archive = zipOf([{ name: 'a.txt', content: 'дно' }])
  for (let depth = 0; depth < 20; depth += 1) {
    archive = zipOf([{ name: `${depth}.zip`, content: archive, isStored: true }])
  }
  expect(await outcome(archive, 'a.zip')).toBe('zip')
})

test('[L-02] an XML bomb expands to nothing, and nothing is fetched', async () => {
  const levels = Array.from({ length: 10 }, (_, index) => `<!ENTITY a${index + 1} "${`&a${index};`.repeat(10)}">`)
  const bomb = `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a0 "ха"><!ENTITY file SYSTEM "file:///etc/passwd">${levels.join('')}]><a>&a10; &file; конец</a>`
  const parsed = await readDocument(new BufferSource(Buffer.from(bomb)), 'a.xml', LIMITS)
  expect(parsed.text.trim()).toMatch(/^&a10; &file; конец$/)
  const inside = zipOf([
    { name: 'word/document.xml', content: bomb.replace('<a>', '<w:p><w:t>').replace('</a>', '</w:t></w:p>') },
  ])
  expect(await outcome(inside, 'a.docx')).toBe('docx')
})

test('[L-02] protected files say so', async () => {
  const encrypted = pdfOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [] /Count 0 >>',
      `<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'00'.repeat(32)}> /U <${'11'.repeat(32)}> >>`,
    ],
    '/Encrypt 3 0 R /ID [<00> <00>]',
  )
  expect(await outcome(encrypted, 'a.pdf')).toBe('ENCRYPTED')
  expect(await outcome(compoundFile([{ name: 'EncryptedPackage', content: Buffer.alloc(10) }]), 'a.docx')).toBe(
    'ENCRYPTED',
  )
  expect(await outcome(compoundFile([{ name: 'WordDocument', content: Buffer.alloc(10) }]), 'a.doc')).toBe(
    'UNSUPPORTED',
  )
})

test('[L-02] content that its name does not promise is broken; content that is nothing is not supported', async () => {
  expect(await outcome(randomBytes(2_000), 'a.docx')).toBe('BROKEN')
  expect(await outcome(Buffer.from('no archive at all'), 'a.xlsx')).toBe('BROKEN')
  expect(await outcome(randomBytes(2_000), 'a.thing')).toBe('UNSUPPORTED')
  expect(await outcome(Buffer.alloc(0), 'a.txt')).toBe('txt')
  expect(await outcome(Buffer.alloc(0), 'a.pdf')).toBe('txt')
})

const WHOLE: readonly (readonly [string, Buffer])[] = [
  ['a.pdf', pdf()],
  ['a.docx', docx()],
  ['a.xlsx', xlsx()],
  ['a.pptx', pptx()],
  ['a.odt', openDocument('text')],
  ['a.epub', epub()],
  ['a.rtf', rtf('cp1251')],
  ['a.eml', eml()],
  ['a.msg', msg()],
  ['a.html', html()],
]

test.for(WHOLE)('[L-02] a truncated %s is text or broken, and never more than that', async ([name, bytes]) => {
  for (const share of [0.05, 0.3, 0.5, 0.9, 0.99]) {
    const end = await outcome(bytes.subarray(0, Math.floor(bytes.length * share)), name)
    expect(['BROKEN', 'UNSUPPORTED', 'ENCRYPTED', 'txt', name.slice(2)]).toContain(end)
  }
})

test.for(WHOLE)('[L-02] a damaged %s is text or broken, and never more than that', async ([name, bytes]) => {
  let seed = 7
  const next = (bound: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % bound
  }
  for (let round = 0; round < 20; round += 1) {
    const damaged = Buffer.from(bytes)
    for (let hit = 0; hit < 10; hit += 1) damaged[next(damaged.length)] = next(256)
    await expect(outcome(damaged, name)).resolves.toMatch(/^\w+$/)
  }
})

test('[L-02] RTF that nests without end, and tags without end, are refused', async () => {
  expect(await outcome(Buffer.from(`{\\rtf1 ${'{'.repeat(20_000)}`), 'a.rtf')).toBe('BROKEN')
  expect(await outcome(Buffer.from(`<?xml version="1.0"?><a b="${'x'.repeat(3_000_000)}`), 'a.xml')).toBe('BROKEN')
  expect(await outcome(Buffer.from('<div>'.repeat(200_000)), 'a.html')).toBe('html')
  expect(await outcome(Buffer.from('['.repeat(100_000)), 'a.json')).toBe('json')
})
