import { WORD_MAIN } from '../kind.ts'
import type { TextSink } from '../text-sink.ts'
import { readXml } from './xml.ts'
import type { XmlHandler } from './xml.ts'
import type { ZipArchive } from './zip.ts'

const HEADINGS = /^(?:title|heading1|1|название|заголовок1)$/i

/** Word: the text of paragraphs in their order, then what stands around it. Deleted text and field codes are no text. */
export async function readWord(archive: ZipArchive, sink: TextSink): Promise<void> {
  await readCoreTitle(archive, sink)
  const main = namesLike(archive, WORD_MAIN)
  const around = namesLike(archive, /^word\/(?:footnotes|endnotes|comments|header|footer)\d*\.xml$/i)
  for (const name of [...main, ...around]) await readPart(archive, name, sink, wordHandler(sink))
  await readDrawings(archive, sink)
}

/** Documents inside of a document: pieces of other formats that its text is put together from, and what is embedded in it. */
export function embeddedIn(archive: ZipArchive): readonly string[] {
  return namesLike(
    archive,
    /^(?:word\/|ppt\/|xl\/)?(?:embeddings\/[^/]+\.(?:docx|xlsx|pptx|pdf|rtf|txt)|[^/]+\.(?:mhtm?l?|html?|rtf|docx))$/i,
  )
}

/** Charts, diagrams, and text boxes on sheets: the captions and names in them. */
async function readDrawings(archive: ZipArchive, sink: TextSink): Promise<void> {
  const parts = /^(?:word|xl|ppt)\/(?:charts\/chart|diagrams\/data|drawings\/drawing)\d*\.xml$/i
  for (const name of namesLike(archive, parts)) await readPart(archive, name, sink, drawingHandler(sink))
}

function drawingHandler(sink: TextSink): XmlHandler {
  const handler = wordHandler(sink)
  let caches = 0
  let isValue = false
  return {
    open(name, attributes) {
      if (name === 'strCache') caches += 1
      isValue = name === 'v' && caches > 0
      handler.open?.(name, attributes)
    },
    close(name) {
      if (name === 'strCache') caches -= 1
      isValue = false
      handler.close?.(name)
    },
    text(text) {
      if (isValue) sink.line(text)
      else handler.text?.(text)
    },
  }
}

function wordHandler(sink: TextSink): XmlHandler {
  let isText = false
  let fallbacks = 0
  let heading: string | undefined
  return {
    open(name, attributes) {
      if (name === 'Fallback') fallbacks += 1
      if (fallbacks > 0) return
      if (name === 't') isText = true
      else if (name === 'tab') sink.add('\t')
      else if (name === 'br' || name === 'cr') sink.break()
      else if (name === 'noBreakHyphen') sink.add('-')
      else if (name === 'pStyle' && sink.title === '' && HEADINGS.test(attributes.get('val') ?? '')) heading = ''
    },
    close(name) {
      // The same content once more, for programs that do not know the newer form.
      if (name === 'Fallback') fallbacks -= 1
      if (fallbacks > 0) return
      if (name === 't') isText = false
      else if (name === 'p') {
        sink.break()
        if (heading !== undefined && heading !== '') sink.suggestTitle(heading)
        heading = undefined
      }
    },
    text(text) {
      if (!isText || fallbacks > 0) return
      sink.add(text)
      if (heading !== undefined) heading += text
    },
  }
}

export async function readSlides(archive: ZipArchive, sink: TextSink): Promise<void> {
  await readCoreTitle(archive, sink)
  const slides = byNumber(namesLike(archive, /^ppt\/slides\/slide\d+\.xml$/i))
  const notes = byNumber(namesLike(archive, /^ppt\/notesSlides\/notesSlide\d+\.xml$/i))
  const comments = namesLike(archive, /^ppt\/comments\/[^/]+\.xml$/i)
  for (const name of [...slides, ...notes]) await readPart(archive, name, sink, wordHandler(sink))
  for (const name of comments) await readPart(archive, name, sink, commentHandler(sink))
  await readDrawings(archive, sink)
}

/** A comment has its text in one element, or in paragraphs, as newer programs write it. */
function commentHandler(sink: TextSink): XmlHandler {
  let isText = false
  return {
    open: (name) => {
      isText = name === 'text' || name === 't'
    },
    close: (name) => {
      isText = false
      if (name === 'text' || name === 'p') sink.break()
    },
    text: (text) => {
      if (isText) sink.add(text)
    },
  }
}

/** Excel: the cells of every sheet, row by row. */
export async function readSheets(archive: ZipArchive, sink: TextSink): Promise<void> {
  await readCoreTitle(archive, sink)
  const names: string[] = []
  await readPart(archive, 'xl/workbook.xml', sink, {
    open: (name, attributes) => {
      if (name === 'sheet') names.push(attributes.get('name') ?? '')
    },
  })
  const shared = await readSharedStrings(archive, sink)
  const dates = await readDateStyles(archive, sink)
  const sheets = byNumber(namesLike(archive, /^xl\/worksheets\/[^/]+\.xml$/i))
  for (const [index, name] of sheets.entries()) {
    sink.line(names[index] ?? '')
    await readPart(archive, name, sink, sheetHandler(sink, shared, dates))
  }
  const comments = namesLike(archive, /^xl\/(?:comments\d*|(?:comments|threadedComments)\/[^/]+)\.xml$/i)
  for (const name of comments) await readPart(archive, name, sink, commentHandler(sink))
  await readDrawings(archive, sink)
}

async function readSharedStrings(archive: ZipArchive, sink: TextSink): Promise<readonly string[]> {
  const strings: string[] = []
  let chars = 0
  let current = ''
  let isText = false
  let phonetic = 0
  const handler: XmlHandler = {
    open: (name) => {
      if (name === 'si') current = ''
      else if (name === 't') isText = true
      else if (name === 'rPh') phonetic += 1
    },
    close: (name) => {
      if (name === 't') isText = false
      else if (name === 'rPh') phonetic -= 1
      else if (name === 'si') {
        strings.push(current)
        chars += current.length
      }
    },
    text: (text) => {
      if (isText && phonetic === 0) current += text
    },
  }
  // Strings that no cell shows cost memory, so they are bounded like the text itself.
  await readPart(archive, 'xl/sharedStrings.xml', sink, handler, () => chars > 4 * sink.room)
  return strings
}

/** The numbers of the cell styles that show a date. */
async function readDateStyles(archive: ZipArchive, sink: TextSink): Promise<ReadonlySet<string>> {
  const custom = new Set<string>()
  const dates = new Set<string>()
  let isCell = false
  let index = 0
  await readPart(archive, 'xl/styles.xml', sink, {
    open: (name, attributes) => {
      if (name === 'numFmt' && isDateFormat(attributes.get('formatCode') ?? '')) {
        custom.add(attributes.get('numFmtId') ?? '')
      } else if (name === 'cellXfs') isCell = true
      else if (name === 'xf' && isCell) {
        const format = attributes.get('numFmtId') ?? ''
        if (custom.has(format) || isBuiltInDate(Number(format))) dates.add(String(index))
        index += 1
      }
    },
    close: (name) => {
      if (name === 'cellXfs') isCell = false
    },
  })
  return dates
}

function isBuiltInDate(format: number): boolean {
  return (format >= 14 && format <= 17) || format === 22
}

function isDateFormat(code: string): boolean {
  const bare = code.replaceAll(/"[^"]*"|\[[^\]]*\]|\\./g, '')
  return /[dy]/i.test(bare) && !/[#?]/.test(bare)
}

function sheetHandler(sink: TextSink, shared: readonly string[], dates: ReadonlySet<string>): XmlHandler {
  let type = ''
  let style = ''
  let value = ''
  let isValue = false
  return {
    open: (name, attributes) => {
      if (name === 'c') {
        type = attributes.get('t') ?? ''
        style = attributes.get('s') ?? ''
        value = ''
      } else if (name === 'v' || name === 't') isValue = true
    },
    close: (name) => {
      if (name === 'v' || name === 't') isValue = false
      else if (name === 'c') {
        const text = type === 's' ? shared[Number(value)] : type === '' && dates.has(style) ? dateOf(value) : value
        if (text !== undefined && text !== '') sink.add(`${text}\t`)
      } else if (name === 'row') sink.break()
    },
    text: (text) => {
      if (isValue) value += text
    },
  }
}

/** Days since the end of 1899, as the cell shows them. */
function dateOf(serial: string): string {
  const days = Number(serial)
  if (!Number.isFinite(days) || days <= 0 || days > 2_958_465) return serial
  const at = new Date(Math.round((days - 25_569) * 86_400) * 1_000).toISOString()
  return days % 1 === 0 ? at.slice(0, 10) : `${at.slice(0, 10)} ${at.slice(11, 16)}`
}

/** Writer, Calc, Impress: one file holds everything. */
export async function readOpenDocument(archive: ZipArchive, sink: TextSink): Promise<void> {
  await readTitle(archive, 'meta.xml', sink)
  await readPart(archive, 'content.xml', sink, openDocumentHandler(sink))
}

/** The texts at the top and bottom of the pages of a text document. */
export async function readPageEdges(archive: ZipArchive, sink: TextSink): Promise<void> {
  const handler = openDocumentHandler(sink)
  let masters = 0
  await readPart(archive, 'styles.xml', sink, {
    open: (name, attributes) => {
      if (name === 'master-styles') masters += 1
      if (masters > 0) handler.open?.(name, attributes)
    },
    close: (name) => {
      if (masters > 0) handler.close?.(name)
      if (name === 'master-styles') masters -= 1
    },
    text: (text) => {
      if (masters > 0) handler.text?.(text)
    },
  })
}

function openDocumentHandler(sink: TextSink): XmlHandler {
  let skipped = 0
  let paragraphs = 0
  return {
    open: (name, attributes) => {
      if (name === 'tracked-changes' || name === 'automatic-styles') skipped += 1
      else if (name === 'p' || name === 'h') paragraphs += 1
      else if (name === 'tab') sink.add('\t')
      else if (name === 'line-break') sink.break()
      else if (name === 's') sink.add(' '.repeat(Math.min(Number(attributes.get('c') ?? '1') || 1, 100)))
    },
    close: (name) => {
      if (name === 'tracked-changes' || name === 'automatic-styles') skipped -= 1
      else if (name === 'p' || name === 'h') {
        paragraphs -= 1
        sink.break()
      }
    },
    text: (text) => {
      if (skipped === 0 && paragraphs > 0) sink.add(text)
    },
  }
}

async function readCoreTitle(archive: ZipArchive, sink: TextSink): Promise<void> {
  await readTitle(archive, 'docProps/core.xml', sink)
}

async function readTitle(archive: ZipArchive, part: string, sink: TextSink): Promise<void> {
  let title = ''
  let isTitle = false
  await readPart(archive, part, sink, {
    open: (name) => {
      isTitle = name === 'title'
    },
    close: () => {
      isTitle = false
    },
    text: (text) => {
      if (isTitle && title.length < 1_000) title += text
    },
  })
  sink.suggestTitle(title)
}

export async function readPart(
  archive: ZipArchive,
  name: string,
  sink: TextSink,
  handler: XmlHandler,
  isEnough: () => boolean = () => false,
): Promise<void> {
  const entry = archive.entryNamed(name)
  if (entry === undefined || sink.isFull) return
  await readXml(archive.pieces(entry, sink), handler, () => sink.isFull || isEnough())
}

function namesLike(archive: ZipArchive, pattern: RegExp): readonly string[] {
  return [...archive.entries.keys()].filter((name) => pattern.test(name))
}

function byNumber(names: readonly string[]): readonly string[] {
  const numberIn = (name: string): number => Number(/(\d+)\.xml$/.exec(name)?.[1] ?? 0)
  return names.toSorted((a, b) => numberIn(a) - numberIn(b))
}
