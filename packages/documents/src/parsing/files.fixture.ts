import { zipOf } from './zip.fixture.ts'

/** Prose in both languages, with codes, ё, quotes and characters that markup has to escape. */
export const PARAGRAPHS: readonly string[] = [
  'Договор аренды нежилого помещения № АБ-123/4 заключён в городе Санкт-Петербурге.',
  'Арендодатель передаёт, а арендатор принимает во временное пользование помещение площадью 125,5 кв. м.',
  'The tenant pays the rent quarterly, not later than the 10th day of the month; late payments bear interest.',
  'Стороны «освобождаются» от ответственности & штрафов, если <исполнение> оказалось невозможным.',
  'Quarterly reports were being delivered by the supplier, and several agreements had already expired.',
  'Ёлочные украшения, вьюга, съёмка, объём, подъезд, мышь и чёрный кофе встречаются в этом абзаце.',
]
export const TITLE = 'Договор аренды 2024'
export const TEXT = PARAGRAPHS.join('\n')

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const typesPart = (type: string, part: string): string =>
  `${HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/${part}" ContentType="${type}"/></Types>`
const relationsPart = (part: string): string =>
  `${HEAD}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="${part}"/></Relationships>`
const corePart = (title: string): string =>
  `${HEAD}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>${xml(title)}</dc:title></cp:coreProperties>`

export function docx(paragraphs = PARAGRAPHS, title = TITLE): Buffer {
  const body = paragraphs.map(
    (text) =>
      `<w:p w:rsidR="00A1B2C3"><w:r><w:t xml:space="preserve">${xml(text.slice(0, 12))}</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">${xml(text.slice(12))}</w:t></w:r></w:p>`,
  )
  const deleted =
    '<w:p><w:del><w:r><w:delText>вычеркнуто</w:delText></w:r></w:del><w:r><w:instrText>PAGEREF</w:instrText></w:r></w:p>'
  return zipOf([
    {
      name: '[Content_Types].xml',
      content: typesPart(
        'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml',
        'word/document.xml',
      ),
    },
    { name: '_rels/.rels', content: relationsPart('word/document.xml') },
    { name: 'docProps/core.xml', content: corePart(title) },
    {
      name: 'word/document.xml',
      content: `${HEAD}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body.join('')}${deleted}</w:body></w:document>`,
    },
  ])
}

export function xlsx(paragraphs = PARAGRAPHS): Buffer {
  const rows = paragraphs.map(
    (_text, index) =>
      `<row r="${index + 1}"><c r="A${index + 1}" t="s"><v>${index}</v></c><c r="B${index + 1}"><v>${index * 1.5}</v></c></row>`,
  )
  const inline = `<row r="99"><c r="A99" t="inlineStr"><is><t>встроенная строка</t></is></c><c r="B99" s="1"><v>45366</v></c></row>`
  return zipOf([
    {
      name: '[Content_Types].xml',
      content: typesPart(
        'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml',
        'xl/workbook.xml',
      ),
    },
    { name: '_rels/.rels', content: relationsPart('xl/workbook.xml') },
    {
      name: 'xl/workbook.xml',
      content: `${HEAD}<workbook><sheets><sheet name="Смета" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    },
    {
      name: 'xl/styles.xml',
      content: `${HEAD}<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    },
    {
      name: 'xl/sharedStrings.xml',
      content: `${HEAD}<sst>${paragraphs.map((text) => `<si><t>${xml(text)}</t></si>`).join('')}</sst>`,
    },
    {
      name: 'xl/worksheets/sheet1.xml',
      content: `${HEAD}<worksheet><sheetData>${rows.join('')}${inline}</sheetData></worksheet>`,
    },
  ])
}

export function pptx(paragraphs = PARAGRAPHS): Buffer {
  const slide = (text: string): string =>
    `${HEAD}<p:sld xmlns:a="a" xmlns:p="p"><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>${xml(text)}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>`
  return zipOf([
    {
      name: '[Content_Types].xml',
      content: typesPart(
        'application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml',
        'ppt/presentation.xml',
      ),
    },
    { name: 'ppt/presentation.xml', content: `${HEAD}<p:presentation xmlns:p="p"/>` },
    ...paragraphs.map((text, index) => ({ name: `ppt/slides/slide${index + 1}.xml`, content: slide(text) })),
  ])
}

export function openDocument(kind: 'text' | 'spreadsheet' | 'presentation', paragraphs = PARAGRAPHS): Buffer {
  const lines = paragraphs.map((text) => `<text:p>${xml(text)}</text:p>`)
  const body = {
    text: lines.join(''),
    spreadsheet: `<table:table>${lines.map((line) => `<table:table-row><table:table-cell>${line}</table:table-cell></table:table-row>`).join('')}</table:table>`,
    presentation: `<draw:page>${lines.map((line) => `<draw:frame><draw:text-box>${line}</draw:text-box></draw:frame>`).join('')}</draw:page>`,
  }[kind]
  const names =
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
  return zipOf([
    { name: 'mimetype', content: `application/vnd.oasis.opendocument.${kind}`, isStored: true },
    { name: 'META-INF/manifest.xml', content: `${HEAD}<manifest:manifest/>` },
    {
      name: 'meta.xml',
      content: `${HEAD}<office:document-meta ${names}><office:meta><dc:title>${TITLE}</dc:title></office:meta></office:document-meta>`,
    },
    {
      name: 'content.xml',
      content: `${HEAD}<office:document-content ${names}><office:body><office:${kind}>${body}</office:${kind}></office:body></office:document-content>`,
    },
  ])
}

export function epub(paragraphs = PARAGRAPHS): Buffer {
  const chapter = (text: string): string =>
    `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><p>${xml(text)}</p></body></html>`
  return zipOf([
    { name: 'mimetype', content: 'application/epub+zip', isStored: true },
    {
      name: 'META-INF/container.xml',
      content: `${HEAD}<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`,
    },
    {
      name: 'OEBPS/book.opf',
      content: `${HEAD}<package><metadata><dc:title>${TITLE}</dc:title></metadata><manifest>${paragraphs.map((_text, index) => `<item id="c${index}" href="c%20${index}.xhtml"/>`).join('')}</manifest><spine>${paragraphs.map((_text, index) => `<itemref idref="c${index}"/>`).join('')}</spine></package>`,
    },
    ...paragraphs.map((text, index) => ({ name: `OEBPS/c ${index}.xhtml`, content: chapter(text) })),
  ])
}

/** With letters as bytes of cp1251, or as numbers. */
export function rtf(encoding: 'cp1251' | 'unicode', paragraphs = PARAGRAPHS): Buffer {
  const encoded = (char: string): string => {
    if (char === '\\' || char === '{' || char === '}') return `\\${char}`
    const code = char.charCodeAt(0)
    if (code < 128) return char
    if (encoding === 'unicode') return `\\u${code > 32_767 ? code - 65_536 : code}?`
    return `\\'${(cp1251.get(char) ?? 0x3f).toString(16)}`
  }
  const body = paragraphs.map((text) => `\\pard\\f1 ${Array.from(text, encoded).join('')}\\par\n`).join('')
  const title = Array.from(TITLE, encoded).join('')
  return Buffer.from(
    `{\\rtf1\\ansi\\ansicpg1251\\uc1{\\fonttbl{\\f0\\fcharset0 Arial;}{\\f1\\fcharset204 Arial;}}{\\info{\\title ${title}}}{\\*\\generator Word;}${body}}`,
    'latin1',
  )
}

const cp1251 = new Map<string, number>(bytesOf('windows-1251').map(([char, byte]) => [char, byte]))

function bytesOf(charset: string): (readonly [string, number])[] {
  const decoder = new TextDecoder(charset)
  return Array.from(
    { length: 128 },
    (_, index) => [decoder.decode(Uint8Array.from([index + 128])), index + 128] as const,
  )
}

/** A text in an old charset; characters that it does not have become a question mark. */
export function encodeAs(charset: string, text: string): Buffer {
  if (charset === 'utf-16le') return Buffer.from(text, 'utf16le')
  if (charset === 'utf-16be') return Buffer.from(text, 'utf16le').swap16()
  const known = new Map(bytesOf(charset))
  return Buffer.from(
    Array.from(text, (char) => (char.charCodeAt(0) < 128 ? char.charCodeAt(0) : (known.get(char) ?? 0x3f))),
  )
}

export function eml(text = TEXT): Buffer {
  const subject = `=?koi8-r?B?${encodeAs('koi8-r', TITLE).toString('base64')}?=`
  const attached = docx(['Вложение содержит протокол разногласий.'], '').toString('base64')
  return Buffer.from(
    [
      'From: =?utf-8?B?0JjQstCw0L0=?= <ivan@example.org>',
      'To: anna@example.org',
      `Subject: ${subject}`,
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary="b1"',
      '',
      '--b1',
      'Content-Type: text/plain; charset=koi8-r',
      'Content-Transfer-Encoding: base64',
      '',
      encodeAs('koi8-r', text).toString('base64'),
      '--b1',
      'Content-Type: application/octet-stream; name="protocol.docx"',
      'Content-Disposition: attachment; filename="protocol.docx"',
      'Content-Transfer-Encoding: base64',
      '',
      attached,
      '--b1--',
      '',
    ].join('\r\n'),
  )
}

export function html(charset = 'utf8', text = PARAGRAPHS): Buffer {
  const page = `<!DOCTYPE html><html><head><meta charset="${charset}"><title>${TITLE}</title><style>p{color:скрыто}</style><script>var a = "спрятано</p>"</script></head><body>${text.map((line) => `<p>${xml(line)}</p>`).join('')}<p>&laquo;Конец&raquo;&nbsp;&#8212; &amp;c</body></html>`
  return charset === 'utf8' ? Buffer.from(page) : encodeAs(charset, page)
}

/** A PDF whose fonts name their letters by ToUnicode tables, as every office program writes them. */
export function pdf(lines: readonly string[] = PARAGRAPHS): Buffer {
  const chars = [...new Set(lines.join(''))]
  const codeOf = new Map(chars.map((char, index) => [char, index + 1]))
  const hex = (value: number): string => value.toString(16).padStart(4, '0')
  const shown = (line: string): string => `<${Array.from(line, (char) => hex(codeOf.get(char) ?? 0)).join('')}> Tj`
  const page = `BT /F1 9 Tf 12 TL 40 800 Td ${lines.map((line) => `${shown(line)} T*`).join('\n')} ET`
  const table = chars.map((char, index) => `<${hex(index + 1)}> <${hex(char.charCodeAt(0))}>`)
  const groups: string[] = []
  for (let at = 0; at < table.length; at += 100) {
    const part = table.slice(at, at + 100)
    groups.push(`${part.length} beginbfchar\n${part.join('\n')}\nendbfchar`)
  }
  const map = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def 1 begincodespacerange <0000> <ffff> endcodespacerange ${groups.join('\n')} endcmap end end`
  const stream = (content: string): string =>
    `<< /Length ${Buffer.byteLength(content)} >>\nstream\n${content}\nendstream`
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    stream(page),
    '<< /Type /Font /Subtype /Type0 /BaseFont /Arial /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 7 0 R >>',
    '<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Arial /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor 8 0 R /DW 500 >>',
    stream(map),
    '<< /Type /FontDescriptor /FontName /Arial /Flags 4 /FontBBox [0 0 500 700] /ItalicAngle 0 /Ascent 700 /Descent 0 /CapHeight 700 /StemV 80 >>',
  ])
}

export function pdfOf(objects: readonly string[], trailer = ''): Buffer {
  let file = '%PDF-1.7\n'
  const offsets = objects.map((object, index) => {
    const at = Buffer.byteLength(file)
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
    return at
  })
  const at = Buffer.byteLength(file)
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')}`
  return Buffer.from(
    `${file}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${at}\n%%EOF\n`,
  )
}
