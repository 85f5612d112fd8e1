import { getResolvedPDFJS } from 'unpdf'
import type { ByteSource } from '../byte-source.ts'
import { UnreadableError } from '../parsed.ts'
import type { TextSink } from '../text-sink.ts'
import { addIteratorMethods } from './iterator-methods.ts'

export type PdfJs = Awaited<ReturnType<typeof getResolvedPDFJS>>
export type PdfDocument = Awaited<ReturnType<PdfJs['getDocument']>['promise']>
export type PdfPage = Awaited<ReturnType<PdfDocument['getPage']>>

/** Read at a time. Most of a large PDF is pictures, which are never read. */
const RANGE_BYTES = 262_144
/** A hyphen at the end of a line, and the rest of the word in the next. */
const PARTED = /(?<=\p{Ll})[-\u00AD\u2010]\n(?=\p{Ll})/gu

export function openPdf(pdfjs: PdfJs, source: ByteSource): ReturnType<PdfJs['getDocument']> {
  addIteratorMethods()
  return pdfjs.getDocument({
    range: rangesOf(pdfjs, source),
    rangeChunkSize: RANGE_BYTES,
    disableAutoFetch: true,
    disableStream: true,
    useSystemFonts: true,
    isEvalSupported: false,
    verbosity: 0,
  })
}

export async function readPdf(source: ByteSource, sink: TextSink): Promise<void> {
  const pdfjs = await getResolvedPDFJS()
  const task = openPdf(pdfjs, source)
  try {
    const document = await task.promise
    sink.suggestTitle(await titleOf(document))
    let failures = 0
    for (let number = 1; number <= document.numPages && !sink.isFull; number += 1) {
      failures += (await readPage(document, number, sink)) ? 0 : 1
    }
    // A page that cannot be read is left out; a document without any is broken.
    if (failures > 0 && failures === document.numPages) throw new UnreadableError('BROKEN', 'no page can be read.')
  } catch (error) {
    throw reasonOf(error)
  } finally {
    await task.destroy()
  }
}

async function readPage(document: PdfDocument, number: number, sink: TextSink): Promise<boolean> {
  try {
    const page = await document.getPage(number)
    sink.add(await textOf(page))
    sink.break()
    for (const note of await notesOn(page)) sink.line(note)
    page.cleanup()
    return true
  } catch (error) {
    if (error instanceof UnreadableError) throw error
    return false
  }
}

async function textOf(page: PdfPage): Promise<string> {
  const { items } = await page.getTextContent()
  const pieces: string[] = []
  for (const item of items) {
    if (!('str' in item)) continue
    pieces.push(item.str)
    if (item.hasEOL) pieces.push('\n')
  }
  return pieces.join('').replaceAll(PARTED, '').normalize('NFKC')
}

/** What was filled into the fields of a form, and written onto the page: notes, comments. A password is nobody's business. */
async function notesOn(page: PdfPage): Promise<ReadonlySet<string>> {
  const notes = new Set<string>()
  try {
    // Boundary: the types of the library call them anything.
    for (const one of (await page.getAnnotations()) as readonly Annotation[]) {
      if (one.hidden === true || one.password === true) continue
      for (const text of [one.fieldValue, one.contentsObj?.str].flat()) {
        if (typeof text === 'string' && text.trim() !== '') notes.add(text.replaceAll('\r', '\n').normalize('NFKC'))
      }
    }
  } catch {
    // The text of the page is worth more than notes that are broken.
  }
  return notes
}

interface Annotation {
  readonly hidden?: boolean
  readonly password?: boolean
  readonly fieldValue?: unknown
  readonly contentsObj?: { readonly str?: unknown }
}

async function titleOf(document: PdfDocument): Promise<string | undefined> {
  try {
    const { info } = await document.getMetadata()
    const title: unknown = 'Title' in info ? info.Title : undefined
    return typeof title === 'string' ? title : undefined
  } catch {
    return undefined
  }
}

/** The document asks for the parts that it needs. */
function rangesOf(pdfjs: PdfJs, source: ByteSource): InstanceType<PdfJs['PDFDataRangeTransport']> {
  const first = new Uint8Array(source.read(0, RANGE_BYTES))
  const transport = new pdfjs.PDFDataRangeTransport(source.size, first)
  transport.requestDataRange = (begin: number, end: number): void => {
    transport.onDataRange(begin, new Uint8Array(source.read(begin, end - begin)))
  }
  return transport
}

export function reasonOf(error: unknown): Error {
  if (error instanceof UnreadableError) return error
  const name = error instanceof Error ? error.name : ''
  if (name === 'PasswordException') return new UnreadableError('ENCRYPTED')
  return new UnreadableError('BROKEN', error instanceof Error ? error.message : String(error))
}
