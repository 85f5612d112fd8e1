import { basename } from 'node:path'
import { decodeText } from '../text/charset.ts'
import { BufferSource, piecesOf } from './byte-source.ts'
import type { ByteSource } from './byte-source.ts'
import type { Attachment } from './formats/outlook.ts'
import { readMarkdown, readPlain, readJsonText, readTable } from './formats/plain.ts'
import { RtfReader } from './formats/rtf.ts'
import { ZipArchive } from './formats/zip.ts'
import { familyOf, kindByName, mayBeDocument, textKind, WORD_MAIN } from './kind.ts'
import type { Kind } from './kind.ts'
import { UnreadableError } from './parsed.ts'
import type { Parsed, ParseLimits } from './parsed.ts'
import { TextSink } from './text-sink.ts'

/** Documents in archives in archives: no further than this. */
const DEPTH_MAX = 3
const MEMBERS_MAX = 1_000
const MEMBER_BYTES_MAX = 33_554_432
/** Formats that have to be whole in memory are read up to here. */
const WHOLE_BYTES_MAX = 67_108_864

/** Reads one document. Heavy readers are loaded when their first file comes. */
export async function readDocument(source: ByteSource, name: string, limits: ParseLimits): Promise<Parsed> {
  const sink = new TextSink(limits)
  const kind = await readInto(sink, source, name, 0)
  return { kind, title: sink.title, text: sink.text(), isTruncated: sink.isTruncated }
}

async function readInto(sink: TextSink, source: ByteSource, name: string, depth: number): Promise<Kind> {
  switch (familyOf(source)) {
    case 'pdf': {
      const { readPdf } = await import('./formats/pdf.ts')
      await readPdf(source, sink)
      return 'pdf'
    }
    case 'zip':
      return readPacked(sink, source, depth)
    case 'rtf':
      new RtfReader(wholeOf(source, sink).toString('latin1'), sink).read()
      return 'rtf'
    case 'compound': {
      const { readOutlook } = await import('./formats/outlook.ts')
      await readAttachments(sink, readOutlook(source, sink), depth)
      return 'msg'
    }
    case 'text':
      return readTextual(sink, source, name, depth)
    case 'binary':
      throw damagedOrUnknown(name)
  }
}

/** A file whose name promises a format that its bytes are not. */
function damagedOrUnknown(name: string): UnreadableError {
  const promised = kindByName(name)
  if (promised === undefined) return new UnreadableError('UNSUPPORTED')
  return new UnreadableError('BROKEN', `its content is no ${promised}.`)
}

const PACKED_NAMES: ReadonlySet<Kind> = new Set<Kind>([
  'docx',
  'xlsx',
  'pptx',
  'odt',
  'ods',
  'odp',
  'epub',
  'zip',
  'pdf',
  'msg',
  'rtf',
])

async function readTextual(sink: TextSink, source: ByteSource, name: string, depth: number): Promise<Kind> {
  const promised = kindByName(name)
  // An empty file has nothing that could be wrong.
  if (promised !== undefined && PACKED_NAMES.has(promised) && source.size > 0) throw damagedOrUnknown(name)
  const { declaredCharset } = await import('./formats/html.ts')
  const bytes = wholeOf(source, sink)
  const kind = textKind(name, bytes.subarray(0, 4_096).toString('latin1'))
  if (kind === 'xml') {
    await readMarkup(sink, source)
    return kind
  }
  if (kind === 'eml') {
    const { readMail } = await import('./formats/mail.ts')
    await readAttachments(sink, await readMail(bytes, sink), depth)
    return kind
  }
  if (kind === 'mbox') {
    const { mailsIn, readMail } = await import('./formats/mail.ts')
    for (const mail of mailsIn(bytes)) {
      if (sink.isFull) break
      await readAttachments(sink, await readMail(mail, sink), depth)
    }
    return kind
  }
  // A few bytes for each character at most: more of the file cannot be kept anyway.
  const used = bytes.subarray(0, sink.room * 4)
  const { text } = decodeText(used, kind === 'html' ? declaredCharset(bytes) : undefined)
  if (kind === 'html') {
    const { readHtml } = await import('./formats/html.ts')
    readHtml(text, sink)
  } else if (kind === 'md') readMarkdown(text, sink)
  else if (kind === 'csv') readTable(text, sink)
  else if (kind === 'json') readJsonText(text, sink)
  else readPlain(text, sink)
  return kind
}

/** Any XML: the texts between tags, and what attributes say. */
async function readMarkup(sink: TextSink, source: ByteSource): Promise<void> {
  const { XmlReader } = await import('./formats/xml.ts')
  const reader = new XmlReader({
    open: (_name, attributes) => {
      for (const value of attributes.values()) sink.add(` ${value} `)
    },
    close: () => sink.break(),
    text: (text) => sink.add(text),
  })
  for (const piece of piecesOf(source)) {
    reader.write(piece)
    if (sink.isFull) return
  }
  reader.end()
}

async function readPacked(sink: TextSink, source: ByteSource, depth: number): Promise<Kind> {
  const archive = new ZipArchive(source)
  const kind = await packedKind(archive, sink)
  const office = await import('./formats/office.ts')
  if (kind === 'docx') await office.readWord(archive, sink)
  else if (kind === 'xlsx') await office.readSheets(archive, sink)
  else if (kind === 'pptx') await office.readSlides(archive, sink)
  else if (kind === 'odt' || kind === 'ods' || kind === 'odp') await office.readOpenDocument(archive, sink)
  else if (kind === 'epub') {
    const { readEpub } = await import('./formats/epub.ts')
    await readEpub(archive, sink)
  } else await readArchive(sink, archive, depth)
  if (kind === 'odt') await office.readPageEdges(archive, sink)
  if (kind === 'docx' || kind === 'xlsx' || kind === 'pptx') {
    await readEmbedded(sink, archive, office.embeddedIn(archive), depth)
  }
  return kind
}

async function readEmbedded(
  sink: TextSink,
  archive: ZipArchive,
  names: readonly string[],
  depth: number,
): Promise<void> {
  for (const name of names.slice(0, MEMBERS_MAX)) {
    const entry = archive.entries.get(name)
    if (entry === undefined || entry.isEncrypted || sink.isFull || depth + 1 >= DEPTH_MAX) continue
    await readMember(sink, () => archive.bytes(entry, sink, MEMBER_BYTES_MAX), name, depth)
  }
}

const MIME_TYPES: readonly (readonly [string, Kind])[] = [
  ['application/epub+zip', 'epub'],
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/vnd.oasis.opendocument.presentation', 'odp'],
]

async function packedKind(archive: ZipArchive, sink: TextSink): Promise<Kind> {
  const { entries } = archive
  if ([...entries.keys()].some((name) => WORD_MAIN.test(name))) return 'docx'
  if (archive.entryNamed('xl/workbook.xml') !== undefined) return 'xlsx'
  if (archive.entryNamed('ppt/presentation.xml') !== undefined) return 'pptx'
  const mimeType = entries.get('mimetype')
  if (mimeType === undefined) return entries.has('META-INF/container.xml') ? 'epub' : 'zip'
  const type = (await archive.bytes(mimeType, sink, 200)).toString('latin1').trim()
  if (type.includes('opendocument') && (await isProtected(archive, sink))) throw new UnreadableError('ENCRYPTED')
  return MIME_TYPES.find(([prefix]) => type.startsWith(prefix))?.[1] ?? 'zip'
}

async function isProtected(archive: ZipArchive, sink: TextSink): Promise<boolean> {
  const manifest = archive.entries.get('META-INF/manifest.xml')
  if (manifest === undefined) return false
  return (await archive.bytes(manifest, sink, 1_048_576)).includes('encryption-data')
}

/** An archive of documents: every name, and the text of every member that can be read. */
async function readArchive(sink: TextSink, archive: ZipArchive, depth: number): Promise<void> {
  let count = 0
  for (const entry of archive.entries.values()) {
    if (sink.isFull) return
    if (entry.name.endsWith('/')) continue
    count += 1
    if (count > MEMBERS_MAX) {
      sink.truncate()
      return
    }
    sink.line(entry.name)
    if (depth + 1 >= DEPTH_MAX || entry.isEncrypted || !mayBeDocument(entry.name)) continue
    await readMember(sink, () => archive.bytes(entry, sink, MEMBER_BYTES_MAX), entry.name, depth)
  }
}

async function readAttachments(sink: TextSink, attachments: readonly Attachment[], depth: number): Promise<void> {
  for (const { name, bytes } of attachments.slice(0, MEMBERS_MAX)) {
    sink.line(name)
    if (depth + 1 >= DEPTH_MAX || !mayBeDocument(name)) continue
    await readMember(sink, async () => bytes, name, depth)
  }
}

/** A member that cannot be read does not harm the others; one that unpacks without end does. */
async function readMember(sink: TextSink, read: () => Promise<Uint8Array>, name: string, depth: number): Promise<void> {
  try {
    await readInto(sink, new BufferSource(await read()), basename(name), depth + 1)
    sink.break()
  } catch (error) {
    if (!(error instanceof UnreadableError) || error.code === 'TOO_LARGE') throw error
  }
}

function wholeOf(source: ByteSource, sink: TextSink): Buffer {
  if (source.size > WHOLE_BYTES_MAX) sink.truncate()
  return source.read(0, WHOLE_BYTES_MAX)
}
